"""`kind = "chat"`: a language model behind an endpoint that is compatible with OpenAI's."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, model_validator

from coldrun.tasks.arms.answer_text import json_documents
from coldrun.tasks.arms.arm_kind import ArmKind, Unwrapped
from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.arms.service.chat_protocol import read_completion
from coldrun.tasks.config import ServerArm, names_the_question

DEFAULT_LISTING_BYTES = 100_000
"""About 25,000 tokens: what a listing of the corpus may take of a prompt."""

OWN_FIELDS = ("model", "messages", "stream", "n")
"""Fields of the request that coldrun writes itself, or that would ask for several answers."""


class ChatArm(ServerArm):
    """A model: a direct call per question, repeated once on a failure signal where it says so."""

    kind: Literal["chat"]
    url: str
    model: str
    prompt: str
    system: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    listing_bytes: int = Field(default=DEFAULT_LISTING_BYTES, ge=1000)
    retry: Literal["none", "once"] = "none"
    failure_signal: str | None = None
    retry_prompt: str | None = None

    @property
    def may_remember(self) -> bool:
        """A model was trained on what is public; one that is told nothing of the corpus has nothing
        to be asked without."""
        return "{corpus_listing}" in f"{self.system} {self.prompt} {self.retry_prompt}"

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of a request, the model's key included."""
        if self.api_key_env is None:
            return self.headers
        return {**self.headers, "Authorization": f"Bearer ${{{self.api_key_env}}}"}

    @model_validator(mode="after")
    def _retry_has_its_settings(self) -> ChatArm:
        idle = [name for name in ("failure_signal", "retry_prompt") if getattr(self, name)]
        if self.retry == "none" and idle:
            raise ValueError(f'`{idle[0]}` goes with retry = "once"')
        if self.failure_signal is not None:
            try:
                re.compile(self.failure_signal)
            except re.error as error:
                raise ValueError(
                    f"failure_signal = {self.failure_signal!r} is not a pattern: {error}"
                ) from None
        return self

    @model_validator(mode="after")
    def _request_is_one_answer(self) -> ChatArm:
        taken = [name for name in OWN_FIELDS if name in self.parameters]
        if taken:
            raise ValueError(f"parameters.{taken[0]} is written by coldrun; leave it out")
        if not names_the_question(self.prompt):
            raise ValueError("`prompt` has no {query}, so every task would be asked the same")
        return self


def _unwrap(raw: str, _: ChatArm) -> Unwrapped:
    """What the model wrote."""
    content = read_completion(raw).content
    return Unwrapped(documents=list(json_documents([content])), texts=[content], form="text")


def _open_session(context: SessionContext) -> Session:
    from coldrun.tasks.arms.driven_session import open_driven
    from coldrun.tasks.arms.service.chat_driver import ChatDriver

    return open_driven(context, ChatDriver)


CHAT = ArmKind(settings=ChatArm, unwrap=_unwrap, open_session=_open_session)
