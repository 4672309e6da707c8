"""An HTTP service: one POST of JSON per question."""

from __future__ import annotations

from collections.abc import Sequence

from coldrun.tasks.arms.service.endpoint import EndpointDriver
from coldrun.tasks.arms.service.http_kind import HttpArm
from coldrun.tasks.arms.templates import fill_arguments, question_values
from coldrun.tasks.arms.usage import describe_call
from coldrun.tasks.lib.records import Question, Reply


class HttpDriver(EndpointDriver[HttpArm]):
    """The service of one session."""

    def ask(self, question: Question, _: Sequence[Reply]) -> Reply:
        """Post the question."""
        body = fill_arguments(
            self.arm.body,
            {**self.workspace.values, **question_values(question.query), "id": question.id},
            {"k": question.k, "seed": question.seed},
        )
        posted = self.post("", body)
        return Reply(
            status="answered" if posted.reason is None else "infra",
            raw=posted.text,
            reason=posted.reason,
            seconds=posted.seconds,
            events=(describe_call("http", body, posted.text),),
        )
