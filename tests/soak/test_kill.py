"""The long version of killing runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crashes import kill_and_check
from tests.evaluations import EvaluationLab
from tests.run.test_crash import SLOW


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(5))
def test_ten_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    """Fifty kills in all, from before the first answer until after the landing."""
    lab = EvaluationLab(tmp_path).prepare(120, arm=SLOW)

    kill_and_check(lab, kills=10, seed=seed, most_seconds=1.2)
