"""`coldrun init`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from coldrun.cli.options import catch_errors, scratch_option

SKELETONS = Path(__file__).parent / "skeletons"
PANEL_TASKS = 71
POOL = 4
"""Solvable tasks to choose from, per task asked: drawn from more, no single file dominates."""


@click.command(
    "init",
    epilog="""\b
Examples:
  coldrun init
  coldrun init configs/mytool.toml --repo ../mytool --arm mcp
""",
)
@click.argument(
    "config_path",
    metavar="[CONFIG]",
    default="evaluation.toml",
    type=click.Path(path_type=Path),
)
@click.option(
    "--repo",
    default=".",
    show_default=True,
    metavar="PATH_OR_URL",
    help="The repository whose history gives the tasks.",
)
@click.option(
    "--arm",
    type=click.Choice(["command", "mcp", "http"]),
    default="command",
    show_default=True,
    help="How your tool is asked: JSON Lines, an MCP server, or an HTTP service.",
)
@scratch_option
@catch_errors
def command(config_path: Path, repo: str, arm: str, scratch: Path) -> None:
    """Write a commented configuration to start from, and an adapter beside it that works as it is.

    CONFIG is evaluation.toml unless you name another. The panel's base is picked so that there
    are enough tasks. Nothing that exists is overwritten.
    """
    from coldrun.tasks.config import parse_config
    from coldrun.tasks.lib.errors import UsageError
    from coldrun.tasks.lib.git.clone import is_url, open_source
    from coldrun.tasks.mine.pick_base import pick_base

    if config_path.suffix != ".toml":
        raise UsageError(f"{config_path} is no name for a configuration; end it in .toml")
    adapter = config_path.parent / "adapters" / "mytool.py"
    for path in (config_path, adapter):
        if path.exists():
            raise UsageError(
                f"{path} is there already and was left alone; nothing was written. Name another "
                "place with `coldrun init FOLDER/NAME.toml`"
            )
    place = repo if is_url(repo) else str(Path(repo).expanduser().resolve())
    repository = open_source(place, relative_to=Path.cwd(), scratch=scratch, wanted=("HEAD",))
    head = repository.resolve("HEAD")
    draft = parse_config({"panel": {"kind": "commit-files", "repo": place, "base": "HEAD"}})
    base = pick_base(repository, head.commit, draft.panel, wanted=POOL * PANEL_TASKS)
    if not is_url(repo):
        place = os.path.relpath(place, config_path.resolve().parent)
    values = {
        "CONFIG": str(config_path),
        "REPO": json.dumps(place, ensure_ascii=False),
        "BASE": base.commit,
        "HEAD": head.commit,
        "SIZE": str(PANEL_TASKS),
        "ADAPTER": "adapters/mytool.py",
        "NAME": "mytool",
    }
    text = _read("evaluation.toml").replace("@ARM@", _read(f"arm_{arm}.toml"))
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    _write(adapter, _read(f"adapter_{arm}.py"))
    _write(config_path, text)
    click.echo(f"wrote {config_path} and {adapter}")
    click.echo(f"next: coldrun freeze {config_path}, then coldrun run {config_path}")
    click.echo(f"then put your tool in the place of what {adapter} does")


def _read(name: str) -> str:
    return (SKELETONS / name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    from coldrun.tasks.lib.errors import StorageError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from None
