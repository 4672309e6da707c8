"""The flow of a backfill: many points of the product, both ends first, each an ordinary run."""

from __future__ import annotations

from coldrun.flows.history import run_history as backfill

__all__ = ["backfill"]
