"""One night, without an orchestrator: nothing new, a first point, a change that is decomposed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coldrun.tasks.history.history_lifecycle import conduct_history
from coldrun.tasks.history.night import Night, evaluate_night, failed_night, publish_nights
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.watch import Watch, watching
from coldrun.tasks.run.execute import Progress
from tests.history.small import Killed, SmallHistory


def _night(small: SmallHistory) -> Night:
    return evaluate_night(small.load(), small.warehouse, conduct=conduct_history)


def _runs(small: SmallHistory) -> int:
    return len(small.select("FROM runs"))


def test_nights_measure_what_is_new_and_decompose_a_change(
    small: SmallHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First point, nothing new, no change, then a change among three commits."""
    small.build(8)
    first = _night(small)
    assert (first.state, first.exit_code) == ("measured", 0)
    assert "for the first time" in first.sentence
    nothing = _night(small)
    assert (nothing.state, nothing.exit_code, _runs(small)) == ("nothing_new", 0, 1)

    small.add("unrelated", note_md="x")
    same = _night(small)
    assert same.decomposition is None
    assert "unchanged, task by task" in same.sentence
    assert _runs(small) == 2

    small.add("before", note_md="y")
    small.add("win", range(20))
    small.add("after", note_md="z")
    night = _night(small)
    assert night.decomposition is not None
    assert night.comparison is not None
    assert [(step.subject, step.status) for step in night.decomposition.steps if step.up_tasks] == [
        ("win", "changed")
    ]
    # the run of the night is the later end, and was not measured a third time
    assert night.run_id in night.decomposition.points[-1].run_ids
    assert night.decomposition.evidence == "executed"

    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    report = publish_nights([night], small.warehouse, stem="night")
    assert report.read_text() == (tmp_path / "summary.md").read_text()
    for path in (report, report.with_suffix(".json")):
        assert path.read_bytes().endswith(b"\n")
    assert "\\" not in report.read_text(), "coldrun's own words are no markup"
    assert "a step is `changed` where" in report.read_text()
    assert "+12 tasks" in report.read_text()
    values = json.loads(report.with_suffix(".json").read_text())
    assert values["nights"][0]["decomposition"]["steps"][0]["from"] == small.commits[1]


def test_page_of_a_night_quotes_what_others_said_as_text(tmp_path: Path) -> None:
    """An error of a tool stands in the list of the night, and is no markup there."""
    night = failed_night("a_b", UsageError("<b>no</b> [index](http://x) `coldrun freeze C`"))
    page = publish_nights([night], tmp_path, stem="night").read_text()
    line = r"- a_b: &lt;b>no&lt;/b> [index]\(http://x) `coldrun freeze C`"
    assert page == f"# Nightly evaluation\n\n{line}\n"


@pytest.mark.soak
def test_newest_commit_that_fails_is_told_once(small: SmallHistory) -> None:
    """Exit code 5 in its night, nothing new in the next, and the mended commit is measured."""
    small.build(8)
    _night(small)
    small.add("broken", setup_sh="echo no compiler; exit 1\n")
    night = _night(small)
    assert (night.state, night.exit_code) == ("failed", 5)
    assert "the set-up `sh setup.sh`" in night.sentence
    assert _night(small).state == "nothing_new"
    small.add("mended", setup_sh="true\n", note_md="x")
    mended = _night(small)
    assert mended.state == "measured"
    assert mended.sentence.startswith(f"small: {small.commits[2][:12]}, compared with")
    assert small.commits[0][:12] in mended.sentence


def test_interrupted_night_is_continued_by_the_next(small: SmallHistory) -> None:
    """What the dead night had answered is not asked again."""
    small.build(8)

    def die(progress: Progress) -> None:
        if progress.done >= 10:
            raise Killed

    with pytest.raises(Killed), watching(Watch(on_progress=die)):
        _night(small)
    assert _night(small).state == "measured"
    rows = small.select("SELECT executed, resumed FROM runs")
    assert [row["executed"] for row in rows] == [48]
    assert rows[0]["resumed"] >= 10


def test_nothing_new_needs_no_server(small: SmallHistory) -> None:
    """`nightly once` says so, exits 0, and does not even look for Prefect."""
    _night(small.build(8))
    nowhere = {"PREFECT_API_URL": "http://127.0.0.1:9/api"}
    done = small.invoke("nightly", "once", small.config, "--json", "-", env=nowhere)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nights"][0]["state"] == "nothing_new"
    assert "nothing was executed" in done.stderr
    new = small.invoke("backfill", small.config, "--commits", "NEW", env=nowhere)
    assert new.returncode == 0
    assert "nothing new" in new.stdout


@pytest.mark.soak
def test_dry_run_prints_the_plan_and_executes_nothing(small: SmallHistory) -> None:
    """Order from both ends, equal trees, and the time that earlier points took."""
    for subject, solved in (("start", 8), ("say nothing", 8), ("middle", 9), ("end", 10)):
        small.add(subject, range(solved))
    small.freeze()
    span = f"{small.commits[0]}..{small.commits[3]}"
    command = ["backfill", small.config, "--commits", span, "--dry-run", "--json", "-"]
    plan = json.loads(small.invoke(*command).stdout)
    assert [point["subject"] for point in plan["points"]] == ["start", "end", "middle"]
    assert plan["commits"] == 4
    assert plan["estimated_seconds"] is None
    small.conduct("backfill", last=small.commits[2])
    after = json.loads(small.invoke(*command).stdout)
    assert after["measured_before"] == 2
    assert after["estimated_seconds"] == pytest.approx(4 * after["seconds_per_point"])
    assert after["seconds_per_point"] > 0
