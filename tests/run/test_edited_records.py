"""A record that was edited after its run is refused, with the file's name."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.evaluations import EvaluationLab


def edit(path: Path, column: str, value: object) -> None:
    """Give the first row another value, as a notebook would."""
    table = pq.read_table(path)
    values = table.column(column).to_pylist()
    values[0] = value
    place = table.schema.get_field_index(column)
    field = table.schema.field(place)
    pq.write_table(table.set_column(place, field, pa.array(values, field.type)), path)


@pytest.mark.parametrize(
    ("table", "column", "value", "command"),
    [
        ("captures", "raw", '{"items": []}', "report {run}"),
        ("scores", "value", 0.0, "compare {run} {run}"),
        ("scores", "value", 0.0, "report {run}"),
        ("tasks", "gold", ["item-9"], "show {run}"),
        ("captures", "raw", '{"items": []}', "run {config} --reuse"),
        ("runs", "manifest", "{}", "report {run}"),
    ],
)
def test_edited_row_is_refused_by_name(
    tmp_path: Path, table: str, column: str, value: object, command: str
) -> None:
    """Exit code 5, and the file to restore."""
    lab = EvaluationLab(tmp_path).prepare()
    run = lab.run().report.run_id
    edit(lab.warehouse / table / f"{run}.parquet", column, value)
    words = command.format(run=run, config=lab.config).split()
    done = lab.invoke(*words)
    if table == "runs":
        assert done.returncode != 0
        return
    assert done.returncode == 5, done.stderr
    assert f"{table}/{run}.parquet" in done.stderr


def test_digest_of_a_run_stands_in_its_report(tmp_path: Path) -> None:
    """The same in the report of the run and of the warehouse; another run has another."""
    lab = EvaluationLab(tmp_path).prepare()
    first, second = lab.run().report, lab.run().report
    assert first.digest is not None
    assert first.digest != second.digest
    shown = lab.invoke("report", first.run_id, "--full", "--json", lab.root / "r.json")
    assert json.loads((lab.root / "r.json").read_bytes())["digest"] == first.digest
    assert first.digest in shown.stdout.replace("\n", "")


def test_edited_answer_of_a_dead_run_is_refused(tmp_path: Path) -> None:
    """`--resume` takes no answer that was touched since it came."""
    lab = EvaluationLab(tmp_path).prepare()
    started = lab.start()
    from coldrun.tasks.run.execute import execute_shard

    execute_shard(started.run, started.shards()[0])
    started.abandon()
    folder = lab.warehouse / "captures" / started.run_id
    path = next(path for path in folder.glob("*.json") if len(path.stem) == 64)
    path.write_text(path.read_text().replace("item-", "item-1"))
    done = lab.invoke("run", lab.config, "--resume", started.run_id)
    assert done.returncode == 5
    assert path.name in done.stderr.replace("\n", "")
