"""Killed at any moment, a run loses at most the answers in flight."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crashes import kill_and_check
from tests.evaluations import EvaluationLab

SLOW = """
def answer(query, plain=answer):
    time.sleep(0.004)
    return plain(query)
"""


@pytest.mark.parametrize("kills", [2, pytest.param(8, marks=pytest.mark.soak)])
def test_kill_at_random_moments_and_resume_ends_with_exactly_the_planned_rows(
    tmp_path: Path, kills: int
) -> None:
    """Kills at seeded moments of runs of 300 answers; the soak has fifty more."""
    lab = EvaluationLab(tmp_path).prepare(300, arm=SLOW)

    kill_and_check(lab, kills=kills, seed=11, most_seconds=0.8)
