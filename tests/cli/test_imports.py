"""What a command imports: help is instant, and reading starts no orchestrator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coldrun.cli.main import COMMANDS
from tests.evaluations import COLDRUN, CONFIG, EvaluationLab

STATISTICS = {"scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"}
"""SciPy's parts; `import scipy` alone loads none of them."""

WAREHOUSE = {"duckdb", "numpy", "pyarrow", "pydantic"}
"""What reading the warehouse takes."""

HEAVY = {
    *STATISTICS,
    *WAREHOUSE,
    *("altair", "anyio", "bm25s", "cryptography", "git", "httpx", "mcp", "polars", "prefect"),
}
"""What takes a noticeable time to import. No call for help may import any of it."""

MAY_IMPORT = {
    "compare last last": WAREHOUSE,
    "doctor": WAREHOUSE | {"git", "httpx"},
    "freeze evaluation/toy.toml": WAREHOUSE | {"cryptography", "scipy.sparse"},
    "holdout log evaluation/toy.toml": {"cryptography", "numpy", "pydantic"},
    "mine evaluation/toy.toml": {"numpy", "pydantic", "scipy.sparse"},
    "prune --dry-run": {"pydantic"},
    "report last": WAREHOUSE | STATISTICS | {"polars"},
    "run evaluation/toy.toml --resume none": WAREHOUSE | {"git", "httpx"},
    "run missing.toml": {"pydantic"},
    "run unfrozen.toml": {"pydantic"},
    "runs": WAREHOUSE,
    "server status": set(),
    "show last": WAREHOUSE,
    "try missing": WAREHOUSE,
    "why last t0001 reader": WAREHOUSE,
}
"""Commands that need no server, or are refused, and what of `HEAVY` each may import."""

PROBE = """
import sys
from coldrun.cli.main import main
try:
    main({arguments!r}, prog_name="coldrun")
finally:
    print("imported:", *sys.modules, file=sys.stderr)
"""


def imported_by(lab: EvaluationLab, *arguments: str) -> set[str]:
    """The modules that are loaded when a command has ended."""
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
    """An evaluation with one landed run, and one that is not frozen."""
    lab = EvaluationLab(tmp_path_factory.mktemp("imports")).prepare()
    lab.run()
    (lab.root / "unfrozen.toml").write_text(CONFIG, encoding="utf-8")
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
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=lab.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert HEAVY.isdisjoint(done.stdout.split())


GATED = ("report last", "run missing.toml", "show last")
"""A fresh process for each costs a second: the others are asked every night."""


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=[] if line in GATED else [pytest.mark.soak]) for line in MAY_IMPORT],
)
def test_commands_without_a_flow_import_what_they_use(lab: EvaluationLab, line: str) -> None:
    """They answer soon: a library that this call does not use costs up to a second."""
    assert imported_by(lab, *line.split()) & HEAVY <= MAY_IMPORT[line]


def test_help_from_a_bare_environment_works(tmp_path: Path) -> None:
    """No HOME, no terminal, another folder."""
    done = subprocess.run(
        [sys.executable, "-c", COLDRUN, "--help"],
        cwd=tmp_path,
        env={"PATH": os.defpath, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "coldrun try" in done.stdout
