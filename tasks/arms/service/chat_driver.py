"""A language model behind an OpenAI-compatible endpoint: a direct call, or one that is repeated
once when the answer shows a failure that the deployed system sees as well."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coldrun.tasks.arms.answer_text import MalformedError, shorten
from coldrun.tasks.arms.base import SessionContext
from coldrun.tasks.arms.parse import ParsedAnswer
from coldrun.tasks.arms.service.chat_kind import ChatArm
from coldrun.tasks.arms.service.chat_protocol import (
    CUT_OFF,
    USUAL_STOPS,
    read_completion,
    read_completion_usage,
)
from coldrun.tasks.arms.service.http_driver import EndpointDriver
from coldrun.tasks.arms.templates import fill_arguments, fill_text
from coldrun.tasks.arms.usage import describe_call
from coldrun.tasks.arms.workspace.isolation import Workspace
from coldrun.tasks.lib.records import Attempt, Question, Reply
from coldrun.tasks.lib.safe_json import BadJsonError, load_json

PATH = "/chat/completions"


class ChatDriver(EndpointDriver[ChatArm]):
    """The model of one session; nothing is carried from one question to the next."""

    def __init__(self, context: SessionContext, workspace: Workspace, aborted: threading.Event):
        super().__init__(context, workspace, aborted)
        self._models: dict[str, None] = {}
        self._signalled: str | None = None
        self._listing = ""
        self._listing_warnings: list[str] = []
        templates = f"{self.arm.system}{self.arm.prompt}{self.arm.retry_prompt}"
        if "{corpus_listing}" in templates and workspace.corpus_dir is not None:
            paths = list_corpus(Path(workspace.corpus_dir))
            self._listing, left_out = cut_listing(paths, limit=self.arm.listing_bytes)
            if left_out:
                self._listing_warnings.append(
                    f"was shown {len(paths) - left_out} of the corpus's {len(paths)} paths; "
                    f"listing_bytes = {self.arm.listing_bytes} left out the others"
                )

    def ask(self, question: Question, earlier: Sequence[Reply]) -> Reply:
        """Call the model; after a failure signal, with the follow-up and another seed."""
        if not earlier:
            self._signalled = None
        # A seeded model would give the same answer again.
        seed = question.seed + (self._signalled is not None)
        numbers = {"k": question.k, "seed": seed}
        body = {
            "model": self.arm.model,
            "messages": self._messages(question),
            **fill_arguments(
                self.arm.parameters, {name: str(value) for name, value in numbers.items()}, numbers
            ),
        }
        path = "" if self.arm.url.rstrip("/").endswith(PATH) else PATH
        reply = self.post(path, body)
        usage = _usage_of(reply.raw)
        event = replace(
            describe_call("chat", body, reply.raw),
            position=len(earlier),
            returned_tokens=usage.output_tokens,
        )
        steps = [{"raw": each.raw, "reason": each.attempts[0].reason} for each in earlier]
        reply = replace(
            reply,
            trajectory=json.dumps(steps, ensure_ascii=False) if steps else None,
            attempts=(usage,),
            events=(*(earlier[-1].events if earlier else ()), event),
        )
        return self._read(reply, reply.raw or "") if reply.status == "answered" else reply

    def _read(self, reply: Reply, raw: str) -> Reply:
        """With what the model says of itself: its name, and why it stopped."""
        try:
            completion = read_completion(raw)
        except MalformedError as error:
            return replace(reply, status="infra", reason=f"malformed output: {error}")
        if completion.usage.model is not None:
            self._models[completion.usage.model] = None
            self.name = self.name or completion.usage.model
        stop = completion.stop_reason
        degraded = () if stop in USUAL_STOPS else (f"stopped: {stop}",)
        return replace(reply, stop_reason=stop, degraded=degraded)

    def _messages(self, question: Question) -> list[dict[str, str]]:
        values = {**self.values_of(question), "corpus_listing": self._listing}
        said = (("system", self.arm.system), ("user", self.arm.prompt))
        messages = [
            {"role": role, "content": fill_text(text, values)}
            for role, text in said
            if text is not None
        ]
        if self._signalled is not None and self.arm.retry_prompt is not None:
            messages += [
                {"role": "assistant", "content": self._signalled},
                {"role": "user", "content": fill_text(self.arm.retry_prompt, values)},
            ]
        return messages

    def find_fault(self, reply: Reply, parsed: ParsedAnswer) -> str | None:
        """An answer that was cut off before it named an item is not one."""
        if reply.stop_reason == CUT_OFF and not parsed.items:
            return "the answer was cut off at the limit of tokens before it named an item"
        return None

    def find_signal(self, reply: Reply, parsed: ParsedAnswer) -> str | None:
        """The failure that the deployed system can see in an answer: empty, unreadable, or words
        that the arm declares. Gold has no part in it."""
        if self.arm.retry == "none" or reply.raw is None:
            return None
        content = read_completion(reply.raw).content
        signal = parsed.problem
        pattern = self.arm.failure_signal
        found = None if pattern is None else re.search(pattern, content, re.IGNORECASE)
        if found is not None:
            signal = f"the answer says {shorten(found.group())}"
        if not content.strip():
            signal = "the answer is empty"
        if signal is None:
            return None
        if self._signalled is None:
            self._signalled = content
        return f"failure signal: {signal}"

    def warnings(self) -> list[str]:
        """What the model was not shown, and whether several models answered."""
        models = tuple(self._models)
        if len(models) < 2:
            return self._listing_warnings
        several = f"was answered by {len(models)} models in one session: {', '.join(models)}"
        return [*self._listing_warnings, several]


def list_corpus(folder: Path) -> list[str]:
    """The paths of all files below a folder, sorted."""
    found = (path for path in folder.rglob("*") if not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def cut_listing(paths: list[str], *, limit: int) -> tuple[str, int]:
    """One path a line, as many whole lines as fit into `limit` bytes.

    Returns:
        The text, and how many paths were left out.
    """
    kept: list[str] = []
    size = 0
    for path in paths:
        size += len(path.encode("utf-8", "surrogateescape")) + 1
        if size > limit:
            break
        kept.append(path)
    return "\n".join(kept), len(paths) - len(kept)


def _usage_of(text: str | None) -> Attempt:
    """What a body says was used, even if it is not an answer: failed calls are paid for too."""
    try:
        body: Any = load_json(text or "", is_lenient=True)
    except BadJsonError:
        return Attempt()
    return read_completion_usage(body) if isinstance(body, Mapping) else Attempt()
