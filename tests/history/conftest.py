"""A small history to measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.small import SmallHistory


@pytest.fixture
def small(tmp_path: Path) -> SmallHistory:
    """A product without commits, and its evaluation."""
    return SmallHistory(tmp_path)
