"""Reading a landed run back: from the warehouse to the record that its report is built from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from coldrun.tasks.config import PricesConfig
from coldrun.tasks.judge.build_report import BuiltReport, build_report
from coldrun.tasks.lib.errors import StorageError
from coldrun.tasks.run.landed_rows import (
    find_earlier,
    read_landed,
    read_landed_sessions,
    read_landed_tasks,
)
from coldrun.tasks.run.manifest import read_manifest
from coldrun.tasks.run.run_record import RunRecord, parts_from_rows
from coldrun.warehouse.digests import verify_run
from coldrun.warehouse.reader import connect, find_run_id, select_rows


def load_record(warehouse: Path, text: str) -> RunRecord:
    """The record of the landed run that `text` names (an id, the start of one, or `last`)."""
    return _load(warehouse, text)[0]


def _load(warehouse: Path, text: str) -> tuple[RunRecord, tuple[str, int]]:
    connection = connect(warehouse, only=("runs",), leaves_out=True)
    run_id = find_run_id(connection, text)
    row = select_rows(connection, "SELECT * FROM runs WHERE run_id = ?", [run_id])[0]
    manifest, invalid = read_manifest(run_id, row["manifest"])
    tasks, captures = read_landed_tasks(warehouse, run_id), read_landed(warehouse, run_id)
    answers = row["executed"] + row["replayed"]
    for table, rows, landed in (("tasks", tasks, 1), ("captures", captures, answers)):
        if len(rows) < landed:
            raise StorageError(
                f"run {run_id} cannot be shown: {warehouse / table / run_id}.parquet is missing, "
                "damaged or cut short; restore the file"
            )
    verify_run(warehouse, row)
    record = RunRecord(
        manifest=manifest,
        tasks=tasks,
        captures=tuple(captures),
        sessions=tuple(read_landed_sessions(warehouse, run_id)),
        wall_seconds=row["wall_seconds"],
        legs=parts_from_rows(row["legs"]),
        status=row["status"],
        invalid=invalid,
        digest=row["digest"],
        earlier=find_earlier(warehouse, manifest),
    )
    return record, (row["verdict"], row["exit_code"])


def load_report(warehouse: Path, text: str, *, prices: PricesConfig | None = None) -> BuiltReport:
    """The report of a landed run, computed from its answers again, at other `prices` if given."""
    record, said = _load(warehouse, text)
    built = build_report(record, prices=prices)
    now = (built.report.verdict, built.report.exit_code)
    if now == said:
        return built
    warning = (
        f"when this run ended its verdict was {said[0]} (exit code {said[1]}); computed from the "
        f"same answers again, by this version of coldrun, it is {now[0]} ({now[1]})"
    )
    warnings = [warning, *built.report.warnings]
    return replace(built, report=built.report.model_copy(update={"warnings": warnings}))
