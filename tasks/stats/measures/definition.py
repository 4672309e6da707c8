"""What a measure declares about itself: how it scores, and what answers score that know nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from coldrun.tasks.lib.records import AnswerKind

if TYPE_CHECKING:
    from coldrun.tasks.lib.arrays import FloatArray
    from coldrun.tasks.stats.gold_table import GoldTable

ScoreFunction = Callable[[Sequence[str], Mapping[str, float], int | None], float | None]

RANKING: Final[frozenset[AnswerKind]] = frozenset({"ranking"})
SET: Final[frozenset[AnswerKind]] = frozenset({"set"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomDraw:
    """A random answer to one task: `drawn` of `items` corpus items, in random order.

    `gold` are the right items with their grades; `known` are those of them in the corpus, the only
    ones that can be found. `drawn` is already cut at `cutoff`.
    """

    items: int
    drawn: int
    gold: Mapping[str, float]
    known: Collection[str]
    cutoff: int | None

    @property
    def found(self) -> float:
        """How many gold items the answer holds on average."""
        return self.drawn * len(self.known) / self.items if self.items else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One measure. Each file of this folder makes one, and `__init__` lists them.

    `score` gives a value in [0, 1] for (distinct or repeated items best first, gold, cut-off), or
    None where the measure is undefined. `cutoff` says whether the name carries one, `plain_kinds`
    which answers it scores without one. `can_gate`: whether a verdict may rest on it.

    The nulls: `expect_random` is the expected score of a random answer. `choose_constant` gives the
    columns of the best constant answer up to a given size, best first for rankings; left out,
    the greedy cover of the tasks. `sum_over_answers` gives, for each task, the sum of its scores
    over all answers (cut, without duplicates); left out, every pair is scored.
    """

    name: str
    score: ScoreFunction
    expect_random: Callable[[RandomDraw], float]
    cutoff: Literal["required", "optional", "none"]
    is_binary: bool = False
    plain_kinds: frozenset[AnswerKind] = RANKING
    can_gate: bool = True
    choose_constant: Callable[[GoldTable, int | None, int], Sequence[int]] | None = None
    sum_over_answers: (
        Callable[[GoldTable, Sequence[Sequence[str]], int | None], FloatArray] | None
    ) = None


def cut_items(items: Sequence[str], cutoff: int | None) -> list[str]:
    """Keep the first occurrence of each item, and then the first `cutoff` of them."""
    return list(islice(dict.fromkeys(items), cutoff))


def find_first_rank(ranked: Iterable[str], gold: Collection[str]) -> int | None:
    """Give the 1-based rank of the first gold item, None when there is none."""
    for rank, item in enumerate(ranked, start=1):
        if item in gold:
            return rank
    return None


def score_empties(answered: Sized, gold: Sized) -> float | None:
    """The rule for empty sets: both empty score 1, exactly one empty 0; None when neither is."""
    return None if len(answered) and len(gold) else float(len(answered) == len(gold))
