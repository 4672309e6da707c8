"""Flows that end when a person wants it to, and say nothing in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coldrun.flows.prefect_server import ServerHandle

ROOT = Path(__file__).parents[2]

# The stage waits as a well-behaved arm does ("patient"), or does not hear of the stop ("deaf").
FLOW = """
import sys, threading, time
from pathlib import Path
from coldrun.flows.prefect_server import use_server

with use_server(Path(sys.argv[1]), verbose=False, announce=lambda _: None) as server:
    from prefect import flow, task
    from prefect.cache_policies import NO_CACHE
    from prefect.task_runners import ThreadPoolTaskRunner
    from coldrun.flows.quiet import FlowInterrupted, run_flow
    from coldrun.tasks.lib.watch import Watch

    is_stopping = threading.Event()

    watch = Watch()
    watch.begin("run", is_stopping.set)


    @task(name="ask", task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
    def ask(label):
        print("asked", flush=True)
        is_stopping.wait(60) if sys.argv[2] == "patient" else time.sleep(60)
        return label

    @flow(name="test", persist_result=False, task_runner=ThreadPoolTaskRunner(max_workers=1))
    def evaluate():
        futures = [ask.submit(label=f"shard {n}") for n in range(2)]
        watch.results["run"] = [future.result() for future in futures]

    try:
        run_flow(server, evaluate, watch=watch)
    except FlowInterrupted:
        print("landed", watch.results.get("run"), flush=True)
        raise SystemExit(130)
"""


def _interrupt(
    server: ServerHandle, scratch: Path, kind: str, sign: signal.Signals
) -> tuple[int, float, str]:
    """Start the flow, send a signal while its first stage runs, and give what came of it."""
    with subprocess.Popen(
        [sys.executable, "-c", FLOW, str(scratch), kind],
        cwd=ROOT,
        env=os.environ | {"PREFECT_API_URL": server.api_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(sign)
        sent = time.monotonic()
        rest = process.stdout.read()
        code = process.wait()
        return code, time.monotonic() - sent, rest


@pytest.mark.prefect
@pytest.mark.soak  # cli/test_interrupt.py has the same through the command line
def test_run_flow_interrupted_in_order_gives_what_finished(
    prefect_server: ServerHandle, server_scratch: Path
) -> None:
    """SIGTERM, which Prefect ignores here for 30 s, stops the flow, whose value is not lost."""
    code, seconds, said = _interrupt(prefect_server, server_scratch, "patient", signal.SIGTERM)
    assert said == "asked\nlanded ['shard 0', 'shard 1']\n"
    assert code == 130
    assert seconds < 5


@pytest.mark.prefect
@pytest.mark.soak
def test_run_flow_interrupted_with_a_deaf_stage_leaves_it_behind(
    prefect_server: ServerHandle, server_scratch: Path
) -> None:
    """Ctrl-C ends the program although a thread of the flow would hold it up for a minute."""
    code, seconds, said = _interrupt(prefect_server, server_scratch, "deaf", signal.SIGINT)
    assert said == "landed None\n"
    assert code == 130
    assert seconds < 6


@pytest.mark.prefect
def test_run_flow_without_a_signal_gives_the_value_and_the_flows_own_error(
    prefect_server: ServerHandle, capfd: pytest.CaptureFixture[str]
) -> None:
    """Values pass, errors pass as they are, and Prefect prints neither."""
    from prefect import flow

    from coldrun.flows.quiet import run_flow
    from coldrun.tasks.lib.watch import Watch

    @flow(persist_result=False)
    def succeed() -> list[int]:
        return [1, 2]

    @flow(persist_result=False)
    def fail() -> None:
        raise LookupError("no such thing")

    earlier = signal.getsignal(signal.SIGTERM)
    started = time.monotonic()
    assert run_flow(prefect_server, succeed, watch=Watch()) == [1, 2]
    seconds = time.monotonic() - started
    with pytest.raises(LookupError, match="no such thing"):
        run_flow(prefect_server, fail, watch=Watch())
    assert signal.getsignal(signal.SIGTERM) is earlier
    assert capfd.readouterr() == ("", "")
    assert seconds < 30
