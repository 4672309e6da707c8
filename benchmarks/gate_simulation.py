"""Simulate the gate: how often it is fooled, and how often it sees what is there.

    uv run python benchmarks/gate_simulation.py

False positives: panels answered by candidates that know nothing of the question. `popular` answers
five files drawn by how common they are as gold; `as_good` hits each task by chance, as often as the
best constant answer; `paired` is against one opponent of the same true rate. Power: against the
exact figure. Exits 1 when a false-positive rate exceeds 2.5 % or power is over 2 points off.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

from coldrun.tasks.judge.gates import judge_candidate, judge_gate, pair_scores
from coldrun.tasks.lib.records import GoldItem, Task
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.nulls import NullGround, constant_answer, measure_nulls, permuted_scores
from coldrun.tasks.stats.paired import GATE_ALPHA, exact_power

PANELS, TASKS, FILES, K = 2000, 71, 138, 5
POWER_PANELS = 20_000
EFFECTS = ((0.10, 0.0), (0.12, 0.02), (0.20, 0.05), (0.15, 0.05))
LIMIT_POINTS = 2.0
MEASURE = parse_measure("hit@5")
ITEMS = [f"f{number:03d}" for number in range(FILES)]

Generator = np.random.Generator
Vector = NDArray[np.float64]


def popularity() -> Vector:
    weights = 1.0 / (np.arange(FILES) + 8.0)
    chances: Vector = weights / weights.sum()
    return chances


def draw_panel(generator: Generator, chances: Vector) -> list[Task]:
    gold = generator.choice(FILES, size=TASKS, p=chances)
    return [
        Task(id=f"t{number}", query="", answer="ranking", gold=(GoldItem(item=ITEMS[place]),))
        for number, place in enumerate(gold)
    ]


def answer_by_popularity(
    generator: Generator, tasks: list[Task], chances: Vector
) -> dict[str, list[str]]:
    # the largest of log(weight) + Gumbel noise are a weighted draw without replacement
    keys = np.log(chances) + generator.gumbel(size=(len(tasks), FILES))
    chosen = np.argsort(-keys, axis=1)[:, :K]
    return {
        task.id: [ITEMS[place] for place in row] for task, row in zip(tasks, chosen, strict=True)
    }


def answer_as_good(
    generator: Generator, tasks: list[Task], chances: Vector
) -> dict[str, list[str]]:
    rate = float(np.sort(chances)[-K:].sum())
    answers = answer_by_popularity(generator, tasks, chances)
    for task in tasks:
        gold = task.gold[0].item
        answers[task.id] = [item for item in answers[task.id] if item != gold]
        if generator.random() < rate:
            answers[task.id].insert(0, gold)
    return answers


def judge_panel(tasks: list[Task], answers: dict[str, list[str]]) -> bool:
    scores = np.array([MEASURE.score(answers[t.id], t.gold_grades) or 0.0 for t in tasks])
    ground = NullGround(corpus_items=FILES, change_counts={})
    nulls = measure_nulls(tasks, MEASURE, primary=MEASURE, k=K, ground=ground)
    nulls["permuted"] = permuted_scores(answers, tasks, MEASURE)
    judged = judge_candidate(
        "tool", scores, measure=MEASURE.text, nulls=nulls, rivals={}, margin_tasks=1, seed=0
    )
    return judged.outcome == "beats_nulls"


def judge_pair(first: Vector, second: Vector) -> bool:
    pairs = pair_scores(first, {"null": ("null", second)}, seed=0)
    return judge_gate(pairs, tasks=len(first), margin_tasks=1)[0] == "beats_nulls"


def simulate_false_positives(seed: int) -> dict[str, float]:
    generator = np.random.default_rng(seed)
    chances = popularity()
    passed = {"popular": 0, "as_good": 0, "paired": 0}
    for _ in range(PANELS):
        tasks = draw_panel(generator, chances)
        passed["popular"] += judge_panel(tasks, answer_by_popularity(generator, tasks, chances))
        passed["as_good"] += judge_panel(tasks, answer_as_good(generator, tasks, chances))
        first, second = (generator.random((2, TASKS)) < 0.3).astype(np.float64)
        passed["paired"] += judge_pair(first, second)
    return {kind: count / PANELS for kind, count in passed.items()}


def simulate_power(generator: Generator, p_up: float, p_down: float) -> float:
    passed = 0
    for draws in generator.random((POWER_PANELS, TASKS)):
        up, down = draws < p_up, draws > 1 - p_down
        opponent = down.astype(np.float64)
        passed += judge_pair(opponent + up - down, opponent)
    return passed / POWER_PANELS


def main() -> int:
    start = time.perf_counter()
    is_good = True
    tasks = draw_panel(np.random.default_rng(0), popularity())
    best = constant_answer(tasks, MEASURE, k=K)
    share = sum(task.gold[0].item in best for task in tasks) / TASKS
    print(
        f"{PANELS} null panels of {TASKS} tasks, {FILES} files; constant scores {share:.2f} there"
    )
    for kind, rate in simulate_false_positives(seed=1).items():
        is_good &= rate <= GATE_ALPHA
        print(f"  false positives, {kind:<8} {rate:7.2%}  (limit {GATE_ALPHA:.1%})")
    print(f"power over {POWER_PANELS} panels of {TASKS} tasks")
    generator = np.random.default_rng(2)
    for p_up, p_down in EFFECTS:
        found, exact = simulate_power(generator, p_up, p_down), exact_power(TASKS, p_up, p_down)
        points = 100 * (found - exact)
        is_good &= abs(points) <= LIMIT_POINTS
        print(
            f"  up {p_up:.2f} down {p_down:.2f}: {found:6.2%}, exactly {exact:6.2%}, "
            f"{points:+.2f} points (limit {LIMIT_POINTS:g})"
        )
    print(f"{'OK' if is_good else 'FAIL'} in {time.perf_counter() - start:.1f} s")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
