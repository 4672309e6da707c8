"""A product whose file says which tasks it solves, so that every change of it is known exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from coldrun.tasks.history.campaign import Measure, PointRequest, measure_point
from coldrun.tasks.history.commits import list_range, open_product
from coldrun.tasks.history.history_lifecycle import conduct_history
from coldrun.tasks.history.history_model import History
from coldrun.tasks.history.history_requests import HistoryMode, HistoryRequest, choose_arm
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.errors import ColdrunError
from tests.conftest import RepositoryBuilder
from tests.evaluations import EvaluationLab

TASKS = 24

ARM = """
from pathlib import Path

name = sys.argv[1]
outside = Path(os.environ["CONTROL_FILE"])
place = outside if name == "control" else Path("solved.txt")
solved = set(place.read_text().split())
if name == "tool" and Path("README.md").exists():
    solved |= set(Path("README.md").read_text().split())
slow = outside.with_name("seconds.txt")
degraded = ["slow path"] if name == "tool" and Path("degraded").exists() else []

def answer(query):
    number = query.split()[-1]
    if name == "tool" and slow.exists():
        time.sleep(float(slow.read_text()))
    return {"paths": [f"item-{number}"] if number in solved else [], "degraded": degraded}
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
adapter = "arm.py"
set_env = { CONTROL_FILE = "%CONTROL%" }

[[arm]]
name = "control"
role = "control"
kind = "command"
argv = ["{python}", "{adapter}", "control"]
adapter = "arm.py"
set_env = { CONTROL_FILE = "%CONTROL%" }

[run]
concurrency = 2
sandbox = "none"
"""
"""The control and the pace come from files that no arm declares, so the sandbox is off."""


class Killed(BaseException):
    """The program is dead."""


@dataclass(slots=True)
class SmallHistory(EvaluationLab):
    """A product and its evaluation below `root`."""

    name: str = "small"
    product: RepositoryBuilder = field(init=False)
    commits: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        EvaluationLab.__post_init__(self)
        self.product = RepositoryBuilder(self.root / "product")
        self.control_file.write_text("1 2 3")
        self.write_arm(ARM)
        self.write_rows(
            [
                {"id": f"t{n:02}", "query": f"where is {n}", "gold": [f"item-{n}"]}
                for n in range(TASKS)
            ]
        )
        self.write(CONFIG.replace("%CONTROL%", str(self.control_file)))

    @property
    def control_file(self) -> Path:
        """What the control solves."""
        return self.root / "control.txt"

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

    def build(self, *solved: int) -> SmallHistory:
        """One commit for each number, which solves that many tasks, and all of it frozen."""
        for number, count in enumerate(solved):
            self.add(f"commit {number}", range(count), note_md=f"{number}")
        self.freeze()
        return self

    def seal(self) -> None:
        """Keep the sessions in the sandbox, where alone answers are replayed; before `build`."""
        text = self.config.read_text().replace('sandbox = "none"\n', "")
        self.write(text.replace("set_env =", f'files = ["{self.control_file}"]\nset_env ='))

    def request(
        self,
        kind: Literal["backfill", "decompose"] = "decompose",
        *,
        last: str | None = None,
        mode: HistoryMode = "cold",
        is_whole: bool = False,
    ) -> HistoryRequest:
        """The request of a history of all commits, or of those up to `last`."""
        evaluation = self.load()
        return HistoryRequest(
            kind=kind,
            evaluation=evaluation,
            warehouse=self.warehouse,
            commits=list_range(open_product(evaluation), self.commits[0], last or self.commits[-1]),
            arm=choose_arm(evaluation.config, None),
            mode=mode,
            is_whole=is_whole,
        )

    def conduct(
        self,
        kind: Literal["backfill", "decompose"] = "decompose",
        measure: Measure = measure_point,
        **options: Any,
    ) -> History:
        """Conduct a history without an orchestrator; the options are those of `request`."""
        return conduct_history(self.request(kind, **options), measure)


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


def point_statuses(history: History) -> list[str]:
    """The status of every point."""
    return [point.status for point in history.points]


def run_ids(history: History) -> list[str]:
    """The runs of all points."""
    return [run_id for point in history.points for run_id in point.run_ids]
