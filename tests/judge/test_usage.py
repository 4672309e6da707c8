"""Usage gates: a component that was not used explains nothing, whatever the score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.config import parse_config
from coldrun.tasks.judge.load_run import load_report
from coldrun.tasks.judge.report_model import EffectPart, Report
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.report.run_document import render_markdown
from tests.evaluations import CONFIG, EvaluationLab
from tests.judge.test_report import printed

AGENT = """
# the agent searches for even items, and twice for every fourth; without search it gets the odd ones
def answer(query, plain=answer):
    number = int(re.findall("[0-9]+", query)[0])
    if "search" in sys.argv and number % 2 == 0:
        for _ in range(2 if number % 4 == 0 else 1):
            say(type="event", id=f"t{number:04d}", name="search", arguments={"q": query})
    if "leaky" in sys.argv and number == 3:
        say(type="event", id="t0003", name="search")
    found = "search" in sys.argv or number % 2
    return plain(query) if found and number != 20 else {"items": []}
"""
ARMS = """\
[[arm]]
name = "agent"
kind = "command"
argv = ["{python}", "{adapter}", "search"]
adapter = "arm.py"
uses = "search"

[[arm]]
name = "plain"
role = "control"
kind = "command"
argv = ["{python}", "{adapter}", "plain"]
adapter = "arm.py"

[[arm]]
name = "no-search"
role = "control"
kind = "command"
argv = ["{python}", "{adapter}", "none"]
adapter = "arm.py"
ablation_of = "agent"
factor = "argv"
"""
USING = CONFIG.partition("[[arm]]")[0] + ARMS


def counts(effect: EffectPart) -> tuple[int, ...]:
    return effect.n, effect.kept, effect.gained, effect.regressed, effect.residual


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> tuple[EvaluationLab, Report]:
    lab = EvaluationLab(tmp_path_factory.mktemp("used")).prepare(25, arm=AGENT, config=USING)
    return lab, lab.run().report


def test_tasks_in_which_a_component_was_used_are_counted(
    used: tuple[EvaluationLab, Report],
) -> None:
    """Thirteen of 25 tasks, twenty uses; the report says so in a line."""
    (part,) = used[1].usage

    assert (part.arm, part.component, part.used, part.n, part.events) == (
        "agent",
        "search",
        13,
        25,
        20,
    )
    assert (part.is_exercised, part.reached_by) == (True, {})
    line = "agent: used search in 13 of 25 tasks (52%), 20 uses"
    assert line in printed(used[1]).splitlines()
    assert f"- {line}" in render_markdown(used[1]).splitlines()


def test_effect_on_used_and_on_unused_tasks_stands_apart(
    used: tuple[EvaluationLab, Report],
) -> None:
    """All that search gains is where it was used; elsewhere both arms had the same treatment."""
    (against,) = used[1].usage[0].against

    assert (against.arm, against.role) == ("plain", "control")
    with_search, without = against.effects
    assert (with_search.tasks, counts(with_search)) == ("used", (13, 0, 12, 0, 1))
    assert (without.tasks, counts(without)) == ("unused", (12, 12, 0, 0, 0))
    assert with_search.p == pytest.approx(2 / 2**12)
    assert without.p == 1.0
    assert "plain → agent" in printed(used[1])
    again = load_report(used[0].warehouse, "last").report
    assert (again.usage, again.ablations) == (used[1].usage, used[1].ablations)


def test_ablation_of_an_arm_with_a_component_is_told_where_it_was_used(
    used: tuple[EvaluationLab, Report],
) -> None:
    """Removing search loses what it found, on the tasks in which the whole arm searched."""
    (part,) = used[1].ablations

    assert (part.component, part.factors) == ("search", ["argv"])
    assert [(effect.tasks, counts(effect)) for effect in part.effects] == [
        ("all", (25, 12, 0, 12, 1)),
        ("used", (13, 0, 0, 12, 1)),
        ("unused", (12, 12, 0, 0, 0)),
    ]
    # three effects of the ablation and two against the other control: one family
    assert part.effects[0].holm_p == pytest.approx(5 * 2 / 2**12)
    assert "Holm is over the 5 effects printed" in printed(used[1])
    assert "search used" in printed(used[1])


@pytest.mark.parametrize(("share", "is_exercised"), [(0.52, True), (0.53, False)])
def test_component_used_below_the_declared_share_is_not_exercised(
    tmp_path: Path, share: float, is_exercised: bool
) -> None:
    """52 % were used: one declared share holds and the next does not. The gate stays as it is."""
    config = USING.replace('uses = "search"', f'uses = "search"\nmin_use_share = {share}')
    report = EvaluationLab(tmp_path).prepare(25, arm=AGENT, config=config).run().report
    warning = (
        "agent: not exercised, it used search in 13 of 25 tasks, and 53% was declared: its "
        "comparisons tell nothing of search"
    )

    assert report.usage[0].is_exercised is is_exercised
    assert (warning in report.warnings) is not is_exercised
    assert ("not exercised (search in 13 of 25 tasks)" in printed(report)) is not is_exercised
    assert (report.verdict, report.exit_code) == ("measured", 0)


def test_component_that_was_never_used_has_no_effect(tmp_path: Path) -> None:
    """Nothing is known of it, which is not an effect of 0."""
    config = USING.replace('uses = "search"', 'uses = "serach"')
    report = EvaluationLab(tmp_path).prepare(25, arm=AGENT, config=config).run().report
    (part,) = report.usage

    assert (part.used, part.events) == (0, 0)
    effect = part.against[0].effects[0]
    assert (effect.n, effect.difference, effect.p, effect.holm_p) == (0, None, None, None)
    assert "agent: used serach in 0 of 25 tasks (0%), 0 uses" in printed(report)
    assert json.loads(report.to_json())["usage"][0]["against"][0]["effects"][0]["p"] is None


def test_control_that_reaches_the_component_is_warned_of(tmp_path: Path) -> None:
    """An arm without search that searches is no arm without search."""
    config = USING.replace('"{adapter}", "none"]', '"{adapter}", "leaky"]')
    report = EvaluationLab(tmp_path).prepare(25, arm=AGENT, config=config).run().report

    assert report.usage[0].reached_by == {"no-search": 1}
    assert any(
        text.startswith("no-search: used search as well, in 1 of 25 tasks")
        for text in report.warnings
    )


def configure(**arm: Any) -> None:
    values = {"name": "it", "kind": "command", "argv": ["tool"], **arm}
    parse_config({"panel": {"kind": "jsonl", "file": "tasks.jsonl"}, "arm": [values]})


def test_share_without_a_component_and_uses_of_a_built_in_arm_are_refused() -> None:
    """A search of coldrun's own reports no events."""
    with pytest.raises(ConfigError, match="`min_use_share` goes with `uses`"):
        configure(min_use_share=0.5)
    with pytest.raises(ConfigError, match="less than or equal to 1"):
        configure(uses="search", min_use_share=50)
    with pytest.raises(ConfigError, match=r"unknown key `arm\[0\].uses`"):
        parse_config(
            {
                "panel": {"kind": "jsonl", "file": "tasks.jsonl"},
                "arm": [{"name": "it", "kind": "grep", "uses": "search"}],
            }
        )
