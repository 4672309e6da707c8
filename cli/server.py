"""`coldrun server`: a Prefect server that stays, with a user interface."""

from __future__ import annotations

import json

import click

from coldrun.cli.options import catch_errors

json_option = click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON object and nothing else."
)


@click.group(
    "server",
    epilog="A run that finds no server does its stages in its own process.",
)
def command() -> None:
    """Keep a Prefect server running between commands.

    Later runs find it by themselves, start at once, and can be watched in a browser. The server
    set in PREFECT_API_URL, if any, comes first. It lives in your state folder (COLDRUN_STATE).

    \b
      coldrun server start
      coldrun server status --json
      coldrun server stop
    """


@command.command("start", epilog="Example: coldrun server start")
@json_option
@catch_errors
def start(is_json: bool) -> None:
    """Start the server, or do nothing when it runs.

    It outlives the terminal. Its database stays when it is stopped.
    """
    from coldrun.flows.prefect_server import start_server

    start_server(_say)
    _tell(is_json=is_json)


@command.command("status", epilog="Example: coldrun server status --json")
@json_option
@catch_errors
def status(is_json: bool) -> None:
    """Say whether the server runs, and where. Exit code 0 either way."""
    _tell(is_json=is_json)


@command.command("stop", epilog="Example: coldrun server stop")
@json_option
@catch_errors
def stop(is_json: bool) -> None:
    """Stop the server and all its processes. Its database stays."""
    from coldrun.flows.prefect_server import stop_server

    stopped = stop_server()
    if is_json:
        _tell(is_json=True)
    elif stopped is None:
        click.echo("No server was running.")
    else:
        click.echo(f"Stopped the Prefect server (process {stopped.pid}).")


def _say(line: str) -> None:
    click.echo(line, err=True)


def _tell(*, is_json: bool) -> None:
    """Say whether the server runs, and where; without the password, which `server.json` has."""
    from coldrun.flows.prefect_server import state_folder

    folder = state_folder()
    running = folder.read()
    values: dict[str, object] = {"is_running": running is not None}
    for name in ("pid", "port", "api_url", "created", "prefect_version"):
        values[name] = None if running is None else getattr(running, name)
    values |= {"database": str(folder.database), "log": str(folder.log)}
    values["sign_in_with"] = str(folder.state)
    if is_json:
        click.echo(json.dumps(values))
    elif running is None:
        click.echo("No server is running. `coldrun server start` starts one.")
    else:
        click.echo(
            f"Prefect server: {running.api_url.removesuffix('/api')} (process {running.pid}, "
            f"Prefect {running.prefect_version}); `auth` in {folder.state} signs you in"
        )
