"""What is there already: landed runs read back, and which of their answers may be replayed."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest

from coldrun.tasks.lib.records import Attempt, ComponentEvent, GoldItem, Reply, Task
from coldrun.tasks.run.capture import Capture
from coldrun.tasks.run.landed_rows import (
    find_reusable,
    land_answers,
    read_landed,
    read_landed_sessions,
    read_landed_tasks,
)

TASK = Task(
    id="t1",
    query="where?",
    answer="ranking",
    gold=(GoldItem(item="a.py", grade=2.0, provenance="human"), GoldItem(item="b.py")),
    date="2026-08-01T00:00:00+00:00",
    strata={"names_gold": "no"},
)


def capture(run_id: str, key: str = "a", *, day: int = 1, **changes: object) -> Capture:
    made = Capture(
        key=key * 64,
        key_parts={"question": "{}"},
        run_id=run_id,
        task_id="t1",
        arm="tool",
        role="candidate",
        trial=0,
        seed=0,
        captured_at=dt.datetime(2026, 8, day, tzinfo=dt.UTC).isoformat(),
        reply=Reply(status="answered", raw=run_id),
        session_id=f"session-{run_id}",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def land(warehouse: Path, *captures: Capture, invalid: tuple[str, ...] = ()) -> None:
    run_id = captures[0].run_id
    session = {"run_id": run_id, "session_id": f"session-{run_id}", "invalid": list(invalid)}
    land_answers(warehouse, run_id, tasks=[TASK], captures=captures, sessions=[session])


def test_find_reusable_gives_the_newest_executed_answer_of_each_key(tmp_path: Path) -> None:
    """By the time of its capture, not by the run's id."""
    land(tmp_path, capture("r1", day=3), capture("r1", "b", day=1))
    land(tmp_path, capture("r2", day=2), capture("r2", "b", day=2))

    found = find_reusable(tmp_path, {"a" * 64, "b" * 64, "c" * 64})

    assert {key[0]: made.run_id for key, made in found.items()} == {"a": "r1", "b": "r2"}
    assert find_reusable(tmp_path, set()) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"reply": Reply(status="infra", reason="timed out")},
        {"evidence": "replayed", "source_run_id": "r0"},
        {"is_identified": False},
    ],
    ids=["infra", "replayed", "unidentified"],
)
def test_find_reusable_never_gives_what_is_no_evidence(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    """A newer row of that kind does not hide an older good one either."""
    land(tmp_path, capture("r2", day=9, **changes))
    assert find_reusable(tmp_path, {"a" * 64}) == {}

    land(tmp_path, capture("r1", day=1))
    assert find_reusable(tmp_path, {"a" * 64})["a" * 64].run_id == "r1"


def test_find_reusable_skips_sessions_that_made_their_run_invalid(tmp_path: Path) -> None:
    """What the session did to its corpus may have decided its answers."""
    land(tmp_path, capture("r1"), invalid=("changed 1 corpus file: a.py",))

    assert find_reusable(tmp_path, {"a" * 64}) == {}


def test_find_reusable_brings_attempts_and_events_of_that_run_alone(tmp_path: Path) -> None:
    """Two runs of one key do not mix their accounts."""
    for run_id, day in (("r1", 1), ("r2", 2)):
        reply = Reply(
            status="answered",
            raw=run_id,
            attempts=(
                Attempt(number=1, status="infra", reason="busy", input_tokens=day),
                Attempt(number=2, status="ok", seconds=0.5, output_tokens=day),
            ),
            events=(ComponentEvent(name="grep", position=0, returned_bytes=day),),
        )
        land(tmp_path, capture(run_id, day=day, reply=reply))

    found = find_reusable(tmp_path, {"a" * 64})["a" * 64]
    assert [attempt.input_tokens for attempt in found.reply.attempts] == [2, None]
    assert [event.returned_bytes for event in found.reply.events] == [2]


def test_landed_run_is_read_back_as_it_was(tmp_path: Path) -> None:
    """Tasks with grades, provenance and strata; captures in order; sessions."""
    made = [capture("r1"), capture("r1", "b", trial=1)]
    land(tmp_path, *made)

    assert read_landed_tasks(tmp_path, "r1") == (TASK,)
    assert read_landed(tmp_path, "r1") == made
    assert [row["session_id"] for row in read_landed_sessions(tmp_path, "r1")] == ["session-r1"]
    assert read_landed(tmp_path, "r0") == []
