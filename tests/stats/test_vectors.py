"""Every published vector comes out of production code, and no known mistake does.

The vectors were computed by at least two independent methods each. Keys that end in _WRONG or
_BIASED are what a common mistake yields: the value computed for them must differ.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.stats.vector_cases import CASES, find_prefix

VECTORS = json.loads(
    (Path(__file__).parents[1] / "data" / "vectors.json").read_text(encoding="utf-8")
)["vectors"]
WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def assert_matches(found: Any, expected: Any, tolerance: float, place: str) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in found, f"{place}: {key} was not computed"
            if key.endswith(("_WRONG", "_BIASED")):
                assert abs(found[key] - value) > 100 * tolerance, f"{place}: {key} came out"
            else:
                assert_matches(found[key], value, tolerance, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_matches(one, other, tolerance, f"{place}[{number}]")
    elif expected == "NaN":
        assert found is None, place
    elif expected is None or isinstance(expected, bool):
        assert found is expected or found == expected, place
    elif isinstance(expected, str) and expected not in WORDS:
        assert found == expected, place
    else:
        wanted = WORDS.get(expected, expected) if isinstance(expected, str) else expected
        assert found == pytest.approx(wanted, abs=max(tolerance, 1e-15), rel=1e-12), place


LIBRARIES = (
    "metrics.ties.library_disagreement",
    "metrics.ties.float32",
    "metrics.missing_query",
    "metrics.empty_gold.ir_libraries",
)
"""Vectors on what other libraries give."""


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(
            vector,
            id=vector["name"],
            marks=[pytest.mark.oracle] if vector["name"] in LIBRARIES else [],
        )
        for vector in VECTORS
    ],
)
def test_vector_from_production_code_equals_the_published_value(vector: dict[str, Any]) -> None:
    """The production function gives the vector's value within its tolerance."""
    found = CASES[find_prefix(vector["name"])](vector["inputs"])
    assert_matches(found, vector["expected"], vector["tolerance"], vector["name"])


def test_vectors_are_all_there_and_every_case_is_used() -> None:
    """128 vectors, each name once, and no case that computes none of them."""
    names = [vector["name"] for vector in VECTORS]
    assert len(names) == len(set(names)) == 128
    assert {find_prefix(name) for name in names} == set(CASES)


def test_assert_matches_refuses_a_negative_reference_that_comes_out() -> None:
    """The comparison itself is not asleep."""
    with pytest.raises(AssertionError, match="came out"):
        assert_matches({"x_WRONG": 0.25}, {"x_WRONG": 0.25}, 1e-9, "v")
    with pytest.raises(AssertionError):
        assert_matches(1.0, 1.0 + 1e-6, 1e-9, "v")
    with pytest.raises(AssertionError, match="was not computed"):
        assert_matches({}, {"x": 1}, 1e-9, "v")
