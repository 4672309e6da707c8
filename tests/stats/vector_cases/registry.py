"""Which production call answers which vector, by the longest prefix of the vector's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coldrun.tasks.stats.intervals import Interval

Case = Callable[[dict[str, Any], Any], Any]
CASES: dict[str, Case] = {}


def case(*prefixes: str) -> Callable[[Case], Case]:
    """Register a function that takes a vector's inputs and expected value, and computes it."""

    def register(function: Case) -> Case:
        for prefix in prefixes:
            assert prefix not in CASES, prefix
            CASES[prefix] = function
        return function

    return register


def find_case(name: str) -> Case:
    """Find the case with the longest prefix of the name."""
    found = [prefix for prefix in CASES if name.startswith(prefix)]
    assert found, f"no case computes {name}"
    return CASES[max(found, key=len)]


def limits(interval: Interval) -> list[float]:
    """Write an interval as the vectors do."""
    return [interval.low, interval.high]
