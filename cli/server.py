"""`coldrun server`: a Prefect server that stays, with a user interface."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from coldrun.cli.options import catch_errors

if TYPE_CHECKING:
    from coldrun.flows.prefect_server import ServerStatus

json_option = click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON object and nothing else."
)


@click.group(
    "server",
    epilog="A run that finds no server starts its own, which takes about 8 s and ends with it.",
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

    status = start_server(_say)
    click.echo(json.dumps(asdict(status)) if is_json else _describe(status))


@command.command("status", epilog="Example: coldrun server status --json")
@json_option
@catch_errors
def status(is_json: bool) -> None:
    """Say whether the server runs, and where. Exit code 0 either way."""
    from coldrun.flows.prefect_server import server_status

    found = server_status()
    click.echo(json.dumps(asdict(found)) if is_json else _describe(found))


@command.command("stop", epilog="Example: coldrun server stop")
@json_option
@catch_errors
def stop(is_json: bool) -> None:
    """Stop the server and all its processes. Its database stays."""
    from coldrun.flows.prefect_server import server_status, stop_server

    stopped = stop_server()
    if is_json:
        click.echo(json.dumps(asdict(server_status())))
    elif stopped is None:
        click.echo("No server was running.")
    else:
        click.echo(f"Stopped the Prefect server (process {stopped.pid}).")


def _say(line: str) -> None:
    click.echo(line, err=True)


def _describe(status: ServerStatus) -> str:
    if not status.is_running:
        return "No server is running. `coldrun server start` starts one."
    return (
        f"Prefect server: {status.ui_url} (process {status.pid}, Prefect {status.prefect_version})"
    )
