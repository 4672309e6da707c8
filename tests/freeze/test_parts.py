"""The two parts of a panel, and the population that built-in arms are asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coldrun.tasks.config import parse_config
from coldrun.tasks.freeze.lock import panel_from_bytes, read_lock
from coldrun.tasks.freeze.parts import draw_parts, primary_tasks, split_parts
from coldrun.tasks.lib.canonical import digest_bytes
from coldrun.tasks.lib.errors import ConfigError, LockError
from coldrun.tasks.lib.records import GoldItem, Task
from tests.conftest import RepositoryBuilder
from tests.evaluations import EvaluationLab, arm_of

MINED = """\
[panel]
kind = "commit-files"
repo = "../shop"
base = "{base}"
[sample]
size = 8
{sample}
[measure]
primary = "hit@1"
also = ["mrr@3"]
"""

TOOL = """
[[arm]]
name = "tool"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "arm.py"
"""


def tasks_of(count: int) -> list[Task]:
    """Tasks of which every third has the same gold."""
    return [
        Task(
            id=f"t{n}",
            query=f"q{n}",
            answer="ranking",
            gold=(GoldItem(item="hub" if n % 3 else f"f{n}"),),
        )
        for n in range(count)
    ]


def config_of(**sample: object) -> object:
    panel = {"kind": "commit-files", "repo": ".", "base": "a"}
    return parse_config({"panel": panel, "sample": sample})


@pytest.mark.parametrize(
    ("sample", "sizes"),
    [
        ({"size": 10}, {"balanced": 10, "random": 10, "population": 40}),
        ({"size": 10, "random": 15}, {"balanced": 10, "random": 15, "population": 40}),
        ({"size": 10, "random": 0}, {"balanced": 10, "population": 40}),
        (
            {"size": 10, "random": 15, "primary": "random"},
            {"random": 15, "balanced": 10, "population": 40},
        ),
        ({"rule": "random", "size": 10}, {"random": 10, "population": 40}),
        ({}, {"balanced": 40}),
        ({"rule": "all"}, {"random": 40}),
        ({"size": 10, "random": 40}, {"balanced": 10, "random": 40}),
    ],
)
def test_draw_parts_have_their_sizes_and_none_repeats_another(sample, sizes):
    """The primary part comes first; a part that would be another one again is left out."""
    parts = draw_parts(config_of(**sample), tasks_of(40))
    assert {name: len(tasks) for name, tasks in parts.items()} == sizes
    assert list(parts) == list(sizes)


def test_draw_parts_random_part_does_not_depend_on_the_balanced_one():
    """It is the same whatever stands beside it, and no prefix of the balanced order."""
    drawn = {
        size: [
            task.id for task in draw_parts(config_of(size=size, random=12), tasks_of(40))["random"]
        ]
        for size in (5, 30)
    }
    assert drawn[5] == drawn[30]
    balanced = draw_parts(config_of(size=12, random=12), tasks_of(40))["balanced"]
    assert {task.id for task in balanced} != set(drawn[5])


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"rule": "all", "random": 3}, "the whole panel the random part"),
        ({"rule": "random", "size": 3, "primary": "balanced"}, "the whole panel the random part"),
        ({"size": 3, "random": 0, "primary": "random"}, "needs a random part"),
        ({"size": 3, "random": -1}, "random"),
    ],
)
def test_sample_that_contradicts_itself_is_refused(sample, message):
    """One line says what to change."""
    with pytest.raises(ConfigError, match=message):
        config_of(**sample)


@pytest.fixture
def lab(tmp_path: Path, new_repository: Callable[..., RepositoryBuilder]) -> EvaluationLab:
    """Thirty tasks: twenty of them change one hub, each of the others a file of its own."""
    repository = new_repository("shop")
    names = [f"src/part{number}.py" for number in range(10)]
    files = {name: f"topic{at}\n" for at, name in enumerate(names)}
    base = repository.commit("start", {**files, "hub.py": "hub\n"})
    for at in range(30):
        path = names[at // 3] if at % 3 == 0 else "hub.py"
        repository.commit(f"mend broken handler topic{at // 3} case{at}", {path: f"{at}\n"})
    lab = EvaluationLab(tmp_path)
    lab.write(MINED.format(base=base, sample=""))
    return lab


def test_run_reports_each_part_with_its_own_n_and_nulls(lab: EvaluationLab) -> None:
    """The primary part leads; the JSON marks every arm and gate with its part."""
    lab.freeze()
    lock = read_lock(lab.files)["panel"]
    assert {name: part["tasks"] for name, part in lock["parts"].items()} == {
        "balanced": 8,
        "random": 8,
        "population": 30,
    }
    data = lab.files.panel.read_bytes()
    assert lock["digest"] == lock["parts"]["population"]["digest"] or b'"parts"' in data
    assert digest_bytes(data) == lock["digest"]
    built = lab.run()
    report = built.report
    assert report.counts.tasks == 8
    assert report.counts.executed == 90  # three built-in arms, all thirty tasks
    assert [(part.name, part.tasks) for part in report.parts] == [
        ("balanced", 8),
        ("random", 8),
        ("population", 30),
    ]
    everyone = {part.name: part for part in report.others}
    constant = next(arm for arm in everyone["population"].arms if arm.name == "constant")
    assert constant.measures["hit@1"].count == 20  # the hub
    assert arm_of(report, "constant").measures["hit@1"].count < 8
    exact = next(arm for arm in everyone["population"].arms if arm.name == "bm25")
    score = exact.measures["hit@1"]
    assert score.population_low == score.value == score.population_high
    drawn = next(arm for arm in everyone["random"].arms if arm.name == "bm25").measures["hit@1"]
    assert drawn.low <= drawn.population_low <= drawn.value <= drawn.population_high <= drawn.high
    text = report.to_json()
    assert [text.count(f'"part": "{name}"') for name in ("balanced", "random", "population")] == [
        len(report.arms) + 1,
        len(everyone["random"].arms) + 1,
        len(everyone["population"].arms),
    ]
    assert len(built.score_rows) == 8 * 3 * 2
    assert len(built.other_rows) == 22 * 3 * 2


def test_tool_is_asked_the_parts_and_the_built_in_arms_everything(lab: EvaluationLab) -> None:
    """With an arm of one's own there is no random part unless it is asked for."""
    lab.write_arm()
    lab.config.write_text(lab.config.read_text().replace("size = 8", "size = 8\nrandom = 6"))
    with lab.config.open("a") as file:
        file.write(TOOL + '[[arm]]\nname = "grep"\nkind = "grep"\nrole = "floor"\n')
    lab.freeze()
    tasks = panel_from_bytes(lab.files.panel.read_bytes())
    union = sum(bool(task.parts) for task in tasks)
    report = lab.run().report
    assert (arm_of(report, "tool").n, arm_of(report, "tool").executed) == (8, 8)
    assert report.counts.planned == union + 30
    assert [arm.name for arm in report.others[-1].arms if arm.role != "null"] == ["grep"]
    assert {gate.arm for gate in report.others[0].gates} == {"tool"}
    shown = lab.invoke("show", "last", "--discrimination", "--json", "-")
    assert json.loads(shown.stdout)["tasks"] == 8
    other = next(task for task in tasks if not task.parts)
    shown = lab.invoke("show", "last", "--task", other.id, "--json", "-")
    assert [row["arm"] for row in json.loads(shown.stdout)["answers"] if row["items"]] == ["grep"]


def test_lock_keeps_the_random_part_when_arms_change(lab: EvaluationLab) -> None:
    """The default depends on the arms; a frozen panel does not."""
    lab.freeze()
    before = read_lock(lab.files)["panel"]["digest"]
    lab.write_arm()
    with lab.config.open("a") as file:
        file.write(TOOL)
    assert lab.load().frozen.digest == before
    lab.config.write_text(lab.config.read_text().replace("size = 8", "size = 8\nrandom = 3"))
    with pytest.raises(LockError, match=r"sample\.random"):
        lab.load()


def test_split_parts_of_older_panels_are_balanced_as_a_whole():
    """Neither their tasks nor their locks know parts."""
    tasks = tasks_of(4)
    assert split_parts(tasks, {"panel": {}}) == {"balanced": tuple(tasks)}
    assert primary_tasks(tasks, {"panel": {}}) == tuple(tasks)
