"""How much mining costs, each figure as a ratio to the `git log` it is built on, in one run.

    python benchmarks/mining.py [REPO] [--repeats N] [--tickets]

Without REPO a repository of 6,000 commits is generated, so that it runs anywhere. PyDriller is
measured beside when it is importable (`uv run --with pydriller python benchmarks/mining.py`).
Goals: mining at most 1.5 times `git log --raw -z` of the same range, mining and freezing at most
3 times that log.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench_setup import git
from coldrun.tasks.config import Config, PanelConfig, SampleConfig
from coldrun.tasks.freeze.freeze_panel import freeze_panel
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.mine.commit_files import mine_commit_files
from coldrun.tasks.mine.mine_panel import mine_panel
from coldrun.tasks.mine.pick_base import pick_base
from coldrun.tasks.mine.ticket_repos import mine_ticket_repos

FIRST_DATE = 1_500_000_000
PYDRILLER_COMMITS = 200
SAMPLE_SIZE = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", nargs="?", type=Path)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--commits", type=int, default=6000, help="of the generated repository")
    parser.add_argument("--tickets", action="store_true", help="30 repositories, 100,000 commits")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.repository or generate(Path(folder) / "generated", options.commits, 1)
        measure_commit_files(path, options.repeats)
        if options.tickets:
            measure_tickets(Path(folder) / "organisation")


def measure_commit_files(path: Path, repeats: int) -> None:
    repository = Repository.open(path)
    head = repository.resolve("HEAD")
    log = repository.stream_log([head.commit], first_parent=True)
    chain = [entry.commit for entry in log]
    base = chain[min(len(chain) - 1, len(chain) * 7 // 8)]
    ranges = {
        "from 1/8 of the history": (base, f"{base}..{head.commit}"),
        "each from its parent": ("parent", head.commit),
    }
    for name, (start, span) in ranges.items():
        commits = int(git(path, "rev-list", "--count", span))
        spec = PanelConfig(
            kind="commit-files",
            repo=str(path),
            base=start,
            head=head.commit,
            last=commits if start == "parent" else None,
        )
        config = Config(panel=spec, sample=SampleConfig(size=SAMPLE_SIZE))
        read_log = partial(git, path, "log", "--raw", "-z", span)
        mine = partial(mine_commit_files, repository, spec)
        freeze = partial(mine_and_freeze, config, path)
        log_seconds, mine_seconds, freeze_seconds = alternate((read_log, mine, freeze), repeats)
        print(f"\n{path.name}, {name}: {commits} commits, {len(mine().tasks)} tasks")
        row("git log --raw -z", log_seconds, log_seconds)
        row("mine", mine_seconds, log_seconds, "goal 1.5")
        row(f"mine and freeze {SAMPLE_SIZE}", freeze_seconds, log_seconds, "goal 3")
        row_pydriller(path, span, commits, log_seconds)
    spec = PanelConfig(kind="commit-files", repo=str(path), base="HEAD")
    started = time.perf_counter()
    pick_base(repository, "HEAD", spec, wanted=100)
    print(f"\npick a base for 100 tasks   {time.perf_counter() - started:8.3f} s")


def mine_and_freeze(config: Config, path: Path) -> None:
    freeze_panel(config, mine_panel(config.panel, config_dir=path, scratch=path))


def row_pydriller(path: Path, span: str, commits: int, log_seconds: float) -> None:
    try:
        from pydriller import Git
    except ImportError:
        print("PyDriller                    not importable")
        return
    names = git(path, "rev-list", "--no-merges", f"-n{PYDRILLER_COMMITS}", span).split()
    reader = Git(str(path))
    started = time.perf_counter()
    for name in names:
        commit = reader.get_commit(name)
        _ = commit.msg, [file.new_path for file in commit.modified_files]
    seconds = (time.perf_counter() - started) / len(names) * commits
    row(f"PyDriller ({len(names)}, scaled)", seconds, log_seconds)


def measure_tickets(folder: Path) -> None:
    for at in range(30):
        generate(folder / f"repo-{at:02}", 3334, at, files=20, ticket_count=20_000)
    paths = sorted(folder.iterdir())

    def log() -> None:
        for path in paths:
            git(path, "log", "--raw", "-z", "--branches")

    spec = PanelConfig(
        kind="ticket-repos", repos=(str(folder / "*"),), ticket_pattern=r"[A-Z]+-\d+"
    )
    mine = partial(mine_ticket_repos, spec, config_dir=folder, scratch=folder)
    log_seconds, mine_seconds = alternate((log, mine), 3)
    print(f"\ntickets: {len(paths)} repositories, {len(mine().tasks)} tickets")
    row("git log --raw -z, one by one", log_seconds, log_seconds)
    row("mine in parallel", mine_seconds, log_seconds)


def alternate(functions: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The best seconds of functions run in turn, so that other work on the machine hits all.

    The best, not the median: interference only ever adds.
    """
    seconds: list[list[float]] = [[] for _ in functions]
    for repeat in range(repeats + 1):
        for function, taken in zip(functions, seconds, strict=True):
            started = time.perf_counter()
            function()
            if repeat:
                taken.append(time.perf_counter() - started)
    return [min(taken) for taken in seconds]


def row(name: str, seconds: float, reference: float, goal: str = "") -> None:
    print(f"{name:28}{seconds:8.3f} s {seconds / reference:8.2f} x  {goal}")


def generate(
    path: Path, commits: int, seed: int, *, files: int = 1200, ticket_count: int = 2000
) -> Path:
    chance = random.Random(seed)
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    stream = [b"reset refs/heads/main"]
    names = {
        f"src/area{at % 7}/part{at % 20}/module_{at}.py": lines(chance, at) for at in range(files)
    }
    created = len(names)
    for number in range(1, commits + 1):
        stamp = b"%d +0000" % (FIRST_DATE + number * 600)
        ticket = f"AB-{chance.randrange(ticket_count)}"
        message = f"Change the {chance.choice(WORDS)} of {chance.choice(WORDS)} {number}"
        message += f"\n\nThe {chance.choice(WORDS)} was wrong.\n\nFixes: {ticket}\n"
        stream += [b"commit refs/heads/main", b"mark :%d" % number]
        stream += [b"author A <a@example.org> " + stamp, b"committer A <a@example.org> " + stamp]
        stream += [b"data %d\n%s" % (len(message), message.encode())]
        if number > 1:
            stream.append(b"from :%d" % (number - 1))
            if number > 5 and chance.random() < 0.15:
                stream.append(b"merge :%d" % (number - 3))
        touched = list(names) if number == 1 else chance.sample(sorted(names), 3)
        for name in touched:
            draw = chance.random()
            if number > 1 and draw < 0.02:
                new = f"src/area{created % 7}/part{created % 20}/module_{created}.py"
                created += 1
                stream.append(f"R {name} {new}".encode())
                names[new] = names.pop(name)
                continue
            names[name][chance.randrange(len(names[name]))] = f"{chance.choice(WORDS)} = {number}"
            content = "\n".join(names[name]).encode()
            stream += [f"M 100644 inline {name}".encode(), b"data %d\n%s" % (len(content), content)]
    stream += [b"done", b""]
    git(path, "fast-import", "--quiet", "--done", input=b"\n".join(stream))
    git(path, "gc", "-q")
    return path


WORDS = ("parser", "option", "widget", "cache", "index", "session", "prompt", "style", "default")


def lines(chance: random.Random, at: int) -> list[str]:
    return [f"{chance.choice(WORDS)}_{at} = {line}" for line in range(30)]


if __name__ == "__main__":
    main()
