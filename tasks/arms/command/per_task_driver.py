"""One process per question, its command line made from a template."""

from __future__ import annotations

import time
from collections.abc import Sequence

from coldrun.tasks.arms.command.command_kind import CommandArm
from coldrun.tasks.arms.driver import Driver
from coldrun.tasks.arms.failures import find_misreading
from coldrun.tasks.arms.parse import ParsedAnswer
from coldrun.tasks.arms.templates import fill_text, question_values
from coldrun.tasks.lib.machine.child_process import (
    ChildOversizedError,
    ChildTimeoutError,
    describe_exit,
    spawn_child,
)
from coldrun.tasks.lib.records import Question, Reply


class PerTaskDriver(Driver[CommandArm]):
    """Runs the program for each question."""

    def ask(self, question: Question, _: Sequence[Reply]) -> Reply:
        """Run the program, and take its whole output."""
        log_start = self.workspace.output.size()
        try:
            output, code = self._run(question, time.monotonic() + self.arm.timeout_seconds)
        except ChildTimeoutError:
            reason = f"timed out after {self.arm.timeout_seconds:g} s"
            return Reply(status="infra", reason=reason)
        except ChildOversizedError:
            reason = f"wrote more than {self.arm.max_output_bytes} bytes for one question"
            return Reply(status="infra", reason=reason)
        except (OSError, ValueError) as error:
            reason = f"{self.arm.argv[0]!r} cannot be started: {error}"
            return Reply(status="infra", reason=reason)
        raw = output.decode("utf-8", "replace")
        # Search programs end with 1 when they found nothing.
        found_nothing = (
            code == 1 and not raw.strip() and self.workspace.output.read(since=log_start) is None
        )
        if code != 0 and not found_nothing:
            return Reply(status="infra", raw=raw, reason=describe_exit(code))
        return Reply(status="answered", raw=raw)

    def _run(self, question: Question, deadline: float) -> tuple[bytes, int]:
        values = {
            **self.workspace.values,
            **question_values(question.query),
            "id": question.id,
            "seed": str(question.seed),
            "k": str(question.k),
        }
        child = spawn_child(
            self.workspace.command([fill_text(text, values) for text in self.arm.argv]),
            cwd=self.workspace.cwd,
            env=self.workspace.environment,
            log=self.workspace.log,
            is_interactive=False,
        )
        self.hold(child)
        try:
            output = child.read_all(deadline=deadline, max_bytes=self.arm.max_output_bytes)
            return output, child.process.returncode
        finally:
            self.let_go(child)
            child.end()

    def find_fault(self, _: Reply, parsed: ParsedAnswer) -> str | None:
        """Output that names no file of the corpus was misread."""
        return find_misreading(parsed, self.arm, self.context, self.workspace.corpus_dir)
