"""The warnings of a report: what a reader must know beside the numbers. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from coldrun.tasks.config import ServerArm
from coldrun.tasks.config.ablation import find_shared_component
from coldrun.tasks.freeze.distribution import describe_distribution
from coldrun.tasks.judge.doubts import doubt_arm
from coldrun.tasks.judge.report_model import ArmPart
from coldrun.tasks.judge.score_table import ArmAnswers
from coldrun.tasks.lib.plain_text import counted, noun
from coldrun.tasks.lib.records import Task
from coldrun.tasks.run.manifest import Manifest
from coldrun.tasks.run.run_record import EarlierRuns, RunRecord
from coldrun.tasks.stats.measures import parse_measure
from coldrun.tasks.stats.nulls import constant_bound

SHOWN = 8
"""Warnings of one kind that are shown; the rest is counted."""


def collect_warnings(
    record: RunRecord,
    tasks: Sequence[Task],
    answers: Sequence[ArmAnswers],
    arms: Sequence[ArmPart],
) -> Iterator[str]:
    """All warnings, the panel's first, then the run's, then each arm's.

    `tasks` are those of the primary part; record and answers are those of all parts.
    """
    manifest = record.manifest
    yield from describe_distribution(tasks).warnings
    if manifest.point is not None and manifest.point.is_dirty:
        yield "the product is a dirty work tree: these numbers are no evidence for any commit"
    if manifest.mode == "reuse" and not any(c.evidence == "replayed" for c in record.captures):
        yield (
            "--reuse found no answer under these keys, so everything was executed; "
            "`coldrun why RUN TASK ARM` names what differs"
        )
    bound = constant_bound(tasks, parse_measure(manifest.config.primary))
    if bound is not None:
        yield (
            "constant: the best constant answer was not proven; one may score up to "
            f"{bound:.3f} at {manifest.config.primary}"
        )
    for name in manifest.doubted:
        yield (
            f"{name}: of the answers under --reuse some were executed to check, and were not what "
            "was stored, so all of it was executed"
        )
    for arm_config in manifest.config.arms:
        shared = find_shared_component(
            arm_config.name, arm_config.component, manifest.config.panel.gold_from
        )
        if shared is not None:
            yield (
                f"{arm_config.name}: the gold was produced with {shared!r}; whatever is compared "
                "with this arm is at a disadvantage, and its bars are not judged"
            )
    yield from _unclustered(record)
    yield from _unidentified(record)
    yield from _unseen_ends(record)
    yield from _degraded(record)
    yield from _infra(answers)
    yield from _first(
        dict.fromkeys(
            f"{session['arm']}: {text}"
            for session in record.sessions
            for text in session["warnings"]
        )
    )
    for arm, part in zip(answers, arms, strict=True):
        earlier = record.earlier.get(arm.name, EarlierRuns())
        yield from doubt_arm(part, arm, earlier, primary=manifest.config.primary)


def _unclustered(record: RunRecord) -> Iterator[str]:
    cluster = record.manifest.config.measure.cluster
    names = sorted({name for task in record.tasks for name in task.strata})
    if cluster is not None and cluster not in names:
        yield (
            f"[measure] cluster = {cluster!r}: no task is marked with it, so tasks are taken as "
            f"independent; strata of this panel: {', '.join(names) or 'none'}"
        )


def _unidentified(record: RunRecord) -> Iterator[str]:
    reuse = "its answers are never reused"
    if record.manifest.mode == "reuse":
        reuse = "it was executed in spite of --reuse"
        for name, reason in (record.manifest.unsealed or {}).items():
            yield f"{name}: executed in spite of --reuse: its sessions are not sealed ({reason})"
    for arm in record.manifest.config.arms:
        if isinstance(arm, ServerArm) and not arm.is_identified:
            yield (
                f"{arm.name}: answered by {arm.url}, which coldrun cannot identify: nothing tells "
                f"whether it changed during this run or since, so {reuse}"
            )


def _unseen_ends(record: RunRecord) -> Iterator[str]:
    unseen = {
        session["session_id"]: session["arm"]
        for session in record.sessions
        if session["restarts"] is None
    }
    answers = Counter(
        unseen[capture.session_id]
        for capture in record.captures
        if capture.evidence == "executed" and capture.session_id in unseen
    )
    for arm, number in sorted(answers.items()):
        yield (
            f"{arm}: {counted(number, 'answer')} {noun(number, 'is', 'are')} of a session that "
            "was killed with its run, and whose corpus and checkout were not looked at afterwards"
        )


def _degraded(record: RunRecord) -> Iterator[str]:
    flags = Counter(
        (capture.arm, flag) for capture in record.captures for flag in capture.reply.degraded
    )
    notes = sorted(flags.items(), key=lambda item: (-item[1], item[0]))
    yield from _first(
        dict.fromkeys(
            f"{arm}: {counted(number, 'answer')} came in degraded mode ({flag})"
            for (arm, flag), number in notes
        )
    )


def _infra(answers: Sequence[ArmAnswers]) -> Iterator[str]:
    # What the failures quote does not tell their kinds apart.
    kinds: dict[tuple[str, str], list[str]] = {}
    for arm in answers:
        for trials in arm.answers.values():
            for answered in trials:
                if answered is not None and answered.is_infra:
                    reason = answered.reason or "no reason given"
                    kind = re.split(r"['\"]", reason, maxsplit=1)[0]
                    kinds.setdefault((arm.name, kind), []).append(reason)
    lines = []
    for (name, _), reasons in sorted(kinds.items(), key=lambda item: -len(item[1])):
        (reason, most) = Counter(reasons).most_common(1)[0]
        such_as = "" if most == len(reasons) else ", such as"
        lines.append(
            f"{name}: {counted(len(reasons), 'answer')} failed in the tool itself{such_as}: "
            f"{reason}"
        )
    yield from _first(dict.fromkeys(lines))


def _first(lines: Mapping[str, None]) -> Iterator[str]:
    listed = list(lines)
    yield from listed[:SHOWN]
    if len(listed) > SHOWN:
        yield f"and {len(listed) - SHOWN} more like these; `coldrun show RUN` lists the answers"


def changes_after_the_fact(manifest: Manifest) -> list[str]:
    """What was changed after a run of the panel existed, one sentence each, with its date.

    The lock's history tells what freezing again changed. Guards that belong to running and not to
    the panel may differ from the lock without freezing again; then the run itself is the date.
    """
    changes = [
        ", ".join(entry.get("changed") or ["the tasks (history, miner or clone)"])
        + f" changed after a run existed, on {entry['replaced_at']}"
        for entry in manifest.lock.get("history", [])
        if entry.get("had_runs")
    ]
    now, name = manifest.config.run.max_infra_share, "max_infra_share"
    registered = (manifest.lock.get("guards") or {}).get(name, now)
    if now != registered:
        changes.append(
            f"run.{name} is {now:g} in this run of {manifest.started_at}; "
            f"{registered:g} was registered on {manifest.lock.get('frozen_at')}"
        )
    return changes
