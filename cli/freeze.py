"""`coldrun freeze CONFIG`."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coldrun.cli.options import (
    Outputs,
    announce_clone,
    config_argument,
    place_options,
    report_options,
)

if TYPE_CHECKING:
    from coldrun.tasks.freeze.lock import EvaluationFiles


@click.command(
    "freeze",
    epilog="""\b
Examples:
  coldrun freeze configs/click.toml --repo ../click
  coldrun freeze configs/click.toml --show-drops   every commit that is no task, and why
  coldrun freeze configs/mytool.toml --force       replace a lock; it remembers the earlier one
""",
)
@config_argument
@click.option("--repo", metavar="PATH_OR_URL", help="Path or URL of the panel's repository.")
@click.option("--show-drops", is_flag=True, help="List every candidate that left, and why.")
@click.option("--force", is_flag=True, help="Replace a lock that differs.")
@report_options
@place_options
def command(
    config_path: Path,
    repo: str | None,
    show_drops: bool,
    force: bool,
    outputs: Outputs,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Mine the panel, show its answer distribution and every null, sample, hash, and lock it.

    Writes NAME.panel.jsonl and NAME.lock beside CONFIG, and with a [split] NAME.sealed, encrypted
    with a key outside the repository. Freezing again without a change does nothing. Commit them:
    the lock is what makes a later number mean something. All figures are of the dev part.
    """
    from coldrun.tasks.config import load_config
    from coldrun.tasks.freeze.check_config import check_config
    from coldrun.tasks.freeze.freeze_panel import freeze_panel
    from coldrun.tasks.freeze.lock import EvaluationFiles, read_lock, with_locked_random
    from coldrun.tasks.freeze.write_panel import write_frozen
    from coldrun.tasks.lib.errors import LockError
    from coldrun.tasks.mine.mine_panel import mine_panel, with_repo
    from coldrun.tasks.report.freeze_document import drop_lines, frozen_document, frozen_values
    from coldrun.tasks.report.markdown import to_markdown

    config = with_repo(load_config(config_path), repo)
    check_config(config)
    files = EvaluationFiles(config_path)
    with suppress(LockError):
        lock = read_lock(files)
        if "random" in lock["settings"].get("sample", {}):
            config = with_locked_random(config, lock)
    announce_clone(config.panel.repo, scratch)
    mined = mine_panel(config.panel, config_dir=config_path.parent, scratch=scratch)
    result = freeze_panel(config, mined)
    console = outputs.people
    document = [
        *(drop_lines(result.dropped) if show_drops else ()),
        *frozen_document(config, result),
    ]
    outputs.print(document)
    console.print()
    last_run_lock = _find_last_run_lock(warehouse, files)
    written = write_frozen(
        files,
        result,
        force=force,
        had_runs=last_run_lock is not None,
        last_run_lock=last_run_lock,
        now=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    )
    words = {
        "frozen": f"wrote {files.panel} and {files.lock}",
        "unchanged": f"{files.lock} is up to date; nothing was written",
        "restored": f"wrote {files.panel} again, as {files.lock} has it",
        "replaced": f"replaced {files.panel} and {files.lock}; the lock remembers the earlier hash",
    }
    console.print(words[written], soft_wrap=True)
    if result.sealed_panel is not None:
        from coldrun.tasks.holdout.sealed_file import describe_key

        console.print(f"{files.sealed} holds the sealed part, encrypted", soft_wrap=True)
        console.print(describe_key(result.lock["sealed"]["digest"]), soft_wrap=True)
    outputs.write(
        to_json=json.dumps({"status": written, **frozen_values(config, result)}, indent=1),
        to_markdown=to_markdown(document),
    )


def _find_last_run_lock(warehouse: Path, files: EvaluationFiles) -> dict[str, Any] | None:
    """The lock of the newest run of this evaluation: of this file, or of a panel its lock knows."""
    from coldrun.tasks.freeze.lock import frozen_digests, read_lock
    from coldrun.tasks.lib.errors import LockError
    from coldrun.tasks.run.manifest import read_manifest
    from coldrun.warehouse.reader import connect, select_rows

    if not warehouse.exists():
        return None
    panels: list[str] = []
    with suppress(LockError):
        panels = frozen_digests(read_lock(files))
    rows = select_rows(
        connect(warehouse),
        "SELECT run_id, manifest FROM runs WHERE panel_digest IN (SELECT unnest(?)) "
        "OR json_extract_string(manifest, '$.config_path') = ? "
        "ORDER BY started_at DESC, run_id DESC LIMIT 1",
        [panels, str(files.config.resolve())],
    )
    return read_manifest(rows[0]["run_id"], rows[0]["manifest"])[0].lock if rows else None
