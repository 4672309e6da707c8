"""Noise, drift, stability, shapes, nulls and discrimination."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np

from coldrun.tasks.freeze.distribution import describe_distribution
from coldrun.tasks.freeze.panel_size import describe_discrimination
from coldrun.tasks.freeze.production import weight_strata
from coldrun.tasks.lib.records import GoldItem, Task
from coldrun.tasks.stats.decomposition import clears_noise, compare_scores
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.noise import (
    PooledFloor,
    flip_probabilities,
    judge_drift,
    net_band,
    net_change,
    pool_noise_floor,
    upper_flip_rate,
)
from coldrun.tasks.stats.nulls import (
    NullGround,
    constant_answer,
    measure_nulls,
    random_scores,
)
from coldrun.tasks.stats.paired import exact_paired_p
from coldrun.tasks.stats.stability import answer_agreement, outcome_stability, pass_hat_k
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
    return {
        name: fmean(parse_measure(name).score(answer, task.gold_grades) or 0.0 for task in tasks)
        for name in ("precision", "recall", "f1", "exact")
    }


@case("noise.two_runs_37_38")
def compute_two_totals(inputs: Inputs, expected: Any) -> Any:
    """What one flipped task says."""
    n = inputs["n"]
    low, high = inputs["totals"]
    runs = np.zeros((2, n))
    runs[0, :low] = 1
    runs[1, :high] = 1
    floor = pool_noise_floor([runs])
    assert floor is not None
    assert floor.flip_rate_upper == upper_flip_rate(inputs["discordant_at_least"], n)
    return {
        "flip_rate": floor.flip_rate,
        "flip_rate_upper95": floor.flip_rate_upper,
        "flips_upper95_tasks": n * floor.flip_rate_upper,
    }


@case("noise.two_runs_identical")
def compute_identical_runs(inputs: Inputs, expected: Any) -> Any:
    """No flip still leaves room for some."""
    floor = pool_noise_floor([np.zeros((2, inputs["n"]))])
    assert floor is not None
    return {
        "flip_rate_upper95": floor.flip_rate_upper,
        "flips_upper95_tasks": inputs["n"] * floor.flip_rate_upper,
    }


@case("noise.flip_rate_R5")
def compute_flip_rates(inputs: Inputs, expected: Any) -> Any:
    """Five runs of eight tasks."""
    passes, runs = inputs["passes_of_5"], inputs["R"]
    outcomes = np.array([[float(run < k) for k in passes] for run in range(runs)])
    floor = pool_noise_floor([outcomes])
    stability = outcome_stability(outcomes.T)
    assert floor is not None
    assert stability is not None
    return {
        "flip_prob": list(flip_probabilities(outcomes)),
        "expected_discordant": floor.flip_rate * len(passes),
        "mean_agreement": stability.agreement,
    }


@case("noise.net_change_null.")
def compute_net_change(inputs: Inputs, expected: Any) -> Any:
    """How far the net moves when nothing changed."""
    n, rate = inputs["n"], inputs["flip_prob"]
    masses = net_change(n, rate / 2, rate / 2)
    sizes = np.abs(np.arange(-n, n + 1))
    found: dict[str, float] = {
        f"p_abs_ge_{size}": float(masses[sizes >= size].sum()) for size in (1, 2, 3, 6)
    }
    return {**found, "q95_abs": net_band(n, rate)}


@case("noise.gate_decisions")
def compute_noise_gate(inputs: Inputs, expected: Any) -> Any:
    """Which published changes stand out of the noise."""
    found = {}
    for name, counts in inputs["cases"].items():
        up, down, n = counts["up"], counts["down"], counts["n"]
        rate = inputs["flip_prob_upper95"]
        floor = PooledFloor(
            n=n,
            runs=2,
            pairs=1,
            flips=0,
            flip_rate=0.0,
            flip_rate_upper=rate,
            band=net_band(n, rate),
        )
        before = {str(task): float(task < down) for task in range(n)}
        after = {str(task): float(down <= task < down + up) for task in range(n)}
        change = compare_scores(before, after, seed=0)
        is_clear = clears_noise(change, floor)
        found[name] = {
            "q95_abs": floor.band,
            "p": exact_paired_p(up, down),
            "verdict": "PASS" if is_clear else "NOISE",
        }
    return found


@case("noise.zero_flips_upper_by_pairs")
def compute_upper_by_pairs(inputs: Inputs, expected: Any) -> Any:
    """How clean pairs of runs bring the limit down."""
    n = inputs["n"]
    found = {}
    for pairs in inputs["independent_pairs"]:
        floor = pool_noise_floor([np.zeros((2 * pairs, n))])
        assert floor is not None
        found[str(pairs)] = n * floor.flip_rate_upper
    return found


@case("drift.control_5_up_5_down")
def compute_drift(inputs: Inputs, expected: Any) -> Any:
    """Ten changed tasks whose net is nothing."""
    found = judge_drift(
        "grep", up=inputs["up"], down=inputs["down"], n=inputs["n"], flip_rate=inputs["flip_prob"]
    )
    assert found.verdict == "DRIFT"
    return {"mcnemar_p": found.net_p, "flip_count_p": found.flips_p}


@case("drift.control_unchanged")
def compute_no_drift(inputs: Inputs, expected: Any) -> Any:
    """A control that is identical task by task."""
    found = judge_drift("grep", up=inputs["up"], down=inputs["down"], n=inputs["n"], flip_rate=0.0)
    assert found.flips_p == 1.0
    return {"p": found.net_p, "verdict": found.verdict}


@case("stability.answers_5x3")
def compute_agreement(inputs: Inputs, expected: Any) -> Any:
    """Five tasks of three trials."""
    found = answer_agreement(inputs["answers"])
    assert found is not None
    return {
        "pairwise_exact": found.pairwise_exact,
        "modal_share": found.modal_share,
    }


@case("stability.pass_hat_k")
def compute_pass_hat(inputs: Inputs, expected: Any) -> Any:
    """Every one of k trials right."""
    n, successes = inputs["n"], inputs["successes"]
    outcomes = np.array([[1.0] * count + [0.0] * (n - count) for count in successes])
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
    golds = [[f"r{shape}"] for shape, count in enumerate(inputs["counts"]) for _ in range(count)]
    found = describe_distribution(make_tasks(golds))
    return {
        "top_share": found.top_share,
        "effective_shapes_q1": found.effective_shapes,
        "effective_shapes_q2": found.inverse_simpson,
        "shapes": found.shapes,
    }


@case("shape.best_constant_null_equals_top_share")
def compute_best_constant(inputs: Inputs, expected: Any) -> Any:
    """The best constant answer is right as often as the commonest shape."""
    return score_null(make_tasks([list(shape) for shape in inputs["gold_shapes"]]), "exact")


def score_null(
    tasks: list[Task], name: str, *, null: str = "constant", corpus_items: int = 0
) -> float:
    """The mean of one null over the gold items, and others where the corpus has more."""
    measure = parse_measure(name)
    ground = NullGround(corpus_items=corpus_items, change_counts={})
    return fmean(measure_nulls(tasks, measure, primary=measure, k=0, ground=ground)[null])


@case("shape.published_case_full_panel_null")
def compute_full_panel_null(inputs: Inputs, expected: Any) -> Any:
    """The same constant on the full panel: 19 equal answers, all others different."""
    largest, total = inputs["tickets_with_3plus_repos"], inputs["tickets"]
    golds = [["a", "b", "c"]] * largest + [[f"r{number}"] for number in range(total - largest)]
    tasks = make_tasks(golds)
    assert constant_answer(tasks, parse_measure("exact"), k=0) == ("a", "b", "c")
    return score_null(tasks, "exact")


@case("null.constant_abc_on_broken_sample")
def compute_constant_on_broken_sample(inputs: Inputs, expected: Any) -> Any:
    """One answer to nineteen equal questions and a straggler."""
    tasks = make_tasks([["a", "b", "c"]] * 19 + [["a", "b"]])
    assert list(constant_answer(tasks, parse_measure("f1"), k=0)) == inputs["answer"]
    return score_sets(tasks, inputs["answer"])


@case("null.always_everything_recall")
def compute_everything(inputs: Inputs, expected: Any) -> Any:
    """Everything has all recall, and no verdict may rest on it."""
    assert not parse_measure("recall").definition.can_gate
    tasks = make_tasks(inputs["gold"])
    size = len(inputs["answer"])
    for name in ("precision", "recall", "f1", "exact"):
        assert (
            abs(score_null(tasks, name, null="everything", corpus_items=size) - expected[name])
            < 1e-12
        )
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
    strata = {str(place): row for place, row in enumerate(inputs["strata"])}
    found = weight_strata(
        {name: [float(value) for value in row["outcomes"]] for name, row in strata.items()},
        {name: round(1000 * row["share"]) for name, row in strata.items()},
        tasks=1000,
        strata=len(strata),
    )
    return {
        "sample_mean": found.sample_mean,
        "production_estimate": found.estimate,
        "se": found.standard_error,
    }


@case("discrimination.panel_4x10")
def compute_discrimination(inputs: Inputs, expected: Any) -> Any:
    """Four arms on ten tasks."""
    found = describe_discrimination(
        {
            str(arm): {str(task): bool(value) for task, value in enumerate(row)}
            for arm, row in enumerate(inputs["arms_by_tasks"])
        }
    )
    return {
        "all_pass": len(found.all_solve),
        "all_fail": len(found.none_solve),
        "discriminating": len(found.split),
        "fraction": len(found.split) / found.tasks,
        "max_discordant": found.observed_discordance,
    }
