"""`coldrun run` in terminals of several widths and abilities."""

from __future__ import annotations

from tests.terminal.conftest import GatedLab, Show
from tests.terminal.emulator import COLOUR, assert_is_tidy


def test_run_in_a_terminal_shows_its_phases_and_leaves_the_report_alone(
    gated: GatedLab, show_served: Show
) -> None:
    """The usual terminal: 80 columns and colours."""
    terminal = show_served(gated.lab, "run", gated.lab.config)
    terminal.wait_for("asking")
    gated.open()
    terminal.finish()

    assert_is_tidy(terminal, 0, "executed 24", "reader")
    assert {"starting", "asking", "judging"} <= terminal.phases
    assert any("━" in bar and " of 24" in bar for bar in terminal.bars)
    assert COLOUR.search(terminal.raw.decode())


def test_run_in_a_narrow_terminal_without_colour_breaks_no_word(
    gated: GatedLab, show: Show
) -> None:
    """Forty columns: the live line stays one row; NO_COLOR leaves out every colour."""
    terminal = show(gated.lab, "run", gated.lab.config, columns=40, NO_COLOR="1")
    terminal.wait_for("asking")
    gated.open()
    terminal.finish()

    assert_is_tidy(terminal, 0, "executed 24")
    assert any("━" in bar and " of 24" in bar for bar in terminal.bars)
    assert COLOUR.findall(terminal.raw.decode()) == []


def test_run_in_a_dumb_terminal_writes_plain_lines(gated: GatedLab, show: Show) -> None:
    """An editor's shell that knows no cursor movements gets none."""
    gated.open()
    terminal = show(gated.lab, "run", gated.lab.config, TERM="dumb").finish()

    assert_is_tidy(terminal, 0, "executed 24", "reader")
    assert b"\x1b" not in terminal.raw
    assert terminal.screen.frames == []
