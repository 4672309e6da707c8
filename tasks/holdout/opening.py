"""One opening of the sealed part: checked, asked in private, told as aggregates, written down.

The arms go through the ordinary chain, in a warehouse of their own that is removed afterwards.
What comes out is built anew from the declared aggregates; nothing of a report is passed on, since
its warnings name files and its reasons quote tools.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from coldrun.tasks.config import Config, HoldoutConfig, load_config
from coldrun.tasks.freeze.check_config import check_config
from coldrun.tasks.freeze.lock import (
    EvaluationFiles,
    FrozenPanel,
    frozen_digests,
    read_frozen_panel,
)
from coldrun.tasks.holdout.demotion import describe_reading
from coldrun.tasks.holdout.ledger import (
    append_opening,
    demotion_entry,
    forget_beginning,
    note_beginning,
    read_ledger,
)
from coldrun.tasks.holdout.opening_report import declared_result
from coldrun.tasks.holdout.openings import (
    Opening,
    Status,
    demotion_of,
    is_demoted,
    judge_opening,
    last_hash,
)
from coldrun.tasks.holdout.private import SessionWatch, private_warehouse
from coldrun.tasks.holdout.sealed_file import SealedPart, read_sealed
from coldrun.tasks.holdout.user_openings import count_other_openings, note_opening
from coldrun.tasks.judge.answer_rows import list_answers
from coldrun.tasks.judge.build_report import BuiltReport
from coldrun.tasks.judge.evidence import INTERRUPTED
from coldrun.tasks.judge.load_run import load_record
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.canonical import digest_json
from coldrun.tasks.lib.errors import ColdrunError, UsageError
from coldrun.tasks.lib.git.git_command import find_user
from coldrun.tasks.lib.plain_text import without_surrogates
from coldrun.tasks.lib.safe_json import load_object
from coldrun.tasks.mine.mine_panel import find_range_end, with_repo
from coldrun.tasks.run.prepare import Evaluation
from coldrun.tasks.run.run_lifecycle import RunRequest, StartedRun
from coldrun.warehouse.reader import connect, select_rows

NO_EVIDENCE = ("invalid", "incomplete")
"""Evidence that no aggregate is returned for: such an opening uses nothing up."""

Evaluate = Callable[[Evaluation, RunRequest, Callable[[StartedRun], None]], BuiltReport]
"""Runs an evaluation; the last argument is to be called with the run before anything is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningRequest:
    """What is asked for. `warehouse` is the ordinary one: it is read for what was tried before."""

    reason: str
    event: str | None = None
    is_override: bool = False
    is_task_level: bool = False
    warehouse: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedOpening:
    """An opening that was checked and allowed; nothing has been asked yet.

    `range_end` is when the frozen range ended, where a task-level opening has to remember it.
    """

    request: OpeningRequest
    files: EvaluationFiles
    holdout: HoldoutConfig
    dev: FrozenPanel
    evaluation: Evaluation
    openings: tuple[Opening, ...]
    outside: tuple[str, ...]
    part: SealedPart
    aggregates: tuple[str, ...]
    range_end: dt.datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPart:
    """What came of an opening. `rows` are the answers of a task-level one, empty otherwise."""

    opening: Opening
    openings: tuple[Opening, ...]
    allowed: int
    exit_code: int
    rows: tuple[dict[str, Any], ...] = ()


def prepare_opening(
    config_path: Path, request: OpeningRequest, *, scratch: Path, repo: str | None = None
) -> PreparedOpening:
    """Check lock, ledger, permission and the hash of the sealed part.

    Raises:
        UsageError: Nothing is sealed, it is dev already, or the opening is outside of what was
            declared and there is no override.
        LedgerError: The ledger is broken.
        LockError: Lock, panel or sealed part are not what was frozen.
    """
    if not request.reason.strip():
        raise UsageError("an opening needs a --reason that says something")
    for option, text in (("--reason", request.reason), ("--event", request.event or "")):
        if text != without_surrogates(text):
            raise UsageError(f"{option} {text!r} is no text that can be written down (UTF-8)")
    config = load_config(config_path)
    check_config(config)
    files = EvaluationFiles(config_path)
    frozen = read_frozen_panel(files, config)
    lock = frozen.lock
    openings = read_ledger(files, lock)
    if lock.get("sealed") is None:
        raise UsageError(
            f"{config_path} has no sealed part; add [split] to it and freeze again with --force"
        )
    if is_demoted(lock):
        demoted = demotion_of(lock) or {}
        raise UsageError(
            f"the sealed part was read task by task on {demoted.get('at')} and is dev for good: "
            "there is nothing left to open. Leave [split] out to ask those tasks in ordinary runs, "
            "or seal later ones with [split] sealed_after"
        )
    holdout = config.holdout or HoldoutConfig()
    _refuse_outside(judge_opening(holdout, openings, event=request.event), request)
    config = with_repo(config, repo)
    part = read_sealed(files, lock, config, scratch=scratch)
    elsewhere = count_other_openings(part.tasks, openings)
    outside = judge_opening(holdout, openings, event=request.event, elsewhere=elsewhere)
    _refuse_outside(outside, request)
    aggregates = holdout.aggregates or (config.primary,)
    evaluation = Evaluation(
        config=_narrow(config, holdout, aggregates),
        config_path=config_path.resolve(),
        frozen=FrozenPanel(
            name=f"{config_path.stem} sealed",
            tasks=part.tasks,
            data=part.data,
            lock=lock,
        ),
        scratch=scratch,
    )
    range_end = None
    if request.is_task_level:
        range_end = find_range_end(
            config.panel,
            head=(lock["panel"].get("head") or {}).get("commit"),
            frozen_at=lock.get("frozen_at") or dt.datetime.now(dt.UTC).isoformat(),
            config_dir=config_path.parent,
            scratch=scratch,
        )
    return PreparedOpening(
        request=request,
        files=files,
        holdout=holdout,
        dev=frozen,
        evaluation=evaluation,
        openings=openings,
        outside=outside,
        part=part,
        aggregates=aggregates,
        range_end=range_end,
    )


def _refuse_outside(outside: Sequence[str], request: OpeningRequest) -> None:
    if outside and not request.is_override:
        raise UsageError(
            f"{'; '.join(outside)}. --override opens it all the same, and is written down"
        )


def _narrow(config: Config, holdout: HoldoutConfig, aggregates: Sequence[str]) -> Config:
    """The configuration of an opening: the declared arms, and the bars that can be judged."""
    arms = tuple(arm for arm in config.arms if not holdout.arms or arm.name in holdout.arms)
    names, everyone = {arm.name for arm in arms}, {arm.name for arm in config.arms}
    bars = tuple(
        bar
        for bar in config.bar
        if bar.measure in aggregates
        and bar.arm in names
        and (bar.against in (None, *names) or bar.against not in everyone)
    )
    return config.model_copy(update={"arm": arms, "bar": bars})


def open_sealed(prepared: PreparedOpening, evaluate: Evaluate) -> OpenedPart:
    """Run the arms on the sealed part and write the opening down, before anything is told.

    Raises:
        ColdrunError: It could not be run. If something had been asked by then, that is written
            down, and the message holds nothing that a tool said.
        LedgerError, StorageError: It could not be written down; nothing is told.
    """
    watch = SessionWatch()
    at = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    draft = _draft(prepared, at)
    rows: tuple[dict[str, Any], ...] = ()
    scratch = prepared.evaluation.scratch
    with private_warehouse(scratch) as warehouse:
        asked = RunRequest(warehouse=warehouse)

        def begin(started: StartedRun) -> None:
            note_beginning(prepared.files, scratch, replace(draft, status="interrupted"))
            watch.guard(started)

        try:
            built = evaluate(prepared.evaluation, asked, begin)
            if draft.is_task_level:
                record = load_record(warehouse, built.report.run_id)
                rows = tuple(asdict(row) for row in list_answers(record))
        except BaseException as error:
            status = _status_of(error)
            if watch.asked:
                append_opening(prepared.files, replace(draft, status=status))
            forget_beginning(prepared.files, scratch)
            if isinstance(error, ColdrunError) and (watch.asked or status == "interrupted"):
                raise _QuietError(watch.asked, status, error) from None
            raise
        finally:
            watch.sweep()
    opening, exit_code = _finish(draft, built.report, prepared, rows)
    demoted = None
    if opening.is_task_level and opening.result is not None:
        demoted = demotion_entry(opening, opening.result["read"])
    if opening.is_counted:
        note_opening(opening, prepared.part.tasks)
    openings = append_opening(prepared.files, opening, demoted=demoted)
    forget_beginning(prepared.files, scratch)
    return OpenedPart(
        opening=opening,
        openings=openings,
        allowed=prepared.holdout.openings,
        exit_code=exit_code,
        rows=rows if opening.result is not None else (),
    )


def _status_of(error: BaseException) -> Status:
    is_stop = isinstance(error, KeyboardInterrupt) or getattr(error, "exit_code", 0) == INTERRUPTED
    return "interrupted" if is_stop else "failed"


class _QuietError(ColdrunError):
    """An opening that failed; what the tool said may quote sealed questions and is left out."""

    def __init__(self, asked: int, status: Status, error: ColdrunError) -> None:
        written = "the attempt is in the ledger" if asked else "nothing was asked"
        super().__init__(
            f"the opening {status} after {asked} questions ({type(error).__name__}); nothing is "
            f"told, and {written}. What the tool said is left out, because it may quote sealed "
            "questions: a run of the dev part shows it"
        )
        self.exit_code = error.exit_code


def count_configurations(warehouse: Path, lock: Mapping[str, Any]) -> int:
    """How many configurations were tried on the dev part, as far as the warehouse knows.

    A configuration is a candidate arm as configured, at a product tree, under a lock; runs of
    earlier panels that this lock replaced count too. Without a candidate all arms count.
    """
    if not warehouse.exists():
        return 0
    rows = select_rows(
        connect(warehouse),
        "SELECT lock_digest, product_tree, manifest FROM runs "
        "WHERE panel_digest IN (SELECT unnest(?))",
        [frozen_digests(lock)],
    )
    tried: set[str] = set()
    for row in rows:
        arms = load_object(row["manifest"])["config"].get("arm") or ["built-in arms"]
        candidates = [
            arm
            for arm in arms
            if isinstance(arm, dict) and arm.get("role", "candidate") == "candidate"
        ]
        tried.update(
            digest_json([arm, row["product_tree"], row["lock_digest"]])
            for arm in candidates or arms
        )
    return len(tried)


def count_dev_hits(
    warehouse: Path, panel_digest: str, measures: Sequence[str]
) -> dict[tuple[str, str], tuple[int, int]]:
    """By arm and measure, hits and tasks of the newest run on dev whose tasks all score 0 or 1."""
    if not warehouse.exists():
        return {}
    rows = select_rows(
        connect(warehouse),
        "SELECT arm, measure, sum(value) AS hits, count(*) AS tasks FROM scores "
        "WHERE panel_digest = ? AND measure IN (SELECT unnest(?)) "
        "GROUP BY run_id, arm, measure HAVING bool_and(value IN (0, 1)) ORDER BY run_id",
        [panel_digest, list(measures)],
    )
    return {(row["arm"], row["measure"]): (int(row["hits"]), row["tasks"]) for row in rows}


def _draft(prepared: PreparedOpening, at: str) -> Opening:
    request, config = prepared.request, prepared.evaluation.config
    return Opening(
        number=len(prepared.openings) + 1,
        previous=last_hash(prepared.openings),
        at=at,
        who=find_user(prepared.files.config.resolve().parent),
        reason=request.reason.strip(),
        event=request.event,
        is_override=bool(prepared.outside),
        is_task_level=request.is_task_level,
        sealed_digest=prepared.dev.lock["sealed"]["digest"],
        panel_digest=prepared.dev.digest,
        lock_digest=prepared.dev.lock_digest,
        tasks=len(prepared.part.tasks),
        arms={arm.name: digest_json(arm.model_dump(mode="json")) for arm in config.arms},
        point=None,
        configurations_tried=count_configurations(request.warehouse, prepared.dev.lock),
        status="failed",
        result=None,
    )


def _finish(
    draft: Opening, report: Report, prepared: PreparedOpening, rows: Sequence[Mapping[str, Any]]
) -> tuple[Opening, int]:
    point = None if report.point is None else report.point.model_dump(mode="json")
    status: Status = "opened"
    result: dict[str, Any] | None = None
    exit_code = report.exit_code
    if report.status == "interrupted":
        status, exit_code = "interrupted", INTERRUPTED
    elif report.evidence in NO_EVIDENCE:
        status = "withheld"
    else:
        dev = count_dev_hits(prepared.request.warehouse, draft.panel_digest, prepared.aggregates)
        result = declared_result(report, prepared.aggregates, dev)
        exit_code = result["exit_code"]
        if draft.is_task_level:
            result["task_ids"] = sorted({row["task_id"] for row in rows})
            result["read"] = describe_reading(prepared.part.tasks, range_end=prepared.range_end)
    return replace(draft, point=point, status=status, result=result), exit_code
