"""The libraries that measures are compared with, each called in one place, imported when called.

They are in the dependency group `oracles`, which only the nightly target installs.

Scores are made from ranks, N - i, so that no library has a tie to break.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from statistics import fmean
from typing import Any

Table = Mapping[str, Mapping[str, float]]


def load(name: str) -> Any:
    """Import a library; what it warns of meanwhile is its own to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def rank_scores(items: list[str]) -> dict[str, float]:
    """Give strictly falling scores to distinct items."""
    return {item: float(len(items) - place) for place, item in enumerate(items)}


def score_by_pytrec_eval(qrels: Table, run: Table, measure: str) -> dict[str, float]:
    """Score each query that trec_eval returns."""
    grades = {query: {item: int(g) for item, g in row.items()} for query, row in qrels.items()}
    name = measure.partition(".")[0]
    evaluator = load("pytrec_eval").RelevanceEvaluator(grades, {measure})
    rows = evaluator.evaluate({query: dict(row) for query, row in run.items()})
    key = measure.replace(".", "_") if "." in measure else name
    return {query: row[key] for query, row in rows.items()}


def mean_by_pytrec_eval(qrels: Table, run: Table, measure: str) -> float:
    """Average over the queries that trec_eval returns."""
    return fmean(score_by_pytrec_eval(qrels, run, measure).values())


def score_by_ir_measures(qrels: Table, run: Table, measure: str) -> dict[str, float]:
    """Score each query by ir_measures."""
    parsed = _parse(measure)
    rows = load("ir_measures").iter_calc([parsed], _as_int(qrels), _as_dicts(run))
    return {row.query_id: row.value for row in rows}


def mean_by_ir_measures(qrels: Table, run: Table, measure: str) -> float:
    """Average as ir_measures does, over all queries with gold judgements."""
    parsed = _parse(measure)
    return float(
        load("ir_measures").calc_aggregate([parsed], _as_int(qrels), _as_dicts(run))[parsed]
    )


def mean_by_ranx(qrels: Table, run: Table, measure: str, *, make_comparable: bool = False) -> float:
    """Average by ranx; imported late, because it compiles for seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # compiled, a handful of queries takes a minute; interpreted, it gives the same numbers
        load("numba").config.DISABLE_JIT = True
        ranx = load("ranx")
        value: Any = ranx.evaluate(
            ranx.Qrels(_as_int(qrels)),
            ranx.Run(_as_dicts(run)),
            measure,
            make_comparable=make_comparable,
        )
    return float(value)


def _parse(measure: str) -> Any:
    with warnings.catch_warnings():
        # its parser still asks for ast.Num
        warnings.simplefilter("ignore", DeprecationWarning)
        return load("ir_measures").parse_measure(measure)


def _as_dicts(table: Table) -> dict[str, dict[str, float]]:
    return {query: dict(row) for query, row in table.items()}


def _as_int(table: Table) -> dict[str, dict[str, int]]:
    return {
        query: {item: int(grade) for item, grade in row.items()} for query, row in table.items()
    }
