"""Measures of one answer against the gold of one task, one measure a file.

A measure is written as in the configuration: its name and, for a ranking, its cut-off (`hit@5`).
To add one, write a file with its `Definition` and name it in `MEASURES`. `stability` compares the
trials of one task, not one answer with its gold (see `tasks.stats.stability`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import AnswerKind
from coldrun.tasks.stats.measures.definition import RANKING, Definition
from coldrun.tasks.stats.measures.exact import EXACT
from coldrun.tasks.stats.measures.f1 import F1
from coldrun.tasks.stats.measures.hit import HIT
from coldrun.tasks.stats.measures.mrr import MRR
from coldrun.tasks.stats.measures.ndcg import NDCG
from coldrun.tasks.stats.measures.precision import PRECISION
from coldrun.tasks.stats.measures.recall import RECALL

MEASURES: dict[str, Definition] = {
    measure.name: measure for measure in (HIT, MRR, NDCG, PRECISION, RECALL, F1, EXACT)
}


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure with its cut-off. Make it with `parse_measure`."""

    text: str
    definition: Definition
    cutoff: int | None

    @property
    def name(self) -> str:
        """The name without the cut-off."""
        return self.definition.name

    @property
    def answer_kinds(self) -> frozenset[AnswerKind]:
        """The kinds of answer that it scores; with a cut-off, rankings only."""
        return RANKING if self.cutoff is not None else self.definition.plain_kinds

    def score(self, items: Sequence[str], gold: Mapping[str, float]) -> float | None:
        """Score the distinct items of one answer, best first, in [0, 1].

        None when gold is empty and the measure is one of rankings.
        """
        if not gold and "set" not in self.answer_kinds:
            return None
        return self.definition.score(items, gold, self.cutoff)


def parse_measure(text: str) -> Measure:
    """Read a measure as it is written in a configuration."""
    match = re.fullmatch(r"([a-z0-9]+?)(?:@([1-9][0-9]*))?", text)
    name = match[1] if match else text.partition("@")[0]
    definition = MEASURES.get(name)
    if definition is None:
        if name == "stability":
            raise ConfigError(
                f"measure {text!r}: stability compares the trials of a task and is printed beside "
                f"the scores, it cannot be measured per answer; measures are {_list_measures()}"
            )
        raise ConfigError(f"measure {text!r} is not known; measures are {_list_measures()}")
    if match is None:
        raise ConfigError(
            f"measure {text!r}: the cut-off must be a whole number from 1, as in {name}@5"
        )
    cutoff = int(match[2]) if match[2] else None
    if cutoff is None and definition.cutoff == "required":
        raise ConfigError(f"measure {text!r} needs a cut-off, as in {name}@5")
    if cutoff is not None and definition.cutoff == "none":
        raise ConfigError(f"measure {text!r}: {name} takes no cut-off; write {name!r}")
    return Measure(text=text, definition=definition, cutoff=cutoff)


def _list_measures() -> str:
    written = {"required": "{0}@k", "optional": "{0}, {0}@k", "none": "{0}"}
    return ", ".join(written[one.cutoff].format(name) for name, one in MEASURES.items())
