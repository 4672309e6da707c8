"""What a command imports: help is instant, and reading starts no orchestrator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coldrun.cli.main import COMMANDS
from tests.evaluations import EvaluationLab

HEAVY = ("prefect", "scipy", "polars", "duckdb", "pyarrow", "git", "numpy", "pydantic")
"""What no call for help may import."""

PROBE = """
import sys
from coldrun.cli.main import main
try:
    main({arguments!r}, prog_name="coldrun")
finally:
    found = sorted({{name.partition(".")[0] for name in sys.modules}})
    print("imported:", " ".join(found), file=sys.stderr)
"""


def imported_by(lab: EvaluationLab, *arguments: str) -> set[str]:
    """The top-level packages that are loaded when a command has ended."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(arguments=arguments)],
        cwd=lab.root,
        env=lab.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    line = next(line for line in done.stderr.splitlines() if line.startswith("imported: "))
    return set(line.removeprefix("imported: ").split())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> EvaluationLab:
    """An evaluation with one landed run."""
    lab = EvaluationLab(tmp_path_factory.mktemp("imports")).prepare()
    lab.run()
    return lab


def test_help_imports_nothing_heavy(lab: EvaluationLab) -> None:
    """Only click: the list of commands comes from a table."""
    for option in ("--help", "--version"):
        assert imported_by(lab, option).isdisjoint({*HEAVY, "rich", "asyncio"})


def test_help_of_all_commands_imports_no_orchestrator_and_no_database(lab: EvaluationLab) -> None:
    """Asked how a command is used, none of its work is loaded."""
    script = f"""
import sys
from click.testing import CliRunner
from coldrun.cli.main import main
for name in {sorted(COMMANDS)!r}:
    CliRunner().invoke(main, [name, "--help"])
print(" ".join(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=lab.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "arguments",
    [
        ("mine", "evaluation/toy.toml"),
        ("freeze", "evaluation/toy.toml"),
        ("report", "last"),
        ("runs",),
        ("show", "last"),
        ("why", "last", "t0001", "reader"),
        ("run", "missing.toml"),
        ("server", "status"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_that_read_or_mine_import_no_prefect(
    lab: EvaluationLab, arguments: tuple[str, ...]
) -> None:
    """They answer at once, and need no server; nor does a run that is refused."""
    assert "prefect" not in imported_by(lab, *arguments)


def test_help_from_a_bare_environment_works(tmp_path: Path) -> None:
    """No HOME, no terminal, another folder."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from coldrun.cli.main import main; main(prog_name='coldrun')",
            "--help",
        ],
        cwd=tmp_path,
        env={"PATH": os.defpath, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "coldrun try" in done.stdout
