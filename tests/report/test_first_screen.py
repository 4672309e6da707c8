"""The first screen of a report: the answer in sentences, and the arms drawn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.judge.report_model import (
    AgainstPart,
    ArmPart,
    Counts,
    DistributionPart,
    GatePart,
    MeasurePart,
    OtherPart,
    PanelPart,
    Report,
)
from coldrun.tasks.report.first_screen import _axis, _whiskers, first_screen

Parts = dict[str, tuple[str, int, float, float]]

ARMS: Parts = {
    "constant": ("null", 15, 0.09, 0.23),
    "empty": ("null", 0, 0.0, 0.04),
    "bm25": ("control", 50, 0.40, 0.60),
    "grep": ("floor", 30, 0.22, 0.40),
}


def make_report(arms: Parts = ARMS, judged: str = "bm25", **changes: object) -> Report:
    def against(name: str) -> AgainstPart:
        gap = (arms[judged][1] - arms[name][1]) / 100
        return AgainstPart(
            arm=name,
            up=None,
            down=None,
            p=0.001 if gap > 0.1 else 0.5,
            difference=gap,
            role=arms[name][0],  # type: ignore[arg-type]
            value=arms[name][1] / 100,
        )

    nulls = [against(name) for name in arms if arms[name][0] == "null"]
    rivals = [against(name) for name in arms if arms[name][0] != "null" and name != judged]
    gate = GatePart(
        arm=judged,
        measure="hit@5",
        outcome="beats_nulls",
        margin_tasks=1,
        mde_tasks=7.8,
        against=nulls,
        beaten_by=[other.arm for other in rivals if other.difference < -0.1],
        compared=rivals,
    )
    values: dict[str, object] = {
        "run_id": "20261201-000000-00000000",
        "verdict": "measured",
        "evidence": "executed",
        "exit_code": 0,
        "started_at": "2026-12-01T00:00:00+00:00",
        "wall_seconds": 1.0,
        "primary": "hit@5",
        "counts": dict.fromkeys(Counts.model_fields, 0) | {"tasks": 100, "executed": 200},
        "panel": PanelPart(
            name="click",
            digest="sha256:641d0bf7bdda" + "0" * 52,
            base="e16088a" + "0" * 33,
            head=None,
            candidates=875,
            solvable=408,
            drops={"merge": 467},
            distribution=DistributionPart(shapes=1, top_share=1.0, effective_shapes=1.0),
            kind="commit-files",
        ),
        "point": None,
        "environment": {},
        "arms": [
            ArmPart(
                name=name,
                role=role,  # type: ignore[arg-type]
                kind=name,
                n=100,
                measures={"hit@5": MeasurePart(value=count / 100, count=count, low=low, high=high)},
            )
            for name, (role, count, low, high) in arms.items()
        ],
        "gates": [gate],
        "bars": [],
        "warnings": [],
    }
    return Report.model_validate(values | changes)


def screen(report: Report, width: int = 80, **options: object) -> str:
    lines = first_screen(report, width=width, **options)  # type: ignore[arg-type]
    return "\n".join(line.text for line in lines)


def test_first_screen_of_a_measured_run_gives_the_answer_and_draws_it() -> None:
    """Evidence, verdict, arms with their intervals, nulls marked, origin, what to do next."""
    assert screen(make_report()) == (
        "executed 200 · replayed 0 · tool failures 0 · panel click 641d0bf7bdda\n"
        "MEASURED: bm25 finds a right file among its first 5 answers for 50 of 100 questions "
        "(95 %: 40–60), better than every null (best: constant, 15) and than grep (30).\n"
        "\n"
        "hit@5, 95 % interval  0          20         40         60         80       100\n"
        "bm25      50                                ├─────●────┤\n"
        "grep      30                      ├───●─────┤\n"
        "constant  15  null         ├──●────┤\n"
        "empty      0  null    ●─┤\n"
        "\n"
        "null: the score of an answer that ignores the question; a tool must beat each.\n"
        "click@e16088a: 875 commits, 467 left out, 408 solvable, 100 asked.\n"
        'Ask your own tool the same: coldrun try REPO --arm "my-tool {query}"\n'
        "Details: coldrun report 20261201-000000-00000000 --full"
    )


def test_first_screen_names_whoever_the_arm_does_not_beat() -> None:
    """A tool that loses to a plain search, or cannot be told from one, reads so."""
    arms = ARMS | {"tool": ("candidate", 31, 0.22, 0.41)}

    text = screen(make_report(arms, judged="tool"))

    assert "(best: constant, 15). Beaten by bm25 (50). Not told apart from grep (30)." in text
    assert "What it missed: coldrun show 20261201-000000-00000000 --misses" in text


def test_first_screen_says_what_the_other_parts_of_the_panel_say() -> None:
    """A candidate that clears the nulls on one part alone says so in the headline."""
    report = make_report()
    limits = {"population_low": 0.36, "population_high": 0.55}
    arms = [
        arm.model_copy(
            update={"measures": {"hit@5": arm.measures["hit@5"].model_copy(update=limits)}}
        )
        for arm in report.arms
    ]
    gate = report.gates[0].model_copy(
        update={
            "outcome": "inconclusive",
            "reason": "better than constant by +3 tasks, but p = 0.2",
        }
    )
    others = [
        OtherPart(name="random", tasks=100, arms=arms, gates=[gate]),
        OtherPart(name="population", tasks=408, arms=report.arms, gates=[]),
    ]
    text = screen(report.model_copy(update={"others": others}))
    assert (
        "than grep (30). On the random part it does not clear the nulls: "
        "better than constant by +3 tasks, but p = 0.2." in text
    )
    assert (
        "Random part, 100 tasks as users will ask (95 % of all that it was drawn from): "
        "bm25 50 (36%–55%), grep 30 (36%–55%); null constant 15." in text
    )
    assert "All 408 tasks: bm25 50, grep 30; null constant 15." in text
    hidden = [arm.model_copy(update={"is_withheld": True}) for arm in report.arms]
    text = screen(report.model_copy(update={"others": others, "arms": hidden}))
    assert "All 408 tasks: withheld; null constant 15." in text


def test_first_screen_of_an_arm_that_measured_nothing_withholds_its_score() -> None:
    """The null that does as well is named and explained; the score is nowhere."""
    report = make_report()
    gate = report.gates[0].model_copy(
        update={
            "outcome": "measured_nothing",
            "against": [
                part.model_copy(update={"difference": 0.0}) for part in report.gates[0].against
            ],
        }
    )
    arms = [arm.model_copy(update={"is_withheld": arm.name == "bm25"}) for arm in report.arms]
    report = report.model_copy(
        update={"verdict": "measured_nothing", "gates": [gate], "arms": arms}
    )

    for width in (80, 40):
        text = screen(report, width)
        assert (
            "** measured nothing **: bm25 is not better than the null constant, which gives every "
            "question the same answer. Its score is withheld."
        ) in text
        assert "50" not in text.replace("0.50", "").partition("bm25")[2].partition("grep")[0]
        assert re.search(r"^bm25 +\*\* measured nothing \*\*$", text, re.MULTILINE)


def test_first_screen_fits_its_terminal_and_counts_what_it_leaves_out() -> None:
    """Forty columns have no room to draw; a thousand notes do not push the answer away."""
    rows = screen(make_report(), 40).splitlines()
    assert "bm25      50       40–60" in rows
    assert "constant  15  null 9–23" in rows
    warnings = [f"note {number}" for number in range(1000)]
    text = screen(make_report(warnings=warnings), is_ascii=True, options=" --warehouse data")
    assert re.search(r"^bm25.*\|-+o-+\|", text, re.MULTILINE)
    assert text.count("warning: note") == 2
    assert "and 998 more warnings, with the details" in text
    assert text.endswith("--full --warehouse data")


@pytest.mark.parametrize(
    ("evidence", "verdict", "word"),
    [
        ("invalid", "invalid", "INVALID, not a measurement"),
        ("incomplete", "did_not_run", "DID NOT"),
    ],
)
def test_first_screen_of_answers_that_are_no_measurement_draws_no_score(
    evidence: str, verdict: str, word: str
) -> None:
    """Reasons in place of figures, and the command that shows what failed."""
    text = screen(make_report(evidence=evidence, verdict=verdict, reasons=["the corpus changed"]))
    assert word in text
    assert "the corpus changed.\n" in text
    assert "What failed: coldrun show" in text
    assert "50" not in text


def test_first_screen_of_replayed_answers_says_so_before_any_score() -> None:
    """A figure from an earlier run is never the first thing that is read."""
    text = screen(
        make_report(evidence="replayed", verdict="replayed", reasons=["no answer was executed"])
    )

    assert text.splitlines()[1] == "REPLAYED, not measured: no answer was executed."
    assert text.splitlines()[2].startswith("In these answers, bm25 finds")
    assert "To measure: run it again without --reuse" in text


@given(st.tuples(*[st.floats(0, 1)] * 3).map(sorted), st.integers(24, 56))
def test_whiskers_stand_where_the_interval_does(rates: list[float], columns: int) -> None:
    """Ends and score within half a column of their place; nothing outside."""
    low, value, high = rates
    drawn = _whiskers(
        MeasurePart(value=value, count=None, low=low, high=high), columns, is_ascii=False
    )

    inked = [place for place, character in enumerate(drawn) if character != " "]
    assert len(drawn) == columns
    assert drawn.index("●") == round(value * (columns - 1))
    assert (inked[0], inked[-1]) == (round(low * (columns - 1)), round(high * (columns - 1)))
    assert inked == list(range(inked[0], inked[-1] + 1))


@given(st.integers(1, 100_000), st.integers(24, 56))
def test_axis_counts_from_nothing_to_all_without_touching_numbers(most: int, columns: int) -> None:
    """Each number is whole, and stands apart from the next."""
    row = _axis(most, columns)

    numbers = [float(word) for word in row.split()]
    assert (numbers[0], numbers == sorted(set(numbers))) == (0, True)
    assert numbers[-1] == most
    assert len(row) <= columns
