"""A product whose file says which tasks it solves, so that every change of it is known exactly."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.check_config import check_config
from coldrun.tasks.freeze.freeze_panel import freeze_panel
from coldrun.tasks.freeze.lock import EvaluationFiles
from coldrun.tasks.freeze.write_panel import write_frozen
from coldrun.tasks.history.campaign import Measure, PointRequest, measure_point
from coldrun.tasks.history.commits import list_range, open_product
from coldrun.tasks.history.history_lifecycle import conduct_history
from coldrun.tasks.history.history_model import History
from coldrun.tasks.history.history_requests import HistoryRequest, choose_arm
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.errors import ColdrunError
from coldrun.tasks.mine.mine_panel import mine_panel
from coldrun.tasks.run.prepare import Evaluation, load_evaluation
from tests.conftest import RepositoryBuilder

TASKS = 24

ADAPTER = """
import json, os, sys, time
from pathlib import Path

name = sys.argv[1]
outside = Path(os.environ["CONTROL_FILE"])
place = outside if name == "control" else Path("solved.txt")
solved = set(place.read_text().split())
if name == "tool" and Path("README.md").exists():
    solved |= set(Path("README.md").read_text().split())
slow = outside.with_name("seconds.txt")
degraded = ["slow path"] if name == "tool" and Path("degraded").exists() else []

for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print(json.dumps({"type": "ready", "nonce": message["nonce"]}), flush=True)
    elif message["type"] == "question":
        number = message["query"].split()[-1]
        if name == "tool" and slow.exists():
            time.sleep(float(slow.read_text()))
        paths = [f"item-{number}"] if number in solved else []
        answer = {"type": "answer", "id": message["id"], "paths": paths, "degraded": degraded}
        print(json.dumps(answer), flush=True)
    else:
        break
"""

CONFIG = """
[panel]
kind = "jsonl"
file = "tasks.jsonl"
answer = "set"

[sample]
rule = "all"

[measure]
primary = "exact"
also = ["recall"]

[product]
repo = "../product"
setup = ["sh", "setup.sh"]

[[arm]]
name = "tool"
kind = "command"
argv = ["{python}", "{adapter}", "tool"]
adapter = "adapter.py"
set_env = { CONTROL_FILE = "%CONTROL%" }

[[arm]]
name = "control"
role = "control"
kind = "command"
argv = ["{python}", "{adapter}", "control"]
adapter = "adapter.py"
set_env = { CONTROL_FILE = "%CONTROL%" }

[run]
concurrency = 2
sandbox = "none"
"""
"""The control and the pace come from files that no arm declares, so the sandbox is off."""


class Killed(BaseException):
    """The program is dead."""


@dataclass(slots=True)
class SmallHistory:
    """A product and its evaluation below `root`."""

    root: Path
    product: RepositoryBuilder = field(init=False)
    commits: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config.parent.mkdir(parents=True)
        self.product = RepositoryBuilder(self.root / "product")
        self.control_file.write_text("1 2 3")
        (self.config.parent / "adapter.py").write_text(ADAPTER)
        rows = [
            {"id": f"t{n:02}", "query": f"where is {n}", "gold": [f"item-{n}"]}
            for n in range(TASKS)
        ]
        (self.config.parent / "tasks.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows)
        )
        self.config.write_text(CONFIG.replace("%CONTROL%", str(self.control_file)))

    @property
    def config(self) -> Path:
        return self.root / "evaluation" / "small.toml"

    @property
    def control_file(self) -> Path:
        """What the control solves."""
        return self.root / "control.txt"

    @property
    def warehouse(self) -> Path:
        return self.root / "data"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    def add(self, subject: str, solved: Iterable[int] | None = None, **files: str | None) -> str:
        """Commit which tasks are solved from now on, and other files (`_` for a dot)."""
        changes: dict[str | bytes, str | bytes | tuple[str, str | bytes] | None] = {}
        if not self.commits:
            changes["setup.sh"] = "true\n"
        if solved is not None:
            changes["solved.txt"] = " ".join(map(str, solved)) + "\n"
        changes |= {name.replace("_", "."): text for name, text in files.items()}
        self.commits.append(self.product.commit(subject, changes))
        return self.commits[-1]

    def freeze(self) -> SmallHistory:
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

    def request(
        self,
        kind: str = "decompose",
        *,
        first: str | None = None,
        last: str | None = None,
        mode: str = "cold",
        is_whole: bool = False,
    ) -> HistoryRequest:
        evaluation = self.load()
        return HistoryRequest(
            kind=kind,  # type: ignore[arg-type]
            evaluation=evaluation,
            warehouse=self.warehouse,
            commits=list_range(
                open_product(evaluation), first or self.commits[0], last or self.commits[-1]
            ),
            arm=choose_arm(evaluation.config, None),
            mode=mode,  # type: ignore[arg-type]
            is_whole=is_whole,
        )

    def conduct(self, request: HistoryRequest, measure: Measure = measure_point) -> History:
        return conduct_history(request, measure)


def killed_at(number: int) -> Measure:
    """Measure as a program that dies when it is about to measure its Nth point."""
    measured = 0

    def measure(ask: PointRequest) -> Report:
        nonlocal measured
        measured += 1
        if measured == number:
            raise Killed
        return measure_point(ask)

    return measure


def failing(*commits: str) -> Measure:
    """Measure all but some commits, which fail."""

    def measure(ask: PointRequest) -> Report:
        if ask.commit in commits:
            raise ColdrunError("no adapter prerequisites here")
        return measure_point(ask)

    return measure


def statuses(history: History) -> list[str]:
    """The status of every step."""
    return [step.status for step in history.steps]
