"""One stream is a file, the other the terminal: each gets what belongs there."""

from __future__ import annotations

import json

import pytest

from tests.terminal.conftest import GatedLab, Show
from tests.terminal.emulator import BAR, assert_is_tidy


@pytest.mark.soak
def test_run_with_stdout_in_a_file_keeps_the_bar_on_the_terminal(
    gated: GatedLab, show: Show
) -> None:
    """`> file`: the report is in the file, whole and plain; only progress is seen."""
    file = gated.lab.root / "report.txt"
    terminal = show(gated.lab, "run", gated.lab.config, redirection=f"> {file}")
    terminal.wait_for("asking")
    gated.open()
    terminal.finish()

    assert_is_tidy(terminal, 0)
    assert {"asking", "judging"} <= terminal.phases
    assert terminal.text == ""
    report = file.read_text()
    assert report.startswith("executed 24")
    assert "reader" in report
    assert "\x1b" not in report
    assert "\r" not in report
    assert not any(BAR.fullmatch(line) for line in report.splitlines())


@pytest.mark.soak
def test_run_with_stderr_in_a_file_prints_the_report_on_a_wide_terminal(
    gated: GatedLab, show: Show
) -> None:
    """`2> file`: no bar anywhere, since nobody looks where it would be."""
    gated.open()
    file = gated.lab.root / "errors.txt"
    terminal = show(
        gated.lab, "run", gated.lab.config, columns=200, redirection=f"2> {file}"
    ).finish()

    assert_is_tidy(terminal, 0, "executed 24", "reader")
    assert terminal.screen.frames == []
    assert "\x1b" not in file.read_text()
    assert "\r" not in file.read_text()


@pytest.mark.soak
def test_run_with_json_in_a_file_shows_bar_and_report_on_the_terminal(
    gated: GatedLab, show: Show
) -> None:
    """`--json - > file`: the file is for machines, the terminal for people."""
    file = gated.lab.root / "report.json"
    terminal = show(gated.lab, "run", gated.lab.config, "--json", "-", redirection=f"> {file}")
    terminal.wait_for("asking")
    gated.open()
    terminal.finish()

    assert_is_tidy(terminal, 0, "executed 24", "reader")
    assert {"asking", "judging"} <= terminal.phases
    assert json.loads(file.read_text())["counts"]["executed"] == 24


@pytest.mark.soak
def test_run_into_files_of_another_encoding_ends_with_its_verdict(
    gated: GatedLab, show: Show
) -> None:
    """A scheduler's ASCII, and colours that somebody forces: no bar, no error, the whole report."""
    gated.open()
    report, errors = gated.lab.root / "report.txt", gated.lab.root / "errors.txt"
    terminal = show(
        gated.lab,
        "run",
        gated.lab.config,
        redirection=f"> {report} 2> {errors}",
        FORCE_COLOR="1",
        PYTHONIOENCODING="ascii",
    ).finish()

    assert (terminal.exit_code, terminal.raw) == (0, b""), errors.read_text()
    assert "executed 24" in report.read_text()
    assert report.read_text().isascii()
    assert "Error" not in errors.read_text()
    for text in (report.read_text(), errors.read_text()):
        assert "\x1b[?25l" not in text
        assert "\r" not in text
