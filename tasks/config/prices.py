"""`[prices]` and the dated snapshot of prices that it names."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pydantic import Field, field_validator

from coldrun.tasks.config.section import Section

Price = Field(default=None, ge=0, allow_inf_nan=False)


class ModelPrices(Section):
    """What one model costs by kind of token, per million; None where the snapshot does not say."""

    input: float | None = Price
    output: float | None = Price
    cache_read: float | None = Price
    cache_write: float | None = Price

    def by_kind(self) -> dict[str, float]:
        """The prices that are known."""
        return {kind: price for kind, price in self if price is not None}


class PriceSnapshot(Section):
    """Prices as they were on one day, from one named source."""

    date: dt.date
    source: str = Field(min_length=1)
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    models: dict[str, ModelPrices]

    @field_validator("date", mode="before")
    @classmethod
    def _is_written_as_a_date(cls, value: Any) -> Any:
        if isinstance(value, int | float):
            # pydantic takes ValueError alone, and would read a number as seconds since 1970
            raise ValueError(f"{value!r} is no date; write it as 2026-11-30")  # noqa: TRY004
        return value


class PricesConfig(Section):
    """`[prices]`: the file of a snapshot.

    What the file held, and the SHA-256 of its bytes, are filled in when it is read, so that a run
    keeps the prices it was reported with. They decide no answer: no key and no lock holds them.
    """

    file: str
    digest: str | None = None
    snapshot: PriceSnapshot | None = None
