"""What a configuration must fulfil before anything is frozen or run: measures and bars."""

from __future__ import annotations

import difflib

from coldrun.tasks.config import Config, PanelConfig, ProcessArm
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import NULL_NAMES
from coldrun.tasks.stats.measures import parse_measure

_MINED = frozenset({"base", "head", "query", "max_gold"})
_PANEL_KEYS = {
    "commit-files": _MINED
    | {"repo", "last", "unit", "exclude_gold", "renames", "drop", "duplicates"},
    "ticket-repos": _MINED
    | {"repos", "ticket_pattern", "tickets", "branch", "keep_unnamed_tickets"},
    "jsonl": frozenset({"repo", "base", "head", "file"}),
}
"""What `[panel]` may say of each kind, besides what it may say of every kind."""


def check_config(config: Config) -> None:
    """Refuse panel keys that decide nothing, unfit measures, and bars that name nothing."""
    _check_panel_keys(config.panel)
    answer = config.panel.answer_kind
    for text in config.measures:
        measure = parse_measure(text)
        if answer not in measure.answer_kinds:
            fitting = "hit@5, mrr@8, ndcg@10" if answer == "ranking" else "exact, f1, precision"
            raise ConfigError(
                f"measure {text!r} does not score answers that are a {answer}; use {fitting}"
            )
    if not parse_measure(config.primary).definition.can_gate:
        raise ConfigError(
            f"measure.primary = {config.primary!r}: an arm that answers everything has full "
            "recall, so recall cannot tell systems apart; use f1 or exact, and keep recall in also"
        )
    arms = [arm.name for arm in config.arms]
    _check_folders(config)
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


def check_bars(config: Config, *, has_changes: bool, tasks: int) -> None:
    """Refuse bars against nulls that this panel does not have."""
    candidates = [arm.name for arm in config.arms if arm.role == "candidate"]
    for bar in config.bar:
        missing = {
            "everything": config.is_ranking and "it answers sets only",
            "most-changed": not has_changes and "nothing is known of changes before a base",
            "permuted": (tasks < 2 and "one task has no other task's answer")
            or (bar.arm not in candidates and f"{bar.arm!r} is no candidate"),
        }
        why = missing.get(bar.against or "")
        if why:
            raise ConfigError(
                f"bar.against = {bar.against!r}: this evaluation has no such null, {why}; choose "
                "another, such as 'constant'"
            )


def _check_panel_keys(panel: PanelConfig) -> None:
    others = frozenset[str]().union(*_PANEL_KEYS.values()) - _PANEL_KEYS[panel.kind]
    for key in sorted(panel.model_fields_set & others):
        kinds = " or ".join(f'"{kind}"' for kind, keys in _PANEL_KEYS.items() if key in keys)
        raise ConfigError(
            f'panel.{key} decides nothing where kind = "{panel.kind}", only where it is {kinds}; '
            "leave it out"
        )
    if panel.keep_unnamed_tickets and panel.tickets is None:
        raise ConfigError(
            "panel.keep_unnamed_tickets needs `tickets`: without a file of tickets, only those "
            "that commits name are known"
        )


def _check_folders(config: Config) -> None:
    if config.panel.kind != "jsonl" or config.panel.repo is not None:
        return
    for arm in config.arms:
        if isinstance(arm, ProcessArm) and arm.cwd is not None:
            raise ConfigError(
                f"arm {arm.name!r}: cwd = {arm.cwd!r}, but the panel has no corpus; name its "
                "`repo` and `base` in [panel], or leave `cwd` out"
            )


def _check_name(key: str, name: str, known: list[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
        raise ConfigError(f"{key} = {name!r} names nothing in this configuration; {hint}")
