"""`coldrun try PATH_OR_URL`."""

from __future__ import annotations

import datetime as dt
import hashlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coldrun.cli.options import (
    Outputs,
    announce_clone,
    full_option,
    given_words,
    run_options,
)
from coldrun.tasks.lib.concealment import without_credentials

if TYPE_CHECKING:
    from coldrun.tasks.judge.build_report import BuiltReport

PANEL_TASKS = 100
"""How many tasks are asked."""

POOL = 4
"""Solvable tasks to choose from, per task asked: drawn from more, no single file dominates."""


@click.command(
    "try",
    epilog="""\b
Examples:
  coldrun try https://github.com/pallets/click
  coldrun try . --arm "rg -l {terms_regex}" --arm "python search.py {query}"
  coldrun try . --arm "mine=./my-tool {query}" --items "^(.+) score"
  coldrun try . --mcp "uvx server==1.0" --tool search --argument limit=20
  coldrun try . --mcp "npx -y mcp-ripgrep@0.4.0" --tool search \\
      --argument pattern={terms_regex} --argument path={corpus}
  coldrun try ../mytool --json -

\b
Placeholders of --arm and --argument:
  {query}        the commit message
  {terms}        its words, without common English ones
  {terms_regex}  a pattern that matches any of these words
  {corpus}       the folder to search; the tool is started in it
  {k}            how many paths count

Without --items, output is read as one path a line, as path:line:text, or as JSON with `items` or
`paths`. Output that cannot be read, or that names no file of the corpus, counts as a tool failure,
never as a miss, and is quoted. A run in which more than 5 in 100 answers fail is invalid.

A server that has to be prepared (told a folder, say) needs a configuration: `coldrun init --arm
mcp` writes one to start from, docs/arms.md explains it.
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
@click.option(
    "--arm",
    "commands",
    multiple=True,
    metavar="[NAME=]COMMAND",
    help="A command to ask too, run once per question; it prints paths, best first. Repeatable.",
)
@click.option(
    "--mcp",
    "servers",
    multiple=True,
    metavar="COMMAND",
    help="An MCP server over stdio, to ask too.",
)
@click.option("--tool", metavar="NAME", help="The tool of --mcp; left out, its tools are listed.")
@click.option(
    "--argument",
    "arguments",
    multiple=True,
    metavar="KEY=VALUE",
    help="An argument of --tool. Repeatable. Unless one holds the question: query={query}.",
)
@click.option(
    "--items",
    metavar="TEXT",
    help="How paths are read from the output of every tool given: a JSON path, $.results[*].file, "
    "or a regular expression with one group, searched in each line.",
)
@full_option
@run_options
def command(
    source: str,
    head: str,
    tasks: int,
    commands: tuple[str, ...],
    servers: tuple[str, ...],
    tool: str | None,
    arguments: tuple[str, ...],
    items: str | None,
    is_full: bool,
    outputs: Outputs,
    warehouse: Path,
    scratch: Path,
) -> None:
    """Ask the built-in searches and your own tool for the files of past commits, and compare.

    Picks a base commit with some 400 later commits whose files were there already, mines their
    messages as questions and their files as answers, draws 100 in which no file dominates, freezes
    that panel, asks the built-in searches and the tools given, and prints them beside the null
    strategies. Writes a configuration that repeats it.
    """
    from coldrun.cli.evaluating import (
        conduct,
        exit_code_of,
        lost_run,
        print_report_outputs,
    )
    from coldrun.cli.try_arms import GivenTools, arms_text, check_server, read_arms, toml_value
    from coldrun.tasks.config import ServerArm, parse_config
    from coldrun.tasks.lib.git.clone import is_url, open_source
    from coldrun.tasks.mine.pick_base import pick_base
    from coldrun.tasks.run.manifest import new_run_id

    console = outputs.people
    place = source if is_url(source) else str(Path(source).expanduser().resolve())
    arms = read_arms(
        GivenTools(commands=commands, servers=servers, tool=tool, arguments=arguments, items=items)
    )
    panel = {"kind": "commit-files", "repo": place, "base": head}
    draft = parse_config({"panel": panel, "arm": arms}, source="the arms given")
    for arm in draft.arm:
        if isinstance(arm, ServerArm):
            most = f"{arm.startup_timeout_seconds:g} s at most"
            outputs.notes.print(f"starting {arm.name} to see its tools: {most}", soft_wrap=True)
            check_server(arm, scratch)
    announce_clone(place, scratch)
    repository = open_source(
        place, relative_to=Path.cwd(), scratch=scratch, wanted=(head,), is_fresh=True
    )
    tip = repository.resolve(head)
    base = pick_base(repository, head, draft.panel, wanted=POOL * tasks)
    text = CONFIG.format(
        repo=toml_value(without_credentials(place)), base=base.commit, head=tip.commit, size=tasks
    )
    text += arms_text(arms)
    folder = scratch / "try" / hashlib.sha256(text.encode()).hexdigest()[:16]
    name = Path(source.rstrip("/")).name.removesuffix(".git") or "try"
    config_path = _write_config(folder, name, text)
    if is_full:
        console.print(f"picked base {base.commit}, head {tip.commit}", soft_wrap=True)
        for line in text.splitlines():
            console.print_whole(f"  {line}", style="dim")

    run_id = new_run_id(dt.datetime.now(dt.UTC))

    def on_landed(built: BuiltReport) -> None:
        if is_full:
            from coldrun.tasks.config import load_config
            from coldrun.tasks.lib.watch import current_watch
            from coldrun.tasks.report.freeze_document import frozen_document

            frozen = current_watch().results["frozen"]
            outputs.print(frozen_document(load_config(config_path), frozen))
            console.print()
        print_report_outputs(built.report, outputs, is_full=is_full)
        again = ["coldrun", "run", str(config_path), *given_words("warehouse", "scratch")]
        console.print_command("To repeat:", shlex.join(again))

    built: BuiltReport = conduct(
        lambda: _call_flow(config_path, warehouse, scratch, run_id),
        lambda: _run_here(config_path, warehouse, scratch, run_id),
        awaits=run_id,
        outputs=outputs,
        on_landed=on_landed,
        lost=lambda watch: lost_run(watch, config_path),
    )
    sys.exit(exit_code_of(built.report, config_path, outputs))


def _call_flow(config_path: Path, warehouse: Path, scratch: Path, run_id: str) -> None:
    from coldrun.flows.evaluate import try_repository
    from coldrun.tasks.lib.served import serving

    with serving({config_path.stem: config_path}, warehouse=warehouse, scratch=scratch):
        try_repository(config_path.stem, run_id=run_id)


def _run_here(config_path: Path, warehouse: Path, scratch: Path, run_id: str) -> None:
    from coldrun.tasks.freeze.write_panel import freeze_mined
    from coldrun.tasks.judge.land_judgement import run_here
    from coldrun.tasks.mine.mine_panel import mine_to_file
    from coldrun.tasks.run.prepare import load_evaluation
    from coldrun.tasks.run.run_lifecycle import RunRequest

    freeze_mined(config_path, mine_to_file(config_path, scratch))
    evaluation = load_evaluation(config_path, scratch=scratch)
    run_here(evaluation, RunRequest(warehouse=warehouse, run_id=run_id), None)


CONFIG = """\
[panel]
kind = "commit-files"
repo = {repo}
base = "{base}"
head = "{head}"

[sample]
size = {size}
"""


def _write_config(folder: Path, name: str, text: str) -> Path:
    from coldrun.tasks.lib.errors import StorageError
    from coldrun.tasks.lib.machine.files import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror}; name a writable folder with --scratch"
        ) from None
    write_whole(folder / f"{name}.toml", text.encode())
    return folder / f"{name}.toml"
