"""One evaluation walks down the folders: product, arms, run, judge, report, and hardly back."""

from __future__ import annotations

import sys
import threading
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from coldrun.tasks.judge.land_judgement import run_here
from coldrun.tasks.report.run_document import render_markdown
from coldrun.tasks.run.prepare import load_evaluation
from coldrun.tasks.run.run_lifecycle import RunRequest
from tests.evaluations import EvaluationLab

ROOMS = ("config", "mine", "freeze", "product", "run", "arms", "judge", "report")
"""In the order of the data; `lib` and `stats` serve all of them."""


def test_evaluation_turns_back_seldom_on_its_way_through_the_files(tmp_path: Path) -> None:
    """Files in the order in which they are first used: a step to an earlier room is a turn back."""
    lab = EvaluationLab(tmp_path).prepare()
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and "/coldrun/tasks/" in frame.f_code.co_filename:
            seen[frame.f_code.co_filename.partition("/coldrun/tasks/")[2]] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        evaluation = load_evaluation(lab.config, scratch=lab.scratch)
        built = run_here(evaluation, RunRequest(warehouse=lab.warehouse), None)
        render_markdown(built.report)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    rooms = [ROOMS.index(room) for name in seen if (room := name.partition("/")[0]) in ROOMS]
    assert len(rooms) > 40
    assert sum(after < before for before, after in pairwise(rooms)) <= 20
