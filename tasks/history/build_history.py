"""From measured points to the report of a history. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from coldrun.tasks.freeze.distribution import describe_distribution
from coldrun.tasks.freeze.lock import FrozenPanel
from coldrun.tasks.freeze.parts import primary_tasks
from coldrun.tasks.history.history_model import (
    BlindSpot,
    History,
    HistoryCounts,
    HistoryPoint,
    HistoryStep,
    PointStatus,
)
from coldrun.tasks.history.history_plan import Node
from coldrun.tasks.history.history_requests import HistoryRequest
from coldrun.tasks.history.history_words import first_line
from coldrun.tasks.history.journal import Entry, Journal
from coldrun.tasks.history.outcomes import MeasuredRun, panel_seed, score_parts
from coldrun.tasks.judge.cost_model import pick
from coldrun.tasks.judge.evidence import Evidence, Verdict
from coldrun.tasks.judge.report_model import DistributionPart, PanelPart, PointPart
from coldrun.tasks.lib.plain_text import counted, noun
from coldrun.tasks.stats.decomposition import (
    SumCheck,
    Yardstick,
    check_sum,
    describe_moved,
    judge_controls,
    judge_step,
)
from coldrun.tasks.stats.noise import Drift, PooledFloor
from coldrun.tasks.stats.paired import adjust_holm

NAMED_SPOTS = 4
"""More blind spots than these are told in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecord:
    """All that a history left behind. `runs` are usable runs by (commit, repeat)."""

    request: HistoryRequest
    journal: Journal
    nodes: tuple[Node, ...]
    runs: Mapping[tuple[str, int], MeasuredRun]
    floors: Mapping[str, PooledFloor | None]
    wall_seconds: float
    is_interrupted: bool

    @property
    def yardstick(self) -> Yardstick:
        """What its steps are judged by."""
        seed = panel_seed(self.request.evaluation.frozen.digest)
        return Yardstick(primary=self.request.primary, floors=self.floors, seed=seed)

    @property
    def measured(self) -> tuple[tuple[Node, MeasuredRun], ...]:
        """The nodes that have a run, that of an equal tree included."""
        return tuple((node, run) for node in self.nodes if (run := self.run_of(node)) is not None)

    def run_of(self, node: Node) -> MeasuredRun | None:
        """The run that stands for a node, that of an equal tree included."""
        return self.runs.get((self.nodes[node.stand_in].first.commit, 0))


def build_history(record: HistoryRecord) -> History:
    """Judge every step and describe the whole."""
    closing = _closing(record)
    steps = list(_steps(record, closing))
    spots = [
        BlindSpot(from_=step.from_, to=step.to, commits=step.commits - 1)
        for step in steps
        if step.commits > 1 and step.status == "unchanged"
    ]
    points = [point for node in record.nodes for point in _points(record, node)]
    evidence, verdict, code = _verdict(record)
    request, frozen = record.request, record.request.evaluation.frozen
    runs = list(record.runs.values())
    return History(
        kind=request.kind,
        run_id=record.journal.history_id,
        name=frozen.name,
        verdict=verdict,
        evidence=evidence,
        exit_code=code,
        started_at=record.journal.started_at,
        wall_seconds=record.wall_seconds,
        status="interrupted" if record.is_interrupted else "finished",
        counts=_counts(record),
        panel=_panel(frozen),
        point=_newest_point(record),
        environment=dict(runs[0].manifest.environment) if runs else {},
        arm=request.arm,
        primary=request.primary,
        roles={name: arm.role for run in runs[:1] for name, arm in run.outcome.arms.items()},
        points=points,
        steps=steps,
        sum=_sum(record),
        noise=dict(record.floors),
        closing_controls=list(closing),
        blind_spots=spots,
        warnings=list(_warnings(record, steps, closing, spots)),
    )


def _points(record: HistoryRecord, node: Node) -> Iterator[HistoryPoint]:
    """Every commit of a node, with what is known of it."""
    arm, run = record.request.arm, record.run_of(node)
    stand_in = record.nodes[node.stand_in].first
    arms = score_parts(run, record.yardstick.seed) if run else {}
    mine = run and run.outcome.arms.get(arm)
    for commit in node.commits:
        is_own = commit == stand_in
        status, entry, reason = _standing(record, node) if is_own else ("same_tree", None, None)
        yield pick(
            HistoryPoint,
            commit,
            status=status,
            measures=arms.get(arm, {}),
            same_as=None if is_own else stand_in.commit,
            reason=reason,
            evidence=mine and mine.evidence,
            measured_nothing=run is not None and arm in run.nothing,
            replayed_from=run.replayed_from if run else (),
            degraded=mine.degraded if mine else (),
            environment_digest=run and run.outcome.environment_digest,
            wall_seconds=entry and entry.seconds,
            run_ids=[
                item.run_id
                for item in record.journal.entries
                if item.commit == commit.commit and item.run_id is not None
            ],
            arms=arms,
        )


def _standing(record: HistoryRecord, node: Node) -> tuple[PointStatus, Entry | None, str | None]:
    """How the commit stands that stands for a node, its entry, and why it was not measured."""
    entry = record.journal.find(node.first.commit, 0)
    if record.run_of(node) is not None:
        return "measured", entry, None
    if entry is not None and entry.status == "failed":
        return "failed", entry, entry.reason
    is_cut = record.is_interrupted
    return "skipped", None, "interrupted" if is_cut else "not needed: its neighbours look alike"


def _steps(record: HistoryRecord, closing: Sequence[Drift]) -> Iterator[HistoryStep]:
    """Judge the steps between neighbouring measured points, oldest first."""
    arm, primary, yardstick = record.request.arm, record.request.primary, record.yardstick
    moved = [f"{text} in the closing re-run of the first point" for text in describe_moved(closing)]
    judged = [
        judge_step(
            first.outcome,
            second.outcome,
            arm=arm,
            yardstick=yardstick,
            unsplit=tuple(_why_unsplit(record, before, after)),
            confounders=tuple(moved),
        )
        for (before, first), (after, second) in pairwise(record.measured)
    ]
    adjusted = adjust_holm([step.changes[primary].p for step in judged]) if judged else ()
    for ((before, first), (after, second)), step, holm_p in zip(
        pairwise(record.measured), judged, adjusted, strict=True
    ):
        commits = _count_commits(record, before, after)
        between = record.nodes[before.place + 1 : after.place + 1]
        subject = after.first.subject
        change = replace(step.changes[primary], holm_p=holm_p)
        yield pick(
            HistoryStep,
            step,
            from_=before.first.commit,
            to=after.first.commit,
            commits=commits,
            subject=subject if commits == 1 else f"{commits} commits to: {subject}",
            measures={**step.changes, primary: change},
            up_tasks=change.up_tasks,
            down_tasks=change.down_tasks,
            is_docs_only=commits == len(between)
            and all(node.first.is_docs_only for node in between),
            wall_seconds=second.wall_seconds,
            others={
                name: judge_step(
                    first.outcome, second.outcome, arm=name, yardstick=yardstick
                ).changes
                for name in first.outcome.arms
                if name != arm and name in second.outcome.arms
            },
        )


def _why_unsplit(record: HistoryRecord, before: Node, after: Node) -> Iterator[str]:
    if _count_commits(record, before, after) < 2:
        return
    between = record.nodes[before.place + 1 : after.place]
    entries = [record.journal.find(node.first.commit, 0) for node in between]
    failed = [entry for entry in entries if entry is not None and entry.reason]
    if failed:
        named = "; ".join(
            f"{entry.commit[:12]}: {first_line(entry.reason)}" for entry in failed[:2]
        )
        yield f"{len(failed)} of {counted(len(between), 'commit')} in between failed ({named})"
    elif record.is_interrupted:
        yield "it was interrupted before it could be split"
    elif between:
        was = noun(len(between), "was", "were")
        yield f"{counted(len(between), 'commit')} in between {was} not measured"
    else:
        yield "the commits in between were not selected"


def _count_commits(record: HistoryRecord, before: Node, after: Node) -> int:
    return sum(node.first.distance for node in record.nodes[before.place + 1 : after.place + 1])


def _closing(record: HistoryRecord) -> tuple[Drift, ...]:
    """The controls between the first point and its repeat at the end, where it was repeated."""
    if not record.measured:
        return ()
    node, first = record.measured[0]
    again = record.runs.get((node.first.commit, 1))
    if again is None:
        return ()
    primary, floors = record.request.primary, record.floors
    return judge_controls(first.outcome, again.outcome, measure=primary, floors=floors)


def _sum(record: HistoryRecord) -> SumCheck | None:
    arm, primary = record.request.arm, record.request.primary
    vectors = [run.outcome.arms[arm].scores[primary] for _, run in record.measured]
    return check_sum(vectors) if len(vectors) > 1 else None


def _counts(record: HistoryRecord) -> HistoryCounts:
    names = ("planned", "executed", "replayed", "resumed", "infra", "abstained", "degraded")
    runs, frozen = list(record.runs.values()), record.request.evaluation.frozen
    return HistoryCounts(
        tasks=len(primary_tasks(frozen.tasks, frozen.lock)),
        points=sum(record.runs.get((node.first.commit, 0)) is not None for node in record.nodes),
        runs=len(runs),
        **{name: sum(run.counts[name] for run in runs) for name in names},
    )


def _panel(frozen: FrozenPanel) -> PanelPart:
    locked = frozen.lock["panel"]
    return PanelPart(
        name=frozen.name,
        digest=frozen.digest,
        base=locked["base"] and locked["base"]["commit"],
        head=locked["head"] and locked["head"]["commit"],
        candidates=locked["candidates"],
        solvable=locked["solvable"],
        drops=locked["drops"],
        distribution=pick(DistributionPart, describe_distribution(frozen.tasks)),
        kind=locked["kind"],
    )


def _newest_point(record: HistoryRecord) -> PointPart | None:
    if not record.measured:
        return None
    node, run = record.measured[-1]
    return pick(PointPart, run.manifest.point, commit=node.first.commit, tree=node.tree)


def _verdict(record: HistoryRecord) -> tuple[Evidence, Verdict, int]:
    executed = sum(run.counts["executed"] for run in record.runs.values())
    replayed = sum(run.counts["replayed"] for run in record.runs.values())
    evidence: Evidence = (
        "mixed" if executed and replayed else "executed" if executed else "replayed"
    )
    ends = [record.run_of(record.nodes[0]), record.run_of(record.nodes[-1])]
    has_failed = not record.runs or (record.request.kind == "decompose" and None in ends)
    if record.is_interrupted:
        return ("incomplete" if has_failed else evidence), "did_not_run", 130
    if has_failed:
        return "invalid", "invalid", 5
    return evidence, "measured" if executed else "replayed", 0


def _warnings(
    record: HistoryRecord,
    steps: Sequence[HistoryStep],
    closing: Sequence[Drift],
    spots: Sequence[BlindSpot],
) -> Iterator[str]:
    arm = record.request.arm
    if record.journal.is_continued:
        yield (
            f"continued after an interruption; begun at {record.journal.started_at}, and the "
            "seconds of the whole are those since it was continued"
        )
    is_backfill = record.request.kind == "backfill"
    hint = "select them to measure them" if is_backfill else "--all measures them"
    yield from _failures(record)
    for step in steps:
        if step.is_docs_only and (step.up_tasks or step.down_tasks):
            yield (
                f"{step.to[:12]} changed documentation only ({step.subject}), yet the score moved "
                f"({len(step.up_tasks)} up, {len(step.down_tasks)} down): look at the measurement"
            )
    yield from _blind_spots(spots, hint)
    for move in closing:
        if move.verdict == "DRIFT":
            yield (
                f"the control {move.arm} moved between the first and the last measurement of the "
                f"first point ({move.up} up, {move.down} down): the machine drifted, "
                "and no step can be trusted"
            )
    if record.runs and record.floors.get(arm) is None:
        yield f"the noise floor of {arm} is not known: no point of it was executed twice"
    nothing = [run for run in record.runs.values() if arm in run.nothing]
    if nothing:
        runs = counted(len(record.runs), "run")
        yield (
            f"{arm} measured nothing at {len(nothing)} of {runs}: it did not beat the nulls there"
        )


def _failures(record: HistoryRecord) -> Iterator[str]:
    """Which commits could not be measured, those of one kind of failure together.

    Failures are of one kind when they read alike up to what they quote.
    """
    kinds: dict[str, list[Entry]] = {}
    for entry in record.journal.entries:
        if entry.status == "failed":
            kinds.setdefault(first_line(entry.reason).partition("'")[0], []).append(entry)
    for entries in kinds.values():
        names = ", ".join(dict.fromkeys(entry.commit[:12] for entry in entries))
        yield f"could not be measured: {names}: {first_line(entries[0].reason)}"


def _blind_spots(spots: Sequence[BlindSpot], hint: str) -> Iterator[str]:
    """Neighbours that look alike, with commits between them: one line each, or one for many."""
    between = sum(spot.commits for spot in spots)
    told = [f"blind spots: {len(spots)} pairs of neighbours look alike, and of {between} commits"]
    if len(spots) <= NAMED_SPOTS:
        told = [
            f"blind spot: {spot.from_[:12]} and {spot.to[:12]} look alike, and of the "
            f"{counted(spot.commits, 'commit')}"
            for spot in spots
        ]
    for text in told:
        yield (
            f"{text} between them none was measured; a change that was made and reverted there "
            f"would not show ({hint})"
        )
