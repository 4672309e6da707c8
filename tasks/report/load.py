"""Reading a landed run back: from the warehouse to the record that its report is built from."""

from __future__ import annotations

import json
from pathlib import Path

from tasks.errors import UsageError
from tasks.report.build import BuiltReport, build_report
from tasks.report.record import RunRecord
from tasks.run.answers import read_answer
from tasks.run.manifest import manifest_from_values
from tasks.run.recall import find_earlier, read_landed, read_landed_sessions, read_landed_tasks
from warehouse.reader import connect, find_run_id, select_rows


def load_record(warehouse: Path, text: str) -> RunRecord:
    """The record of the landed run that `text` names (an id, the start of one, or `last`).

    Raises:
        UsageError: None or several runs fit.
    """
    connection = connect(warehouse)
    run_id = find_run_id(connection, text)
    row = select_rows(connection, "SELECT * FROM runs WHERE run_id = ?", [run_id])[0]
    values = json.loads(row["manifest"])
    invalid = values.pop("invalid")
    manifest = manifest_from_values(values)
    return RunRecord(
        manifest=manifest,
        tasks=read_landed_tasks(warehouse, run_id),
        captures=tuple(read_landed(warehouse, run_id)),
        sessions=tuple(read_landed_sessions(warehouse, run_id)),
        wall_seconds=row["wall_seconds"],
        status=row["status"],
        invalid=tuple(invalid),
        earlier=find_earlier(warehouse, manifest),
    )


def load_report(warehouse: Path, text: str) -> BuiltReport:
    """The report of a landed run, computed from its answers again.

    Raises:
        UsageError: None or several runs fit.
    """
    record = load_record(warehouse, text)
    if not record.tasks:
        raise UsageError(
            f"run {record.manifest.run_id} has no readable rows: it asked the sealed part; "
            "`coldrun holdout log` shows its result"
        )
    return build_report(record, read_answer)
