"""What answers took: attempts, tokens by kind, and money at the prices of a snapshot. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from coldrun.tasks.config import PriceSnapshot
from coldrun.tasks.judge.cost_model import SpentPart, TokensPart
from coldrun.tasks.lib.records import Attempt
from coldrun.tasks.run.capture import Capture

TOKEN_KINDS = ("input", "output", "cache_read", "cache_write")
"""Cache reads and writes are kinds of their own, never part of input."""


def tokens_of(attempt: Attempt) -> dict[str, int]:
    """The tokens of one attempt by kind; kinds that were not reported are left out."""
    counts = {kind: getattr(attempt, f"{kind}_tokens") for kind in TOKEN_KINDS}
    return {kind: count for kind, count in counts.items() if count is not None}


def tries_of(attempts: Iterable[Attempt]) -> dict[int, list[Attempt]]:
    """Attempts by number: a try that used several models has one row for each of them."""
    tries: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        tries.setdefault(attempt.number, []).append(attempt)
    return dict(sorted(tries.items()))


@dataclass(frozen=True, slots=True)
class Pricing:
    """Prices of a snapshot; without a snapshot nothing has a price."""

    snapshot: PriceSnapshot | None

    def price(self, attempts: Iterable[Attempt]) -> Decimal | None:
        """What attempts cost, exactly; None where a price is missing."""
        attempts = list(attempts)
        if self.find_gaps(attempts):
            return None
        return sum(
            (
                price_exactly(tokens, self._prices_of(model))
                for model, tokens in _tokens_by_model(attempts).items()
                if any(tokens.values())
            ),
            Decimal(0),
        )

    def find_gaps(self, attempts: Iterable[Attempt]) -> list[str]:
        """Reasons why attempts cannot be priced, one per model; empty when they can."""
        if self.snapshot is None:
            return ["no prices are configured"]
        gaps = []
        for model, tokens in _tokens_by_model(attempts).items():
            if not any(tokens.values()):
                continue
            if model is None:
                gaps.append("attempts name no model")
            elif model not in self.snapshot.models:
                gaps.append(f"no price for the model {model}")
            else:
                kinds = find_unpriced(tokens, self._prices_of(model))
                gaps += [f"no price for {kind} tokens of {model}" for kind in kinds]
        return sorted(gaps)

    def _prices_of(self, model: str | None) -> Mapping[str, float]:
        if self.snapshot is None or model is None:
            return {}
        return self.snapshot.models[model].by_kind()


def sum_spent(captures: Sequence[Capture], pricing: Pricing) -> SpentPart:
    """Add up what some answers took."""
    attempts = [attempt for capture in captures for attempt in capture.reply.attempts]
    cost = pricing.price(attempts)
    return SpentPart(
        answers=len(captures),
        attempts=sum(len(tries_of(capture.reply.attempts)) for capture in captures),
        attempts_without_tokens=count_silent(captures),
        tokens=TokensPart(**add_tokens(tokens_of(attempt) for attempt in attempts)),
        cost=None if cost is None else float(cost),
    )


def count_silent(captures: Iterable[Capture]) -> int:
    """How many tries did not say what each of their models used."""
    return sum(
        any(not tokens_of(attempt) for attempt in tried)
        for capture in captures
        for tried in tries_of(capture.reply.attempts).values()
    )


def count_tokens(attempts: Iterable[Attempt]) -> int:
    """All tokens of attempts, whatever their kind."""
    return sum(count for attempt in attempts for count in tokens_of(attempt).values())


def add_tokens(calls: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add the tokens of all calls up by kind."""
    totals: dict[str, int] = {}
    for call in calls:
        for kind, tokens in call.items():
            totals[kind] = totals.get(kind, 0) + tokens
    return totals


def price_exactly(tokens: Mapping[str, int], per_million: Mapping[str, float]) -> Decimal:
    """Give the cost of tokens by kind, exact to the last digit."""
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


def _tokens_by_model(attempts: Iterable[Attempt]) -> dict[str | None, dict[str, int]]:
    calls: dict[str | None, list[dict[str, int]]] = {}
    for attempt in attempts:
        calls.setdefault(attempt.model, []).append(tokens_of(attempt))
    return {model: add_tokens(found) for model, found in calls.items()}
