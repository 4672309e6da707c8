"""A search tool with a gate that refuses, in six states, and the evaluation that measures it.

The gate of the article: it counts a hash as an identifier, refuses on the first token, warns
wrongly, and looks at two identifiers of four; the last change has nothing to do with it.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.check_config import check_config
from coldrun.tasks.freeze.freeze_panel import freeze_panel
from coldrun.tasks.freeze.lock import EvaluationFiles
from coldrun.tasks.freeze.write_panel import write_frozen
from coldrun.tasks.history.commits import list_range, open_product
from coldrun.tasks.history.history_lifecycle import conduct_history
from coldrun.tasks.history.history_model import History, HistoryStep
from coldrun.tasks.history.history_requests import HistoryRequest, choose_arm
from coldrun.tasks.lib.records import Point
from coldrun.tasks.mine.mine_panel import mine_panel
from coldrun.tasks.run.prepare import Evaluation, load_evaluation
from tests.conftest import RepositoryBuilder

__all__ = ["GatedSearch", "Point"]

SEARCH = """
import re
from pathlib import Path

MAX_IDS = 4
BATCH = {batch}


def find_identifiers(query):
    found = re.findall(r"[0-9a-f]{{40}}|[a-z]+_[a-z0-9_]+", query)
    {hashes}
    return found[:MAX_IDS]


def read_corpus(corpus):
    root = Path(corpus)
    return {{
        path.relative_to(root).as_posix(): set(re.findall(r"[a-z0-9_]+", path.read_text()))
        for path in sorted(root.rglob("*.py"))
    }}


def rank(files, query, k):
    words = set(re.findall(r"[a-z0-9_]+", query))
    scores = {{name: len(words & found) for name, found in files.items()}}
    best = sorted((name for name in scores if scores[name]), key=lambda name: (-scores[name], name))
    return best[:k]


def occurs(files, name):
    return any(name in found for found in files.values())


def search(files, query, k, *, bypass=False):
    rows = rank(files, query, k)
    names = find_identifiers(query)
    {gate}
    if refused and not bypass:
        return [], "not found"
    return rows, {message}
"""

FIRST_TOKEN = "refused = bool(names) and not occurs(files, names[0])"
ANY_OF_TWO = "refused = bool(names) and not any(occurs(files, name) for name in names[:2])"
ANY = "refused = bool(names) and not any(occurs(files, name) for name in names)"
NO_HASHES = "found = [name for name in found if len(name) != 40]"
WRONG = '"the results below are neighbours, not matches" if names else ""'
RIGHT = '"matches" if names and not refused else ""'


def write_search(
    *, hashes: str = "pass", gate: str = FIRST_TOKEN, message: str = WRONG, batch: int = 8
) -> str:
    """The tool's one file in some state."""
    text = SEARCH.format(hashes=hashes, gate=gate, message=message, batch=batch)
    return textwrap.dedent(text).lstrip()


STATES = (
    ("search with a gate", write_search()),
    ("gate: a hash is not an identifier", write_search(hashes=NO_HASHES)),
    (
        "gate: refuse only when no identifier occurs",
        write_search(hashes=NO_HASHES, gate=ANY_OF_TWO),
    ),
    (
        "gate: the warning no longer calls a hit a neighbour",
        write_search(hashes=NO_HASHES, gate=ANY_OF_TWO, message=RIGHT),
    ),
    (
        "gate: count all four identifiers, not two",
        write_search(hashes=NO_HASHES, gate=ANY, message=RIGHT),
    ),
    (
        "batch padding",
        write_search(hashes=NO_HASHES, gate=ANY, message=RIGHT, batch=16),
    ),
)
"""The six states: subject and file."""

GAINS = (10, 9, 0, 8, 0)
"""Tasks that each step wins, by the groups of `write_tasks`."""

ADAPTER = """
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))
import search


def say(**message):
    print(json.dumps(message), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        files, k = search.read_corpus(message["corpus"]), message["k"]
        say(type="ready", nonce=message["nonce"], loaded_from=search.__file__)
    elif message["type"] == "question":
        rows, _ = search.search(files, message["query"], k, bypass="--bypass" in sys.argv)
        say(type="answer", id=message["id"], paths=rows, abstained=not rows)
    else:
        break
"""

CONFIG = """
[panel]
kind = "jsonl"
file = "tasks.jsonl"
repo = "../corpus"
base = "main"
answer = "ranking"

[sample]
rule = "all"

[measure]
primary = "hit@5"
also = ["hit@1", "hit@8", "mrr@8"]

[product]
repo = "../product"

[[arm]]
name = "tool"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "adapter.py"

[[arm]]
name = "bypass"
kind = "command"
argv = ["{python}", "{adapter}", "--bypass"]
adapter = "adapter.py"

[[arm]]
name = "search"
role = "control"
kind = "bm25"

[[arm]]
name = "grep"
role = "floor"
kind = "grep"

[run]
concurrency = 4
"""


@dataclass(slots=True)
class GatedSearch:
    """The product's history, its corpus and its evaluation, below `root`."""

    root: Path
    product: RepositoryBuilder = field(init=False)
    commits: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config.parent.mkdir(parents=True)
        corpus = RepositoryBuilder(self.root / "corpus")
        corpus.commit(
            "everything",
            {f"src/m{n:02}.py": f"def symbol_{n}():\n    word{n}\n" for n in range(48)},
        )
        self.product = RepositoryBuilder(self.root / "product")
        (self.config.parent / "adapter.py").write_text(ADAPTER)
        (self.config.parent / "tasks.jsonl").write_text(
            "".join(json.dumps(task) + "\n" for task in write_tasks())
        )
        self.config.write_text(CONFIG)

    @property
    def config(self) -> Path:
        return self.root / "evaluation" / "gated.toml"

    @property
    def warehouse(self) -> Path:
        return self.root / "data"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    def add(self, subject: str, text: str | None = None, **files: str) -> str:
        """Commit a state of the tool; other files by name, `_` for a dot."""
        changes: dict[str | bytes, object] = {
            name.replace("_", "."): body for name, body in files.items()
        }
        if text is not None:
            changes["search.py"] = text
        self.commits.append(self.product.commit(subject, changes))  # type: ignore[arg-type]
        return self.commits[-1]

    def add_states(self, states: Sequence[tuple[str, str]] = STATES) -> GatedSearch:
        """Commit states of the tool, one after the other."""
        for subject, text in states:
            self.add(subject, text)
        return self

    def freeze(self) -> GatedSearch:
        config = load_config(self.config)
        check_config(config)
        mined = mine_panel(config.panel, config_dir=self.config.parent, scratch=self.scratch)
        write_frozen(
            EvaluationFiles(self.config),
            freeze_panel(config, mined),
            force=True,
            had_runs=False,
            now="2026-11-10T00:00:00+00:00",
        )
        return self

    def load(self) -> Evaluation:
        return load_evaluation(self.config, scratch=self.scratch)

    def history(
        self,
        kind: str = "decompose",
        *,
        first: str | None = None,
        last: str | None = None,
        arm: str | None = None,
        is_whole: bool = False,
        mode: str = "cold",
    ) -> History:
        """Conduct a history without an orchestrator."""
        evaluation = self.load()
        commits = list_range(
            open_product(evaluation), first or self.commits[0], last or self.commits[-1]
        )
        return conduct_history(
            HistoryRequest(
                kind=kind,  # type: ignore[arg-type]
                evaluation=evaluation,
                warehouse=self.warehouse,
                commits=commits,
                arm=choose_arm(evaluation.config, arm),
                mode=mode,  # type: ignore[arg-type]
                is_whole=is_whole,
            )
        )


def write_tasks() -> list[dict[str, object]]:
    """Forty-two tasks: what the query starts with decides which defect of the gate hits it."""
    absent = iter(f"absent_{number}" for number in range(1000))
    queries = [
        *(f"fix symbol_{n} again" for n in range(12)),
        *(f"{n:040x} change symbol_{n}" for n in range(12, 22)),
        *(f"{next(absent)} breaks symbol_{n}" for n in range(22, 31)),
        *(f"{next(absent)} {next(absent)} and symbol_{n}" for n in range(31, 39)),
        f"{next(absent)} near word{39}",
        *(f"nothing to find for {n}" for n in range(40, 42)),
    ]
    return [
        {"id": f"t{n:02}", "query": query, "gold": [f"src/m{n:02}.py"]}
        for n, query in enumerate(queries)
    ]


def nets(steps: Sequence[HistoryStep], measure: str = "hit@5") -> list[float]:
    """The net change of every step, in tasks."""
    return [step.measures[measure].difference for step in steps]
