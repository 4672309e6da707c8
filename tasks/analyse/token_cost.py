"""What token counts cost at given prices, without drift of floats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal


def price_tokens(calls: Iterable[Mapping[str, int]], usd_per_million: Mapping[str, float]) -> float:
    """Give the cost of all calls in US dollars.

    Tokens are added as whole numbers per kind, priced in decimal micro-dollars, and rounded to a
    float once. Cache reads and writes are kinds of their own, never part of input.

    Args:
        calls: Per call the tokens by kind (`input`, `output`, `cache_read`, `cache_write`).
        usd_per_million: Price by kind, as the dated snapshot has it.

    Raises:
        ValueError: A kind with tokens has no price.
    """
    totals: dict[str, int] = {}
    for call in calls:
        for kind, tokens in call.items():
            totals[kind] = totals.get(kind, 0) + tokens
    unpriced = sorted(
        kind for kind, tokens in totals.items() if tokens and kind not in usd_per_million
    )
    if unpriced:
        raise ValueError(f"no price for {', '.join(unpriced)} tokens; add it to the price snapshot")
    micro_usd = sum(
        (tokens * Decimal(str(usd_per_million[kind])) for kind, tokens in totals.items() if tokens),
        Decimal(0),
    )
    return float(micro_usd / 1_000_000)
