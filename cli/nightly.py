"""`coldrun nightly once|serve|guard`."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coldrun.cli.options import (
    Outputs,
    catch_errors,
    people_console,
    place_options,
    run_options,
    try_to_write,
    verbose_option,
)
from coldrun.tasks.lib.plain_text import counted

if TYPE_CHECKING:
    from coldrun.tasks.history.night import Night

configs_argument = click.argument(
    "configs", metavar="[CONFIG]...", nargs=-1, type=click.Path(path_type=Path)
)


@click.group("nightly")
def command() -> None:
    """Evaluate whatever is new, once or on a schedule.

    For each CONFIG (left out: every configs/*.toml with a [product]) the newest commit is measured
    cold, compared with the last measured one, and a change that clears the noise floor is
    decomposed by itself. Where nothing is new, nothing is executed.

    \b
      coldrun nightly once configs/mytool.toml
      coldrun nightly serve configs/mytool.toml --cron "0 3 * * *" --timezone Europe/Berlin
    """


@command.command("once", epilog="Example: coldrun nightly once configs/mytool.toml --markdown -")
@configs_argument
@run_options
def once(configs: tuple[Path, ...], outputs: Outputs, warehouse: Path, scratch: Path) -> None:
    """Run one night now.

    The report goes to reports/nightly/ of the warehouse too, and to $GITHUB_STEP_SUMMARY when that
    is set.

    \b
    Exit codes: 0 whatever was measured, or nothing new · 2 usage, configuration or lock ·
    5 a commit could not be measured · 130 interrupted
    """
    from coldrun.tasks.history.night import BUSY, night_values, summarise_nights

    chosen = _choose(configs)
    _check_summary()
    nights = _find_nothing_new(chosen, warehouse=warehouse, scratch=scratch) or _run(
        chosen, warehouse=warehouse, scratch=scratch, outputs=outputs
    )
    console = outputs.people
    for night in nights:
        console.print(night.sentence, soft_wrap=True, markup=False)
    if not nights:
        console.print(BUSY, soft_wrap=True)
    outputs.write(
        to_json=json.dumps(night_values(nights), indent=1),
        to_markdown=summarise_nights(nights),
    )
    codes = {night.exit_code for night in nights}
    sys.exit(next((code for code in (130, 2, 5) if code in codes), 0))


@command.command("serve", epilog='Example: coldrun nightly serve --cron "0 3 * * *"')
@configs_argument
@click.option("--cron", default="0 3 * * *", show_default=True, help="When, as a cron line.")
@click.option("--timezone", default="UTC", show_default=True, help="The time zone of --cron.")
@place_options
@verbose_option
@catch_errors
def serve(
    configs: tuple[Path, ...],
    cron: str,
    timezone: str,
    warehouse: Path,
    scratch: Path,
    verbose: bool,
) -> None:
    """Run every night until this process is ended.

    Uses the Prefect server of PREFECT_API_URL, else the one of `coldrun server start`, which is
    started when it does not run. A night that is still running holds back the next one; a night
    whose process was killed is marked as crashed within two minutes.
    """
    from coldrun.flows.prefect_server import require_server, start_server, use_server
    from coldrun.tasks.lib.served import serving

    chosen = _choose(configs)
    _refuse_unmeasurable(chosen, scratch)
    errors = people_console(stderr=True)

    def announce(line: str) -> None:
        errors.print(line, soft_wrap=True, style="dim")

    from coldrun.flows.nights import check_schedule

    check_schedule(cron, timezone)
    if not os.environ.get("PREFECT_API_URL"):
        start_server(announce)
    with (
        use_server(require_server(announce), verbose=verbose),
        serving(name_configs(chosen), warehouse=warehouse, scratch=scratch),
    ):
        from coldrun.flows.nights import serve_nights

        errors.print(
            f"serving {counted(len(chosen), 'configuration')}, {cron} ({timezone}); Ctrl-C ends it",
            soft_wrap=True,
        )
        serve_nights(cron=cron, timezone=timezone)


@command.command("guard", epilog="Example: coldrun nightly guard")
@catch_errors
def guard() -> None:
    """Let the Prefect server mark nights of killed workers as crashed (`serve` does it by itself).

    For deployments of prefect.yaml: without it, the run of a killed worker stays `Running` and
    every later night is cancelled.
    """
    from coldrun.flows.prefect_server import require_server, use_server

    errors = people_console(stderr=True)
    with use_server(require_server(errors.print), verbose=False) as server:
        from coldrun.flows.nights import AUTOMATION, ensure_automation

        ensure_automation()
        click.echo(f"automation {AUTOMATION!r} is on {server.api_url}")


def _find_nothing_new(configs: list[Path], *, warehouse: Path, scratch: Path) -> list[Night]:
    """One word for each configuration when none has anything new: Prefect is not even started."""
    from coldrun.tasks.history.commits import open_product
    from coldrun.tasks.history.night import find_nothing_new, publish_nights
    from coldrun.tasks.lib.errors import ColdrunError
    from coldrun.tasks.run.manifest import new_run_id
    from coldrun.tasks.run.prepare import load_evaluation

    nights = []
    for path in configs:
        try:
            evaluation = load_evaluation(path, scratch=scratch)
            repository = open_product(evaluation, update=True)
            nothing = find_nothing_new(evaluation, warehouse, repository)
        except ColdrunError:
            return []  # told by the flow, which goes on with the others
        if nothing is None:
            return []
        nights.append(nothing)
    publish_nights(nights, warehouse, stem=new_run_id(dt.datetime.now(dt.UTC)))
    return nights


def _run(configs: list[Path], *, warehouse: Path, scratch: Path, outputs: Outputs) -> list[Night]:
    from coldrun.cli.evaluating import InterruptedRunError, conduct
    from coldrun.cli.history_commands import tell_points

    def orchestrated() -> None:
        from coldrun.flows.nights import NightFailedError, nightly
        from coldrun.tasks.lib.served import serving

        named = name_configs(configs)
        with (
            serving(named, warehouse=warehouse, scratch=scratch),
            contextlib.suppress(NightFailedError),  # the exit code says it
        ):
            nightly(list(named))

    def here() -> None:
        from coldrun.tasks.history.night import run_nights

        run_nights(name_configs(configs), warehouse=warehouse, scratch=scratch)

    nights: list[Night] = conduct(
        orchestrated,
        here,
        awaits="nights",
        outputs=outputs,
        on_event=tell_points(outputs.notes),
        lost=lambda _: InterruptedRunError(
            "interrupted; what was measured is kept, the same command continues"
        ),
    )
    return nights


def _check_summary() -> None:
    """Refuse before the night what could not be written after it."""
    from coldrun.tasks.lib.errors import UsageError

    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    try:
        if summary:
            try_to_write(Path(summary))
    except OSError as error:
        raise UsageError(
            f"cannot append to $GITHUB_STEP_SUMMARY ({summary}): {error.strerror}"
        ) from None


def _refuse_unmeasurable(configs: list[Path], scratch: Path) -> None:
    from coldrun.tasks.history.commits import require_product
    from coldrun.tasks.history.history_requests import require_product_arm
    from coldrun.tasks.run.prepare import load_evaluation

    for path in configs:
        evaluation = load_evaluation(path, scratch=scratch)
        require_product(evaluation)
        require_product_arm(evaluation.config)


def _choose(configs: tuple[Path, ...]) -> list[Path]:
    from coldrun.tasks.config import load_config
    from coldrun.tasks.lib.errors import UsageError

    if configs:
        for path in configs:
            load_config(path)  # a wrong one is refused at once, not at night
        return [path.resolve() for path in configs]
    found = [
        path.resolve()
        for path in sorted(Path("configs").glob("*.toml"))
        if load_config(path).product is not None
    ]
    if not found:
        raise UsageError(
            "no configuration is named, and none in configs/ has a [product]; name one"
        )
    return found


def name_configs(paths: list[Path]) -> dict[str, Path]:
    """The names by which configurations are served: their stems, or paths where two are equal."""
    stems = [path.stem for path in paths]
    return {
        path.stem if stems.count(path.stem) == 1 else str(path.with_suffix("")): path
        for path in paths
    }
