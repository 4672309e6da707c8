"""`coldrun mine CONFIG`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli.options import announce_clone, catch_errors, config_argument, scratch_option


@click.command(
    "mine",
    epilog="""\b
Examples:
  coldrun mine configs/click.toml --repo ../click
  coldrun mine configs/click.toml --json - | head -3
""",
)
@config_argument
@click.option("--repo", metavar="PATH_OR_URL", help="Where the panel's repository lies.")
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    help="Write the solvable tasks as JSON Lines; - for stdout.",
)
@scratch_option
@catch_errors
def command(config_path: Path, repo: str | None, json_file: str | None, scratch: Path) -> None:
    """Show what mining finds: candidates, drops by reason, the answer distribution, the nulls.

    Writes nothing unless --json is given. With a [split], only the dev part is shown.
    """
    from cli.options import people_console
    from tasks.config import load_config
    from tasks.errors import UsageError
    from tasks.freeze.check import check_config
    from tasks.freeze.freeze import freeze_panel
    from tasks.freeze.panel import panel_to_bytes
    from tasks.freeze.split import split_tasks
    from tasks.mine.mine import mine_panel, with_repo
    from tasks.report.panel import print_frozen

    config = with_repo(load_config(config_path), repo)
    check_config(config)
    announce_clone(config.panel.repo, scratch)
    mined = mine_panel(config.panel, config_dir=config_path.parent, scratch=scratch)
    result = freeze_panel(config, mined)
    print_frozen(config, result, people_console(stderr=json_file == "-"))
    if json_file is not None:
        data = panel_to_bytes(split_tasks(mined.tasks, config.split)[0])
        if json_file == "-":
            sys.stdout.buffer.write(data)
        else:
            try:
                Path(json_file).write_bytes(data)
            except OSError as error:
                raise UsageError(f"cannot write {json_file}: {error.strerror}") from None
