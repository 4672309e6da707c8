"""`coldrun doctor`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from coldrun.cli.options import Outputs, place_options, report_options

if TYPE_CHECKING:
    from coldrun.tasks.report.document import Style
    from coldrun.tasks.run.machine_checks import Check

ROOT = Path(__file__).resolve().parent.parent
STYLES: dict[str, Style] = {"ok": "good", "warning": "doubtful", "failed": "bad"}


@click.command("doctor", epilog="Example: coldrun doctor --json -")
@report_options
@place_options
def command(outputs: Outputs, warehouse: Path, scratch: Path) -> None:
    """Check this machine and installation: programs, folders, room, servers, leftovers.

    Each problem comes with the next step. Starts nothing and changes nothing. Exit code 0 unless
    something has failed (2).
    """
    from coldrun.tasks.report.document import Line
    from coldrun.tasks.run.machine_checks import check_machine

    checks = [*check_machine(warehouse=warehouse, scratch=scratch, root=ROOT)]
    checks.append(_check_server())
    has_failed = any(check.status == "failed" for check in checks)
    document = []
    for check in checks:
        document.append(Line(f"{check.status}: {check.name}: {check.found}", STYLES[check.status]))
        if check.next_step is not None:
            document.append(Line(f"→ {check.next_step}", depth=1))
    values = {"ok": not has_failed, "checks": [check.to_values() for check in checks]}
    outputs.show(document, values)
    sys.exit(2 if has_failed else 0)


def _check_server() -> Check:
    from importlib.metadata import version

    from coldrun.flows.prefect_server import state_folder
    from coldrun.flows.server_health import find_problem
    from coldrun.tasks.run.machine_checks import Check

    given, folder = os.environ.get("PREFECT_API_URL"), state_folder()
    running = folder.read()
    status: Literal["ok", "warning", "failed"] = "ok"
    step: str | None = None
    if given:
        found = f"PREFECT_API_URL={given}: "
        problem = find_problem(given, timeout_seconds=5)
        if problem:
            status = "failed"
            step = "start it, mend the address (it ends in /api), or unset PREFECT_API_URL"
        found += problem or "answers"
    elif running is None:
        found = "none runs; commands do their stages in their own process"
        step = "`coldrun server start` keeps one, to watch runs in a browser"
    else:
        size = folder.database.stat().st_size if folder.database.exists() else 0
        found = f"{running.api_url} (process {running.pid}, database {size / 1e6:.1f} MB): "
        problem = find_problem(running.api_url, timeout_seconds=5, auth=running.auth)
        if problem is None and running.prefect_version != version("prefect"):
            problem = f"is of Prefect {running.prefect_version}, not {version('prefect')}"
        if problem:
            status, step = "warning", "`coldrun server stop`, then `coldrun server start`"
        found += problem or "answers"
    return Check(name="server", status=status, found=found, next_step=step)
