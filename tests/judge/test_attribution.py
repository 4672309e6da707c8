"""Ablations: two arms that differ in one thing, what that thing did, and where it was used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.config import Config, parse_config
from coldrun.tasks.judge.load_run import load_report
from coldrun.tasks.judge.report_model import AblationPart, EffectPart, Report
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.report.run_document import render_markdown
from tests.evaluations import CONFIG, EvaluationLab
from tests.holdouts import WORDS, build_garden
from tests.judge.test_costs import CHAT, MODEL, PRICES
from tests.judge.test_report import printed
from tests.services import run_service

FULL: dict[str, Any] = {
    "name": "full",
    "kind": "chat",
    "url": "https://models.example/v1",
    "model": "example-model",
    "prompt": "{query}",
    "parameters": {"temperature": 0, "seed": 1},
    "retry": "once",
    "retry_prompt": "Again.",
}
PLAIN = {key: value for key, value in FULL.items() if not key.startswith("retry")}


def configure(**changes: Any) -> Config:
    arm = {**PLAIN, "name": "plain", "role": "control", "ablation_of": "full", **changes}
    return parse_config({"panel": {"kind": "jsonl", "file": "tasks.jsonl"}, "arm": [FULL, arm]})


REFUSED = {
    "another key": (
        {"factor": "retry", "prompt": "Please: {query}", "timeout_seconds": 5},
        (
            r"by retry alone, other keys differ as well \(a bundle: prompt, timeout_seconds\); "
            r'make them equal, or declare factor = \["prompt", "retry", "timeout_seconds"\]'
        ),
    ),
    "nested key": (
        {"factor": "retry", "parameters": {"temperature": 1, "seed": 1}},
        r"a bundle: parameters.temperature\)",
    ),
    "same": ({"factor": ["retry", "model"]}, "factor = 'model' is the same in 'full'"),
    "unknown": ({"factor": "promt"}, "is no key of either arm; did you mean 'prompt'"),
    "free": ({"factor": "role"}, "factor = 'role' is no part of what an arm does"),
    "alone": ({}, "`ablation_of` goes with `factor`"),
    "nobody": ({"factor": "retry", "ablation_of": "ful"}, "is no other arm; there are: full"),
    "itself": ({"factor": "retry", "ablation_of": "plain"}, "is no other arm; there are: full"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_ablation_that_is_none_is_refused(case: str) -> None:
    """The other differing keys are named, and what to write instead."""
    changes, message = REFUSED[case]
    with pytest.raises(ConfigError, match=message):
        configure(**changes)


def test_ablation_of_a_nested_key_and_a_declared_bundle_are_accepted() -> None:
    """Dotted names reach into a table; `retry_prompt` goes with `retry`: it is no second factor."""
    assert configure(factor="retry").arm[1].factor == ("retry",)
    nested = {"temperature": 0, "seed": 2}
    same = {"retry": "once", "retry_prompt": "Again."}
    configure(factor="parameters.seed", parameters=nested, **same)
    configure(factor=["retry", "parameters.seed"], parameters=nested)


def test_arm_without_descriptive_keys_has_the_identity_it_always_had() -> None:
    """Keys of captures and openings of a holdout hold an arm's settings: nothing was added."""
    before = parse_config({"panel": {"kind": "jsonl", "file": "tasks.jsonl"}, "arm": [FULL]}).arm[0]
    values = before.model_dump(mode="json")
    assert not {"ablation_of", "factor", "uses", "min_use_share"} & values.keys()


def effect_of(part: AblationPart, tasks: str) -> EffectPart:
    return next(effect for effect in part.effects if effect.tasks == tasks)


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> tuple[EvaluationLab, Report]:
    """A model that knows, needs a second call, or never knows, asked with and without one."""
    root = tmp_path_factory.mktemp("chats")
    base = build_garden(root / "garden", commits=34)
    with run_service(root / "service", MODEL) as service:
        lab = EvaluationLab(root)
        (lab.config.parent / "prices.toml").write_text(PRICES, encoding="utf-8")
        config = CHAT.format(repo=root / "garden", base=base, url=service.url)
        lab.write(
            config.replace(
                'name = "direct"', 'name = "direct"\nablation_of = "retry"\nfactor = "retry"'
            )
        )
        lab.freeze()
        return lab, lab.run().report


def test_effect_of_a_retry_is_told_on_all_tasks_and_where_it_fired(
    chats: tuple[EvaluationLab, Report],
) -> None:
    """Removing it loses what second calls fixed, all of it where there was a second call."""
    lab, report = chats
    (part,) = report.ablations
    assert load_report(lab.warehouse, "last").report.ablations == report.ablations
    kinds = [len(word) % 3 for word in WORDS[:34]]
    once, twice, never = kinds.count(0), kinds.count(1), kinds.count(2)

    assert (part.arm, part.of, part.factors, part.is_bundle) == (
        "direct",
        "retry",
        ["retry"],
        False,
    )
    whole, used, unused = (effect_of(part, tasks) for tasks in ("all", "used", "unused"))
    assert (whole.n, whole.kept, whole.gained, whole.regressed) == (34, once, 0, twice)
    assert (used.n, used.kept, used.regressed, used.residual) == (twice + never, 0, twice, never)
    assert (unused.n, unused.kept, unused.regressed) == (once, once, 0)
    assert whole.difference == pytest.approx(-twice / 34)
    assert whole.p == pytest.approx(2 / 2**twice)
    assert unused.p == 1.0
    assert whole.holm_p == pytest.approx(3 * whole.p)
    for text in (printed(chats[1]), render_markdown(chats[1])):
        assert "from retry to direct: retry changed, and nothing else" in text
        assert "second call used" in text


BUNDLE = """
[[arm]]
name = "other"
role = "control"
kind = "command"
argv = ["{python}", "{adapter}", "other"]
adapter = "arm.py"
set_env = { MODE = "plain" }
ablation_of = "reader"
factor = ["argv", "set_env.MODE"]
"""
HALF = """
def answer(query, plain=answer):
    if "other" in sys.argv and int(re.findall("[0-9]+", query)[0]) % 2:
        return {"items": []}
    return plain(query)
"""


def test_bundle_is_called_one(tmp_path: Path) -> None:
    """Two things changed at once: no part of the effect belongs to either."""
    lab = EvaluationLab(tmp_path).prepare(20, arm=HALF, config=CONFIG + BUNDLE)
    report = lab.run().report
    (part,) = report.ablations

    assert (part.factors, part.is_bundle) == (["argv", "set_env.MODE"], True)
    assert [effect.tasks for effect in part.effects] == ["all"]
    assert (part.effects[0].kept, part.effects[0].regressed) == (10, 10)
    assert "argv, set_env.MODE changed together; it is a bundle" in printed(report)


def test_ablation_of_an_arm_that_measured_nothing_has_no_effect(tmp_path: Path) -> None:
    """Where the whole is worth nothing, no part of it is."""
    nothing = "def answer(query):\n    return {'items': []}"
    report = EvaluationLab(tmp_path).prepare(arm=nothing, config=CONFIG + BUNDLE).run().report

    assert report.verdict == "measured_nothing"
    assert report.ablations[0].effects == []
    assert "reader: ** measured nothing **, so no effect is told" in printed(report)


def test_declaring_an_ablation_changes_no_key(tmp_path: Path) -> None:
    """How answers are compared decides none of them."""
    lab = EvaluationLab(tmp_path).prepare(config=CONFIG + BUNDLE)
    keys = []
    for text in (CONFIG + BUNDLE, (CONFIG + BUNDLE).partition("ablation_of")[0]):
        lab.write(text)
        started = lab.start()
        keys.append({ask.key for arm in started.run.arms for ask in arm.asks})
        started.abandon()
    assert keys[0] == keys[1]
