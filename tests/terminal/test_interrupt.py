"""Ctrl-C at a terminal, and the printed command that continues."""

from __future__ import annotations

import shlex

import pytest

from tests.terminal.conftest import GatedLab, Show
from tests.terminal.emulator import Terminal, assert_is_tidy, environment_of


def test_run_interrupted_at_a_terminal_prints_a_command_that_finishes_it(
    gated: GatedLab, show_served: Show
) -> None:
    """The key's ^C stands on the live line; the command can be copied, and goes on elsewhere."""
    terminal = show_served(gated.lab, "run", gated.lab.config, columns=40)
    terminal.wait_for("asking.* of 24")
    terminal.interrupt()
    terminal.finish()

    assert_is_tidy(terminal, 130, "continue with:")
    (command,) = [line.strip() for line in terminal.lines if line.startswith("  coldrun ")]
    assert command in "".join(terminal.screen.rows)

    continued = show_served(gated.lab, *shlex.split(command)[1:])
    wait_for_bar(continued, shortest=60, longest=80)
    continued.resize(40)
    wait_for_bar(continued, shortest=0, longest=40)
    continued.resize(120)
    wait_for_bar(continued, shortest=60, longest=120)
    gated.open()
    continued.finish()

    # a line drawn for the earlier width may still have been on its way, so rows are not looked at
    assert continued.exit_code == 0, continued.text
    assert "executed 24" in continued.text
    assert continued.screen.has_cursor
    assert gated.lab.select("SELECT status, executed FROM runs WHERE status = 'finished'") == [
        {"status": "finished", "executed": 24}
    ]


@pytest.mark.soak
def test_run_interrupted_twice_without_a_server_gives_the_cursor_back(
    gated: GatedLab,
) -> None:
    """Whoever cannot wait for what finished to land is left with a usable terminal all the same."""
    environment = environment_of(gated.lab, {})
    terminal = Terminal("run", gated.lab.config, environment=environment)
    terminal.wait_for("asking.* of 24")
    terminal.interrupt()
    terminal.interrupt()
    terminal.finish()

    assert_is_tidy(terminal, 130)


def wait_for_bar(terminal: Terminal, *, shortest: int, longest: int) -> None:
    """Read on until the live line asks, in so many columns."""
    bar = ""
    while not (bar.startswith("asking") and shortest <= len(bar) <= longest):
        terminal.wait_for("asking")
        bar = terminal.screen.frames[-1].bar
