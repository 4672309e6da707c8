"""Which production call answers which vector, by the longest prefix of the vector's name.

Each case takes the inputs of a vector and gives what is expected of it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise
from math import comb
from statistics import fmean
from typing import Any

import numpy as np
from scipy import stats

from coldrun.tasks.config import BarConfig
from coldrun.tasks.freeze.distribution import describe_discrimination, describe_distribution
from coldrun.tasks.judge.attribution import describe_effect
from coldrun.tasks.judge.gates import judge_bar
from coldrun.tasks.judge.retries import account_retries
from coldrun.tasks.judge.spending import add_tokens, price_exactly
from coldrun.tasks.lib.records import GoldItem, Task
from coldrun.tasks.stats.bootstrap import (
    bca_constants,
    bca_limits,
    percentile_limits,
    resample_means,
)
from coldrun.tasks.stats.clusters import cluster_sign_flip_p, clustered_mean
from coldrun.tasks.stats.cost_axis import (
    compare_cost_ratios,
    compare_latency,
    describe_cost_ratio,
    judge_dominance,
    quantile_seconds,
    share_on_frontier,
)
from coldrun.tasks.stats.decomposition import check_sum, clears_noise, compare_scores, next_points
from coldrun.tasks.stats.intervals import (
    Interval,
    bonett_price_interval,
    bound_mrr,
    compare_dev_sealed,
    mean_interval,
    wilson_interval,
)
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
from coldrun.tasks.stats.nulls import NullGround, constant_answer, measure_nulls, random_scores
from coldrun.tasks.stats.paired import (
    adjust_holm,
    exact_paired_p,
    exact_paired_two_sided_p,
    exact_power,
    minimum_detectable_effect,
    sign_flip_p,
)
from coldrun.tasks.stats.stability import (
    answer_agreement,
    outcome_stability,
    pass_at_k,
    pass_hat_k,
    verified_accuracy,
)
from tests.stats import oracles

Inputs = dict[str, Any]
Case = Callable[[Inputs], Any]

EXACT, TOLERANCE = parse_measure("exact"), 1e-12


def known(value: Any) -> Any:
    assert value is not None
    return value


def limits(interval: Interval) -> list[float]:
    return [interval.low, interval.high]


def score(text: str, items: list[str], gold: dict[str, float]) -> float:
    return float(known(parse_measure(text).score(items, gold)))


def make_tasks(golds: list[list[str]], answer: str = "set") -> list[Task]:
    return [
        Task(
            id=f"t{number}",
            query="",
            answer=answer,  # type: ignore[arg-type]
            gold=tuple(GoldItem(item=item) for item in gold),
        )
        for number, gold in enumerate(golds)
    ]


def floor_of(*tables: Any) -> PooledFloor:
    return known(pool_noise_floor([np.asarray(table, float) for table in tables]))


# --- rates -----------------------------------------------------------------------------------


def wilson(i: Inputs) -> Any:
    found = wilson_interval(i["k"], i["n"], i.get("confidence", 0.95))
    return {"low": found.low, "high": found.high}


def clopper_pearson(i: Inputs) -> Any:
    confidence = (1 + i["confidence"]) / 2
    lower = upper_flip_rate(i["n"] - i["k"], i["n"], confidence=confidence)
    return [1 - lower, upper_flip_rate(i["k"], i["n"], confidence=confidence)]


def bar(i: Inputs) -> Any:
    scores = np.array([1.0] * i["k"] + [0.0] * (i["n"] - i["k"]))
    judged = {
        rule: judge_bar(
            BarConfig(arm="tool", measure="hit@5", at_least=i["bar"], rule=rule), scores, {}, seed=0
        )
        for rule in ("point", "lower")
    }
    return {
        "rate": judged["point"].value,
        "point_rule": "PASS" if judged["point"].met else "FAIL",
        "lower_bound_rule": "PASS" if judged["lower"].met else "FAIL",
    }


def mrr_bounds(i: Inputs) -> Any:
    bounds = bound_mrr(i["n"], {1: i["hit1"], 5: i["hit5"], 8: i["any8"]})
    reported = i["reported_mrr"]
    return {
        "low": bounds.low,
        "high_if_cut_at_8": bounds.high,
        "high_if_uncut": bounds.high_uncut,
        "consistent_if_cut_at_8": bounds.is_possible(reported, decimals=3),
        "consistent_if_uncut": bounds.is_possible(reported, decimals=3, is_cut=False),
    }


def dev_sealed(i: Inputs) -> Any:
    gap = compare_dev_sealed(tuple(i["dev"]), tuple(i["sealed"]))
    return {"diff": gap.difference, "newcombe_ci": limits(gap.interval), "fisher_p": gap.p}


# --- paired tests and intervals --------------------------------------------------------------


def sign_test(i: Inputs) -> Any:
    counts = i["up"], i["down"]
    return {"one_sided": exact_paired_p(*counts), "two_sided": exact_paired_two_sided_p(*counts)}


def sign_flips(i: Inputs) -> Any:
    differences = i["differences"]
    return {
        "greater": sign_flip_p(differences, seed=0),
        "two_sided": sign_flip_p(differences, seed=0, alternative="two-sided"),
    }


def tied_sign_flips(i: Inputs) -> Any:
    p = sign_flip_p(i["differences"], seed=0)
    return {"p": p, "naive_float_WRONG": p}


def min_ups(i: Inputs) -> Any:
    def fewest(down: int, alpha: float) -> int:
        return next(up for up in count(down) if exact_paired_p(up, down) <= alpha)

    return {
        str(down): {
            "one_sided_05": fewest(down, i["alpha"]),
            "two_sided_05": fewest(down, i["alpha"] / 2),
        }
        for down in i["downs"]
    }


def comparison(i: Inputs) -> Any:
    up, down, n = i["up"], i["down"], i["n"]
    differences = np.array([1.0] * up + [-1.0] * down + [0.0] * (n - up - down))
    return {
        "exact_two_sided": exact_paired_two_sided_p(up, down),
        "ttest": float(stats.ttest_1samp(differences, 0.0).pvalue),
        "wilcoxon_scipy_default": float(stats.wilcoxon(differences).pvalue),
        # without zeros and with one size, the exact signed-rank test is the sign test
        "wilcoxon_exact": sign_flip_p(
            differences[differences != 0], seed=0, alternative="two-sided"
        ),
    }


def overlaps(i: Inputs) -> Any:
    hits, others = i.get("arm_hits"), i["null_hits"]
    if i.get("alternative") == "null > arm":
        hits, others = others, hits
    return {
        f"{hits - both}_up_{others - both}_down": exact_paired_p(hits - both, others - both)
        for both in range(max(0, hits + others - i["n"]), min(hits, others) + 1)
    }


def paired_difference(i: Inputs) -> Any:
    both, up, down, neither = list(i.values())[:4]
    n = both + up + down + neither
    return {"diff": (up - down) / n, "bonett_price": limits(bonett_price_interval(up, down, n))}


def gate_table(i: Inputs) -> Any:
    return {
        str(up): {
            "exact_two_sided_le_05": exact_paired_two_sided_p(up, i["downs"]) <= 0.05,
            "bonett_price": bonett_price_interval(up, i["downs"], i["n"]).low > 0,
        }
        for up in i["ups"]
    }


def gate_sizes(i: Inputs) -> Any:
    return {
        f"n{row['n']}_psi{float(f'{rate:.4f}')}": {
            "exact": exact_power(row["n"], rate / 2, rate / 2, alpha=i["nominal_one_sided"])
        }
        for row in i["cases"]
        for rate in [row["discordant_rate"]]
    }


# --- power -----------------------------------------------------------------------------------


def power(i: Inputs) -> Any:
    n, up, down, alpha = i["n"], i["p_up"], i["p_down"], i["alpha_two_sided"]
    return {
        "two_sided": exact_power(n, up, down, alpha=alpha / 2),
        "one_sided_05": exact_power(n, up, down, alpha=alpha),
    }


def detectable(i: Inputs) -> Any:
    n, down = i["n"], i["p_down"]
    tasks = known(
        minimum_detectable_effect(
            n, regression_rate=down, power=i["power"], alpha=i["alpha_two_sided"]
        )
    )
    return {"p_up": tasks / n + down, "net": tasks / n, "net_tasks": tasks}


def detectable_by_n(i: Inputs) -> Any:
    down = i["p_down"]
    return {str(n): known(minimum_detectable_effect(n, regression_rate=down)) / n for n in i["n"]}


# --- resampling, costs, clusters -------------------------------------------------------------


def mean_bootstrap(i: Inputs) -> Any:
    means = resample_means(np.array(i["differences"])[:, None], seed=0)[:, 0]
    low, high = percentile_limits(means)
    return {
        "mean": float(means.mean()),
        "boot_se": float(means.std()),
        "q025": low,
        "q975": high,
        "prob_le_zero": float((means <= TOLERANCE).mean()),
    }


def bca(i: Inputs) -> Any:
    values = np.array(i["differences"])
    means = resample_means(values[:, None], seed=0)[:, 0]
    constants = bca_constants(values, means, confidence=i["confidence"])
    low, high = bca_limits(values, means, confidence=i["confidence"])
    assert limits(mean_interval(values, seed=0)) == [low, high]
    return {
        "acceleration": constants.acceleration,
        "z0": constants.z0,
        "alpha1": constants.alpha_low,
        "alpha2": constants.alpha_high,
        "low": low,
        "high": high,
    }


def cost_ratios(i: Inputs) -> Any:
    found = {}
    for arm, rows in i.items():
        ratio = describe_cost_ratio(np.array(rows["score"]), np.array(rows["cost"]))
        found[arm] = {
            "score_per_dollar": ratio.score_per_cost,
            "dollars_per_success": ratio.cost_per_success,
            "mean_of_ratios_WRONG": ratio.score_per_cost,
        }
    return found


def columns(i: Inputs, axis: str) -> Any:
    return np.array([rows[axis] for rows in i.values()], dtype=float).T


def ratio_difference(i: Inputs) -> Any:
    found = known(compare_cost_ratios(columns(i, "score"), columns(i, "cost"), [(0, 1)], seed=0)[0])
    return {"diff": found.difference, "q025": found.interval.low, "q975": found.interval.high}


def frontier(i: Inputs) -> Any:
    return {"p_A_on_frontier": share_on_frontier(columns(i, "acc"), columns(i, "cost"), seed=0)[0]}


def dominance(i: Inputs) -> Any:
    words = {
        "dominates": "A_DOMINATES",
        "dominated": "B_DOMINATES",
        "trade_off": "TRADE_OFF",
        "unresolved": "UNRESOLVED",
    }
    return [
        words[
            judge_dominance(
                Interval(*row["diff_acc_ci"]),
                Interval(*row["diff_cost_ci"]),
                accuracy_margin=i["margin_acc"],
                cost_margin=i["margin_cost"],
            )
        ]
        for row in i["cases"]
    ]


def clusters(i: Inputs) -> Any:
    if "clusters" in i:
        pairs = [(value, name) for name, values in i["clusters"].items() for value in values]
        values, labels = zip(*pairs, strict=True)
    else:
        values, labels = i["differences"], i["cluster"]
    found = clustered_mean(np.array(values, dtype=float), labels)
    return {
        "mean": found.mean,
        "se_clt": found.se_plain,
        "se_cr1": found.se_clustered,
        "t_halfwidth_cr1": found.half_width,
    }


def smallest_cluster_p(i: Inputs) -> Any:
    return {
        str(size): cluster_sign_flip_p(
            np.array([1.0, 0.5] * size), [str(place // 2) for place in range(2 * size)], seed=0
        )
        for size in i["G"]
    }


# --- noise, drift, stability, samples --------------------------------------------------------


def two_totals(i: Inputs) -> Any:
    n, runs = i["n"], np.zeros((2, i["n"]))
    for run, total in zip(runs, i["totals"], strict=True):
        run[:total] = 1
    floor = floor_of(runs)
    assert floor.flip_rate_upper == upper_flip_rate(i["discordant_at_least"], n)
    return {
        "flip_rate": floor.flip_rate,
        "flip_rate_upper95": floor.flip_rate_upper,
        "flips_upper95_tasks": n * floor.flip_rate_upper,
    }


def identical_runs(i: Inputs) -> Any:
    upper = floor_of(np.zeros((2, i["n"]))).flip_rate_upper
    return {"flip_rate_upper95": upper, "flips_upper95_tasks": i["n"] * upper}


def flip_rates(i: Inputs) -> Any:
    passes, runs = i["passes_of_5"], i["R"]
    outcomes = np.array([[float(run < k) for k in passes] for run in range(runs)])
    return {
        "flip_prob": list(flip_probabilities(outcomes)),
        "expected_discordant": floor_of(outcomes).flip_rate * len(passes),
        "mean_agreement": outcome_stability(outcomes.T)["outcome_agreement"],
    }


def net_changes(i: Inputs) -> Any:
    n, rate = i["n"], i["flip_prob"]
    masses, sizes = net_change(n, rate / 2, rate / 2), np.abs(np.arange(-n, n + 1))
    found = {f"p_abs_ge_{size}": float(masses[sizes >= size].sum()) for size in (1, 2, 3, 6)}
    return {**found, "q95_abs": net_band(n, rate)}


def noise_gate(i: Inputs) -> Any:
    rate, found = i["flip_prob_upper95"], {}
    for name, counts in i["cases"].items():
        up, down, n = counts["up"], counts["down"], counts["n"]
        band = net_band(n, rate)
        floor = PooledFloor(
            n=n, runs=2, pairs=1, flips=0, flip_rate=0.0, flip_rate_upper=rate, band_tasks=band
        )
        before = {str(task): float(task < down) for task in range(n)}
        after = {str(task): float(down <= task < down + up) for task in range(n)}
        is_clear = clears_noise(compare_scores(before, after, seed=0), floor)
        verdict = "PASS" if is_clear else "NOISE"
        found[name] = {"q95_abs": band, "p": exact_paired_p(up, down), "verdict": verdict}
    return found


def upper_by_pairs(i: Inputs) -> Any:
    n = i["n"]
    return {
        str(pairs): n * floor_of(np.zeros((2 * pairs, n))).flip_rate_upper
        for pairs in i["independent_pairs"]
    }


def drift(i: Inputs) -> Any:
    found = judge_drift(
        "grep", up=i["up"], down=i["down"], n=i["n"], flip_rate=i.get("flip_prob", 0.0)
    )
    return {
        "mcnemar_p": found.net_p,
        "flip_count_p": found.flips_p,
        "p": found.net_p,
        "verdict": found.verdict,
    }


def agreement(i: Inputs) -> Any:
    found = answer_agreement(i["answers"])
    return {"pairwise_exact": found["answer_agreement"], "modal_share": found["modal_share"]}


def pass_hat(i: Inputs) -> Any:
    n, successes = i["n"], i["successes"]
    outcomes = np.array([[1.0] * right + [0.0] * (n - right) for right in successes])
    mean = outcome_stability(outcomes)
    return {
        str(k): {
            "per_task": [pass_hat_k(n, right, k) for right in successes],
            "mean": mean[f"pass^{k}"],
        }
        for k in i["k"]
    }


def biased_pass_at_k(i: Inputs) -> Any:
    value = pass_at_k(i["n"], i["c"], i["k"])
    return {"unbiased": value, "plugin_BIASED": value}


def verified(p: float, i: Inputs, k: int) -> float:
    return sum(
        comb(k, right)
        * p**right
        * (1 - p) ** (k - right)
        * verified_accuracy(right, k, true_accept=i["tpr"], false_accept=i["fpr"])
        for right in range(k + 1)
    )


def best_of_k(i: Inputs) -> Any:
    perfect = {"tpr": 1.0, "fpr": 0.0}
    return {
        str(k): {
            "coverage": verified(i["p"], perfect, k),
            "accuracy_abstain": verified(i["p"], i, k),
        }
        for k in i["k"]
    }


def mean_best_of_k(i: Inputs) -> Any:
    mean = fmean(verified(p, i, i["k"]) for p in i["p"])
    return {"mean_of_tasks": mean, "plug_in_mean_p_WRONG": mean}


def retries(i: Inputs) -> Any:
    found = account_retries(
        answers=i["n"],
        first_right=i["first_pass"],
        fired_on_wrong=i["fired_on_fail"],
        fired_on_right=i["fired_on_pass"],
        fixed=i["fixed"],
        broke=i["broke"],
        cost=(i["fired_on_fail"] + i["fired_on_pass"]) * i["cost_retry"],
    )
    return {**found.model_dump(), "net_fixed": found.fixed - found.broke}


# --- transitions, steps, bisection -----------------------------------------------------------


def transition(i: Inputs) -> Any:
    n, right, up, down = i["n"], i["before"], i["up"], i["down"]
    before = np.arange(n) < right
    after = before.copy()
    after[:down] = False
    after[right : right + up] = True
    found = describe_effect("all", before.astype(float), after.astype(float), seed=0)
    return {
        "gains": found.gained,
        "regressions": found.regressed,
        "kept": found.kept,
        "residual": found.residual,
        "net": round(known(found.difference) * n),
    }


def steps(i: Inputs) -> Any:
    points = [
        {str(task): float(value) for task, value in enumerate(states)}
        for states in i["states_by_tasks"]
    ]
    each = [compare_scores(before, after, seed=0) for before, after in pairwise(points)]
    ends, found = compare_scores(points[0], points[-1], seed=0), check_sum(points)
    assert found.adds_up
    return {
        "totals": [each[0].before, *(step.after for step in each)],
        "gains": [step.up for step in each],
        "regressions": [step.down for step in each],
        "net": [step.difference for step in each],
        "sum_net": found.steps_difference,
        "endpoint_gains": ends.up,
        "endpoint_regressions": ends.down,
        "churn": found.churn,
        "flapping_tasks": [int(task) for task in found.flapping_tasks],
    }


def bisect(vectors: list[str]) -> list[int]:
    states = {0: vectors[0], len(vectors) - 1: vectors[-1]}
    runs: list[int] = []
    while points := next_points(len(vectors), states):
        runs += points
        states.update({point: vectors[point] for point in points})
    return runs


def blind_spot(i: Inputs) -> Any:
    runs = bisect(i["state_vectors"])
    return {"runs": runs, "detected": bool(runs)}


# --- panels and nulls ------------------------------------------------------------------------


def diversity(i: Inputs) -> Any:
    if isinstance(i["counts"], dict):
        return {name: diversity({"counts": counts}) for name, counts in i["counts"].items()}
    golds = [[f"r{shape}"] for shape, size in enumerate(i["counts"]) for _ in range(size)]
    found = describe_distribution(make_tasks(golds))
    return {
        "top_share": found.top_share,
        "effective_shapes_q1": found.effective_shapes,
        "effective_shapes_q2": found.inverse_simpson,
        "shapes": found.shapes,
    }


def score_null(
    tasks: list[Task], name: str, *, null: str = "constant", corpus_items: int = 0
) -> float:
    measure = parse_measure(name)
    ground = NullGround(corpus_items=corpus_items, change_counts={})
    return fmean(measure_nulls(tasks, measure, primary=measure, k=0, ground=ground)[null])


def score_sets(tasks: list[Task], answer: list[str]) -> dict[str, float]:
    return {
        name: fmean(score(name, answer, task.gold_grades) for task in tasks)
        for name in ("precision", "recall", "f1", "exact")
    }


def full_panel_null(i: Inputs) -> Any:
    largest, total = i["tickets_with_3plus_repos"], i["tickets"]
    golds = [["a", "b", "c"]] * largest + [[f"r{number}"] for number in range(total - largest)]
    tasks = make_tasks(golds)
    assert constant_answer(tasks, EXACT, k=0) == ("a", "b", "c")
    return score_null(tasks, "exact")


def broken_sample(i: Inputs) -> Any:
    tasks = make_tasks([["a", "b", "c"]] * 19 + [["a", "b"]])
    assert list(constant_answer(tasks, parse_measure("f1"), k=0)) == i["answer"]
    return score_sets(tasks, i["answer"])


def everything(i: Inputs) -> Any:
    assert not parse_measure("recall").definition.can_gate
    tasks, found = make_tasks(i["gold"]), score_sets(make_tasks(i["gold"]), i["answer"])
    for name, value in found.items():
        null = score_null(tasks, name, null="everything", corpus_items=len(i["answer"]))
        assert abs(null - value) < TOLERANCE
    return found


def random_ranking(i: Inputs) -> Any:
    items = [f"f{number}" for number in range(i["N"])]
    tasks = make_tasks([items[: i["G"]]], "ranking")
    return {
        str(k): {
            key: random_scores(tasks, parse_measure(f"{name}@{k}"), k=k, items=items)[0]
            for key, name in (("hit", "hit"), ("rr", "mrr"))
        }
        for k in i["k"]
    }


def discrimination(i: Inputs) -> Any:
    found = describe_discrimination(
        {
            str(arm): {str(task): bool(value) for task, value in enumerate(row)}
            for arm, row in enumerate(i["arms_by_tasks"])
        }
    )
    return {
        "all_pass": len(found.all_solve),
        "all_fail": len(found.none_solve),
        "discriminating": len(found.split),
        "fraction": len(found.split) / found.tasks,
        "max_discordant": found.observed_discordance,
    }


# --- measures, and what other libraries give -------------------------------------------------


def ranking(i: Inputs) -> Any:
    items, gold = i["ranking"], dict.fromkeys(i["gold"], 1.0)
    return {
        str(k): {
            "hit": score(f"hit@{k}", items, gold),
            "precision_at_k": score(f"precision@{k}", items, gold),
            "precision_of_returned": score("precision", items[:k], gold),
            "recall": score(f"recall@{k}", items, gold),
            "rr": score(f"mrr@{k}", items, gold),
            "ndcg": score(f"ndcg@{k}", items, gold),
        }
        for k in i["k"]
    }


def graded_ndcg(i: Inputs) -> Any:
    gold = {item: float(grade) for item, grade in i["relevance"].items()}
    return {"linear": score(f"ndcg@{i['k']}", i["ranking"], gold)}


def duplicates(i: Inputs) -> Any:
    items, k, gold = i["ranking"], i["k"], dict.fromkeys(i["gold"], 1.0)
    ours = {"hit": score(f"hit@{k}", items, gold), "rr": score(f"mrr@{k}", items, gold)}
    marked = [
        f"{item}#{place}" if item in items[:place] else item for place, item in enumerate(items)
    ]
    kept = {"hit": score(f"hit@{k}", marked, gold), "rr": score(f"mrr@{len(items)}", marked, gold)}
    assert ours != kept
    return {"dedupe_first": ours, "no_dedupe": kept}


def tie_disagreement(i: Inputs) -> Any:
    scores, relevant = i["scores"], i["relevant"]
    qrels, run = {"q": {relevant: 1}}, {"q": scores}
    for order in (["d1", "d2"], ["d2", "d1"]):
        theirs = oracles.score_by_pytrec_eval(
            qrels, {"q": oracles.rank_scores(order)}, "recip_rank"
        )
        assert theirs == {"q": score("mrr@10", order, {relevant: 1.0})}
    return {
        "trec_eval_recip_rank": oracles.score_by_pytrec_eval(qrels, run, "recip_rank")["q"],
        "ir_measures_RR": oracles.score_by_ir_measures(qrels, run, "RR")["q"],
        "ir_measures_RR_at_10": oracles.score_by_ir_measures(qrels, run, "RR@10")["q"],
        "ranx_insert_d1_first": oracles.mean_by_ranx(
            qrels, {"q": {"d1": 1.0, "d2": 1.0}}, "mrr@10"
        ),
        "ranx_insert_d2_first": oracles.mean_by_ranx(
            qrels, {"q": {"d2": 1.0, "d1": 1.0}}, "mrr@10"
        ),
    }


def float32_tie(i: Inputs) -> Any:
    assert score("mrr@10", ["a", "b"], {i["relevant"]: 1.0}) == 1.0
    qrels = {"q": {i["relevant"]: 1}}
    return oracles.score_by_pytrec_eval(qrels, {"q": i["scores"]}, "recip_rank")["q"]


def missing_query(i: Inputs) -> Any:
    qrels, run = i["qrels"], i["run"]
    ours = fmean(score("mrr@10", list(run.get(task, ())), gold) for task, gold in qrels.items())
    assert ours == 0.5
    return {
        "pytrec_eval_mean_over_returned": oracles.mean_by_pytrec_eval(qrels, run, "recip_rank"),
        "ir_measures": oracles.mean_by_ir_measures(qrels, run, "RR"),
        "ranx_make_comparable": oracles.mean_by_ranx(qrels, run, "mrr", make_comparable=True),
    }


def empty_gold(i: Inputs) -> Any:
    qrels, run = i["qrels"], i["run"]
    assert parse_measure("mrr@10").score(list(run["q1"]), qrels["q1"]) is None
    assert EXACT.score([], qrels["q1"]) == 1.0
    return {
        "pytrec_eval_queries": sorted(oracles.score_by_pytrec_eval(qrels, run, "recip_rank")),
        "ir_measures_RR": oracles.mean_by_ir_measures(qrels, run, "RR"),
    }


def truth_table(i: Inputs) -> Any:
    return [score_sets(make_tasks([sorted(set(row["gold"]))]), row["answer"]) for row in i["cases"]]


def f1_averaging(i: Inputs) -> Any:
    rows = [(row["answer"], dict.fromkeys(row["gold"], 1.0)) for row in i["cases"]]
    macro = fmean(score("f1", answer, gold) for answer, gold in rows)
    # micro-F1 pools the counts: the F1 of all tasks' items as one task
    pooled = [f"{task}/{item}" for task, (answer, _) in enumerate(rows) for item in answer]
    golds = {f"{task}/{item}": 1.0 for task, (_, gold) in enumerate(rows) for item in gold}
    micro = score("f1", pooled, golds)
    return {"macro_f1": macro, "f1_of_mean_p_r_WRONG": macro, "micro_f1": micro}


CASES: dict[str, Case] = {
    "proportion.wilson.": wilson,
    "proportion.zero_trials": wilson,
    "proportion.clopper_pearson.": clopper_pearson,
    "proportion.rule_of_three_exact.": lambda i: upper_flip_rate(
        i["k"], i["n"], confidence=1 - i["one_sided_alpha"]
    ),
    "prereg.bar_test.": bar,
    "integrity.mrr_bounds_from_hits.": mrr_bounds,
    "integrity.dev_vs_sealed_gap": dev_sealed,
    "paired.sign_exact.": sign_test,
    "paired.sign_exact.published_smucker_": lambda i: exact_paired_two_sided_p(
        i["k"], i["n"] - i["k"]
    ),
    "paired.mcnemar.published_cavo2012": lambda i: {
        "exact_two_sided": exact_paired_two_sided_p(i["n12"], i["n21"])
    },
    "paired.min_up_for_significance": min_ups,
    "paired.signflip_exact.d8": sign_flips,
    "paired.signflip_equals_mcnemar": sign_flips,
    "paired.signflip_float_ties": tied_sign_flips,
    "paired.test_comparison_on_6_0_of_71": comparison,
    "null_gate.": overlaps,
    "paired.diff_ci.published_case_": lambda i: paired_difference(
        {name: i[name] for name in ("both", "up", "down", "neither")}
    ),
    "paired.diff_ci.published_cavo2012": paired_difference,
    "paired.lower_bound_gate_table.n71": gate_table,
    "paired.gate_actual_size_under_null": gate_sizes,
    "power.exact_mcnemar.": power,
    "power.mde80.n71_": detectable,
    "power.mde80.pure_gain_by_n": detectable_by_n,
    "power.observed_effect.": lambda i: exact_power(i["n"], i["p_up"], i["p_down"]),
    "bootstrap.mean_exact.n5": mean_bootstrap,
    "bootstrap.bca_exact.n5": bca,
    "cost.score_per_dollar.ratio_of_sums": cost_ratios,
    "bootstrap.paired_ratio_exact.spd_A_minus_B": ratio_difference,
    "cost.token_ledger": lambda i: float(
        price_exactly(add_tokens(i["calls"]), i["usd_per_million"])
    ),
    "latency.quantile_p95.type7": lambda i: quantile_seconds(i["values"], i["p"]),
    "latency.geometric_mean_ratio": lambda i: (
        compare_latency(np.array(i["A"]), np.array(i["B"]), seed=0).ratio
    ),
    "cluster.se_of_mean.3_repos": clusters,
    "cluster.se_of_paired_diff": clusters,
    "cluster.min_one_sided_p_signflip": smallest_cluster_p,
    "multiplicity.adjusted.": lambda i: {"holm": list(adjust_holm(i["p"]))},
    "pareto.bootstrap_dominance_exact.n4": frontier,
    "pareto.verdict_table": dominance,
    "noise.two_runs_37_38": two_totals,
    "noise.two_runs_identical": identical_runs,
    "noise.flip_rate_R5": flip_rates,
    "noise.net_change_null.": net_changes,
    "noise.gate_decisions": noise_gate,
    "noise.zero_flips_upper_by_pairs": upper_by_pairs,
    "drift.control_5_up_5_down": drift,
    "drift.control_unchanged": drift,
    "stability.answers_5x3": agreement,
    "stability.pass_hat_k": pass_hat,
    "passk.unbiased": lambda i: [pass_at_k(row["n"], row["c"], row["k"]) for row in i["cases"]],
    "passk.plugin_is_biased": biased_pass_at_k,
    "bestofk.imperfect_verifier": best_of_k,
    "bestofk.heterogeneous_tasks": mean_best_of_k,
    "retry.once_accounting": retries,
    "transition.published_case_": transition,
    "steps.attribution.4x8": steps,
    "bisect.cancelling_changes_missed": blind_spot,
    "bisect.published_case_states": lambda i: bisect(i["vectors"]),
    "shape.broken_sample_19_1": diversity,
    "shape.round_robin_8_shapes_20": diversity,
    "shape.uniform_and_single": diversity,
    "shape.best_constant_null_equals_top_share": lambda i: score_null(
        make_tasks([list(shape) for shape in i["gold_shapes"]]), "exact"
    ),
    "shape.published_case_full_panel_null": full_panel_null,
    "null.constant_abc_on_broken_sample": broken_sample,
    "null.always_everything_recall": everything,
    "null.random_ranking_expected": random_ranking,
    "discrimination.panel_4x10": discrimination,
    "metrics.ranking.": ranking,
    "metrics.ndcg.graded_linear_vs_exponential": graded_ndcg,
    "metrics.duplicates": duplicates,
    "metrics.ties.library_disagreement": tie_disagreement,
    "metrics.ties.float32": float32_tie,
    "metrics.missing_query": missing_query,
    "metrics.empty_gold.ir_libraries": empty_gold,
    "metrics.sets.truth_table": truth_table,
    "metrics.sets.f1_averaging": f1_averaging,
}


def find_prefix(name: str) -> str:
    found = [prefix for prefix in CASES if name.startswith(prefix)]
    assert found, f"no case computes {name}"
    return max(found, key=len)
