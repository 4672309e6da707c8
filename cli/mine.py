"""`coldrun mine CONFIG`."""

from __future__ import annotations

from pathlib import Path

import click

from coldrun.cli.options import (
    Outputs,
    announce_clone,
    config_argument,
    json_option,
    markdown_option,
    scratch_option,
    with_outputs,
)


@click.command(
    "mine",
    epilog="""\b
Examples:
  coldrun mine configs/click.toml --repo ../click
  coldrun mine configs/click.toml --json - | head -3
""",
)
@config_argument
@click.option("--repo", metavar="PATH_OR_URL", help="Path or URL of the panel's repository.")
@click.option("--show-drops", is_flag=True, help="List every candidate that left, and why.")
@json_option("Also write the solvable tasks as JSON Lines; - for stdout.")
@markdown_option
@scratch_option
@with_outputs
def command(
    config_path: Path,
    repo: str | None,
    show_drops: bool,
    outputs: Outputs,
    scratch: Path,
) -> None:
    """Show what mining finds: candidates, drops by reason, the answer distribution, the nulls.

    Writes nothing unless --json or --markdown is given. With a [split], only the dev part is shown.
    """
    from coldrun.tasks.config import load_config
    from coldrun.tasks.freeze.check_config import check_config
    from coldrun.tasks.freeze.freeze_panel import freeze_panel
    from coldrun.tasks.freeze.lock import panel_to_bytes
    from coldrun.tasks.freeze.sample import split_tasks
    from coldrun.tasks.mine.mine_panel import mine_panel, with_repo
    from coldrun.tasks.report.freeze_document import drop_lines, frozen_document

    config = with_repo(load_config(config_path), repo)
    check_config(config)
    announce_clone(config.panel.repo, scratch)
    mined = mine_panel(config.panel, config_dir=config_path.parent, scratch=scratch)
    result = freeze_panel(config, mined)
    tasks = panel_to_bytes(split_tasks(mined.tasks, config.split)[0]).decode("utf-8")
    listed = drop_lines(result.dropped) if show_drops else ()
    outputs.show([*listed, *frozen_document(config, result)], tasks.removesuffix("\n"))
