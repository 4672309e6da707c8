"""What a second corpus costs the token cache, as a ratio to the first.

    python benchmarks/tokens.py [REPO] [--repeats N]

Without REPO a repository of 1,500 files is generated, so that it runs anywhere; with one, its
newest commit is the first corpus, and the second is the last ancestor of which 95 % of the blobs
are shared; they may be a smaller share of the bytes, which is shown. Goal: a corpus that shares
95 % costs at most 1/10 of the first.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from coldrun.tasks.arms.builtin.token_cache import TokenCache, hash_token
from coldrun.tasks.arms.builtin.tokens import split_word
from coldrun.tasks.lib.git.object_reader import ObjectReader
from coldrun.tasks.lib.git.repository import Repository

GOAL = 0.1
SHARED = 0.95


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", nargs="?", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--files", type=int, default=1500, help="of the generated repository")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.repository or generate(Path(folder) / "generated", options.files)
        repository = Repository.open(path)
        first, second = choose_corpora(repository)
        print(f"first corpus   {len(first):>6} blobs")
        print(
            f"second corpus  {len(second):>6} blobs, {shared(first, second):.1%} shared "
            f"({shared_bytes(repository, first, second):.1%} of its bytes)"
        )
        rows = [
            measure(repository, first, second, Path(folder) / f"scratch-{number}")
            for number in range(options.repeats)
        ]
    names = ("first corpus", "second corpus", "second corpus again")
    seconds = [statistics.median(column) for column in zip(*rows, strict=True)]
    for name, each in zip(names, seconds, strict=True):
        print(f"{name:<20} {each * 1000:>9.1f} ms   {each / seconds[0]:.3f} of the first")
    ratio = statistics.median(row[1] / row[0] for row in rows)
    print(f"ratio {ratio:.3f}, goal {GOAL}: {'met' if ratio <= GOAL else 'MISSED'}")


def measure(
    repository: Repository, first: list[str], second: list[str], scratch: Path
) -> tuple[float, float, float]:
    """Seconds for the first corpus, for the second, and for the second once more."""
    return (
        load_seconds(repository, first, scratch),
        load_seconds(repository, second, scratch),
        load_seconds(repository, second, scratch),
    )


def load_seconds(repository: Repository, blobs: list[str], scratch: Path) -> float:
    """What a fresh process would pay: nothing is remembered but the cache file."""
    split_word.cache_clear()
    hash_token.cache_clear()
    started = time.perf_counter()
    objects = ObjectReader(repository.git_dir)
    cache = TokenCache(scratch)
    cache.load(objects, blobs)
    cache.close()
    seconds = time.perf_counter() - started
    objects.close()
    return seconds


def choose_corpora(repository: Repository) -> tuple[list[str], list[str]]:
    """The blobs of the newest commit, and of the last ancestor that still shares enough of them."""
    head = repository.resolve("HEAD").commit
    newest, *ancestors = repository.stream_log([head], first_parent=True)
    first = second = list_blobs(repository, newest.tree)
    for ancestor in ancestors:
        blobs = list_blobs(repository, ancestor.tree)
        if not blobs or shared(first, blobs) < SHARED:
            break
        second = blobs
    return first, second


def list_blobs(repository: Repository, tree: str) -> list[str]:
    """The distinct blobs of a tree's regular files."""
    entries = repository.list_tree(tree)
    return sorted({entry.object_id for entry in entries if entry.kind == "file"})


def shared(first: list[str], second: list[str]) -> float:
    """The share of the second corpus's blobs that the first has."""
    return len(set(first) & set(second)) / len(second)


def shared_bytes(repository: Repository, first: list[str], second: list[str]) -> float:
    """The share of the second corpus's bytes that the first has."""
    contents = ObjectReader(repository.git_dir).read_blobs(second)
    sizes = {blob: len(content or b"") for blob, content in contents}
    return sum(sizes[blob] for blob in set(first) & set(second)) / sum(sizes.values())


def generate(path: Path, files: int) -> Path:
    """A repository of two commits; the second changes one file in twenty."""
    source = random.Random(0)
    vocabulary = [
        "_".join("".join(source.choices("abcdefghij", k=5)) for _ in range(source.randint(1, 3)))
        for _ in range(20_000)
    ]
    path.mkdir()
    git(path, "init", "-q")
    for number in range(files):
        write_file(path, number, source, vocabulary)
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "first")
    for number in range(0, files, 20):
        write_file(path, number, source, vocabulary)
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "second")
    return path


def write_file(path: Path, number: int, source: random.Random, vocabulary: list[str]) -> None:
    """A file of about ten kilobytes whose words are as unevenly spread as those of code."""
    words = [
        vocabulary[min(int(source.paretovariate(0.6)), len(vocabulary)) - 1] for _ in range(1000)
    ]
    lines = [" = ".join(words[start : start + 8]) for start in range(0, len(words), 8)]
    target = path / f"package{number % 30}" / f"module{number}.py"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(lines) + "\n")


def git(path: Path, *arguments: str) -> None:
    """Run git in the generated repository."""
    identity = ["-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=path, check=True)


if __name__ == "__main__":
    main()
