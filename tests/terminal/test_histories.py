"""`backfill`, `decompose` and `nightly once` in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.small import SmallHistory
from tests.terminal.conftest import Show
from tests.terminal.emulator import Terminal, assert_is_tidy

SUBJECT = "rank what was changed last above what was only read, as people expect it"


@pytest.fixture
def small(tmp_path: Path) -> SmallHistory:
    """Two commits of a product that answers slowly; the second one finds more."""
    small = SmallHistory(tmp_path / "lab")
    small.add(SUBJECT, range(8))
    small.add(SUBJECT, range(20))
    pace(small, 0.5)
    small.freeze()
    return small


def pace(small: SmallHistory, seconds: float) -> None:
    """Say how long the tool takes for an answer from now on."""
    draft = small.root / "draft.txt"
    draft.write_text(str(seconds))
    draft.replace(small.root / "seconds.txt")


def see_it_ask(small: SmallHistory, terminal: Terminal) -> Terminal:
    """Wait until it was seen to ask, then let it be quick."""
    terminal.wait_for("asking")
    pace(small, 0)
    return terminal.finish()


def test_backfill_in_a_terminal_tells_points_above_its_live_line(
    small: SmallHistory, show_served: Show
) -> None:
    """A line per point, then the table; nothing of the live line stays."""
    terminal = see_it_ask(
        small, show_served(small, "backfill", small.config, "--commits", ",".join(small.commits))
    )
    assert_is_tidy(terminal, 0, "point 1 (of 2 commits)", "point 2 (of 2 commits)", "executed 144")
    assert {"checking out", "starting", "asking"} <= terminal.phases


def test_decompose_in_a_terminal_tells_points_above_its_live_line(
    small: SmallHistory, show: Show
) -> None:
    """Both ends are measured, and the step between them is shown."""
    first, last = small.commits
    terminal = see_it_ask(
        small, show(small, "decompose", small.config, "--from", first, "--to", last)
    )
    assert_is_tidy(terminal, 0, "point 1 (of 2 commits)", f"{first[:7]}..{last[:7]}")
    assert {"checking out", "starting", "asking"} <= terminal.phases


@pytest.mark.soak
def test_nightly_in_a_terminal_of_the_c_locale_draws_in_ascii(
    small: SmallHistory, show: Show
) -> None:
    """Neither the live line nor what is printed needs characters that the stream cannot show."""
    terminal = see_it_ask(
        small,
        show(
            small,
            *("nightly", "once", small.config),
            LC_ALL="C",
            PYTHONUTF8="0",
            PYTHONCOERCECLOCALE="0",
        ),
    )
    assert_is_tidy(terminal, 0, "point 1", "small")
    assert {"checking out", "starting", "asking"} <= terminal.phases
    assert any("asking #" in bar or "asking -" in bar for bar in terminal.bars)
    assert terminal.raw.isascii()
