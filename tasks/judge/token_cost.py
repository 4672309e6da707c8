"""What token counts cost at given prices, without drift of floats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

TOKEN_KINDS = ("input", "output", "cache_read", "cache_write")
"""Cache reads and writes are kinds of their own, never part of input."""


def price_tokens(calls: Iterable[Mapping[str, int]], usd_per_million: Mapping[str, float]) -> float:
    """Give the cost of all calls in US dollars.

    Tokens are added as whole numbers per kind, priced in decimal micro-dollars, and rounded to a
    float once.

    Args:
        calls: Per call the tokens by kind (`input`, `output`, `cache_read`, `cache_write`).
        usd_per_million: Price by kind, as the dated snapshot has it.

    Raises:
        ValueError: A kind with tokens has no price.
    """
    return float(price_exactly(add_tokens(calls), usd_per_million))


def add_tokens(calls: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add the tokens of all calls up by kind."""
    totals: dict[str, int] = {}
    for call in calls:
        for kind, tokens in call.items():
            totals[kind] = totals.get(kind, 0) + tokens
    return totals


def price_exactly(tokens: Mapping[str, int], per_million: Mapping[str, float]) -> Decimal:
    """Give the cost of tokens by kind, exact to the last digit.

    Raises:
        ValueError: A kind with tokens has no price.
    """
    unpriced = find_unpriced(tokens, per_million)
    if unpriced:
        raise ValueError(f"no price for {', '.join(unpriced)} tokens; add it to the price snapshot")
    micro = sum(
        (count * Decimal(str(per_million[kind])) for kind, count in tokens.items() if count),
        Decimal(0),
    )
    return micro / 1_000_000


def find_unpriced(tokens: Mapping[str, int], per_million: Mapping[str, float]) -> list[str]:
    """The kinds that have tokens and no price, sorted."""
    return sorted(kind for kind, count in tokens.items() if count and kind not in per_million)
