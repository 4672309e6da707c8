"""A reader that leaves early, as in `coldrun runs | head -1`, changes nothing but what it reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coldrun.cli.main import main
from tests.evaluations import COLDRUN, EvaluationLab

NOTHING_RIGHT = """
def answer(query):
    return {"items": []}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> EvaluationLab:
    """An evaluation whose verdict exits with 3, with one landed run."""
    lab = EvaluationLab(tmp_path_factory.mktemp("closed")).prepare(arm=NOTHING_RIGHT)
    lab.run()
    return lab


def call_unheard(
    lab: EvaluationLab,
    *arguments: str | Path,
    env: dict[str, str] | None = None,
    are_errors_heard: bool = True,
) -> tuple[int, str]:
    """Call a command whose stdout has no reader any more; give its exit code and its stderr."""
    with subprocess.Popen(
        [sys.executable, "-c", COLDRUN, *map(str, arguments)],
        cwd=lab.root,
        env=lab.environment() | (env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if are_errors_heard else subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        errors = process.stderr.read() if process.stderr is not None else ""
        return process.wait(timeout=240), errors


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(("runs",), 0, marks=pytest.mark.soak),
        (("--help",), 0),
        (("report", "last"), 3),
    ],
)
def test_a_command_without_a_reader_ends_quietly_with_its_own_code(
    lab: EvaluationLab, arguments: tuple[str, ...], code: int
) -> None:
    """No traceback, no complaint, and the code is that of the verdict."""
    found, errors = call_unheard(lab, *arguments)

    assert found == code
    assert "Traceback" not in errors
    assert "Broken" not in errors


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("runs", "--json", "-"), 0),
        (("show", "last"), 0),
        (("panels",), 0),
        (("doctor",), 0),
        (("report", "last", "--markdown", "-"), 3),
    ],
)
def test_a_command_that_writes_into_a_pipe_without_a_reader_goes_on(
    lab: EvaluationLab,
    arguments: tuple[str, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The same for more commands, in this process: its stdout is such a pipe meanwhile."""
    for name, value in lab.environment().items():
        monkeypatch.setenv(name, value)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as unheard:
        monkeypatch.setattr(sys, "stdout", unheard)
        monkeypatch.setattr(sys, "__stdout__", unheard)
        with pytest.raises(SystemExit) as ended:
            main(arguments, prog_name="coldrun")
        assert sys.stdout is not unheard
        sys.stdout.write("one line more")
        sys.stdout.flush()  # as the end of a process does
        monkeypatch.undo()

    assert (ended.value.code or 0) == code
    assert "Broken" not in capfd.readouterr().err


@pytest.mark.prefect
@pytest.mark.parametrize("are_errors_heard", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_a_run_without_a_reader_is_landed_and_exits_with_its_verdict(
    lab: EvaluationLab, prefect_server: dict[str, str], are_errors_heard: bool
) -> None:
    """An evaluation is worth more than the pipe that its report goes into."""
    before = lab.select("SELECT count(*) AS n FROM runs")[0]["n"]

    code, errors = call_unheard(
        lab, "run", lab.config, env=prefect_server, are_errors_heard=are_errors_heard
    )

    assert code == 3, errors
    assert lab.select("SELECT count(*) AS n FROM runs")[0]["n"] == before + 1


@pytest.mark.parametrize("redirection", [pytest.param(">&-", marks=pytest.mark.soak), ">&- 2>&-"])
def test_a_command_without_streams_exits_with_its_own_code(
    lab: EvaluationLab, redirection: str
) -> None:
    """Closed from the start, as some schedulers start programs."""
    line = f'exec "{sys.executable}" -c "{COLDRUN}" report last {redirection}'
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=lab.root,
        env=lab.environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


def test_a_report_that_cannot_be_written_is_an_error_in_one_line(lab: EvaluationLab) -> None:
    """A full disk is no reader that has seen enough."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", COLDRUN, "report", "last"],
            env=lab.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 2
    assert done.stderr == "coldrun: cannot write the output: No space left on device\n"
