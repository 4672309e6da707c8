"""The live line: it never takes two rows, and what matters least goes first."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.report import progress as progress_module
from coldrun.tasks.report.progress import Work, progress_line
from coldrun.tasks.run.execute import Progress

NOW = 10.0**7
WIDTHS = st.integers(1, 200)


@pytest.fixture(autouse=True, scope="module")
def _clock_stands_still() -> Iterator[None]:
    """A busy machine changes no rate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: NOW))
        yield


def asking(done: int, planned: int, *, infra: int = 0, seconds: float = 10.0) -> Work:
    work = Work(since=NOW)
    work.update(Progress(done=min(1, planned), planned=planned, infra=0, replayed=0))
    work.update(Progress(done=done, planned=planned, infra=infra, replayed=0))
    work.since = NOW - seconds
    return work


def parts_of(line: str) -> set[str]:
    signs = {
        "phase": "asking",
        "count": " of ",
        "failures": "tool failure",
        "bar": "─",
        "left": " left",
        "rate": "/s",
    }
    return {part for part, sign in signs.items() if sign in line}


@given(
    width=WIDTHS,
    planned=st.integers(1, 10**7),
    infra=st.integers(0, 10**7),
    share=st.floats(0, 1),
    seconds=st.floats(0, 10**6),
    is_ascii=st.booleans(),
)
def test_progress_line_at_any_width_is_no_longer_than_that(
    width: int, planned: int, infra: int, share: float, seconds: float, is_ascii: bool
) -> None:
    """Whatever the numbers are, the line is one row."""
    work = asking(round(share * planned), planned, infra=infra, seconds=seconds)
    line = progress_line(work, width, is_ascii=is_ascii)
    assert line.cell_len <= width
    assert "\n" not in line.plain


@given(width=WIDTHS, phase=st.text(st.characters(codec="ascii", categories="L"), min_size=1))
def test_progress_line_of_a_phase_at_any_width_is_no_longer_than_that(
    width: int, phase: str
) -> None:
    """A note of the server can be longer than the row; how long it has taken stays readable."""
    work = Work(phase=phase, since=NOW - 61)
    line = progress_line(work, width).plain
    assert len(line) <= width
    assert line.endswith(" 61 s") or width < 6


@given(planned=st.integers(2, 10**6), share=st.floats(0, 1), infra=st.integers(0, 999))
def test_progress_line_that_gets_narrower_loses_parts_in_order(
    planned: int, share: float, infra: int
) -> None:
    """First the rate goes, then the time left, the bar, the failures, the count."""
    work = asking(min(planned - 1, 1 + round(share * planned)), planned, infra=infra)
    order = ["phase", "count", "failures", "bar", "left", "rate"]
    if not infra:
        order.remove("failures")
    seen = [parts_of(progress_line(work, width).plain) for width in range(200, 5, -1)]
    assert seen[0] == set(order)
    assert seen[-1] == {"phase"}
    for parts in seen:
        assert parts == set(order[: len(parts)])


ASCII = (
    "asking ##########------------------------------ "
    "50 of 200 | 3 tool failures | 0:30 left | 5.0/s"
)


@pytest.mark.parametrize(
    ("work", "width", "expected"),
    [
        (asking(50, 200), 40, "asking ━━───────── 50 of 200 · 0:30 left"),
        (asking(50, 200), 20, "asking 50 of 200"),
        (asking(50, 200, infra=3), 100, ASCII),
        (asking(50, 100, seconds=3599), 44, "asking ━━━━━━━─────── 50 of 100 · 59:59 left"),
        (asking(50, 100, seconds=3600), 44, "asking ━━━━━━─────── 50 of 100 · 1:00 h left"),
        (asking(200, 200, seconds=0), 80, "judging"),
        (Work(phase="mining", since=NOW), 80, "mining"),
        (Work(phase="mining", since=NOW - 5), 80, "mining 5 s"),
    ],
)
def test_progress_line_says_what_there_is_to_say(work: Work, width: int, expected: str) -> None:
    """No failures that did not happen, no bar that stands still, no seconds that did not pass."""
    assert progress_line(work, width, is_ascii=expected == ASCII).plain == expected


def test_progress_rate_does_not_count_answers_that_were_there_before() -> None:
    """A run that is continued says how fast it is now."""
    work = Work(since=NOW)
    work.update(Progress(done=901, planned=1000, infra=0, replayed=900))
    work.update(Progress(done=911, planned=1000, infra=0, replayed=900))
    work.since = NOW - 10
    assert "1.1/s" in progress_line(work, 80).plain
