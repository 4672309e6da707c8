"""A full and a read-only disk: one line, exit 2, and every finished answer kept."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.disks import read_only_disk, small_disk
from tests.evaluations import COLDRUN, EvaluationLab

LONG = """
def answer(query, plain=answer):
    return plain(query) | {"trajectory": os.urandom(15_000).hex()}
"""
"""An arm whose answers take 30 kB each."""


def call_on(
    before: list[str], lab: EvaluationLab, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-c", COLDRUN, *arguments],
        cwd=lab.root,
        env=lab.environment() | (env or {}),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("coldrun: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_run_on_a_read_only_warehouse_is_one_line(tmp_path: Path) -> None:
    """Before a server is started for it: PREFECT_API_URL leads nowhere and is not asked."""
    lab = EvaluationLab(tmp_path).prepare()
    lab.warehouse.mkdir()
    env = {"PREFECT_API_URL": "http://127.0.0.1:9/api"}

    done = call_on(read_only_disk(lab.warehouse), lab, "run", str(lab.config), env=env)

    assert re.search(r"cannot write the warehouse .*: Read-only file system", one_line(done))


@pytest.mark.soak
def test_report_from_a_read_only_warehouse_works(tmp_path: Path) -> None:
    """Who only reads needs no right to write."""
    lab = EvaluationLab(tmp_path).prepare()
    lab.run()

    done = call_on(read_only_disk(lab.warehouse), lab, "report", "last")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("executed 12")


def test_freeze_on_a_read_only_disk_is_one_line(tmp_path: Path) -> None:
    """Beside the configuration nothing can be written."""
    lab = EvaluationLab(tmp_path)
    lab.write()
    lab.write_tasks()

    done = call_on(read_only_disk(lab.config.parent), lab, "freeze", str(lab.config))

    assert "Read-only file system" in one_line(done)
    assert not lab.files.lock.exists()


@pytest.mark.prefect
@pytest.mark.soak  # two disks, two runs
def test_run_on_a_disk_that_fills_up_keeps_every_finished_answer(tmp_path: Path) -> None:
    """Some forty answers of 30 kB do not fit; with room again, --resume asks only the others."""
    lab = EvaluationLab(tmp_path).prepare(40, arm=LONG)
    lab.warehouse.mkdir()

    done = call_on(small_disk(lab.warehouse, kilobytes=700), lab, "run", str(lab.config))

    line = one_line(done)
    assert "No space left on device" in line
    found = re.search(r"--resume (\S+)", line)
    assert found is not None
    shutil.rmtree(lab.warehouse)
    lab.warehouse.with_name("data.spare").rename(lab.warehouse)
    kept = len(list(lab.warehouse.glob(f"captures/{found[1]}/{'?' * 64}.json")))
    report = lab.run("resume", resume=found[1]).report
    assert 5 <= kept < 40
    assert (report.counts.executed, report.counts.resumed) == (40, kept)
