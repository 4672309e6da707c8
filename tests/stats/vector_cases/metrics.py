"""Measures, and where the libraries differ from each other and from ours."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from coldrun.tasks.stats.measures import parse_measure
from tests.stats.oracles import (
    mean_by_ir_measures,
    mean_by_pytrec_eval,
    mean_by_ranx,
    rank_scores,
    score_by_ir_measures,
    score_by_pytrec_eval,
)
from tests.stats.vector_cases.registry import case

Inputs = dict[str, Any]
Grades = dict[str, float]


def score(text: str, items: list[str], gold: Grades) -> float:
    """Score with production code; the gold of these vectors is never empty for rankings."""
    value = parse_measure(text).score(items, gold)
    assert value is not None
    return value


@case("metrics.ranking.")
def compute_ranking(inputs: Inputs, expected: Any) -> Any:
    """Every ranking measure at every cut-off."""
    items, gold = inputs["ranking"], dict.fromkeys(inputs["gold"], 1.0)
    found = {}
    for k in inputs["k"]:
        returned = items[:k]
        found[str(k)] = {
            "hit": score(f"hit@{k}", items, gold),
            "precision_at_k": score(f"precision@{k}", items, gold),
            "precision_of_returned": score("precision", returned, gold),
            "recall": score(f"recall@{k}", items, gold),
            "rr": score(f"mrr@{k}", items, gold),
            "ndcg": score(f"ndcg@{k}", items, gold),
        }
    return found


@case("metrics.ndcg.graded_linear_vs_exponential")
def compute_graded_ndcg(inputs: Inputs, expected: Any) -> Any:
    """Linear gain is ours; exponential gain is another number."""
    gold = {item: float(grade) for item, grade in inputs["relevance"].items()}
    return {"linear": score(f"ndcg@{inputs['k']}", inputs["ranking"], gold)}


@case("metrics.duplicates")
def compute_duplicates(inputs: Inputs, expected: Any) -> Any:
    """Duplicates leave before the cut; the other order of steps is not what comes out."""
    items, k, gold = inputs["ranking"], inputs["k"], dict.fromkeys(inputs["gold"], 1.0)
    ours = {"hit": score(f"hit@{k}", items, gold), "rr": score(f"mrr@{k}", items, gold)}
    marked = [
        f"{item}#{place}" if item in items[:place] else item for place, item in enumerate(items)
    ]
    kept = {"hit": score(f"hit@{k}", marked, gold), "rr": score(f"mrr@{len(items)}", marked, gold)}
    assert ours != kept
    return {"dedupe_first": ours, "no_dedupe": kept}


@case("metrics.ties.library_disagreement")
def compute_tie_disagreement(inputs: Inputs, expected: Any) -> Any:
    """Equal scores: the libraries disagree, even with themselves; ours reads the order only."""
    scores, relevant = inputs["scores"], inputs["relevant"]
    qrels = {"q": {relevant: 1}}
    for order in (["d1", "d2"], ["d2", "d1"]):
        run = {"q": rank_scores(order)}
        assert score_by_pytrec_eval(qrels, run, "recip_rank") == {
            "q": score("mrr@10", order, {relevant: 1.0})
        }
    return {
        "trec_eval_recip_rank": score_by_pytrec_eval(qrels, {"q": scores}, "recip_rank")["q"],
        "ir_measures_RR": score_by_ir_measures(qrels, {"q": scores}, "RR")["q"],
        "ir_measures_RR_at_10": score_by_ir_measures(qrels, {"q": scores}, "RR@10")["q"],
        "ranx_insert_d1_first": mean_by_ranx(qrels, {"q": {"d1": 1.0, "d2": 1.0}}, "mrr@10"),
        "ranx_insert_d2_first": mean_by_ranx(qrels, {"q": {"d2": 1.0, "d1": 1.0}}, "mrr@10"),
    }


@case("metrics.ties.float32")
def compute_float32_tie(inputs: Inputs, expected: Any) -> Any:
    """Scores that differ in the ninth digit are ties in trec_eval, and ours are ranks."""
    relevant = inputs["relevant"]
    assert score("mrr@10", ["a", "b"], {relevant: 1.0}) == 1.0
    qrels = {"q": {relevant: 1}}
    return score_by_pytrec_eval(qrels, {"q": inputs["scores"]}, "recip_rank")["q"]


@case("metrics.missing_query")
def compute_missing_query(inputs: Inputs, expected: Any) -> Any:
    """A task that crashed counts 0 with us; trec_eval forgets it."""
    qrels, run = inputs["qrels"], inputs["run"]
    ours = fmean(score("mrr@10", list(run.get(task, ())), gold) for task, gold in qrels.items())
    assert ours == 0.5
    return {
        "pytrec_eval_mean_over_returned": mean_by_pytrec_eval(qrels, run, "recip_rank"),
        "ir_measures": mean_by_ir_measures(qrels, run, "RR"),
        "ranx_make_comparable": mean_by_ranx(qrels, run, "mrr", make_comparable=True),
    }


@case("metrics.empty_gold.ir_libraries")
def compute_empty_gold(inputs: Inputs, expected: Any) -> Any:
    """Empty gold is undefined for rankings with us, dropped or 0 with the libraries."""
    qrels, run = inputs["qrels"], inputs["run"]
    assert parse_measure("mrr@10").score(list(run["q1"]), qrels["q1"]) is None
    assert parse_measure("exact").score([], qrels["q1"]) == 1.0
    returned = score_by_pytrec_eval(qrels, run, "recip_rank")
    return {
        "pytrec_eval_queries": sorted(returned),
        "ir_measures_RR": mean_by_ir_measures(qrels, run, "RR"),
    }


@case("metrics.sets.truth_table")
def compute_truth_table(inputs: Inputs, expected: Any) -> Any:
    """Every set measure, empty sets and duplicates included."""
    rows = []
    for row in inputs["cases"]:
        gold = dict.fromkeys(row["gold"], 1.0)
        rows.append({name: score(name, row["answer"], gold) for name in expected[0]})
    return rows


@case("metrics.sets.f1_averaging")
def compute_f1_averaging(inputs: Inputs, expected: Any) -> Any:
    """The mean of task F1s, which is neither the F1 of means nor micro-F1."""
    rows = [(row["answer"], dict.fromkeys(row["gold"], 1.0)) for row in inputs["cases"]]
    macro = fmean(score("f1", answer, gold) for answer, gold in rows)
    # micro-F1 pools the counts: the F1 of all tasks' items as one task
    pooled = [f"{task}/{item}" for task, (answer, _) in enumerate(rows) for item in answer]
    golds = {f"{task}/{item}": 1.0 for task, (_, gold) in enumerate(rows) for item in gold}
    return {
        "macro_f1": macro,
        "f1_of_mean_p_r_WRONG": macro,
        "micro_f1": score("f1", pooled, golds),
    }
