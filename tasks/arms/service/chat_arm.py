"""Arms that are language models behind an OpenAI-compatible endpoint: a direct call, or one that
is repeated once when the answer shows a failure that the deployed system sees as well."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from coldrun.tasks.arms.answer_text import MalformedError, shorten
from coldrun.tasks.arms.attempts import Usage, digest_arguments, make_attempt
from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.arms.failures import find_failure
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.arms.per_base import WorkspaceSession, begin_session, open_per_base
from coldrun.tasks.arms.service.chat_protocol import (
    CUT_OFF,
    USUAL_STOPS,
    Completion,
    read_completion,
    read_completion_usage,
)
from coldrun.tasks.arms.service.endpoint import Endpoint, open_endpoint
from coldrun.tasks.arms.templates import fill_arguments, fill_text, question_values
from coldrun.tasks.arms.workspace.isolation import Workspace
from coldrun.tasks.config import ChatArm
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import ComponentEvent, Question, Reply, SessionEnd, SessionStart

PATH = "/chat/completions"


def open_chat_session(context: SessionContext) -> Session:
    """Open a session of a `chat` arm.

    An endpoint that is not there is the arm's failure: the session opens, and its answers are
    `infra`.

    Raises:
        ConfigError: The arm is no `chat` arm, a declared file is missing, or a variable that a
            header needs is not set.
        UsageError: The scratch folder lies inside a git repository.
        StorageError: The scratch folder cannot be written.
        RepositoryError: The corpus cannot be read.
    """
    return open_per_base(context, _open)


def _open(context: SessionContext, root: Path | None) -> WorkspaceSession:
    arm = context.arm
    if not isinstance(arm, ChatArm):
        raise ConfigError(f"arm {arm.name!r} is of kind {arm.kind!r}, not `chat`")
    endpoint = open_endpoint(context, arm, root)
    return begin_session(ChatSession(context=context, arm=arm, endpoint=endpoint), context)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One call of the model. `failure` says why it gave no answer, `signal` why the deployed
    system would not be content with the one it gave."""

    raw: str | None
    seconds: float
    usage: Usage
    completion: Completion | None = None
    is_abstention: bool = False
    failure: str | None = None
    signal: str | None = None
    digest: str


@dataclass(slots=True, eq=False, kw_only=True)
class ChatSession:
    """One model, asked question by question; nothing is carried from one to the next."""

    context: SessionContext
    arm: ChatArm
    endpoint: Endpoint
    _start: SessionStart = field(default_factory=SessionStart)
    _listing: str = ""
    _models: dict[str, None] = field(default_factory=dict)
    _warnings: list[str] = field(default_factory=list)
    _end: SessionEnd | None = None
    _busy: threading.Lock = field(default_factory=threading.Lock)

    @property
    def workspace(self) -> Workspace:
        """The session's folders."""
        return self.endpoint.workspace

    @property
    def start(self) -> SessionStart:
        """How the session came up; its name is the model's, as the server gave it first."""
        return replace(self._start, name=next(iter(self._models), None))

    def open(self) -> None:
        """Start the server, where it is coldrun's to start, and list the corpus if it is asked."""
        seconds = self.endpoint.open()
        corpus_dir = self.workspace.corpus_dir
        self._start = SessionStart(startup_seconds=seconds, corpus_dir=corpus_dir)
        templates = f"{self.arm.system}{self.arm.prompt}{self.arm.retry_prompt}"
        if "{corpus_listing}" in templates and corpus_dir is not None:
            paths = list_corpus(Path(corpus_dir))
            self._listing, left_out = cut_listing(paths, limit=self.arm.listing_bytes)
            if left_out:
                self._warnings.append(
                    f"was shown {len(paths) - left_out} of the corpus's {len(paths)} paths; "
                    f"listing_bytes = {self.arm.listing_bytes} left out the others"
                )

    def ask(self, question: Question) -> Reply:
        """Answer one question; see `Session.ask`.

        Failures of the endpoint are tried again as often as `retries` declares. An answer that
        shows the failure signal is asked for once more where `retry` declares it. All calls are
        attempts, with what each of them used.
        """
        with self._busy:
            calls: list[_Call] = []
            failures_left = self.arm.retries
            retries_left = 1 if self.arm.retry == "once" else 0
            seed = question.seed
            values = self._values(question)
            messages = self._messages(values)
            while True:
                log_start = self.workspace.log_size()
                calls.append(self._call(question, messages, seed))
                last = calls[-1]
                if self.endpoint.is_aborted:
                    break
                if last.signal is not None and retries_left:
                    retries_left -= 1
                    # A seeded model would give the same answer again.
                    seed += 1
                    messages = self._messages_after(messages, last, values)
                elif last.failure is not None and failures_left:
                    failures_left -= 1
                else:
                    break
            stderr = self.workspace.read_log(since=log_start) if last.failure is not None else None
            return _reply(calls, stderr)

    def abort(self) -> None:
        """End the call in flight, from any thread."""
        self.endpoint.abort()

    def close(self) -> SessionEnd:
        """End the session, and look at what was left behind."""
        with self._busy:
            if self._end is None:
                left = self.endpoint.close()
                models = tuple(self._models)
                if len(models) > 1:
                    self._warnings.append(
                        f"was answered by {len(models)} models in one session: {', '.join(models)}"
                    )
                self._end = replace(left, warnings=(*self._warnings, *left.warnings))
            return self._end

    def _values(self, question: Question) -> dict[str, str]:
        return {
            **self.workspace.values,
            **question_values(question.query),
            "id": question.id,
            "k": str(question.k),
            "corpus_listing": self._listing,
        }

    def _messages(self, values: Mapping[str, str]) -> list[dict[str, str]]:
        system = self.arm.system
        return [
            *([] if system is None else [{"role": "system", "content": fill_text(system, values)}]),
            {"role": "user", "content": fill_text(self.arm.prompt, values)},
        ]

    def _messages_after(
        self, messages: list[dict[str, str]], call: _Call, values: Mapping[str, str]
    ) -> list[dict[str, str]]:
        """What is asked after an answer with the failure signal: the same, or a follow-up."""
        if self.arm.retry_prompt is None or call.completion is None:
            return messages
        return [
            *messages,
            {"role": "assistant", "content": call.completion.content},
            {"role": "user", "content": fill_text(self.arm.retry_prompt, values)},
        ]

    def _call(self, question: Question, messages: list[dict[str, str]], seed: int) -> _Call:
        numbers = {"k": question.k, "seed": seed}
        values = {name: str(value) for name, value in numbers.items()}
        body = {
            "model": self.arm.model,
            "messages": messages,
            **fill_arguments(self.arm.parameters, values, numbers),
        }
        path = "" if self.arm.url.rstrip("/").endswith(PATH) else PATH
        posted = self.endpoint.post(path, body)
        call = _Call(
            raw=posted.text,
            seconds=posted.seconds,
            usage=_usage_of(posted.text),
            failure=posted.reason,
            digest=digest_arguments(body),
        )
        if posted.reason is not None or posted.text is None:
            return call
        return self._judge(call, posted.text, question)

    def _judge(self, call: _Call, raw: str, question: Question) -> _Call:
        """Whether an answer is one, and whether it shows the failure signal."""
        try:
            completion = read_completion(raw)
            echoes = tuple(question_values(question.query).values())
            failure = find_failure(raw, self.arm, echoes=echoes)
        except MalformedError as error:
            return replace(call, failure=f"malformed output: {error}")
        if completion.usage.model is not None:
            self._models[completion.usage.model] = None
        parsed = parse_answer(
            raw, self.arm, answer=self.context.answer, corpus_dir=self.workspace.corpus_dir
        )
        signal = self._find_signal(completion, parsed.problem)
        if failure is None and completion.stop_reason == CUT_OFF and not parsed.items:
            failure = "the answer was cut off at the limit of tokens before it named an item"
        is_retried = signal is not None and self.arm.retry == "once"
        return replace(
            call,
            completion=completion,
            failure=failure,
            signal=signal if is_retried else None,
            is_abstention=parsed.abstained and parsed.problem is None,
        )

    def _find_signal(self, completion: Completion, problem: str | None) -> str | None:
        """The failure that the deployed system can see in an answer: empty, unreadable, or words
        that the arm declares. Gold has no part in it."""
        content = completion.content
        if not content.strip():
            return "failure signal: the answer is empty"
        pattern = self.arm.failure_signal
        found = None if pattern is None else re.search(pattern, content, re.IGNORECASE)
        if found is not None:
            return f"failure signal: the answer says {shorten(found.group())}"
        return None if problem is None else f"failure signal: {problem}"


def list_corpus(folder: Path) -> list[str]:
    """The paths of all files below a folder, sorted."""
    found = []
    for place, _, names in os.walk(folder):
        found += [Path(place, name).relative_to(folder).as_posix() for name in names]
    return sorted(found)


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


def _usage_of(text: str | None) -> Usage:
    """What a body says was used, even if it is no answer: failed calls are paid for as well."""
    try:
        body = json.loads(text or "")
    except (ValueError, RecursionError):
        return Usage()
    return read_completion_usage(body) if isinstance(body, Mapping) else Usage()


def _reply(calls: list[_Call], stderr: str | None) -> Reply:
    last = calls[-1]
    status: Literal["answered", "abstained", "infra"] = "answered"
    if last.failure is not None:
        status = "infra"
    elif last.is_abstention:
        status = "abstained"
    stop = None if last.completion is None else last.completion.stop_reason
    return Reply(
        status=status,
        raw=last.raw,
        reason=last.failure,
        stderr=stderr,
        seconds=sum(call.seconds for call in calls),
        stop_reason=stop,
        degraded=() if stop in USUAL_STOPS else (f"stopped: {stop}",),
        trajectory=_trajectory(calls),
        attempts=tuple(
            make_attempt(
                number,
                call.usage,
                status="ok" if call.failure is None else "infra",
                reason=call.failure or call.signal,
                seconds=call.seconds,
            )
            for number, call in enumerate(calls, start=1)
        ),
        events=tuple(
            ComponentEvent(
                name="chat",
                position=position,
                arguments_digest=call.digest,
                returned_bytes=None if call.raw is None else len(call.raw.encode("utf-8")),
                returned_tokens=call.usage.output_tokens,
            )
            for position, call in enumerate(calls)
        ),
    )


def _trajectory(calls: list[_Call]) -> str | None:
    """What came back before the answer, where there was more than one call."""
    if len(calls) < 2:
        return None
    steps: list[dict[str, Any]] = [
        {"raw": call.raw, "reason": call.failure or call.signal} for call in calls[:-1]
    ]
    return json.dumps(steps, ensure_ascii=False)
