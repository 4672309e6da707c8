"""What the sandbox adds to a session and to an answer, against the same arm without it.

    uv run python benchmarks/sandbox_cost.py

Sessions are opened, asked once and closed; answers are asked of one session. Both ways alternate,
so that a busy machine is busy for both.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Corpus, Session, SessionContext
from coldrun.tasks.arms.command.command_kind import CommandArm
from coldrun.tasks.lib.records import Question

TOOL = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print(json.dumps({"type": "ready"}), flush=True)
    elif message["type"] == "question":
        print(json.dumps({"type": "answer", "id": message["id"], "paths": ["a"]}), flush=True)
    else:
        break
"""
QUESTION = Question(id="q", query="where?", answer="ranking", k=5, seed=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--answers", type=int, default=3000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "config").mkdir()
        (root / "config" / "tool.py").write_text(TOOL)
        sessions: dict[bool, list[float]] = {True: [], False: []}
        answers: dict[bool, list[float]] = {True: [], False: []}
        for number in range(given.sessions):
            for is_sealed in (True, False):
                began = time.perf_counter()
                session = open_one(root, is_sealed=is_sealed)
                session.ask(QUESTION)
                session.close()
                if number:  # the first one reads the interpreter
                    sessions[is_sealed].append(time.perf_counter() - began)
        opened = {is_sealed: open_one(root, is_sealed=is_sealed) for is_sealed in (True, False)}
        for _ in range(given.answers):
            for is_sealed, session in opened.items():
                began = time.perf_counter()
                session.ask(QUESTION)
                answers[is_sealed].append(time.perf_counter() - began)
        for session in opened.values():
            session.close()
    for what, found in (("session", sessions), ("answer", answers)):
        sealed, plain = (1000 * statistics.median(found[kind]) for kind in (True, False))
        print(
            f"one {what}: {sealed:8.3f} ms sealed, {plain:8.3f} ms without: "
            f"{sealed - plain:+.3f} ms, ratio {sealed / plain:.2f}"
        )


def open_one(root: Path, *, is_sealed: bool) -> Session:
    arm = CommandArm(name="tool", kind="command", argv=("{python}", "tool.py"), sandbox=is_sealed)
    return open_session(
        SessionContext(
            arm=arm,
            corpus=Corpus(trees={}),
            answer="ranking",
            k=5,
            seed=0,
            trial=0,
            point=None,
            config_dir=root / "config",
            scratch=root / "scratch",
            run_id="bench",
        )
    )


if __name__ == "__main__":
    main()
