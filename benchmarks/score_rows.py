"""How fast DuckDB summarises ten million score rows per arm and point, beside a plain read.

    uv run python benchmarks/score_rows.py [--rows 10000000]

The limit is how fast the same Parquet columns can be read and summed at all, in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coldrun.warehouse.reader import connect
from coldrun.warehouse.schemas import RUNS, SCORES
from coldrun.warehouse.writer import prepare_warehouse

ARMS = 4
MEASURES = ("hit@1", "hit@5", "hit@8", "mrr@8")
TASKS = 2000
REPEATS = 5


def main() -> None:
    """Generate a warehouse, time the summary and the plain read, print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        runs = max(1, rows // (ARMS * len(MEASURES) * TASKS))
        fill(root, runs)
        total = runs * ARMS * len(MEASURES) * TASKS
        connection = connect(root)
        summary = time_median(
            lambda: connection.execute(
                "SELECT arm, product_commit, measure, value, n FROM arm_scores"
            ).fetchall()
        )
        pattern = f"{root}/scores/*.parquet"
        read = time_median(
            lambda: connection.execute(
                "SELECT sum(value), count(arm), count(measure), count(run_id) "
                f"FROM read_parquet('{pattern}')"
            ).fetchall()
        )
        lines = len(connection.execute("SELECT * FROM arm_scores").fetchall())
    print(f"{total:,} score rows in {runs} runs; medians of {REPEATS}")
    print(f"summary per arm and point ({lines:,} lines)  {summary:6.2f} s")
    print(f"the same columns, only read and summed    {read:6.2f} s")
    print(f"ratio                                     {summary / read:6.2f}")


def fill(root: Path, runs: int) -> None:
    """Write `runs` runs of TASKS tasks x ARMS arms x MEASURES, as landing does."""
    prepare_warehouse(root)
    generator = np.random.default_rng(0)
    size = ARMS * len(MEASURES) * TASKS
    tasks = np.tile(np.arange(TASKS), ARMS * len(MEASURES))
    arms = np.repeat(np.arange(ARMS), len(MEASURES) * TASKS)
    measures = np.tile(np.repeat(np.arange(len(MEASURES)), TASKS), ARMS)
    fixed = {
        "task_id": pa.array([f"t{number:016x}" for number in tasks]),
        "arm": pa.array([f"arm{number}" for number in arms]),
        "measure": pa.array([MEASURES[number] for number in measures]),
    }
    for number in range(runs):
        run_id = f"20260101-{number:06d}-00000000"
        values = {
            **fixed,
            "run_id": pa.array([run_id] * size),
            "product_commit": pa.array([f"{number:040x}"] * size),
            "value": pa.array((generator.random(size) < 0.4).astype(float)),
            "n": pa.array([TASKS] * size),
        }
        pq.write_table(table_of(SCORES, values, size), root / "scores" / f"{run_id}.parquet")
        line = {"run_id": pa.array([run_id]), "started_at": pa.array([number * 10**6])}
        pq.write_table(table_of(RUNS, line, 1), root / "runs" / f"{run_id}.parquet")


def table_of(schema: pa.Schema, values: dict[str, pa.Array], size: int) -> pa.Table:
    """A table of the schema; columns without values are null."""
    return pa.Table.from_arrays(
        [
            values[field.name].cast(field.type)
            if field.name in values
            else pa.nulls(size, field.type)
            for field in schema
        ],
        schema=schema,
    )


def time_median(call: Callable[[], object]) -> float:
    """The median wall time of REPEATS calls after one that warms up."""
    call()
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
