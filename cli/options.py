"""Options and habits that commands share: folders, output, errors, exit codes."""

from __future__ import annotations

import functools
import json
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from coldrun.tasks.lib.concealment import conceal, without_credentials
from coldrun.tasks.lib.errors import ColdrunError, UsageError
from coldrun.tasks.lib.plain_text import plain_text

if TYPE_CHECKING:
    from coldrun.tasks.report.console import PeopleConsole
    from coldrun.tasks.report.document import Block

Function = TypeVar("Function", bound=Callable[..., Any])


def default_warehouse() -> Path:
    """`warehouse/data` of a clone, or the user's data folder for an installed tool."""
    root = Path(__file__).resolve().parent.parent
    if (root / "pyproject.toml").is_file() and (root / "warehouse").is_dir():
        return root / "warehouse" / "data"
    import platformdirs

    return Path(platformdirs.user_data_dir("coldrun"))


def default_scratch() -> Path:
    """The user's cache folder, outside any work tree."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("coldrun"))


def _folder(default: Callable[[], Path]) -> Callable[[Any, Any, Path | None], Path]:
    def resolve(_: Any, __: Any, value: Path | None) -> Path:
        return (value or default()).expanduser().resolve()

    return resolve


def check_output(context: click.Context, _: click.Parameter, value: str | None) -> str | None:
    """Refuse before anything is measured what could not be written after it."""
    if value == "-" and "-" in (
        context.params.get(name) for name in ("json_file", "markdown_file")
    ):
        raise click.BadParameter("stdout takes one of --json and --markdown; name a file")
    if value not in (None, "-"):
        if not Path(value).absolute().parent.is_dir():
            raise click.BadParameter(f"there is no folder {Path(value).parent} to write it to")
        try:
            try_to_write(Path(value))
        except OSError as error:
            raise click.BadParameter(f"cannot write {value}: {error.strerror}") from None
    return value


def try_to_write(path: Path) -> None:
    """Open a file as writing it would, and leave what is there as it is.

    Pipes and devices are left alone: their reader would take it for all there is to come.
    """
    if path.is_file() or path.is_dir():
        path.open("ab").close()
    elif not path.exists():
        target = path.resolve()  # a link that leads nowhere stays one
        target.open("xb").close()
        target.unlink()


warehouse_option = click.option(
    "--warehouse",
    type=click.Path(path_type=Path),
    envvar="COLDRUN_WAREHOUSE",
    callback=_folder(default_warehouse),
    help="Where results go (COLDRUN_WAREHOUSE). Default: warehouse/data of the clone.",
)

scratch_option = click.option(
    "--scratch",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="COLDRUN_SCRATCH",
    callback=_folder(default_scratch),
    help="Where clones, checkouts and caches go (COLDRUN_SCRATCH). Default: the cache folder.",
)

config_argument = click.argument("config_path", metavar="CONFIG", type=click.Path(path_type=Path))


def place_options(function: Function) -> Function:
    """`--warehouse DIR` and `--scratch DIR`."""
    return warehouse_option(scratch_option(function))


def report_options(function: Function) -> Function:
    """`--json FILE` and `--markdown FILE`, which the command gets as its `Outputs`."""
    return json_option(
        "Also write the report as JSON; - for stdout (all else then goes to stderr)."
    )(markdown_option(with_outputs(function)))


def run_options(function: Function) -> Function:
    """What every command takes that asks arms: where its report, its data and its log go."""
    return report_options(place_options(verbose_option(function)))


chart_option = click.option(
    "--svg",
    "svg_file",
    metavar="FILE",
    callback=check_output,
    help="Also draw the score over the points, as SVG.",
)
"""`--svg FILE`: the chart, one of the command's `Outputs`."""


markdown_option = click.option(
    "--markdown",
    "markdown_file",
    metavar="FILE",
    callback=check_output,
    help="Also write the report as Markdown; - for stdout.",
)


def json_option(words: str) -> Callable[[Function], Function]:
    """`--json FILE`, which `words` explain."""
    return click.option("--json", "json_file", metavar="FILE", callback=check_output, help=words)


verbose_option = click.option("--verbose", "-v", is_flag=True, help="Show Prefect's log lines too.")


def catch_errors(function: Function) -> Function:
    """Print errors that a person can act on in one line, and exit with their code."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        warnings.showwarning = _tell_once(warnings.showwarning)
        try:
            return function(*args, **kwargs)
        except ColdrunError as error:
            click.echo(f"coldrun: {plain_text(str(error))}", err=True)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("coldrun: interrupted", err=True)
            sys.exit(130)

    return wrapped  # type: ignore[return-value]


def with_outputs(function: Function) -> Function:
    """Hand a command its `Outputs` in place of the options that say where they go."""
    caught = catch_errors(function)

    @functools.wraps(caught)
    def wrapped(**options: Any) -> Any:
        names = [field.name for field in fields(Outputs) if field.name in options]
        return caught(outputs=Outputs(**{name: options.pop(name) for name in names}), **options)

    return wrapped  # type: ignore[return-value]


def _tell_once(otherwise: Callable[..., None]) -> Callable[..., None]:
    """How warnings are shown: those of the warehouse once, in one line."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not category.__module__.startswith("coldrun.warehouse"):
            otherwise(message, category, *place, **more)
        elif str(message) not in told:
            told.add(str(message))
            click.echo(f"coldrun: warning: {plain_text(str(message))}", err=True)

    return show


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where a report goes, and what is said on the way to it."""

    json_file: str | None = None
    markdown_file: str | None = None
    svg_file: str | None = None
    verbose: bool = False

    @cached_property
    def people(self) -> PeopleConsole:
        """Where the report for people goes: stdout, unless a machine reads that."""
        return people_console(stderr="-" in (self.json_file, self.markdown_file))

    @cached_property
    def notes(self) -> PeopleConsole:
        """Where progress and notes go: stderr. On a terminal that shows both streams it is the
        very console of the report, so that no line is printed into another."""
        notes = people_console(stderr=True)
        return self.people if self.people.is_live and notes.is_live else notes

    def show(self, document: Iterable[Block], values: object) -> None:
        """Print a report for people, and write its machine-readable forms.

        Args:
            document: The report.
            values: What its JSON holds, or that JSON as text.
        """
        from coldrun.tasks.report.markdown import to_markdown

        blocks = list(document)
        self.print(blocks)
        if not isinstance(values, str):
            text = json.dumps(values, ensure_ascii=False, indent=1)
            # lone surrogates, which no file takes, become the escapes of JSON
            values = text.encode("utf-8", "backslashreplace").decode("utf-8")
        self.write(to_json=values, to_markdown=to_markdown(blocks))

    def print(self, document: Iterable[Block]) -> None:
        """Print a report for people alone."""
        from coldrun.tasks.report.terminal import print_document

        print_document(document, self.people)

    def write(self, *, to_json: str, to_markdown: str) -> None:
        """Write the machine-readable forms of a report."""
        write_output(self.json_file, to_json)
        write_output(self.markdown_file, to_markdown)


def write_output(name: str | None, text: str) -> None:
    """Write one form of a report, where it has a name; `-` is stdout."""
    text = conceal(text)
    if name == "-":
        click.echo(text)
    elif name is not None:
        try:
            Path(name).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {name}: {error.strerror}") from None


def people_console(*, stderr: bool = False) -> PeopleConsole:
    """A console for people; see `PeopleConsole`."""
    from coldrun.tasks.report.console import PeopleConsole

    return PeopleConsole(stderr=stderr)


def announce_clone(source: str | None, scratch: Path) -> None:
    """Say that a repository is being cloned, before it takes its time."""
    from coldrun.tasks.lib.git.clone import must_clone

    if source is not None and must_clone(source, scratch):
        click.echo(
            f"cloning {without_credentials(source)} into {scratch / 'clones'} (once)", err=True
        )


def given_words(*names: str) -> list[str]:
    """These options as they were given on the command line; those that were not are left out."""
    context = click.get_current_context()
    words = []
    for option in context.command.params:
        name = str(option.name)
        if name in names and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = context.params[name]
            if isinstance(value, bool):
                words += [*option.opts[:1]] if value else [*option.secondary_opts[:1]]
            else:
                words += [option.opts[0], str(value)]
    return words


full_option = click.option(
    "--full", "is_full", is_flag=True, help="Print all tables, costs and warnings too."
)


def resume_command(config_path: Path, run_id: str) -> str:
    """The command that continues a run, with the folders and the repository as they were given."""
    words = ["coldrun", "run", str(config_path), "--resume", run_id]
    return shlex.join(words + given_words("repo", "warehouse", "scratch"))


def command_again(config_path: Path) -> str:
    """The present command line, without where its report goes."""
    context = click.get_current_context()
    left_out = {"config_path", *(field.name for field in fields(Outputs))}
    names = {str(option.name) for option in context.command.params} - left_out
    return shlex.join(["coldrun", str(context.info_name), str(config_path), *given_words(*names)])
