"""The ledger of openings as values: its chain, its head in the lock, and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.config import HoldoutConfig
from coldrun.tasks.holdout.openings import (
    Opening,
    check_head,
    judge_opening,
    last_hash,
    ledger_from_bytes,
    ledger_to_bytes,
    opening_words,
)
from coldrun.tasks.lib.errors import LedgerError


def make_opening(previous: Opening | None, **values: Any) -> Opening:
    defaults: dict[str, Any] = {
        "number": 1 if previous is None else previous.number + 1,
        "previous": None if previous is None else previous.hash,
        "at": "2026-08-01T00:00:00+00:00",
        "who": "Ada <ada@example.org>",
        "reason": "release",
        "event": None,
        "is_override": False,
        "is_task_level": False,
        "sealed_digest": "sha256:aa",
        "panel_digest": "sha256:bb",
        "lock_digest": "sha256:cc",
        "tasks": 12,
        "arms": {"tool": "sha256:dd"},
        "point": None,
        "configurations_tried": 3,
        "status": "opened",
        "result": {"verdict": "measured", "value": 0.25},
    }
    return Opening(**{**defaults, **values})


def make_ledger(count: int, **values: Any) -> tuple[Opening, ...]:
    openings: list[Opening] = []
    for _ in range(count):
        openings.append(make_opening(openings[-1] if openings else None, **values))
    return tuple(openings)


def test_ledger_round_trip_is_whole() -> None:
    """What is written is read back, and its head fits."""
    openings = make_ledger(3)
    read = ledger_from_bytes(ledger_to_bytes(openings), source="ledger")
    assert read == openings
    check_head(read, 3, last_hash(openings), source="ledger")


@given(st.data())
def test_ledger_any_changed_byte_is_noticed(data: st.DataObject) -> None:
    """Whatever byte is changed to whatever other, the chain or the head breaks."""
    openings = make_ledger(2)
    written = bytearray(ledger_to_bytes(openings))
    place = data.draw(st.integers(0, len(written) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != written[place]))
    written[place] = byte
    head = last_hash(openings)
    with pytest.raises(LedgerError):
        check_head(ledger_from_bytes(bytes(written), source="ledger"), 2, head, source="ledger")


@pytest.mark.parametrize(
    ("found", "known", "message"),
    [
        (make_ledger(2, reason="another reason"), make_ledger(2), "the ledger was rewritten"),
        (make_ledger(2), make_ledger(3), r"2 openings, the lock knows of 3 .*tail was cut off"),
        ((), make_ledger(3), "tail was cut off"),
        (make_ledger(2), make_ledger(1), r"by 1 opening: coldrun ended after .*--adopt"),
        (make_ledger(2), (), "by 2 openings"),
    ],
)
def test_ledger_that_the_lock_does_not_know_is_refused(
    found: tuple[Opening, ...], known: tuple[Opening, ...], message: str
) -> None:
    """Rewritten whole, cut off, or ahead after a crash between the two writes."""
    with pytest.raises(LedgerError, match=message):
        check_head(found, len(known), last_hash(known), source="ledger")


FORGED = [make_opening(None, reason="another reason"), make_ledger(2)[1]]
LINE = ledger_to_bytes(make_ledger(1))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        # a recomputed hash does not help: the next line holds the earlier one
        (ledger_to_bytes(FORGED), r"ledger:2 does not follow .* restore the ledger"),
        # a checkout that rewrote line ends has other bytes than were written
        (LINE.replace(b"\n", b"\r\n"), r"CRLF line ends.*core\.autocrlf.*`ledger -text`"),
        # a later schema is not called tampering
        (LINE.replace(b'"schema":1', b'"schema":2'), "another version"),
    ],
)
def test_ledger_that_was_not_written_so_is_refused(data: bytes, message: str) -> None:
    """An edited line, other line ends and a later version each have their own words."""
    with pytest.raises(LedgerError, match=message):
        ledger_from_bytes(data, source="somewhere/ledger")


def test_judge_opening_beyond_the_declared_number_is_refused() -> None:
    """One is the default; openings that gave nothing back use none up."""
    holdout = HoldoutConfig()
    withheld = make_ledger(2, status="withheld", result=None)
    assert judge_opening(holdout, withheld, event=None) == ()
    problems = judge_opening(holdout, make_ledger(1), event=None)
    assert problems == ("[holdout] allows it to be opened once, and it was opened once",)


def test_judge_opening_with_a_declared_event_needs_that_event() -> None:
    """The event is compared without regard to case and white space."""
    holdout = HoldoutConfig(when="The release candidate is chosen")
    assert judge_opening(holdout, (), event="the release  candidate is chosen") == ()
    assert "say that it has happened" in judge_opening(holdout, (), event=None)[0]
    assert "the event given is" in judge_opening(holdout, (), event="a demo")[0]


def test_opening_words_number_the_openings_that_count() -> None:
    """First, second of how many were declared, and by override where so."""
    first = make_opening(None, status="failed", result=None)
    second = make_opening(first)
    third = make_opening(second, is_override=True)
    openings = (first, second, third)
    assert opening_words(first, openings, 1).startswith("no opening (failed; 0 of 1")
    assert opening_words(second, openings, 1) == "opening 1 of 1 declared"
    assert opening_words(third, openings, 1) == "opening 2 of 1 declared, by override"
