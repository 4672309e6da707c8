"""Reading stored raw answers at scoring time."""

from __future__ import annotations

from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.config import ArmConfig
from coldrun.tasks.judge.score_table import Answered
from coldrun.tasks.lib.records import AnswerKind
from coldrun.tasks.run.capture import Capture


def read_answer(capture: Capture, arm: ArmConfig, answer: AnswerKind) -> Answered:
    """The items of a stored answer; one that cannot be read is the tool's failure, not a miss."""
    if capture.reply.status == "abstained" or capture.reply.raw is None:
        return Answered(items=())
    parsed = parse_answer(
        capture.reply.raw,
        arm,
        answer=answer,
        corpus_dir=capture.corpus_dir,
    )
    return Answered(items=parsed.items, is_infra=parsed.problem is not None, reason=parsed.problem)
