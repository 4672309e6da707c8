"""Two landed runs of one panel, paired by task, and the document of that. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coldrun.tasks.history.history_document import control_lines, moved_lines
from coldrun.tasks.history.history_model import ArmComparison, Comparison, RunPart
from coldrun.tasks.history.history_words import (
    change_words,
    floor_words,
    interval_text,
    tasks_text,
    total_text,
)
from coldrun.tasks.history.outcomes import MeasuredRun, panel_seed
from coldrun.tasks.judge.cost_model import pick
from coldrun.tasks.judge.report_model import PointPart
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.plain_text import counted
from coldrun.tasks.report.document import Block, Code, Line, Paragraph, Table, lines, warning_lines
from coldrun.tasks.report.run_words import p_words
from coldrun.tasks.stats.decomposition import (
    Change,
    StepJudgement,
    Yardstick,
    judge_controls,
    judge_step,
)
from coldrun.tasks.stats.noise import PooledFloor

COMPARISON_HEADERS = ["arm", "measure", "before", "after", "Δ tasks", "95 %", "up", "down", "p"]
SHOWN_TASKS = 20


def compare_runs(
    before: MeasuredRun,
    after: MeasuredRun,
    *,
    floors: Mapping[str, PooledFloor | None],
    key_differences: Mapping[str, Sequence[str]],
) -> Comparison:
    """Compare two runs of one panel.

    Args:
        floors: The noise floor of each arm, None where nothing was run twice.
        key_differences: By arm, the components in which the keys of its answers differ.
    """
    _refuse_unlike(before, after)
    seed = panel_seed(before.panel_digest)
    yardstick = Yardstick(primary=before.measures[0], floors=floors, seed=seed)
    arms = [
        _compare_arm(name, before, after, yardstick, key_differences.get(name, ()))
        for name in after.outcome.arms
        if name in before.outcome.arms
    ]
    judged = [arm for arm in arms if arm.role == "candidate"] or arms[:1]
    return Comparison(
        verdict=" · ".join(arm.sentence for arm in judged),
        before=_run_part(before),
        after=_run_part(after),
        panel_digest=before.panel_digest,
        primary=yardstick.primary,
        arms=arms,
        controls=list(
            judge_controls(before.outcome, after.outcome, measure=yardstick.primary, floors=floors)
        ),
        warnings=list(_warnings(before, after)),
    )


def _run_part(run: MeasuredRun) -> RunPart:
    point = run.manifest.point
    return pick(RunPart, run, point=point and pick(PointPart, point))


def _refuse_unlike(before: MeasuredRun, after: MeasuredRun) -> None:
    pair = f"{before.run_id} and {after.run_id}"
    if before.panel_digest != after.panel_digest:
        raise UsageError(
            f"{pair} asked different panels ({before.name} {before.panel_digest} and {after.name} "
            f"{after.panel_digest}); scores of two panels cannot be compared, run both on one"
        )
    if before.measures != after.measures:
        raise UsageError(
            f"{pair} have different measures ({', '.join(before.measures)} and "
            f"{', '.join(after.measures)}); run both with the same [measure]"
        )
    shared = sorted(set(before.outcome.arms) & set(after.outcome.arms))
    if not shared:
        raise UsageError(
            f"{pair} have no arm in common ({', '.join(before.outcome.arms)} and "
            f"{', '.join(after.outcome.arms)}); `coldrun report` shows each by itself"
        )
    trials = before.manifest.trials, after.manifest.trials
    unlike = [name for name in shared if trials[0][name] != trials[1][name]]
    if unlike:
        raise UsageError(
            f"{pair} asked {', '.join(unlike)} a different number of times (trials "
            f"{trials[0][unlike[0]]} and {trials[1][unlike[0]]}); run both with the same --trials"
        )


def _compare_arm(
    name: str,
    before: MeasuredRun,
    after: MeasuredRun,
    yardstick: Yardstick,
    differs: Sequence[str],
) -> ArmComparison:
    judged = judge_step(before.outcome, after.outcome, arm=name, yardstick=yardstick)
    change = judged.changes[yardstick.primary]
    floor = yardstick.floors.get(name)
    return pick(
        ArmComparison,
        judged,
        arm=name,
        role=after.outcome.arms[name].role,
        measures=judged.changes,
        up_tasks=change.up_tasks,
        down_tasks=change.down_tasks,
        noise=floor,
        differs_in=differs,
        sentence=(
            f"{name}: {change_words(yardstick.primary, change)}: {_status_words(judged, change)}; "
            f"{floor_words(floor)}"
        ),
    )


def _status_words(judged: StepJudgement, change: Change) -> str:
    match judged.status:
        case "unverified" | "confounded":
            return f"{judged.status}, because {' and '.join(judged.reasons)}"
        case "unchanged":
            return "unchanged, task by task"
        case "below_noise":
            return "not distinguishable from noise"
        case _ if change.difference > 0:
            return "better"
        case _ if change.difference < 0:
            return "worse"
        case _:
            return "other tasks solved, as many as before"


def _warnings(before: MeasuredRun, after: MeasuredRun) -> Iterator[str]:
    for run in (before, after):
        replayed = run.counts["replayed"]
        if run.evidence != "executed":
            yield f"run {run.run_id} is {run.evidence}: {counted(replayed, 'answer')} replayed"
        if run.status != "finished":
            yield f"run {run.run_id} was interrupted; missing answers count as 0"
        for arm in run.nothing:
            yield f"{arm} measured nothing in run {run.run_id}: it did not beat the nulls"
        if run.manifest.point is not None and run.manifest.point.is_dirty:
            yield f"run {run.run_id} measured a dirty work tree: no evidence for any commit"
    only = set(before.outcome.arms) ^ set(after.outcome.arms)
    if only:
        yield f"not compared, because only one run has them: {', '.join(sorted(only))}"
    if before.run_id == after.run_id:
        yield "both are the same run"


def comparison_document(comparison: Comparison) -> Iterator[Block]:
    """What executed, the verdict, the paired table, and which tasks moved."""
    yield from lines(
        f"{word}: {_run_words(run)}"
        for word, run in (("before", comparison.before), ("after", comparison.after))
    )
    yield Line(("panel ", Code(comparison.panel_digest)))
    yield Paragraph(comparison.verdict, is_strong=True)
    yield Table(headers=COMPARISON_HEADERS, rows=list(_change_rows(comparison)))
    yield Line(
        "scores are sums over tasks; paired by task; p one-sided in the direction of the change "
        f"(the gate is 0.025); {comparison.primary} decides"
    )
    yield from lines(
        arm.sentence for arm in comparison.arms if arm.sentence not in comparison.verdict
    )
    for arm in comparison.arms:
        yield from moved_lines(f"{arm.arm} ", arm.up_tasks, arm.down_tasks, SHOWN_TASKS)
        if arm.differs_in:
            yield Line(f"{arm.arm}: answers' keys differ in {', '.join(arm.differs_in)}")
    yield from control_lines(comparison.controls)
    moved = (control for control in comparison.controls if control.verdict == "DRIFT")
    yield from warning_lines(
        f"the control {control.arm} moved ({control.up} up, {control.down} down); "
        "the comparison is confounded"
        for control in moved
    )
    yield from warning_lines(comparison.warnings)


def _run_words(run: RunPart) -> str:
    """A run in one line: what executed comes first."""
    point = "no product" if run.point is None else f"point {run.point.commit[:12]}"
    return (
        f"executed {run.counts['executed']} · replayed {run.counts['replayed']} · "
        f"tool failures {run.counts['infra']} · {run.name} {run.run_id} · {point} · {run.verdict}"
    )


def _change_rows(comparison: Comparison) -> Iterator[list[str]]:
    for arm in comparison.arms:
        for number, (measure, change) in enumerate(arm.measures.items()):
            yield [
                arm.arm if number == 0 else "",
                measure,
                total_text(change.before),
                total_text(change.after),
                tasks_text(change.difference),
                interval_text(change.low, change.high),
                str(change.up),
                str(change.down),
                p_words(change.p),
            ]
