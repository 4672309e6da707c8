"""Noise, drift, stability, shapes, nulls and discrimination."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np

from coldrun.tasks.lib.records import GoldItem, Task
from coldrun.tasks.stats.discrimination import describe_panel
from coldrun.tasks.stats.drift import difference_in_differences, judge_drift
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.net_change import net_change
from coldrun.tasks.stats.noise import (
    estimate_noise_floor,
    flip_probabilities,
    judge_against_noise,
    net_band,
    spread_of_totals,
    upper_flip_rate,
)
from coldrun.tasks.stats.nulls import constant_answer, null_scores, random_scores
from coldrun.tasks.stats.passk import pass_hat_k
from coldrun.tasks.stats.shapes import Stratum, describe_diversity, interleave, post_stratify
from coldrun.tasks.stats.stability import (
    answer_agreement,
    fleiss_kappa,
    jaccard,
    outcome_stability,
)
from tests.stats.vector_cases.registry import case

Inputs = dict[str, Any]


def make_tasks(golds: list[list[str]], answer: str = "set") -> list[Task]:
    """Build tasks of which only gold matters."""
    return [
        Task(
            id=f"t{number}",
            query="",
            answer=answer,  # type: ignore[arg-type]
            gold=tuple(GoldItem(item=item) for item in gold),
        )
        for number, gold in enumerate(golds)
    ]


def score_sets(tasks: list[Task], answer: list[str]) -> dict[str, float]:
    """Average every set measure of one answer to all tasks."""
    found = {
        name: fmean(parse_measure(name).score(answer, task.gold_grades) or 0.0 for task in tasks)
        for name in ("precision", "recall", "f1", "exact")
    }
    return {**found, "jaccard": fmean(jaccard(answer, task.shape) for task in tasks)}


@case("noise.two_runs_37_38")
def compute_two_totals(inputs: Inputs, expected: Any) -> Any:
    """What two totals say, and what one flipped task says."""
    n, flips = inputs["n"], inputs["discordant_at_least"]
    spread = spread_of_totals(inputs["totals"])
    low, high = inputs["totals"]
    runs = np.zeros((2, n))
    runs[0, :low] = 1
    runs[1, :high] = 1
    floor = estimate_noise_floor(runs)
    assert spread is not None
    assert floor is not None
    assert floor.flip_rate_upper == upper_flip_rate(flips, n)
    return {
        "sd_of_total": spread.sd,
        "sd_upper95": spread.sd_upper,
        "flip_rate": floor.flip_rate,
        "flip_rate_upper95": floor.flip_rate_upper,
        "flips_upper95_tasks": floor.discordant_upper,
    }


@case("noise.two_runs_identical")
def compute_identical_runs(inputs: Inputs, expected: Any) -> Any:
    """No flip still leaves room for some."""
    floor = estimate_noise_floor(np.zeros((2, inputs["n"])))
    assert floor is not None
    return {
        "flip_rate_upper95": floor.flip_rate_upper,
        "flips_upper95_tasks": floor.discordant_upper,
    }


@case("noise.flip_rate_R5")
def compute_flip_rates(inputs: Inputs, expected: Any) -> Any:
    """Five runs of eight tasks."""
    passes, runs = inputs["passes_of_5"], inputs["R"]
    outcomes = np.array([[float(run < k) for k in passes] for run in range(runs)])
    floor = estimate_noise_floor(outcomes)
    stability = outcome_stability(outcomes.T)
    assert floor is not None
    assert stability is not None
    return {
        "flip_prob": list(flip_probabilities(passes, runs)),
        "expected_discordant": floor.expected_discordant,
        "sd_net_two_runs": floor.net_sd,
        "mean_agreement": stability.agreement,
        # of one run, when tasks flip independently: half the variance of a difference
        "sd_total_one_run": floor.net_sd / np.sqrt(2),
    }


@case("noise.net_change_null.")
def compute_net_change(inputs: Inputs, expected: Any) -> Any:
    """How far the net moves when nothing changed."""
    n, rate = inputs["n"], inputs["flip_prob"]
    distribution = net_change(n, rate / 2, rate / 2)
    found: dict[str, float] = {
        f"p_abs_ge_{size}": distribution.at_least_either_way(size) for size in (1, 2, 3, 6)
    }
    return {**found, "q95_abs": net_band(n, rate)}


@case("noise.gate_decisions")
def compute_noise_gate(inputs: Inputs, expected: Any) -> Any:
    """Which published changes stand out of the noise."""
    found = {}
    for name, counts in inputs["cases"].items():
        judged = judge_against_noise(**counts, flip_rate_upper=inputs["flip_prob_upper95"])
        found[name] = {"q95_abs": judged.band, "p": judged.p, "verdict": judged.verdict}
    return found


@case("noise.zero_flips_upper_by_pairs")
def compute_upper_by_pairs(inputs: Inputs, expected: Any) -> Any:
    """How clean pairs of runs bring the limit down."""
    n = inputs["n"]
    found = {}
    for pairs in inputs["independent_pairs"]:
        floor = estimate_noise_floor(np.zeros((2 * pairs, n)))
        assert floor is not None
        found[str(pairs)] = floor.discordant_upper
    return found


@case("drift.control_5_up_5_down")
def compute_drift(inputs: Inputs, expected: Any) -> Any:
    """Ten changed tasks whose net is nothing."""
    found = judge_drift(
        "bm25", up=inputs["up"], down=inputs["down"], n=inputs["n"], flip_rate=inputs["flip_prob"]
    )
    assert found.verdict == "DRIFT"
    return {"mcnemar_p": found.net_p, "flip_count_p": found.flips_p}


@case("drift.control_unchanged")
def compute_no_drift(inputs: Inputs, expected: Any) -> Any:
    """A control that is identical task by task."""
    found = judge_drift("bm25", up=inputs["up"], down=inputs["down"], n=inputs["n"], flip_rate=0.0)
    assert found.flips_p == 1.0
    return {"p": found.net_p, "verdict": found.verdict}


@case("drift.difference_in_differences")
def compute_did(inputs: Inputs, expected: Any) -> Any:
    """The tool's change less the control's."""
    found = difference_in_differences(**inputs, seed=0)
    return {
        "did": found.total,
        "per_task": list(found.per_task),
        "signflip_two_sided": found.p,
    }


@case("stability.answers_5x3")
def compute_agreement(inputs: Inputs, expected: Any) -> Any:
    """Five tasks of three trials."""
    found = answer_agreement(inputs["answers"])
    assert found is not None
    return {
        "pairwise_exact": found.pairwise_exact,
        "mean_jaccard": found.mean_jaccard,
        "modal_share": found.modal_share,
        "all_agree": found.all_agree,
    }


@case("stability.fleiss_kappa")
def compute_kappa(inputs: Inputs, expected: Any) -> Any:
    """Agreement over chance; undefined for a constant."""
    assert fleiss_kappa([[3, 0], [3, 0]]) is None
    return fleiss_kappa(inputs["counts"])


@case("stability.pass_hat_k")
def compute_pass_hat(inputs: Inputs, expected: Any) -> Any:
    """Every one of k trials right."""
    n, successes = inputs["n"], inputs["successes"]
    outcomes = [[1.0] * count + [0.0] * (n - count) for count in successes]
    found = outcome_stability(outcomes)
    assert found is not None
    return {
        str(k): {
            "per_task": [pass_hat_k(n, count, k) for count in successes],
            "mean": found.pass_hat[k],
        }
        for k in inputs["k"]
    }


@case("shape.broken_sample_19_1", "shape.round_robin_8_shapes_20", "shape.uniform_and_single")
def compute_diversity(inputs: Inputs, expected: Any) -> Any:
    """How evenly tasks are spread over shapes."""
    if isinstance(inputs["counts"], dict):
        return {
            name: compute_diversity({"counts": counts}, expected[name])
            for name, counts in inputs["counts"].items()
        }
    found = describe_diversity(inputs["counts"])
    assert found is not None
    return {
        "top_share": found.top_share,
        "entropy_bits": found.entropy_bits,
        "effective_shapes_q1": found.effective_entropy,
        "effective_shapes_q2": found.effective_simpson,
        "shapes": found.shapes,
        "miller_madow_bits": found.miller_madow_bits,
    }


@case("shape.best_constant_null_equals_top_share")
def compute_best_constant(inputs: Inputs, expected: Any) -> Any:
    """The best constant answer is right as often as the commonest shape."""
    tasks = make_tasks([list(shape) for shape in inputs["gold_shapes"]])
    scores = null_scores(
        tasks, parse_measure("exact"), k=0, items=["a", "b", "c"], change_counts={}
    )
    return fmean(scores["constant"])


@case("shape.published_case_full_panel_null")
def compute_full_panel_null(inputs: Inputs, expected: Any) -> Any:
    """The same constant on the full panel: 19 equal answers, all others different."""
    largest, total = inputs["tickets_with_3plus_repos"], inputs["tickets"]
    golds = [["a", "b", "c"]] * largest + [[f"r{number}"] for number in range(total - largest)]
    tasks = make_tasks(golds)
    exact = parse_measure("exact")
    assert constant_answer(tasks, exact, k=0) == ("a", "b", "c")
    scores = null_scores(tasks, exact, k=0, items=["a"], change_counts={})
    return fmean(scores["constant"])


@case("null.constant_abc_on_broken_sample")
def compute_constant_on_broken_sample(inputs: Inputs, expected: Any) -> Any:
    """One answer to nineteen equal questions and a straggler."""
    tasks = make_tasks([["a", "b", "c"]] * 19 + [["a", "b"]])
    assert list(constant_answer(tasks, parse_measure("f1"), k=0)) == inputs["answer"]
    return score_sets(tasks, inputs["answer"])


@case("null.always_everything_recall")
def compute_everything(inputs: Inputs, expected: Any) -> Any:
    """Everything has all recall, and no verdict may rest on it."""
    assert not parse_measure("recall").can_gate
    tasks = make_tasks(inputs["gold"])
    for name in ("precision", "recall", "f1", "exact"):
        scores = null_scores(
            tasks, parse_measure(name), k=0, items=inputs["answer"], change_counts={}
        )
        assert abs(fmean(scores["everything"]) - expected[name]) < 1e-12
    return score_sets(tasks, inputs["answer"])


@case("null.random_ranking_expected")
def compute_random_ranking(inputs: Inputs, expected: Any) -> Any:
    """A random order of the corpus, in expectation."""
    items = [f"f{number}" for number in range(inputs["N"])]
    tasks = make_tasks([items[: inputs["G"]]], "ranking")
    found = {}
    for k in inputs["k"]:
        scores = {
            key: random_scores(tasks, parse_measure(f"{name}@{k}"), k=k, items=items)[0]
            for key, name in (("hit", "hit"), ("rr", "mrr"))
        }
        found[str(k)] = scores
    return found


@case("shape.post_stratified_estimate")
def compute_post_stratified(inputs: Inputs, expected: Any) -> Any:
    """A balanced sample reweighted to production."""
    found = post_stratify(
        [Stratum(row["share"], [float(v) for v in row["outcomes"]]) for row in inputs["strata"]]
    )
    return {
        "sample_mean": found.sample_mean,
        "production_estimate": found.estimate,
        "se": found.standard_error,
    }


@case("shape.round_robin_order")
def compute_round_robin(inputs: Inputs, expected: Any) -> Any:
    """One of each group in turn."""
    return list(interleave(inputs["groups"], inputs["k"]))


@case("discrimination.panel_4x10")
def compute_discrimination(inputs: Inputs, expected: Any) -> Any:
    """Four arms on ten tasks."""
    found = describe_panel(inputs["arms_by_tasks"])
    return {
        "all_pass": found.all_pass,
        "all_fail": found.all_fail,
        "discriminating": found.discriminating,
        "fraction": found.fraction,
        "rest_correlation": list(found.rest_correlations),
        "max_discordant": found.max_discordant,
        "discriminative_power": found.discriminative_power,
    }
