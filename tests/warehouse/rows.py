"""Rows of the warehouse's tables as a run writes them, for tests to change."""

from __future__ import annotations

import datetime as dt
from typing import Any

RUN: dict[str, Any] = {
    "name": "toy",
    "status": "finished",
    "wall_seconds": 1.0,
    "panel_digest": "sha256:p",
    "verdict": "measured",
    "evidence": "executed",
    "exit_code": 0,
    "product_repo": "tool",
    "product_commit": "c" * 40,
    "product_tree": "d" * 40,
    "is_dirty": False,
}

CAPTURE: dict[str, Any] = {
    "arm": "tool",
    "role": "candidate",
    "trial": 0,
    "evidence": "executed",
    "is_resumed": False,
    "captured_at": dt.datetime(2026, 8, 1, tzinfo=dt.UTC),
    "status": "answered",
    "answer_seconds": 2.0,
    "degraded": [],
    "is_identified": True,
    "raw": "an answer",
    "key_parts": [("arm", "{}"), ("artifacts", "{}")],
}

SCORE: dict[str, Any] = {
    "panel_digest": "sha256:p",
    "product_commit": "c" * 40,
    "product_tree": "d" * 40,
    "arm": "tool",
    "role": "candidate",
    "kind": "command",
    "measure": "hit@5",
    "cutoff": 5,
    "trials": 1,
    "n": 3,
    "evidence": "executed",
    "measured_nothing": False,
    "method_version": "1",
}
