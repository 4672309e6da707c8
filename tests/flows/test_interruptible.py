"""Work that ends when a person wants it to, and says nothing in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coldrun.flows import interruptible
from coldrun.flows.interruptible import call_interruptibly
from coldrun.flows.prefect_server import Server
from coldrun.tasks.lib.watch import Watch

ROOT = Path(__file__).parents[2]

# The stage waits as a well-behaved arm does ("patient"), or does not hear of the stop ("deaf").
FLOW = """
import sys, threading, time
from coldrun.flows.prefect_server import require_server, use_server

with use_server(require_server(lambda _: None), verbose=False):
    from prefect import flow, task
    from prefect.cache_policies import NO_CACHE
    from prefect.task_runners import ThreadPoolTaskRunner
    from coldrun.flows.interruptible import Interrupted
    from coldrun.flows.orchestrate import call_flow
    from coldrun.tasks.lib.watch import Watch

    is_stopping = threading.Event()
    watch = Watch()
    watch.begin("run", is_stopping.set)

    @task(name="ask", task_run_name="{label}", cache_policy=NO_CACHE, persist_result=False)
    def ask(label):
        print("asked", flush=True)
        is_stopping.wait(60) if sys.argv[1] == "patient" else time.sleep(60)
        return label

    @flow(name="test", persist_result=False, task_runner=ThreadPoolTaskRunner(max_workers=1))
    def evaluate():
        futures = [ask.submit(label=f"shard {n}") for n in range(2)]
        watch.results["run"] = [future.result() for future in futures]

    try:
        call_flow(evaluate, watch=watch)
    except Interrupted:
        print("landed", watch.results.get("run"), flush=True)
        raise SystemExit(130)
"""

# The same without an orchestrator.
PLAIN = """
import sys, threading, time
from coldrun.flows.interruptible import Interrupted, call_interruptibly
from coldrun.tasks.lib.watch import Watch

is_stopping = threading.Event()
watch = Watch()
watch.begin("run", is_stopping.set)

def work():
    print("asked", flush=True)
    is_stopping.wait(60) if sys.argv[1] == "patient" else time.sleep(60)
    watch.results["run"] = ["shard 0"]

try:
    call_interruptibly(work, watch=watch)
except Interrupted:
    print("landed", watch.results.get("run"), flush=True)
    raise SystemExit(130)
"""


def _interrupt(
    code: str, kind: str, sign: signal.Signals, server: dict[str, str] | None = None
) -> tuple[int, float, str]:
    """Start the work, send a signal while it waits, and give what came of it."""
    with subprocess.Popen(
        [sys.executable, "-c", code, kind],
        cwd=ROOT,
        env=os.environ | (server or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(sign)
        sent = time.monotonic()
        rest = process.stdout.read()
        return process.wait(), time.monotonic() - sent, rest


@pytest.mark.parametrize(
    ("kind", "sign", "said"),
    [
        ("patient", signal.SIGTERM, "landed ['shard 0']\n"),
        ("patient", signal.SIGHUP, "landed ['shard 0']\n"),
        ("deaf", signal.SIGINT, "landed None\n"),
    ],
)
def test_interrupted_work_lands_what_finished_or_is_left_behind(
    kind: str, sign: signal.Signals, said: str
) -> None:
    """Any of the three signals stops it; a thread that does not hear cannot hold the program up."""
    code, seconds, found = _interrupt(PLAIN, kind, sign)
    assert (code, found) == (130, said)
    assert seconds < 6


@pytest.mark.prefect
@pytest.mark.soak  # cli/test_interrupt.py has the same through the command line
@pytest.mark.parametrize(
    ("kind", "said"),
    [("patient", "asked\nlanded ['shard 0', 'shard 1']\n"), ("deaf", "landed None\n")],
)
def test_interrupted_flow_lands_what_finished_or_is_left_behind(
    prefect_server: dict[str, str], kind: str, said: str
) -> None:
    """SIGTERM, which Prefect ignores here for 30 s."""
    code, seconds, found = _interrupt(FLOW, kind, signal.SIGTERM, prefect_server)
    assert (code, found) == (130, said)
    assert seconds < 6


@pytest.mark.prefect
def test_flow_without_a_signal_gives_the_value_and_the_flows_own_error(
    used_server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    """Values pass, errors pass as they are, and Prefect prints neither."""
    from prefect import flow

    from coldrun.flows.orchestrate import call_flow

    @flow(persist_result=False)
    def succeed() -> list[int]:
        return [1, 2]

    @flow(persist_result=False)
    def fail() -> None:
        raise LookupError("no such thing")

    earlier = signal.getsignal(signal.SIGTERM)
    assert call_flow(succeed, watch=Watch()) == [1, 2]
    with pytest.raises(LookupError, match="no such thing"):
        call_flow(fail, watch=Watch())
    assert signal.getsignal(signal.SIGTERM) is earlier
    assert capfd.readouterr() == ("", "")


def test_work_that_is_left_to_itself_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever polls can decide that the result is there and the rest need not be waited for."""
    monkeypatch.setattr(interruptible, "left_behind", [])
    began = time.monotonic()
    assert call_interruptibly(lambda: time.sleep(5), watch=Watch(), on_poll=lambda: True) is None
    assert time.monotonic() - began < 3
    assert interruptible.left_behind == ["work"]
