"""One evaluation of one night: what is new, what it scores, what changed, and where."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from coldrun.tasks.history.commits import (
    list_named,
    list_new,
    list_range,
    open_product,
    product_tip,
    require_product,
)
from coldrun.tasks.history.comparison import compare_runs, comparison_document
from coldrun.tasks.history.history_document import history_document
from coldrun.tasks.history.history_lifecycle import conduct_history
from coldrun.tasks.history.history_model import Comparison, History
from coldrun.tasks.history.history_requests import (
    HistoryRequest,
    choose_arm,
    measured_before,
    require_product_arm,
)
from coldrun.tasks.history.history_words import first_line
from coldrun.tasks.history.outcomes import MeasuredRun, read_floors, read_key_differences, read_run
from coldrun.tasks.judge.cost_model import Part
from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.errors import ColdrunError, StorageError
from coldrun.tasks.lib.git.clone import is_url
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.machine.file_locks import try_lock
from coldrun.tasks.lib.machine.files import write_whole
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.report.document import lines
from coldrun.tasks.report.markdown import inert, to_markdown
from coldrun.tasks.run.manifest import new_run_id
from coldrun.tasks.run.prepare import Evaluation, fetch_product, load_evaluation
from coldrun.warehouse.reader import connect, select_rows

NightState = Literal["nothing_new", "measured", "failed", "error", "interrupted"]
Conduct = Callable[[HistoryRequest], History]
"""Conducts a history: `conduct_history`, or a flow's way of doing it."""


class Night(Part):
    """What came of one evaluation. `sentence` can be quoted; `markdown` is the whole story, where
    there is more to say, and is no part of the JSON."""

    name: str
    state: NightState
    sentence: str
    exit_code: int = 0
    commit: str | None = None
    run_id: str | None = None
    comparison: Comparison | None = None
    decomposition: History | None = None
    markdown: str = Field(default="", exclude=True)


def evaluate_night(evaluation: Evaluation, warehouse: Path, *, conduct: Conduct) -> Night:
    """Measure the newest point when it is new, compare it, and decompose a change."""
    source = open_product(evaluation)
    nothing = find_nothing_new(evaluation, warehouse, source)
    if nothing is not None:
        return nothing
    name = evaluation.frozen.name
    tip = product_tip(source, require_product(evaluation))
    last = _last_measured(source, tip, evaluation, warehouse)
    request = HistoryRequest(
        kind="backfill",
        evaluation=evaluation,
        warehouse=warehouse,
        commits=list_named(source, [tip], source="the product's tip"),
        arm=choose_arm(evaluation.config, None),
        mode="cold",
    )
    history = conduct(request)
    point = history.points[0]
    if point.status != "measured":
        return _unmeasured(name, tip, history)
    run_id = point.run_ids[0]
    if last is None:
        text = f"{name}: {tip[:12]} measured for the first time, there is nothing to compare with"
        return Night(
            name=name,
            state="measured",
            sentence=text,
            commit=tip,
            run_id=run_id,
            markdown=_told(inert(text), history),
        )
    night, comparison = _compare(evaluation, warehouse, last, run_id)
    moved = [arm.arm for arm in comparison.arms if arm.role == "candidate" and arm.clears_noise]
    if not moved:
        return night
    decomposition = conduct(
        dataclasses.replace(
            request,
            kind="decompose",
            commits=list_range(source, str(last.outcome.commit), tip),
            arm=moved[0],
            is_whole=False,
            known={tip: run_id},
        )
    )
    markdown = _told(night.markdown, decomposition)
    return night.model_copy(update={"decomposition": decomposition, "markdown": markdown})


def _told(head: str, history: History) -> str:
    return f"{head}\n\n{to_markdown(history_document(history))}"


def find_nothing_new(
    evaluation: Evaluation, warehouse: Path, repository: Repository
) -> Night | None:
    """What there is to say when the newest commit was measured, or tried, before; else None."""
    require_product_arm(evaluation.config)
    tip = product_tip(repository, require_product(evaluation))
    if list_new(repository, tip, measured_before(evaluation, warehouse)):
        return None
    name = evaluation.frozen.name
    text = f"{name}: nothing new, the tree of {tip[:12]} was measured before; nothing was executed"
    return Night(name=name, state="nothing_new", sentence=text, commit=tip)


def _unmeasured(name: str, tip: str, history: History) -> Night:
    if history.status == "interrupted":
        text = f"{name}: interrupted at {tip[:12]}; the next night continues"
        return Night(name=name, state="interrupted", sentence=text, exit_code=130, commit=tip)
    reason = first_line(history.points[0].reason or "no reason")
    text = f"{name}: {tip[:12]} could not be measured: {reason}"
    return Night(
        name=name,
        state="failed",
        sentence=text,
        exit_code=5,
        commit=tip,
        markdown=_told(inert(text), history),
    )


def _last_measured(
    repository: Repository, tip: str, evaluation: Evaluation, warehouse: Path
) -> MeasuredRun | None:
    rows = select_rows(
        connect(warehouse),
        "SELECT run_id, product_commit FROM runs WHERE panel_digest = ? AND status = 'finished' "
        "AND evidence NOT IN ('invalid', 'incomplete') AND product_commit IS NOT NULL "
        "AND NOT is_dirty ORDER BY evidence = 'executed', started_at",
        [evaluation.frozen.digest],
    )
    by_commit = {row["product_commit"]: row["run_id"] for row in rows}
    line = repository.stream_log([tip], follow_renames=False, first_parent=True)
    for entry in line:
        if entry.commit in by_commit and entry.commit != tip:
            return read_run(warehouse, by_commit[entry.commit])
    return None


def _compare(
    evaluation: Evaluation, warehouse: Path, last: MeasuredRun, run_id: str
) -> tuple[Night, Comparison]:
    run = read_run(warehouse, run_id)
    comparison = compare_runs(
        last,
        run,
        floors=read_floors(warehouse, run, measure=evaluation.config.primary),
        key_differences=read_key_differences(warehouse, last.run_id, run_id),
    )
    name, now, before = evaluation.frozen.name, run.outcome.commit, last.outcome.commit
    night = Night(
        name=name,
        state="measured",
        sentence=f"{name}: {str(now)[:12]}, compared with {str(before)[:12]}: {comparison.verdict}",
        commit=now,
        run_id=run_id,
        comparison=comparison,
        markdown=to_markdown(comparison_document(comparison)),
    )
    return night, comparison


def summarise_nights(nights: Sequence[Night]) -> str:
    """The Markdown of a whole night."""
    text = ["# Nightly evaluation", "", to_markdown(lines(night.sentence for night in nights))]
    for night in nights:
        if night.markdown:
            text += ["", f"## {inert(night.name)}", "", _deepen(night.markdown)]
    return "\n".join(text)


def night_values(nights: Sequence[Night]) -> dict[str, Any]:
    """A whole night as JSON values."""
    values = [night.model_dump(mode="json", by_alias=True) for night in nights]
    return {"schema": 1, "nights": values}


def _deepen(markdown: str) -> str:
    return "\n".join(f"##{line}" if line.startswith("#") else line for line in markdown.split("\n"))


def publish_nights(nights: Sequence[Night], warehouse: Path, *, stem: str) -> Path:
    """Write a night to `reports/nightly/`, and to $GITHUB_STEP_SUMMARY; gives the Markdown file."""
    folder = warehouse / "reports" / "nightly"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror}") from None
    text = summarise_nights(nights) + "\n"
    write_whole(folder / f"{stem}.json", canonical_json(night_values(nights)) + b"\n")
    write_whole(folder / f"{stem}.md", text.encode())
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise StorageError(
                f"cannot append to $GITHUB_STEP_SUMMARY ({summary}): {error.strerror}"
            ) from None
    return folder / f"{stem}.md"


def failed_night(name: str, error: ColdrunError) -> Night:
    """An evaluation that could not even begin."""
    return Night(name=name, state="error", sentence=f"{name}: {error}", exit_code=error.exit_code)


NIGHTS = "nights"
"""What the watch calls what came of the last nights."""

BUSY = "another night is still running on this warehouse; nothing was executed"


def run_nights(
    configs: Mapping[str, Path],
    *,
    warehouse: Path,
    scratch: Path,
    conduct: Conduct = conduct_history,
    fetch: Callable[[str], None] | None = None,
) -> tuple[list[Night], Path | None]:
    """Evaluate every configuration; one that fails does not stop the others.

    `fetch` fetches a product that is named by URL, given the name; left out, it is fetched here.

    Returns:
        One night for each configuration, in order, and the Markdown report; empty and None when
        another night holds the warehouse.
    """
    nights: list[Night] = []
    report = None
    with hold_night(warehouse) as is_mine:
        for name, path in configs.items() if is_mine else ():
            if current_watch().is_stopping:
                break
            try:
                evaluation = load_evaluation(path, scratch=scratch)
                if is_url(require_product(evaluation).repo):
                    fetch(name) if fetch is not None else fetch_product(path, scratch)
                nights.append(evaluate_night(evaluation, warehouse, conduct=conduct))
            except ColdrunError as error:
                nights.append(failed_night(path.stem, error))
        if is_mine:
            stem = new_run_id(dt.datetime.now(dt.UTC))
            report = publish_nights(nights, warehouse, stem=stem)
    current_watch().results[NIGHTS] = nights
    return nights, report


@contextmanager
def hold_night(warehouse: Path) -> Iterator[bool]:
    """Hold the warehouse for one night; says whether it was free. A dead program's lock is free."""
    lock = try_lock(warehouse / "locks" / "nightly.lock")
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.release()
