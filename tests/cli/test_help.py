"""Every command explains itself, and is mentioned where people look for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from coldrun.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that is there, with those of its groups."""
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                assert found is not None
                yield f"{name} {inner}", found


ALL = dict(commands())


@pytest.mark.parametrize("name", ALL)
def test_help_of_every_command_says_what_it_does_and_gives_an_example(name: str) -> None:
    """A sentence, the options with their help, and a line to copy."""
    done = CliRunner().invoke(main, [*name.split(), "--help"])

    assert done.exit_code == 0, done.output
    command = ALL[name]
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help or parameter.show_default, f"{name} {parameter.opts}"
    if not isinstance(command, click.Group):
        assert f"coldrun {name}" in (command.epilog or "")
    else:
        assert f"coldrun {name}" in done.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_mentioned_in_the_documentation(name: str) -> None:
    """In the README or in a page of docs/, as it is called."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)

    assert f"coldrun {name}" in text


LIVE = ("init", "holdout", "nightly", "nightly serve", "nightly guard", "server")
"""Commands that report nothing: they write files of their own, or hold other commands."""


@pytest.mark.parametrize("name", ALL)
def test_every_command_that_reports_writes_json_and_markdown(name: str) -> None:
    """What a person can read, a program and a forge can too."""
    options = {option for parameter in ALL[name].params for option in parameter.opts}

    if name not in LIVE and not name.startswith("server "):
        assert {"--json", "--markdown"} <= options
