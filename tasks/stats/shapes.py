"""How diverse the right answers of a panel are, and what a balanced sample says of production."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from math import log, log2, sqrt
from statistics import fmean, variance
from typing import TypeVar

T = TypeVar("T")
_GAP = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeDiversity:
    """Diversity of answer shapes.

    `top_share` is what the best constant answer scores on exact match. `entropy_bits` and its
    Miller–Madow correction are in bits. `effective_entropy` is 2^H and `effective_simpson` is
    1/Σp², both between 1 and `shapes`.
    """

    shapes: int
    top_share: float
    entropy_bits: float
    miller_madow_bits: float
    effective_entropy: float
    effective_simpson: float


def describe_diversity(counts: Sequence[int]) -> ShapeDiversity | None:
    """Describe how evenly tasks are spread over answer shapes.

    Args:
        counts: Tasks per shape; zeros are ignored.

    Returns:
        None when there is no task.

    Source: Hill 1973 for effective numbers; Miller 1955 for the correction (shapes - 1)/2n nats.
    """
    positive = [count for count in counts if count > 0]
    n = sum(positive)
    if n == 0:
        return None
    shares = [count / n for count in positive]
    entropy = -sum(share * log2(share) for share in shares) + 0.0  # no negative zero
    return ShapeDiversity(
        shapes=len(shares),
        top_share=max(shares),
        entropy_bits=entropy,
        miller_madow_bits=entropy + (len(shares) - 1) / (2 * n * log(2)),
        effective_entropy=2.0**entropy,
        effective_simpson=1.0 / sum(share**2 for share in shares),
    )


@dataclass(frozen=True, slots=True)
class Stratum:
    """A stratum: its share of all tasks in production, and the sampled tasks' scores."""

    share: float
    scores: Sequence[float]


@dataclass(frozen=True, slots=True)
class PostStratified:
    """A mean reweighted to production.

    `standard_error` is None when a stratum has a single sampled task: its variance is unknown.
    """

    sample_mean: float
    estimate: float
    standard_error: float | None


def post_stratify(strata: Sequence[Stratum]) -> PostStratified:
    """Reweight a balanced sample by the shares that its strata have in production.

    Raises:
        ValueError: A stratum has no sampled task, or the shares do not sum to 1.

    Source: Cochran, Sampling Techniques, ch. 5.
    """
    if any(not stratum.scores for stratum in strata):
        raise ValueError("every stratum needs a sampled task; merge or name those without")
    if abs(sum(stratum.share for stratum in strata) - 1) > 1e-9:
        raise ValueError("the strata's shares of production must sum to 1")
    error = None
    if all(len(stratum.scores) > 1 for stratum in strata):
        error = sqrt(
            sum(
                stratum.share**2 * variance(stratum.scores) / len(stratum.scores)
                for stratum in strata
            )
        )
    return PostStratified(
        sample_mean=fmean(chain.from_iterable(stratum.scores for stratum in strata)),
        estimate=sum(stratum.share * fmean(stratum.scores) for stratum in strata),
        standard_error=error,
    )


def interleave(groups: Mapping[str, Sequence[T]], size: int) -> tuple[T, ...]:
    """Take one of each group in turn until there are `size`; groups and members as ordered."""
    return tuple(islice(_iterate_rounds(groups), size))


def _iterate_rounds(groups: Mapping[str, Sequence[T]]) -> Iterator[T]:
    for members in zip_longest(*groups.values(), fillvalue=_GAP):
        for member in members:
            if member is not _GAP:
                yield member  # type: ignore[misc]
