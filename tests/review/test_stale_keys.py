"""Bytes that decide an answer and that a key or a reused folder could overlook."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import Point, Question
from coldrun.tasks.run.arm_identity import ArmIdentity, identify_arm
from coldrun.tasks.run.execute import plan_asks
from tests.evaluations import CONFIG, EvaluationLab
from tests.sessions import Lab


def parts(lab: Lab, *, point: Point | None = None, **values: object) -> ArmIdentity:
    lab.config_dir.mkdir(exist_ok=True)
    product = None if point is None else lab.product()
    return identify_arm(lab.arm(**values), config_dir=lab.config_dir, point=point, product=product)


def test_a_linked_folder_below_files_counts_with_its_content(lab: Lab) -> None:
    """Sessions get a copy of what the link leads to, so the key has to hold it."""
    shared = lab.root / "shared"
    shared.mkdir()
    (shared / "table.json").write_text("one")
    lab.write("data/own.txt", "own")
    (lab.config_dir / "data" / "shared").symlink_to(shared)
    before = parts(lab, adapter=None, argv=("sh", "-c", "true"), files=("data",)).artifacts

    (shared / "table.json").write_text("two")

    after = parts(lab, adapter=None, argv=("sh", "-c", "true"), files=("data",)).artifacts
    assert before != after


def test_folders_linked_in_a_circle_end(lab: Lab) -> None:
    lab.write("data/own.txt", "own")
    (lab.config_dir / "data" / "again").symlink_to(".")

    with pytest.raises(ConfigError, match="circle"):
        parts(lab, adapter=None, argv=("sh", "-c", "true"), files=("data",))


def test_a_script_named_by_its_absolute_path_is_part_of_the_key(lab: Lab) -> None:
    """It is run from where it lies, with or without a product."""
    lab.commit("product", a_py="a = 1\n")
    script = lab.root / "elsewhere.py"
    for point in (None, lab.point()):
        script.write_text("print(1)")
        before = parts(lab, point=point, adapter=None, argv=("python3", str(script)))
        script.write_text("print(2)")
        after = parts(lab, point=point, adapter=None, argv=("python3", str(script)))
        assert before.artifacts != after.artifacts


def test_an_ordered_arm_is_keyed_by_what_it_was_asked_before() -> None:
    """A stateful arm's answer depends on the earlier questions, so another panel is another key."""
    identity = ArmIdentity(
        arm={}, artifacts={}, product=None, code={}, interpreter="", binaries={}, environment=""
    )

    def keys(names: str, *, is_ordered: bool) -> dict[str, str]:
        questions = [
            Question(id=name, query=f"q {name}", answer="ranking", k=5, seed=0) for name in names
        ]
        asks = plan_asks(
            identity, questions, trials=1, corpus_trees=lambda _: {}, is_ordered=is_ordered
        )
        return {found.question.id: found.key for found in asks}

    with_first, without = keys("abc", is_ordered=True), keys("bc", is_ordered=True)
    assert with_first["b"] != without["b"]
    assert with_first["c"] != without["c"]
    assert keys("ab", is_ordered=True)["b"] == with_first["b"]
    assert keys("abc", is_ordered=False)["b"] == keys("bc", is_ordered=False)["b"]


def test_a_stateful_arm_is_asked_again_when_a_task_was_added(tmp_path: Path) -> None:
    counting = """
asked = []
def answer(query):
    asked.append(query)
    return {"items": [{"path": f"item-{len(asked) - 1}"}]}
"""
    lab = EvaluationLab(tmp_path).prepare(12, arm=counting, config=CONFIG + 'order = "fixed"\n')
    lab.run()
    asked = [(f"t{number:04d}", f"item-{number}") for number in range(12)]
    lab.write_rows(
        [
            {"id": "s0000", "query": "a new one?", "gold": ["item-0"]},
            *(
                {"id": name, "query": f"where is {item} handled?", "gold": [item]}
                for name, item in asked
            ),
        ]
    )
    lab.freeze(force=True)

    report = lab.run("reuse").report

    assert report.counts.replayed == 0


def test_the_path_that_a_session_gets_is_part_of_its_environment(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It decides which programs the arm finds."""
    values: dict[str, object] = {"adapter": None, "argv": ("sh", "-c", "true"), "sandbox": False}
    before = parts(lab, **values).environment
    monkeypatch.setenv("PATH", f"{lab.root}{os.pathsep}{os.environ['PATH']}")

    assert parts(lab, **values).environment != before


@pytest.mark.parametrize("declared", [".", "toy.panel.jsonl", "tasks.jsonl"])
def test_an_arm_cannot_declare_the_gold_as_a_file(tmp_path: Path, declared: str) -> None:
    lab = EvaluationLab(tmp_path)
    lab.prepare(config=CONFIG + f'files = ["{declared}"]\n')

    with pytest.raises(ConfigError, match="gold"):
        lab.start()
