"""The flow of a decomposition: both ends, then what is needed between them."""

from __future__ import annotations

from coldrun.flows.history import run_history as decompose

__all__ = ["decompose"]
