"""Shards and pools: every planned answer once, interleaved, and an end when one is wanted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.lib.errors import ColdrunError, StorageError
from coldrun.tasks.lib.records import Question, Reply, SessionEnd, SessionStart
from coldrun.tasks.run.arm_identity import ArmIdentity
from coldrun.tasks.run.capture import CaptureStore
from coldrun.tasks.run.execute import (
    MAX_SHARDS_PER_ARM,
    PlannedArm,
    Run,
    execute_shard,
    plan_asks,
    plan_shards,
)


def identity_of(name: str) -> ArmIdentity:
    return ArmIdentity(
        arm={"name": name},
        artifacts={},
        product=None,
        code={},
        interpreter="",
        binaries={},
        environment="",
    )


@dataclass(slots=True)
class Echo:
    """A session in this process that answers with the question's id, after `seconds`."""

    seconds: float = 0.0
    start: SessionStart = field(default_factory=SessionStart)
    is_aborted: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)
    closed: int = 0

    def ask(self, question: Question) -> Reply:
        self.asked.append(question.id)
        self.is_aborted.wait(self.seconds)
        return Reply(status="answered", raw=question.id)

    def close(self) -> SessionEnd:
        self.closed += 1
        return SessionEnd()

    def abort(self) -> None:
        self.is_aborted.set()


@dataclass(slots=True)
class Opened:
    """Sessions as they are opened, by trial."""

    seconds: float = 0.0
    startup_seconds: float = 0.0
    can_be_ended: bool = False
    sessions: list[tuple[int, Echo]] = field(default_factory=list)

    def __call__(
        self, trial: int, on_starting: Callable[[Callable[[], None]], None] | None = None
    ) -> Echo:
        is_aborted = threading.Event()
        if on_starting is not None and self.can_be_ended:
            on_starting(is_aborted.set)
        is_aborted.wait(self.startup_seconds)
        session = Echo(seconds=self.seconds)
        self.sessions.append((trial, session))
        return session


def plan_arm(
    name: str = "arm",
    *,
    tasks: int = 20,
    trials: int = 1,
    opened: Opened | None = None,
    sessions: int = 1,
    is_ordered: bool = False,
) -> PlannedArm:
    identity = identity_of(name)
    questions = [
        Question(id=f"t{n:04d}", query="?", answer="set", k=8, seed=0) for n in range(tasks)
    ]
    return PlannedArm(
        name=name,
        role="candidate",
        identity=identity,
        asks=plan_asks(identity, questions, trials=trials, corpus_trees=lambda _: {}),
        open_session=opened or Opened(),
        sessions=sessions,
        is_ordered=is_ordered,
    )


def run_of(tmp_path: Path, *arms: PlannedArm) -> Run:
    return Run(run_id="run", store=CaptureStore(tmp_path), seed=0, arms=arms, done={})


def execute_all(run: Run, *, threads: int = 4) -> None:
    """All shards in as many threads, each taking the next one."""
    shards = iter(plan_shards(run.arms, run.is_done))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                shard = next(shards, None)
            if shard is None:
                return
            execute_shard(run, shard)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 3), st.booleans()), max_size=3),
    st.sets(st.integers(0, 599)),
)
def test_plan_shards_covers_every_open_answer_once(
    sizes: list[tuple[int, int, bool]], done: set[int]
) -> None:
    """Nothing is left out or asked twice; an ordered arm is asked whole, a trial at a time."""
    arms = [
        plan_arm(f"arm{number}", tasks=tasks, trials=trials, is_ordered=is_ordered)
        for number, (tasks, trials, is_ordered) in enumerate(sizes)
    ]
    keys = {ask.key for arm in arms for place, ask in enumerate(arm.asks) if place in done}

    shards = plan_shards(arms, keys.__contains__)

    for arm in arms:
        mine = [shard for shard in shards if shard.arm is arm]
        asked = [ask.key for shard in mine for ask in shard.asks]
        assert len(asked) == len(set(asked))
        assert [shard.number for shard in mine] == list(range(1, len(mine) + 1))
        if arm.is_ordered:
            assert all(len({ask.trial for ask in shard.asks}) == 1 for shard in mine)
            open_trials = {ask.trial for ask in arm.asks if ask.key not in keys}
            assert asked == [ask.key for ask in arm.asks if ask.trial in open_trials]
        else:
            assert len(mine) <= MAX_SHARDS_PER_ARM
            assert asked == [ask.key for ask in arm.asks if ask.key not in keys]


def test_plan_shards_of_many_answers_are_at_most_64() -> None:
    """More would cost the orchestrator more than they tell."""
    shards = plan_shards([plan_arm(tasks=900)], lambda _: False)

    assert len(shards) <= MAX_SHARDS_PER_ARM
    assert sum(len(shard.asks) for shard in shards) == 900


def test_plan_shards_interleaves_the_arms() -> None:
    """A drift of the machine hits all arms alike: at any time each has had its share."""
    arms = [plan_arm("long", tasks=400), plan_arm("short", tasks=40)]
    shards = plan_shards(arms, lambda _: False)

    for cut in range(1, len(shards)):
        asked = Counter(shard.arm.name for shard in shards[:cut] for _ in shard.asks)
        assert abs(asked["long"] / 400 - asked["short"] / 40) <= 0.21


def test_execute_stores_every_answer_and_closes_every_session(tmp_path: Path) -> None:
    """Four threads over two arms with two and one sessions."""
    opened = [Opened(seconds=0.001), Opened()]
    run = run_of(
        tmp_path,
        plan_arm("a", opened=opened[0], sessions=2, trials=2),
        plan_arm("b", opened=opened[1]),
    )
    execute_all(run)
    run.close()

    stored = run.store.read_captures()
    assert {(c.arm, c.task_id, c.trial, c.reply.raw) for c in stored.values()} == {
        (arm.name, ask.question.id, ask.trial, ask.question.id)
        for arm in run.arms
        for ask in arm.asks
    }
    by_trial = Counter(trial for trial, _ in opened[0].sessions)
    assert set(by_trial) == {0, 1}
    assert max(by_trial.values()) <= 2
    assert len(opened[1].sessions) == 1
    assert all(session.closed == 1 for part in opened for _, session in part.sessions)
    assert len(run.store.read_sessions()) == len(opened[0].sessions) + 1
    assert (run.progress().done, run.progress().planned) == (60, 60)


def test_execute_never_opens_more_sessions_than_the_arm_allows(tmp_path: Path) -> None:
    """While one session comes up, threads that wait for it do not open another."""
    for attempt in range(100):
        opened = Opened(startup_seconds=0.001)
        run = run_of(tmp_path / str(attempt), plan_arm(opened=opened))
        run.store.folder.mkdir()
        execute_all(run)
        assert len(opened.sessions) == 1, attempt


def test_execute_of_an_ordered_arm_asks_one_session_in_panel_order(tmp_path: Path) -> None:
    """A stateful arm sees the panel as it is, whatever the concurrency."""
    opened = Opened()
    run = run_of(tmp_path, plan_arm(opened=opened, is_ordered=True, sessions=4, trials=2))
    execute_all(run)

    assert len(opened.sessions) == 2
    for _, session in opened.sessions:
        assert session.asked == sorted(session.asked)
        assert len(session.asked) == 20


def test_execute_of_an_ordered_arm_again_keeps_the_answers_that_were_there(
    tmp_path: Path,
) -> None:
    """Resumed, it is asked from the start to have its state, but no finished answer changes."""
    arm = plan_arm(opened=Opened(), is_ordered=True)
    first = run_of(tmp_path, arm)
    shard = plan_shards([arm], lambda _: False)[0]
    first.on_progress = lambda progress: first.stop() if progress.done == 7 else None
    execute_shard(first, shard)
    before = first.store.read_captures()
    second = Run(run_id="run", store=first.store, seed=0, arms=(arm,), done=dict(before))
    execute_all(second)

    after = second.store.read_captures()
    assert len(before) == 7
    assert len(after) == 20
    assert {key: after[key] for key in before} == before


def test_stop_ends_waiting_sessions_and_drops_what_is_in_flight(tmp_path: Path) -> None:
    """Seconds, not minutes, and no half answer in the store."""
    run = run_of(tmp_path, plan_arm(opened=Opened(seconds=60), sessions=2))
    worker = threading.Thread(target=execute_all, args=(run,))
    worker.start()
    time.sleep(0.2)
    began = time.monotonic()
    run.stop()
    worker.join(timeout=10)
    run.close()

    assert time.monotonic() - began < 5
    assert not worker.is_alive()
    assert run.store.read_captures() == {}


def test_stop_while_a_session_opens_asks_it_nothing(tmp_path: Path) -> None:
    """A session that comes up after the stop is ended, not asked for a minute."""
    opened = Opened(seconds=60, startup_seconds=0.5)
    run = run_of(tmp_path, plan_arm(opened=opened))
    worker = threading.Thread(target=execute_all, args=(run,))
    worker.start()
    time.sleep(0.2)
    run.stop()
    worker.join(timeout=10)
    run.close()

    assert not worker.is_alive()
    assert [session.asked for _, session in opened.sessions] == [[]]
    assert [session.closed for _, session in opened.sessions] == [1]


def test_stop_while_a_session_opens_ends_its_start(tmp_path: Path) -> None:
    """A tool that takes minutes to start is not waited for."""
    opened = Opened(startup_seconds=60, can_be_ended=True)
    run = run_of(tmp_path, plan_arm(opened=opened))
    worker = threading.Thread(target=execute_all, args=(run,))
    worker.start()
    time.sleep(0.2)
    run.stop()
    worker.join(timeout=10)

    assert not worker.is_alive()
    assert [session.asked for _, session in opened.sessions] == [[]]


def test_session_that_cannot_be_opened_is_an_error_for_all_who_wait(tmp_path: Path) -> None:
    """No thread waits for ever for a session that never comes."""

    def refuse(trial: int, on_starting: object = None) -> Echo:
        raise StorageError("the disk is full")

    arm = plan_arm()
    run = run_of(tmp_path, PlannedArm(**{**_fields(arm), "open_session": refuse}))
    errors = []

    def work() -> None:
        for shard in plan_shards(run.arms, run.is_done):
            try:
                execute_shard(run, shard)
            except ColdrunError as error:
                errors.append(str(error))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=10)

    assert errors == ["the disk is full"] * 9


def _fields(arm: PlannedArm) -> dict[str, object]:
    return {name: getattr(arm, name) for name in PlannedArm.__dataclass_fields__}


def test_store_that_cannot_be_written_stops_the_shard(tmp_path: Path) -> None:
    """A full disk is the run's end, not an infra row."""
    run = run_of(tmp_path / "not there", plan_arm())

    with pytest.raises(StorageError, match="cannot write"):
        execute_shard(run, plan_shards(run.arms, run.is_done)[0])
