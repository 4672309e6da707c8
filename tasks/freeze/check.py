"""What a configuration must fulfil before anything is frozen or run: measures and bars."""

from __future__ import annotations

import difflib

from tasks.analyse.measures import parse_measure
from tasks.config import NULL_NAMES, Config
from tasks.errors import ConfigError


def check_config(config: Config) -> None:
    """Refuse measures that do not fit the panel's answers, and bars that name nothing.

    Raises:
        ConfigError: Names the key, the value and what would do.
    """
    answer = config.panel.answer_kind
    for text in config.measures:
        measure = parse_measure(text)
        if answer not in measure.answer_kinds:
            fitting = "hit@5, mrr@8, ndcg@10" if answer == "ranking" else "exact, f1, precision"
            raise ConfigError(
                f"measure {text!r} does not score answers that are a {answer}; use {fitting}"
            )
    if not parse_measure(config.primary).can_gate:
        raise ConfigError(
            f"measure.primary = {config.primary!r}: an arm that answers everything has full "
            "recall, so recall cannot tell systems apart; use f1 or exact, and keep recall in also"
        )
    arms = [arm.name for arm in config.arms]
    for bar in config.bar:
        _check_name("bar.arm", bar.arm, arms)
        _check_name("bar.measure", bar.measure, list(config.measures))
        if bar.against is not None:
            _check_name("bar.against", bar.against, [*arms, *NULL_NAMES])
    if config.holdout is not None:
        for name in config.holdout.arms:
            _check_name("holdout.arms", name, arms)
        for name in config.holdout.aggregates:
            _check_name("holdout.aggregates", name, list(config.measures))


def _check_name(key: str, name: str, known: list[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
        raise ConfigError(f"{key} = {name!r} names nothing in this configuration; {hint}")
