"""A real repository whose later half is sealed, and the evaluation of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.evaluations import EvaluationLab

_NAMES = """
    anchor basil cobalt dahlia ember fennel garnet hazel indigo juniper kelp lilac mango
    nutmeg onyx poppy quartz raven saffron thistle ursinia violet walnut xenon yarrow zephyr
    acorn birch cedar dogwood elm fir gorse holly iris jasmine
"""
WORDS = tuple(_NAMES.split())
"""One word per commit, in its message and in the one file that it changes."""

CONFIG = """\
[panel]
kind = "commit-files"
repo = "{repo}"
base = "{base}"
head = "main"

[split]
sealed_fraction = 0.5

{holdout}
[measure]
primary = "hit@1"
also = ["hit@5"]

{rest}
"""

HOLDOUT = """\
[holdout]
openings = 1
when = "the release candidate is chosen"
"""


def build_garden(path: Path, *, commits: int = 24, body: str = "") -> str:
    """A repository with one file per word and `commits` commits that each change one of them.

    Returns:
        The first commit, which is the base.
    """
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", path], check=True)
    first = {word: f"# grows {word} and {word}\n" for word in WORDS}
    stream = _commit(0, "start", first)
    for number, word in enumerate(WORDS[:commits], 1):
        stream += _commit(
            number, f"Water the {word} twice a day{body}", {word: f"# {word} is well\n"}
        )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=path, input=stream.encode(), check=True)
    base = ["git", "rev-parse", f"main~{commits}"]
    return subprocess.run(base, cwd=path, check=True, capture_output=True, text=True).stdout.strip()


def grow_garden(path: Path, first: int, last: int) -> None:
    """More commits of the same kind, one a day."""
    stream = "".join(
        _commit(number + 1, f"Water the {WORDS[number]} twice a day", {WORDS[number]: "# more\n"})
        for number in range(first, last)
    )
    stream = stream.replace("\nM ", "\nfrom refs/heads/main^0\nM ", 1)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=path, input=stream.encode(), check=True)


def _commit(number: int, message: str, files: dict[str, str]) -> str:
    stamp = f"Ada <ada@example.org> {1_600_000_000 + 86_400 * number} +0000"
    lines = f"commit refs/heads/main\ncommitter {stamp}\ndata {len(message)}\n{message}\n"
    for word, text in files.items():
        lines += f"M 100644 inline beds/{word}.py\ndata {len(text)}\n{text}\n"
    return lines + "\n"


def make_holdout_lab(
    root: Path, *, commits: int = 24, holdout: str = "", rest: str = "", body: str = ""
) -> EvaluationLab:
    """An evaluation of the garden, written and not frozen; the newer half is to be sealed."""
    base = build_garden(root / "garden", commits=commits, body=body)
    lab = EvaluationLab(root)
    lab.write(CONFIG.format(repo=root / "garden", base=base, holdout=holdout, rest=rest))
    lab.write_arm()
    return lab
