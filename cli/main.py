"""The `coldrun` command. Only click is imported until a command is chosen."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any, Final

import click

from coldrun.cli.streams import outlive_readers

COMMANDS: Final = {
    "try": (
        "coldrun.cli.try_",
        "Compare grep, BM25 and your tool on any repository, no file needed.",
    ),
    "init": ("coldrun.cli.init", "Write a configuration to start from."),
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
    "report": ("coldrun.cli.report", "Print the report of a run again."),
    "runs": ("coldrun.cli.runs", "List the runs in the warehouse."),
    "panels": ("coldrun.cli.panels", "Compare panels, each beside what it was used for."),
    "show": ("coldrun.cli.show", "Show the answers of a run: query, gold, answer."),
    "sql": ("coldrun.cli.sql", "Ask the warehouse a question in SQL."),
    "why": ("coldrun.cli.why", "Explain why an answer was executed or replayed."),
    "holdout": ("coldrun.cli.holdout", "Open the sealed part, or list its openings."),
    "nightly": ("coldrun.cli.nightly", "Evaluate whatever is new, once or on a schedule."),
    "server": ("coldrun.cli.server", "Keep a Prefect server running between commands."),
    "prune": ("coldrun.cli.prune", "Free scratch space; measured data is never touched."),
    "doctor": ("coldrun.cli.doctor", "Check this machine and installation."),
}
"""Every command: the module that holds it, imported when it is called, and its one line."""


class LazyGroup(click.Group):
    """A group that knows its commands' names and one-liners without importing them."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Call the command line, whoever reads what it writes."""
        outlive_readers()
        try:
            return super().main(*args, **kwargs)
        except SystemExit as end:
            flows = sys.modules.get("coldrun.flows.interruptible")
            if flows is not None and flows.left_behind:
                flows.leave(end.code if isinstance(end.code, int) else 0)
            raise
        except Exception as error:  # noqa: BLE001 - nobody is shown a traceback
            from coldrun.cli.last_resort import report_unexpected

            sys.exit(report_unexpected(error))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they are used."""
        del ctx
        return [name for name, (module, _) in COMMANDS.items() if _is_there(module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        if cmd_name not in COMMANDS or not _is_there(COMMANDS[cmd_name][0]):
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = module.command
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


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


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
      coldrun try PATH_OR_URL            an honest answer about grep and BM25 in one command
      coldrun try . --arm "tool {query}" the same about your own tool
      coldrun init && coldrun freeze     an evaluation of your own tool
      coldrun run configs/mytool.toml
    """
