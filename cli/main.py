"""The `coldrun` command. Only click is imported until a command is chosen."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

import click

from coldrun.cli.streams import outlive_readers
from coldrun.tasks.lib.concealment import keep_url_secret

UNEXPECTED = 70

COMMANDS: Final = {
    "try": (
        "coldrun.cli.try_",
        "Compare built-in searches and your tool on any repository.",
    ),
    "init": ("coldrun.cli.init", "Write a configuration to start from."),
    "import": (
        "coldrun.cli.import_",
        "Make panels of SWE-bench, TREC, BEIR or inspect data.",
    ),
    "mine": ("coldrun.cli.mine", "Show the tasks a configuration finds in git, and what it drops."),
    "freeze": ("coldrun.cli.freeze", "Freeze and hash the panel, beside its lock."),
    "run": ("coldrun.cli.run", "Ask every arm every question, cold, and judge the answers."),
    "backfill": ("coldrun.cli.backfill", "Evaluate many commits of the product."),
    "decompose": (
        "coldrun.cli.decompose",
        "Attribute a change of the score to the commits in between.",
    ),
    "compare": ("coldrun.cli.compare", "Compare two runs of one panel, paired by task."),
    "trend": ("coldrun.cli.trend", "Show a measure over the measured points."),
    "report": ("coldrun.cli.stored:report", "Print the report of a run again."),
    "runs": ("coldrun.cli.stored:runs", "List the runs in the warehouse."),
    "panels": ("coldrun.cli.stored:panels", "Compare panels, each beside what it was used for."),
    "show": ("coldrun.cli.stored:show", "Show the answers of a run: query, gold, answer."),
    "sql": ("coldrun.cli.stored:sql", "Ask the warehouse a question in SQL."),
    "why": ("coldrun.cli.stored:why", "Explain why an answer was executed or replayed."),
    "holdout": ("coldrun.cli.holdout", "Open the sealed part, or list its openings."),
    "nightly": ("coldrun.cli.nightly", "Evaluate whatever is new, once or on a schedule."),
    "server": ("coldrun.cli.server", "Keep a Prefect server running between commands."),
    "prune": ("coldrun.cli.prune", "Free scratch space; measured data is never touched."),
    "doctor": ("coldrun.cli.doctor", "Check this machine and installation."),
}
"""Every command: where it is (`module`, or `module:name`), imported when called, and its line."""


class LazyGroup(click.Group):
    """A group that knows its commands' names and one-liners without importing them."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Call the command line, whoever reads what it writes."""
        outlive_readers()
        _end_as_interrupted()
        for word in (*sys.argv, os.environ.get("PREFECT_API_URL", "")):
            keep_url_secret(word)
        try:
            return super().main(*args, **kwargs)
        except SystemExit as end:
            flows = sys.modules.get("coldrun.flows.interruptible")
            if flows is not None and flows.left_behind:
                flows.leave(end.code if isinstance(end.code, int) else 0)
            raise
        except Exception as error:  # noqa: BLE001 - nobody is shown a traceback
            sys.exit(_report_unexpected(error))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they are used."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, naming the nearest for one that does not exist."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint} `coldrun --help` lists them all.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List commands from the table, so that help imports none of them."""
        rows = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _report_unexpected(error: BaseException) -> int:
    """Write an unexpected error to a file, say so in one line, and give the exit code."""
    from coldrun.tasks.lib.plain_text import cut_text, one_line

    what = cut_text(one_line(f"{type(error).__name__}: {error}"), 200)
    file = _write_down(error)
    where = f"the details are in {file}" if file else "its details could not be written"
    click.echo(
        f"coldrun: unexpected error ({what}); {where}. Please report it with that file; what had "
        "landed before is kept",
        err=True,
    )
    return UNEXPECTED


def _write_down(error: BaseException) -> Path | None:
    import datetime as dt
    import platform
    import tempfile
    import traceback

    from coldrun.flows.prefect_server import state_folder
    from coldrun.tasks.lib.concealment import conceal

    now = dt.datetime.now(dt.UTC)
    text = "".join(traceback.format_exception(error))
    head = f"{now.isoformat()} {platform.platform()} Python {sys.version}\n{sys.argv}\n\n"
    for folder in (state_folder().root / "errors", Path(tempfile.gettempdir())):
        file = folder / f"coldrun-{now:%Y%m%d-%H%M%S}-{os.getpid()}.log"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
                out.write(conceal(head + text).encode("utf-8", "backslashreplace").decode())
        except OSError:
            continue
        return file
    return None


def _end_as_interrupted() -> None:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, unless they are ignored."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, interrupt)


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"coldrun {version('coldrun')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: coldrun try https://github.com/pallets/click",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def main() -> None:
    """Measure systems that answer questions about code, against ground truth from git.

    A run executes: nothing is replayed unless you ask for it, and then the report says so in its
    first line. Null strategies stand above every result; a score that does not beat them is not
    printed.

    \b
      coldrun try PATH_OR_URL            an honest answer about built-in searches
      coldrun try . --arm "tool {query}" the same about your own tool
      coldrun init && coldrun freeze     an evaluation of your own tool
      coldrun run configs/mytool.toml
    """
