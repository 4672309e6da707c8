"""Asking the questions: shards of tasks over pools of sessions, free of any orchestrator.

A `Run` holds the state that shards share. `execute_shard` may be called from many threads; the
flow submits one call per shard, tests call it in a plain loop or a thread pool.
"""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from pydantic import TypeAdapter

from coldrun.tasks.arms.base import Session
from coldrun.tasks.lib.canonical import digest_json
from coldrun.tasks.lib.concealment import conceal, conceal_values
from coldrun.tasks.lib.errors import ColdrunError, InvalidRunError
from coldrun.tasks.lib.plain_text import cut_text, one_line, without_surrogates
from coldrun.tasks.lib.records import Attempt, Question, Reply, Role, SessionEnd, SessionRecord
from coldrun.tasks.run.arm_identity import ArmIdentity
from coldrun.tasks.run.capture import Capture, CaptureStore
from coldrun.tasks.run.capture_key import capture_key, constant_parts, key_parts

MAX_SHARDS_PER_ARM = 64
TASKS_PER_SHARD = 8


_REPLY = TypeAdapter(Reply)
MOST_REASON = 2000

Abort = Callable[[], None]
"""Ends one session, or the start of one, from any thread."""


class OpenSession(Protocol):
    """Opens a session of an arm for a trial; `on_starting` is given what ends a long start."""

    def __call__(self, trial: int, on_starting: Callable[[Abort], None] | None = None) -> Session:
        """Open it."""
        ...


class Ask(NamedTuple):
    """One planned answer: a question at a trial, under its key."""

    question: Question
    trial: int
    key: str
    parts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedArm:
    """One arm, ready to be asked."""

    name: str
    role: Role
    identity: ArmIdentity
    asks: tuple[Ask, ...]
    open_session: OpenSession
    sessions: int = 1
    is_ordered: bool = False
    is_dirty: bool = False
    open_without_product: OpenSession | None = None
    parse: Callable[[Reply, str | None], tuple[str, ...]] = lambda *_: ()

    def read_items(self, capture: Capture) -> tuple[str, ...]:
        """The items of an answer, as they are scored."""
        return self.parse(capture.reply, capture.corpus_dir)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Some of one arm's planned answers, asked one after the other."""

    arm: PlannedArm
    number: int
    of: int
    asks: tuple[Ask, ...]

    def to_values(self) -> dict[str, Any]:
        """As JSON values: what another process needs to find the same questions."""
        asks = [[ask.trial, ask.question.id, ask.key] for ask in self.asks]
        return {"arm": self.arm.name, "asks": asks}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What has been done so far, for whoever shows it."""

    done: int
    planned: int
    infra: int
    replayed: int


def plan_asks(
    identity: ArmIdentity,
    questions: Sequence[Question],
    *,
    trials: int,
    corpus_trees: Callable[[Question], Mapping[str, str]],
    is_ordered: bool = False,
) -> tuple[Ask, ...]:
    """Every answer that an arm owes, in panel order, trial by trial.

    The key of an ordered arm's answer holds the questions before it: they decide its state.
    """
    asks = []
    constant = constant_parts(identity)
    for trial in range(trials):
        before = ""
        for question in questions:
            parts = key_parts(
                constant,
                question=question,
                corpus=corpus_trees(question),
                trial=trial,
                asked_before=before if is_ordered else None,
            )
            asks.append(Ask(question, trial, capture_key(parts), parts))
            before = digest_json([parts["question"], parts["corpus"]])
    return tuple(asks)


def plan_shards(arms: Sequence[PlannedArm], is_done: Callable[[str], bool]) -> tuple[Shard, ...]:
    """The shards still to be executed, interleaved over the arms.

    Interleaving makes a drift of the machine hit all arms alike. An arm has at most 64 shards; an
    ordered arm one per trial, which is asked whole and in panel order by one session, since a
    stateful arm's later answers depend on the earlier ones.
    """
    placed: list[tuple[float, int, Shard]] = []
    for index, arm in enumerate(arms):
        chunks = list(_chunk(arm, is_done))
        for number, asks in enumerate(chunks):
            shard = Shard(arm=arm, number=number + 1, of=len(chunks), asks=tuple(asks))
            placed.append(((number + 0.5) / len(chunks), index, shard))
    return tuple(shard for _, _, shard in sorted(placed, key=lambda item: item[:2]))


def _chunk(arm: PlannedArm, is_done: Callable[[str], bool]) -> Iterator[Sequence[Ask]]:
    if arm.is_ordered:
        for trial in sorted({ask.trial for ask in arm.asks}):
            asks = [ask for ask in arm.asks if ask.trial == trial]
            if not all(is_done(ask.key) for ask in asks):
                yield asks
        return
    open_asks = [ask for ask in arm.asks if not is_done(ask.key)]
    size = max(TASKS_PER_SHARD, -(-len(open_asks) // MAX_SHARDS_PER_ARM))
    for start in range(0, len(open_asks), size):
        yield open_asks[start : start + size]


@dataclass(slots=True)
class SessionPool:
    """The sessions of one arm and trial: opened when first needed, at most `limit` at a time."""

    open_session: Callable[[Callable[[Abort], None]], Session]
    limit: int
    on_end: Callable[[Session, str, SessionEnd | None], None]
    name: str
    _idle: list[tuple[str, Session]] = field(default_factory=list)
    _all: list[tuple[str, Session]] = field(default_factory=list)
    _starts: list[Abort] = field(default_factory=list)
    _opening: int = 0
    _is_closed: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def borrow(self) -> Iterator[tuple[str, Session]]:
        """A session for a while; waits when all are in use.

        Raises:
            ColdrunError: The session could not be opened at all, or the pool was ended.
        """
        held = self._take()
        try:
            yield held
        finally:
            with self._changed:
                self._idle.append(held)
                self._changed.notify()

    def _take(self) -> tuple[str, Session]:
        with self._changed:
            while True:
                if self._is_closed:
                    raise ColdrunError(f"the sessions of {self.name} were ended")
                if self._idle:
                    return self._idle.pop()
                if len(self._all) + self._opening < self.limit:
                    self._opening += 1
                    break
                self._changed.wait()
        try:
            session = self.open_session(self._note_start)
        except BaseException:
            with self._changed:
                self._opening -= 1
                self._changed.notify()
            raise
        held = (f"{self.name}-{uuid.uuid4().hex[:12]}", session)
        has_ended = self._keep(held)
        self.on_end(session, held[0], None)
        if has_ended:
            session.abort()
            raise ColdrunError(f"the sessions of {self.name} were ended")
        return held

    def _keep(self, held: tuple[str, Session]) -> bool:
        """Count a new session as open; says whether the pool was ended while it was opened."""
        with self._changed:
            self._opening -= 1
            self._all.append(held)
            return self._is_closed

    def _note_start(self, abort: Abort) -> None:
        with self._changed:
            self._starts.append(abort)
            is_late = self._is_closed
        if is_late:
            abort()

    def close(self) -> None:
        """End all sessions in good order and record what they left behind."""
        with self._changed:
            self._is_closed = True
            sessions, self._all = self._all, []
            self._changed.notify_all()
        for session_id, session in sessions:
            self.on_end(session, session_id, session.close())

    def abort(self) -> None:
        """End all sessions at once, those that are still starting too, from any thread."""
        with self._changed:
            self._is_closed = True
            ends = [*self._starts, *(session.abort for _, session in self._all)]
            self._changed.notify_all()
        for end in ends:
            end()


@dataclass(slots=True)
class Run:
    """The shared state of a run: its store, its pools, what is done, and whether to stop."""

    run_id: str
    store: CaptureStore
    seed: int
    arms: tuple[PlannedArm, ...]
    done: dict[str, Capture]
    on_progress: Callable[[Progress], None] = lambda _: None
    invalid: list[str] = field(default_factory=list)
    _infra: int = 0
    _replayed: int = 0
    _pools: dict[tuple[str, int], SessionPool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _planned: int = 0

    def __post_init__(self) -> None:
        self._planned = sum(len(arm.asks) for arm in self.arms)
        self._infra = sum(capture.is_infra for capture in self.done.values())
        self._replayed = sum(capture.evidence == "replayed" for capture in self.done.values())

    @property
    def is_stopping(self) -> bool:
        """Whether the run was told to stop."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Take no further questions and end all sessions; the answers in flight are dropped."""
        self._stop.set()
        with self._lock:
            pools = list(self._pools.values())
        for pool in pools:
            pool.abort()

    def close(self) -> None:
        """End all sessions in good order (after `stop`: at once)."""
        with self._lock:
            pools = list(self._pools.values())
        for pool in pools:
            pool.close()

    def is_done(self, key: str) -> bool:
        """Whether a finished answer is known for this key."""
        capture = self.done.get(key)
        return capture is not None and not capture.is_infra

    def progress(self) -> Progress:
        """What has been done so far."""
        return Progress(
            done=len(self.done),
            planned=self._planned,
            infra=self._infra,
            replayed=self._replayed,
        )

    def pool(self, arm: PlannedArm, trial: int) -> SessionPool:
        """The sessions of an arm at a trial."""
        with self._lock:
            pool = self._pools.get((arm.name, trial))
            if pool is None:
                pool = self._pools[arm.name, trial] = SessionPool(
                    open_session=lambda on_starting: arm.open_session(trial, on_starting),
                    limit=1 if arm.is_ordered else arm.sessions,
                    on_end=lambda session, session_id, end: self._record_session(
                        arm, trial, session, session_id, end
                    ),
                    name=f"{arm.name}-{trial}",
                )
                if self.is_stopping:
                    pool.abort()
            return pool

    def record(self, capture: Capture) -> None:
        """Store one capture and count it."""
        self.store.put(capture)
        with self._lock:
            known = self.done.get(capture.key)
            self._infra += capture.is_infra - (known is not None and known.is_infra)
            self.done[capture.key] = capture
        self.on_progress(self.progress())

    def note_invalid(self, reason: str) -> None:
        """Write down what makes the run invalid, where any process that lands it finds it."""
        with self._lock:
            self.invalid.append(reason)
        self.store.put_invalid(reason)

    def _record_session(
        self,
        arm: PlannedArm,
        trial: int,
        session: Session,
        session_id: str,
        end: SessionEnd | None,
    ) -> None:
        for reason in () if end is None else end.invalid:
            self.note_invalid(f"{arm.name}: {reason}")
        self.store.put_session(
            SessionRecord(
                run_id=self.run_id,
                session_id=session_id,
                arm=arm.name,
                trial=trial,
                start=session.start,
                end=end,
            )
        )


def execute_shard(run: Run, shard: Shard) -> int:
    """Ask the shard's questions and store each answer as it comes.

    Returns:
        The number of answers stored. Fewer than planned when the run is stopping.

    Raises:
        ColdrunError: A session cannot be opened, or the store cannot be written.
    """
    stored = 0
    try:
        for ask in shard.asks:
            if run.is_stopping:
                break
            with run.pool(shard.arm, ask.trial).borrow() as (session_id, session):
                capture = _ask(run, shard.arm, ask, session_id, session)
            if capture is None:
                break
            if not (shard.arm.is_ordered and run.is_done(ask.key)):
                run.record(capture)
                stored += 1
    except InvalidRunError as error:
        run.note_invalid(f"{shard.arm.name}: {error}")
    except ColdrunError:
        if not run.is_stopping:
            raise
    return stored


def keep_attempts(failed: Sequence[Attempt], own: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The attempts of an answer that was asked again, after those of the failed one it replaces:
    what failed was spent all the same. Numbers go on.
    """
    last = max((attempt.number for attempt in failed), default=0)
    return (
        *(replace(attempt, was_replaced=True) for attempt in failed),
        *(replace(attempt, number=last + attempt.number) for attempt in own),
    )


def _ask_safely(session: Session, question: Question) -> Reply:
    """Ask; whatever one answer breaks is the failure of that answer, and of no other.

    Raises:
        ColdrunError: What stops the session or the run.
    """
    try:
        reply = session.ask(question)
        if reply.reason is not None:
            reply = replace(reply, reason=cut_text(reply.reason, MOST_REASON))
        values = without_surrogates(_REPLY.dump_python(reply, mode="json"))
        return _REPLY.validate_python(conceal_values(values))
    except ColdrunError:
        raise
    except Exception as error:  # noqa: BLE001 - a reply may hold anything
        reason = conceal(f"its answer cannot be read ({type(error).__name__}: {error})")
        return Reply(status="infra", reason=cut_text(one_line(reason), MOST_REASON))


def _ask(run: Run, arm: PlannedArm, ask: Ask, session_id: str, session: Session) -> Capture | None:
    reply = _ask_safely(session, ask.question)
    if run.is_stopping:
        return None
    failed = run.done.get(ask.key)
    if failed is not None and failed.is_infra:
        reply = replace(reply, attempts=keep_attempts(failed.reply.attempts, reply.attempts))
    return Capture(
        key=ask.key,
        key_parts=ask.parts,
        run_id=run.run_id,
        task_id=ask.question.id,
        arm=arm.name,
        role=arm.role,
        trial=ask.trial,
        seed=run.seed,
        captured_at=dt.datetime.now(dt.UTC).isoformat(),
        reply=reply,
        session_id=session_id,
        corpus_dir=session.start.corpus_dir,
        is_dirty=arm.is_dirty,
        is_identified=arm.identity.is_identified,
    )
