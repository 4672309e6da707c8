"""Measures of one answer against the gold of one task, one measure a file.

A measure is written as in the configuration: its name and, for a ranking, its cut-off (`hit@5`).
`stability` compares the trials of one task and so is no measure of an answer (see
`tasks.stats.stability`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import AnswerKind
from coldrun.tasks.stats.measures.exact import score_exact
from coldrun.tasks.stats.measures.f1 import score_f1
from coldrun.tasks.stats.measures.hit import score_hit
from coldrun.tasks.stats.measures.mrr import score_mrr
from coldrun.tasks.stats.measures.ndcg import score_ndcg
from coldrun.tasks.stats.measures.precision import score_precision
from coldrun.tasks.stats.measures.recall import score_recall

ScoreFunction = Callable[[Sequence[str], Mapping[str, float], int | None], float | None]


@dataclass(frozen=True, slots=True)
class _Definition:
    score: ScoreFunction
    cutoff: Literal["required", "optional", "none"]
    is_binary: bool
    plain_kinds: frozenset[AnswerKind]


_RANKING: Final[frozenset[AnswerKind]] = frozenset({"ranking"})
_SET: Final[frozenset[AnswerKind]] = frozenset({"set"})

_DEFINITIONS: Final[dict[str, _Definition]] = {
    "hit": _Definition(score_hit, "required", True, _RANKING),
    "mrr": _Definition(score_mrr, "required", False, _RANKING),
    "ndcg": _Definition(score_ndcg, "required", False, _RANKING),
    "precision": _Definition(score_precision, "optional", False, _RANKING | _SET),
    "recall": _Definition(score_recall, "optional", False, _RANKING | _SET),
    "f1": _Definition(score_f1, "none", False, _RANKING | _SET),
    "exact": _Definition(score_exact, "none", True, _SET),
}

KNOWN_MEASURES: Final = "hit@k, mrr@k, ndcg@k, precision, precision@k, recall, recall@k, f1, exact"
"""How the measures are written, for messages."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure with its cut-off. Make it with `parse_measure`."""

    text: str
    name: str
    cutoff: int | None

    @property
    def is_binary(self) -> bool:
        """Whether each task scores 0 or 1 only."""
        return _DEFINITIONS[self.name].is_binary

    @property
    def can_gate(self) -> bool:
        """Whether a verdict may rest on it: recall cannot beat always-everything, so it may not."""
        return self.name != "recall"

    @property
    def answer_kinds(self) -> frozenset[AnswerKind]:
        """The kinds of answer that it scores; with a cut-off, rankings only."""
        return _RANKING if self.cutoff is not None else _DEFINITIONS[self.name].plain_kinds

    def score(self, items: Sequence[str], gold: Mapping[str, float]) -> float | None:
        """Score one answer.

        Args:
            items: The answer, best first (order is ignored by set measures). Duplicates are
                removed before the cut. A missing answer is the empty one.
            gold: Right items with grades > 0, in the same spelling as `items`.

        Returns:
            A value in [0, 1]. None when gold is empty and the measure is one of rankings, because
            empty-gold tasks go to set measures only.
        """
        return _DEFINITIONS[self.name].score(items, gold, self.cutoff)


def parse_measure(text: str) -> Measure:
    """Read a measure as it is written in a configuration.

    Raises:
        ConfigError: The name is unknown, or its cut-off is missing, superfluous or not a positive
            whole number.
    """
    match = re.fullmatch(r"([a-z0-9]+?)(?:@([1-9][0-9]*))?", text)
    name = match[1] if match else text.partition("@")[0]
    definition = _DEFINITIONS.get(name)
    if definition is None:
        if name == "stability":
            raise ConfigError(
                f"measure {text!r}: stability compares the trials of a task and is printed beside "
                f"the scores, it cannot be measured per answer; measures are {KNOWN_MEASURES}"
            )
        raise ConfigError(f"measure {text!r} is not known; measures are {KNOWN_MEASURES}")
    if match is None:
        raise ConfigError(
            f"measure {text!r}: the cut-off must be a whole number from 1, as in {name}@5"
        )
    cutoff = int(match[2]) if match[2] else None
    if cutoff is None and definition.cutoff == "required":
        raise ConfigError(f"measure {text!r} needs a cut-off, as in {name}@5")
    if cutoff is not None and definition.cutoff == "none":
        raise ConfigError(f"measure {text!r}: {name} takes no cut-off; write {name!r}")
    return Measure(text=text, name=name, cutoff=cutoff)


__all__ = ["KNOWN_MEASURES", "Measure", "parse_measure"]
