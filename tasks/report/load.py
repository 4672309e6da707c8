"""Reading a landed run back: from the warehouse to the record that its report is built from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tasks.errors import UsageError
from tasks.report.build import BuiltReport, build_report
from tasks.report.record import RunRecord
from tasks.run.answers import read_answer
from tasks.run.legs import legs_from_rows
from tasks.run.manifest import manifest_from_values
from tasks.run.recall import find_earlier, read_landed, read_landed_sessions, read_landed_tasks
from warehouse.reader import connect, find_run_id, select_rows


def load_record(warehouse: Path, text: str) -> RunRecord:
    """The record of the landed run that `text` names (an id, the start of one, or `last`).

    Raises:
        UsageError: None or several runs fit.
    """
    return _load(warehouse, text)[0]


def _load(warehouse: Path, text: str) -> tuple[RunRecord, tuple[str, int]]:
    """The record, with the verdict and exit code that were landed with it."""
    connection = connect(warehouse)
    run_id = find_run_id(connection, text)
    row = select_rows(connection, "SELECT * FROM runs WHERE run_id = ?", [run_id])[0]
    values = json.loads(row["manifest"])
    invalid = values.pop("invalid")
    manifest = manifest_from_values(values)
    record = RunRecord(
        manifest=manifest,
        tasks=read_landed_tasks(warehouse, run_id),
        captures=tuple(read_landed(warehouse, run_id)),
        sessions=tuple(read_landed_sessions(warehouse, run_id)),
        wall_seconds=row["wall_seconds"],
        legs=legs_from_rows(row["legs"]),
        status=row["status"],
        invalid=tuple(invalid),
        earlier=find_earlier(warehouse, manifest),
    )
    return record, (row["verdict"], row["exit_code"])


def load_report(warehouse: Path, text: str) -> BuiltReport:
    """The report of a landed run, computed from its answers again.

    Raises:
        UsageError: None or several runs fit.
    """
    record, said = _load(warehouse, text)
    if not record.tasks:
        raise UsageError(
            f"run {record.manifest.run_id} has no readable rows: it asked the sealed part; "
            "`coldrun holdout log` shows its result"
        )
    built = build_report(record, read_answer)
    now = (built.report.verdict, built.report.exit_code)
    if now == said:
        return built
    warning = (
        f"when this run ended its verdict was {said[0]} (exit code {said[1]}); computed from the "
        f"same answers again, by this version of coldrun, it is {now[0]} ({now[1]})"
    )
    warnings = [warning, *built.report.warnings]
    return replace(built, report=built.report.model_copy(update={"warnings": warnings}))
