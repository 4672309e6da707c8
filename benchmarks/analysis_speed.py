"""Time the whole analysis of 2,000 tasks × 4 arms beside ranx and ir_measures, in one run.

    uv run python benchmarks/analysis_speed.py

ranx compares the same arms by its Fisher randomisation test and gives no interval; ir_measures only
scores. Ours is the best of five times, the peers' of two. Exits 1 beyond one second.
"""

from __future__ import annotations

import os
import sys
import time
import timeit
import warnings

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.judge.gates import adjust_gates, judge_candidate, summarise
from coldrun.tasks.lib.records import GoldItem, Task
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.nulls import NullGround, measure_nulls, permuted_scores

TASKS, ITEMS, K, LIMIT_SECONDS = 2000, 3000, 8, 1.0
MEASURES = ("hit@5", "hit@1", "hit@8", "mrr@8")
PEER_MEASURES = ("hit_rate@5", "hit_rate@1", "hit_rate@8", "mrr@8")
ARMS = {"grep": 0.25, "search": 0.35, "tool": 0.42, "tool-neighbours": 0.45}

Vector = NDArray[np.float64]
Answers = dict[str, dict[str, list[str]]]
Grades = dict[str, dict[str, float]]


def make_panel() -> tuple[list[Task], dict[str, int], Answers]:
    generator = np.random.default_rng(1)
    items = [f"src/module_{number}.py" for number in range(ITEMS)]
    weights = 1.0 / (np.arange(ITEMS) + 20.0)
    weights /= weights.sum()
    tasks = []
    for number in range(TASKS):
        gold = generator.choice(ITEMS, size=generator.integers(1, 4), replace=False, p=weights)
        tasks.append(
            Task(
                id=f"t{number:04d}",
                query="",
                answer="ranking",
                gold=tuple(GoldItem(item=items[place]) for place in sorted(gold)),
            )
        )
    answers: Answers = {}
    for arm, skill in ARMS.items():
        answers[arm] = {}
        for task in tasks:
            wrong = generator.choice(ITEMS, size=2 * K, p=weights)
            ranked = list(dict.fromkeys(items[place] for place in wrong))[:K]
            if generator.random() < skill:
                ranked[generator.integers(0, K)] = task.gold[0].item
            answers[arm][task.id] = list(dict.fromkeys(ranked))
    counts = {item: ITEMS - place for place, item in enumerate(items)}
    return tasks, counts, answers


def analyse(tasks: list[Task], counts: dict[str, int], answers: Answers) -> dict[str, float]:
    spent: dict[str, float] = {}
    start = time.perf_counter()

    def mark(part: str) -> None:
        nonlocal start
        now = time.perf_counter()
        spent[part] = spent.get(part, 0.0) + now - start
        start = now

    golds = [task.gold_grades for task in tasks]
    arms: dict[str, dict[str, Vector]] = {}
    nulls: dict[str, dict[str, Vector]] = {}
    for text in MEASURES:
        measure = parse_measure(text)
        arms[text] = {
            arm: np.array(
                [
                    measure.score(rows[task.id], gold) or 0.0
                    for task, gold in zip(tasks, golds, strict=True)
                ]
            )
            for arm, rows in answers.items()
        }
        mark("scores")
        nulls[text] = measure_nulls(
            tasks,
            measure,
            primary=parse_measure(MEASURES[0]),
            k=K,
            ground=NullGround(corpus_items=ITEMS, change_counts=counts),
        )
        mark("nulls")
    primary = MEASURES[0]
    gates = []
    for arm, rows in answers.items():
        nulls[primary][f"permuted:{arm}"] = permuted_scores(rows, tasks, parse_measure(primary))
        mark("permuted")
        others = {name: ("control", one) for name, one in arms[primary].items() if name != arm}
        gates.append(
            judge_candidate(
                arm,
                arms[primary][arm],
                measure=primary,
                nulls=nulls[primary],
                rivals=others,
                margin_tasks=1,
                seed=0,
            )
        )
        mark("gates")
    adjust_gates(gates)
    for text in MEASURES:
        vectors = [*arms[text].values(), *nulls[text].values()]
        summarise(vectors, [parse_measure(text)] * len(vectors), seed=0)
    mark("intervals")
    return spent


def time_ranx(tasks: list[Task], answers: Answers) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ranx

        relevant, scored = grade(tasks, answers)
        qrels = ranx.Qrels(relevant)
        runs = [ranx.Run(scores, name=arm) for arm, scores in scored.items()]

        def compare() -> object:
            return ranx.compare(
                qrels, runs, metrics=list(PEER_MEASURES), stat_test="fisher", make_comparable=True
            )

        compare()
        return min(timeit.repeat(compare, number=1, repeat=2))


def time_ir_measures(tasks: list[Task], answers: Answers) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ir_measures
        from ir_measures import RR, Success

        relevant, scored = grade(tasks, answers)
        wanted = [Success @ 5, Success @ 1, Success @ 8, RR @ 8]

        def score() -> None:
            for scores in scored.values():
                list(ir_measures.iter_calc(wanted, relevant, scores))

        return min(timeit.repeat(score, number=1, repeat=2))


def grade(tasks: list[Task], answers: Answers) -> tuple[Grades, dict[str, Grades]]:
    """What is relevant by task, and the scores of each arm's ranked items, as the peers take it."""
    relevant = {task.id: {gold.item: 1 for gold in task.gold} for task in tasks}
    scored = {
        arm: {
            id_: {item: float(K - rank) for rank, item in enumerate(ranked)}
            for id_, ranked in rows.items()
        }
        for arm, rows in answers.items()
    }
    return relevant, scored


def main() -> int:
    tasks, counts, answers = make_panel()
    parts = min(
        (analyse(tasks, counts, answers) for _ in range(5)),
        key=lambda spent: sum(spent.values()),
    )
    ours = sum(parts.values())
    print(f"{TASKS} tasks × {len(ARMS)} arms × {len(MEASURES)} measures")
    for part, seconds in parts.items():
        print(f"  {part:<10} {seconds:6.3f} s")
    start = time.process_time()
    analyse(tasks, counts, answers)
    busy = time.process_time() - start
    print(f"coldrun      {ours:6.3f} s  (limit {LIMIT_SECONDS} s; {busy:.3f} s of processor time)")
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores:
        print(f"load average {load:.1f} on {cores} cores: other work inflates these times")
    for name, seconds in (
        ("ranx Fisher", time_ranx(tasks, answers)),
        ("ir_measures", time_ir_measures(tasks, answers)),
    ):
        print(f"{name:<12} {seconds:6.3f} s  ratio to coldrun {seconds / ours:5.2f}")
    if ours > LIMIT_SECONDS:
        print(f"FAIL: {ours:.3f} s exceeds {LIMIT_SECONDS} s")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
