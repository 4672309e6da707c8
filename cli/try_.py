"""`coldrun try PATH_OR_URL`."""

from __future__ import annotations

import datetime as dt
import hashlib
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coldrun.cli.options import (
    Outputs,
    announce_clone,
    catch_errors,
    report_options,
    scratch_option,
    verbose_option,
    warehouse_option,
)

if TYPE_CHECKING:
    from coldrun.flows.evaluate import Control
    from coldrun.tasks.freeze.freeze import FrozenResult
    from coldrun.tasks.report.build import BuiltReport
    from coldrun.tasks.report.progress import Display
    from coldrun.tasks.run.prepare import Evaluation

PANEL_TASKS = 100
"""How many tasks are asked."""

POOL = 4
"""Solvable tasks to choose from, per task asked: drawn from more, no single file dominates."""


@click.command(
    "try",
    epilog="""\b
Examples:
  coldrun try https://github.com/pallets/click
  coldrun try ../mytool --json -
  coldrun try .
""",
)
@click.argument("source", metavar="PATH_OR_URL")
@click.option("--head", default="HEAD", show_default=True, help="The newest commit to ask about.")
@click.option(
    "--tasks",
    type=click.IntRange(min=2),
    default=PANEL_TASKS,
    show_default=True,
    help="How many tasks to ask.",
)
@report_options
@warehouse_option
@scratch_option
@verbose_option
@catch_errors
def command(
    source: str,
    head: str,
    tasks: int,
    json_file: str | None,
    markdown_file: str | None,
    warehouse: Path,
    scratch: Path,
    verbose: bool,
) -> None:
    """Ask grep and BM25 to find the files of past commits, and say whether that beats nothing.

    Picks a base commit with some 400 later commits whose files were there already, mines their
    messages as questions and their files as answers, draws 100 in which no file dominates, freezes
    that panel, runs the built-in arms, and prints them below the null strategies. Prints the
    configuration that does the same again.
    """
    from coldrun.cli.evaluating import (
        exit_code_of,
        lost_run,
        print_report_outputs,
        run_flow,
    )
    from coldrun.tasks.config import parse_config
    from coldrun.tasks.git.clone import is_url, open_source
    from coldrun.tasks.mine.pick_base import pick_base
    from coldrun.tasks.run.conduct import RunRequest

    outputs = Outputs(json_file=json_file, markdown_file=markdown_file, verbose=verbose)
    console = outputs.people
    place = source if is_url(source) else str(Path(source).expanduser().resolve())
    announce_clone(place, scratch)
    repository = open_source(
        place, relative_to=Path.cwd(), scratch=scratch, wanted=(head,), is_fresh=True
    )
    draft = parse_config({"panel": {"kind": "commit-files", "repo": place, "base": head}})
    tip = repository.resolve(head)
    base = pick_base(repository, head, draft.panel, wanted=POOL * tasks)
    text = CONFIG.format(repo=toml_text(place), base=base.commit, head=tip.commit, size=tasks)
    folder = scratch / "try" / hashlib.sha256(text.encode()).hexdigest()[:16]
    name = Path(source.rstrip("/")).name.removesuffix(".git") or "try"
    config_path = _write_config(folder, name, text)
    console.print(f"picked base {base.commit}, head {tip.commit}", soft_wrap=True)
    console.print_command("the same again:", shlex.join(["coldrun", "run", str(config_path)]))
    console.print("which says:", soft_wrap=True)
    for line in text.splitlines():
        console.print_whole(f"  {line}", style="dim")

    from coldrun.tasks.config import load_config

    config = load_config(config_path)

    def on_frozen(result: FrozenResult) -> Evaluation:
        from coldrun.tasks.freeze.lock import EvaluationFiles
        from coldrun.tasks.freeze.write import write_frozen
        from coldrun.tasks.report.panel import print_frozen
        from coldrun.tasks.run.prepare import load_evaluation

        print_frozen(config, result, console)
        console.print()
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        files = EvaluationFiles(config_path)
        write_frozen(files, result, force=True, had_runs=False, now=now)
        return load_evaluation(config_path, scratch=scratch)

    def run(control: Control, display: Display) -> BuiltReport:
        from coldrun.flows.evaluate import Draft, try_repository

        return try_repository(
            Draft(name=name, config=config, config_dir=folder, scratch=scratch),
            replace(RunRequest(warehouse=warehouse), on_progress=display.update),
            on_frozen=on_frozen,
            control=control,
        )

    built = run_flow(
        run,
        scratch=scratch,
        outputs=outputs,
        on_landed=lambda built: print_report_outputs(built.report, outputs),
        lost=lost_run,
    )
    sys.exit(exit_code_of(built.report, config_path, outputs))


CONFIG = """\
[panel]
kind = "commit-files"
repo = {repo}
base = "{base}"
head = "{head}"

[sample]
size = {size}
"""


def toml_text(text: str) -> str:
    """A TOML basic string."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_config(folder: Path, name: str, text: str) -> Path:
    from coldrun.tasks.errors import StorageError
    from coldrun.tasks.freeze.write import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror}; name a writable folder with --scratch"
        ) from None
    write_whole(folder / f"{name}.toml", text.encode())
    return folder / f"{name}.toml"
