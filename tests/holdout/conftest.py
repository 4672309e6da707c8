"""An evaluation with a sealed part, and keys of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluations import EvaluationLab
from tests.holdouts import make_holdout_lab


@pytest.fixture(autouse=True)
def _private_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config-home"))
    monkeypatch.delenv("COLDRUN_HOLDOUT_KEY", raising=False)


@pytest.fixture
def lab(tmp_path: Path) -> EvaluationLab:
    made = make_holdout_lab(tmp_path)
    made.freeze()
    return made
