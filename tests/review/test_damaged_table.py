"""A warehouse with files that are damaged, foreign, missing or of another version."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.evaluations import EvaluationLab

NEXT_STEP = "restore the file, or move it out of the warehouse"


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> EvaluationLab:
    """Two landed runs."""
    lab = EvaluationLab(tmp_path_factory.mktemp("damaged")).prepare()
    lab.run()
    lab.run()
    return lab


@pytest.fixture
def lab(landed: EvaluationLab, tmp_path: Path) -> EvaluationLab:
    """The same in a folder of its own, to be damaged."""
    shutil.copytree(landed.root, tmp_path / "lab")
    return EvaluationLab(tmp_path / "lab")


def run_ids(lab: EvaluationLab) -> list[str]:
    return sorted(path.stem for path in (lab.warehouse / "runs").glob("2*.parquet"))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scramble(path: Path) -> None:
    path.write_bytes(b"PAR1 not really")


def replace(path: Path) -> None:
    pq.write_table(pa.table({"run_id": [1], "started_at": ["a"], "arm": [2]}), path)


@pytest.mark.parametrize(
    "damage",
    [
        scramble,
        pytest.param(truncate, marks=pytest.mark.soak),
        pytest.param(empty, marks=pytest.mark.soak),
        pytest.param(replace, marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("table", ["runs", "tasks", "captures"])
def test_a_damaged_file_is_named_and_other_runs_are_readable(
    lab: EvaluationLab, table: str, damage: Callable[[Path], None]
) -> None:
    """The run whose file it is cannot be shown; `last` is not silently the one before."""
    first, second = run_ids(lab)
    path = lab.warehouse / table / f"{second}.parquet"
    damage(path)

    listed = lab.invoke("runs")
    other = lab.invoke("report", first)
    shown = lab.invoke("show", first)
    damaged = lab.invoke("report", second)
    newest = lab.invoke("report", "last")

    assert (listed.returncode, other.returncode, shown.returncode) == (0, 0, 0)
    assert first in listed.stdout
    # rows of no run change nothing for the others, and their tasks are not opened
    if damage is not replace and table != "tasks":
        assert f"coldrun: warning: {path} is no" in other.stderr
        assert other.stderr.count("\n") == 1
        assert NEXT_STEP in other.stderr
    for refused in (damaged, newest):
        assert refused.returncode == 2
        assert refused.stdout == ""
        assert str(path) in refused.stderr.splitlines()[-1]
        assert "restore the file" in refused.stderr.splitlines()[-1]
        assert "Traceback" not in refused.stderr


def test_a_damaged_file_is_the_only_line_of_a_process_that_reads_others(lab: EvaluationLab) -> None:
    """Whoever calls the program sees no more of the warning than those who call its code."""
    first, second = run_ids(lab)
    path = lab.warehouse / "captures" / f"{second}.parquet"
    truncate(path)

    done = lab.coldrun("report", first)

    assert done.returncode == 0
    assert done.stdout == lab.invoke("report", first).stdout
    assert re.fullmatch(f"coldrun: warning: {path} is no .*{NEXT_STEP}\n", done.stderr)


def test_whoever_decides_by_what_is_there_refuses_a_damaged_file(lab: EvaluationLab) -> None:
    """A run, or freezing again, would take a run for one that never was."""
    path = lab.warehouse / "runs" / f"{run_ids(lab)[0]}.parquet"
    truncate(path)

    for command in (("run", lab.config), ("freeze", lab.config)):
        done = lab.invoke(*command)
        assert done.returncode == 2
        assert f"coldrun: {path} is no readable Parquet file" in done.stderr
        assert NEXT_STEP in done.stderr


@pytest.mark.parametrize("table", ["tasks", "captures"])
def test_a_missing_file_is_no_run_without_answers(lab: EvaluationLab, table: str) -> None:
    """What had been measured must not read as `did_not_run`."""
    path = lab.warehouse / table / f"{run_ids(lab)[1]}.parquet"
    path.unlink()

    done = lab.invoke("report", "last")

    assert done.returncode == 2
    assert f"{path} is missing, damaged or cut short; restore the file" in done.stderr


def test_foreign_files_and_copies_are_in_no_report_and_doctor_names_them(
    lab: EvaluationLab,
) -> None:
    """A copy is no second run, a table of something else is none."""
    first, second = run_ids(lab)
    runs = lab.warehouse / "runs"
    shutil.copy(runs / f"{first}.parquet", runs / "copy.parquet")
    pq.write_table(pa.table({"x": [1]}), runs / "foreign.parquet")

    assert lab.select("SELECT run_id FROM runs ORDER BY run_id") == [
        {"run_id": first},
        {"run_id": second},
    ]
    assert lab.invoke("report", first).returncode == 0
    found = lab.invoke("doctor").stdout
    assert f"{runs / 'copy.parquet'} holds rows of {first}, whose name it does not have" in found
    assert f"{runs / 'foreign.parquet'} is not of the table runs: it has no run_id" in found


def test_damaged_pages_below_a_whole_footer_are_one_line(lab: EvaluationLab) -> None:
    """The schema could be read, the rows cannot."""
    path = lab.warehouse / "tasks" / f"{run_ids(lab)[1]}.parquet"
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)

    done = lab.invoke("report", "last")

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "`coldrun doctor` names the files" in done.stderr
    assert f"{path} is no readable Parquet file" in lab.invoke("doctor").stdout


def test_a_damaged_zero_row_file_is_made_again(lab: EvaluationLab) -> None:
    """It holds nothing that could be lost."""
    (lab.warehouse / "runs" / "_empty.parquet").write_bytes(b"")

    assert lab.invoke("runs").returncode == 0


def test_a_run_of_another_version_is_one_line_and_others_are_readable(lab: EvaluationLab) -> None:
    """What it was started with may have keys that this version does not know."""
    first, second = run_ids(lab)
    path = lab.warehouse / "runs" / f"{second}.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("manifest")
    table = table.set_column(at, "manifest", [['{"invalid": [], "later": 1}']])
    pq.write_table(table.drop_columns(["files", "digest"]), path)

    for command in (("report", "last"), ("compare", first, second)):
        done = lab.invoke(*command)
        assert done.returncode == 2
        assert "this version of coldrun cannot read" in done.stderr
    assert lab.invoke("report", first).returncode == 0
    assert lab.invoke("runs").stdout.count(" measured ") == 2
