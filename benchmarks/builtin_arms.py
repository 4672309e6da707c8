"""What a panel of parent bases costs the built-in arms, as a ratio to the fixed-base panel.

    python benchmarks/builtin_arms.py [REPO] [--tasks N] [--repeats N]

Without REPO a repository of 400 files and a hundred commits is generated, so that it runs
anywhere. Each task is a commit without its merges; its query is the message. The fixed panel
searches the tree before the oldest task, the other the parent of each task. A run opens one
session per arm and asks every task, once with an empty token cache and once with a filled one.
Goal: 100 tasks with a base each cost at most 3 times the same tasks with one base.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.tokens import git, write_file
from tasks.arms.base import Corpus, CorpusTree, SessionContext
from tasks.arms.bm25 import open_bm25_session
from tasks.arms.grep import open_grep_session
from tasks.arms.index_store import IndexStore
from tasks.config import Bm25Arm, GrepArm
from tasks.git.repository import Repository
from tasks.records import Question, Revision

GOAL = 3.0
OPENERS = {"bm25": open_bm25_session, "grep": open_grep_session}
ARMS = (Bm25Arm(name="bm25", kind="bm25"), GrepArm(name="grep", kind="grep"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", nargs="?", type=Path)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.repository or generate(Path(folder) / "generated", options.tasks)
        repository = Repository.open(path)
        parents, oldest = list_questions(repository, options.tasks)
        fixed = [
            Question(id=each.id, query=each.query, answer="ranking", k=8, seed=0)
            for each in parents
        ]
        print(f"{len(parents)} tasks, {len(repository.list_tree(oldest.tree))} files")
        worst = max(
            compare(arm, repository, oldest, fixed, parents, folder, options.repeats, is_warm)
            for arm in ARMS
            for is_warm in (False, True)
        )
    print(f"worst ratio {worst:.2f}, goal {GOAL}: {'met' if worst <= GOAL else 'MISSED'}")


def compare(
    arm: Bm25Arm | GrepArm,
    repository: Repository,
    oldest: Revision,
    fixed: Sequence[Question],
    parents: Sequence[Question],
    folder: str,
    repeats: int,
    is_warm: bool,
) -> float:
    """Print both times; return the median ratio. The two panels take turns."""
    rows = []
    for number in range(repeats):
        seconds = []
        for name, questions in (("fixed", fixed), ("parents", parents)):
            scratch = Path(folder) / f"{arm.name}-{name}-{is_warm}-{number}"
            if is_warm:
                run_panel(arm, repository, oldest, questions, scratch)
            seconds.append(run_panel(arm, repository, oldest, questions, scratch))
        rows.append(seconds)
    medians = [statistics.median(column) for column in zip(*rows, strict=True)]
    ratio = statistics.median(parent / one for one, parent in rows)
    print(
        f"{arm.name:<5} {'filled' if is_warm else 'empty':<6} cache: one base "
        f"{medians[0] * 1000:>7.0f} ms, parent bases {medians[1] * 1000:>7.0f} ms, "
        f"ratio {ratio:.2f}"
    )
    return ratio


def run_panel(
    arm: Bm25Arm | GrepArm,
    repository: Repository,
    oldest: Revision,
    questions: Sequence[Question],
    scratch: Path,
) -> float:
    """Seconds to open a session and ask every question, with nothing remembered in memory."""
    tree = CorpusTree(git_dir=repository.git_dir, commit=oldest.commit, tree=oldest.tree)
    context = SessionContext(
        arm=arm,
        corpus=Corpus(trees={".": tree}),
        answer="ranking",
        k=8,
        seed=0,
        trial=0,
        point=None,
        config_dir=scratch,
        scratch=scratch,
        run_id="benchmark",
    )
    started = time.perf_counter()
    session = OPENERS[arm.kind](context, IndexStore())
    for question in questions:
        reply = session.ask(question)
        if reply.status == "infra":
            raise SystemExit(f"{arm.name}: {reply.reason}")
    seconds = time.perf_counter() - started
    session.close()
    return seconds


def list_questions(repository: Repository, count: int) -> tuple[list[Question], Revision]:
    """The newest commits with one parent, each based on that parent, and the oldest base."""
    head = repository.resolve("HEAD").commit
    questions = [
        Question(
            id=entry.commit,
            query=entry.message.decode("utf-8", "replace"),
            answer="ranking",
            k=8,
            seed=0,
            base=entry.parents[0],
        )
        for entry in repository.stream_log([head], last=count * 4)
        if len(entry.parents) == 1
    ][:count]
    return questions, repository.resolve(questions[-1].base or "")


def generate(path: Path, commits: int) -> Path:
    """A repository whose commits change three files each and say which words they are about."""
    source = random.Random(0)
    vocabulary = ["".join(source.choices("abcdefghijklmnop", k=7)) for _ in range(20_000)]
    path.mkdir()
    git(path, "init", "-q")
    for number in range(400):
        write_file(path, number, source, vocabulary)
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "first")
    for _ in range(commits):
        for number in source.sample(range(400), 3):
            edit_file(path / f"package{number % 30}" / f"module{number}.py", source, vocabulary)
        git(path, "add", "-A")
        git(path, "commit", "-q", "-m", " ".join(source.sample(vocabulary[:2000], 12)))
    return path


def edit_file(target: Path, source: random.Random, vocabulary: list[str]) -> None:
    """Replace one line in twenty, as a commit does."""
    lines = target.read_text().splitlines()
    for index in source.sample(range(len(lines)), len(lines) // 20):
        lines[index] = " = ".join(source.sample(vocabulary, 8))
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
