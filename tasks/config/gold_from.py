"""Arms that had a hand in the gold: what they may not be told about a panel. Pure."""

from __future__ import annotations

from collections.abc import Collection


def find_shared_component(
    name: str, component: str | None, gold_from: Collection[str]
) -> str | None:
    """The component that an arm shares with the gold: its declared one, or its own name."""
    for own in (component, name):
        if own is not None and own in gold_from:
            return own
    return None


def refuse_verdict(name: str, component: str | None, gold_from: Collection[str]) -> str | None:
    """Why an arm gets no verdict on a panel: its own component produced the gold. None: it does."""
    shared = find_shared_component(name, component, gold_from)
    if shared is None:
        return None
    return (
        f"the gold was produced with {shared!r} (`panel.gold_from`), a part of this arm: agreeing "
        "with oneself is no measurement"
    )
