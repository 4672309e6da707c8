"""`kind = "http"`: an HTTP service, asked with one POST of JSON per question."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from coldrun.tasks.arms.answer_text import json_documents, read_json
from coldrun.tasks.arms.arm_kind import ArmKind, Unwrapped
from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.config import ServerArm, names_the_question


class HttpArm(ServerArm):
    """A service: `body` is the template of what is posted to it."""

    kind: Literal["http"]
    url: str
    body: dict[str, Any] = Field(default_factory=lambda: {"query": "{query}", "k": "{k}"})

    @model_validator(mode="after")
    def _asks_the_question(self) -> HttpArm:
        if not names_the_question(str(self.body)):
            raise ValueError("`body` has no {query}, so every task would be asked the same")
        return self


def _unwrap(raw: str, arm: HttpArm) -> Unwrapped:
    """JSON, or any text where a pattern reads it."""
    documents = [read_json(raw)] if arm.items_regex is None else list(json_documents([raw]))
    return Unwrapped(documents=documents, texts=[raw], form="json")


def _open_session(context: SessionContext) -> Session:
    from coldrun.tasks.arms.driven_session import open_driven
    from coldrun.tasks.arms.service.http_driver import HttpDriver

    return open_driven(context, HttpDriver)


HTTP = ArmKind(settings=HttpArm, unwrap=_unwrap, open_session=_open_session)
