"""MCP servers over stdio: the official SDK on both sides, real processes between them."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Session
from coldrun.tasks.arms.mcp.mcp_kind import McpArm
from tests.sessions import Lab, ask, is_gone, items

SERVER = '''
import json, os, pathlib, re, subprocess, sys, time
from typing import Any
from mcp.server.fastmcp import FastMCP

server = FastMCP("finder", log_level="ERROR")
state = {"path": None, "polls": 0}

@server.tool()
def set_path(path: str) -> str:
    state["path"] = pathlib.Path(path)
    time.sleep(0.1)
    return "indexing started" if os.environ.get("SLOW_INDEX") else "ready"

@server.tool()
def index_state() -> str:
    state["polls"] += 1
    return "complete" if state["polls"] > 3 else "still indexing"

@server.tool()
def find(pattern: str, limit: int = 5) -> dict[str, Any]:
    """Files whose text matches."""
    if pattern == "hang":
        child = subprocess.Popen(["sleep", "60"])
        print(child.pid, os.getpid(), file=sys.stderr, flush=True)
        time.sleep(60)
    if pattern == "die":
        print("boom", file=sys.stderr, flush=True)
        os._exit(5)
    if pattern == "raise":
        raise ValueError("no such index")
    if pattern == "flood":
        return {"results": ["x" * 3_000_000]}
    if pattern == "unready":
        return {"results": [], "message": "index not ready"}
    if pattern == "stray":
        os.write(1, b"hello, human\\n")
    found = [
        {"file": str(path), "lines": 1}
        for path in sorted(state["path"].rglob("*"))
        if path.is_file() and re.search(pattern, path.read_text())
    ]
    return {"results": found[:limit], "home": os.environ["HOME"], "limit": limit}

@server.tool()
def find_text(pattern: str) -> str:
    """The same as Markdown."""
    lines = [f"- **{item['file']}**: 1 match" for item in find(pattern)["results"]]
    return "\\n".join(["## Results", *lines]) if lines else "No matches found."

if __name__ == "__main__":
    if "--fail" in sys.argv:
        sys.exit(6)
    if "--sleep" in sys.argv:
        time.sleep(60)
    server.run()
'''

PREPARE = ({"tool": "set_path", "arguments": {"path": "{corpus}"}},)


def make_arm(lab: Lab, *arguments: str, **values: Any) -> McpArm:
    lab.write("server.py", SERVER)
    defaults: dict[str, Any] = {
        "name": "finder",
        "kind": "mcp",
        "argv": ("{python}", "server.py", *arguments),
        "prepare": PREPARE,
        "tool": "find",
        "arguments": {"pattern": "{query}", "limit": "{k}"},
        "items": "$.results[*].file",
        "timeout_seconds": 20,
        "startup_timeout_seconds": 30,
    }
    return McpArm(**{**defaults, **values})


def open_server(lab: Lab, *arguments: str, **values: Any) -> Session:
    return open_session(lab.context(make_arm(lab, *arguments, **values)))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One server for the tests that leave it alive."""
    lab = Lab(tmp_path_factory.mktemp("mcp"))
    session = open_server(lab)
    yield session
    session.close()


def test_server_is_prepared_and_asked(shared: Any) -> None:
    """Start-up and indexing are timed apart; items are read from the structured content."""
    assert shared.start.name.startswith("finder")
    assert shared.start.startup_seconds > 0
    assert shared.start.indexing_seconds >= 0.1
    reply = ask(shared, "= [12]")
    assert reply.status == "answered"
    assert items(shared, reply) == ("src/a.py", "src/b.py")
    result = json.loads(reply.raw)
    assert result["structuredContent"]["limit"] == 5
    assert result["structuredContent"]["home"].startswith(str(shared.workspace.root))
    (event,) = reply.events
    assert (event.name, event.position) == ("find", 0)
    assert event.returned_bytes == len(reply.raw)


def test_nothing_found_is_an_abstention(shared: Any) -> None:
    """An empty list of results is told apart from a path that fits nothing."""
    assert ask(shared, "no such text").status == "abstained"


def test_tool_error_is_infra(shared: Any) -> None:
    """An error result is the tool's failure, its text the reason, and the server lives on."""
    reply = ask(shared, "raise")
    assert reply.status == "infra"
    assert "no such index" in reply.reason
    assert json.loads(reply.raw)["isError"] is True
    assert ask(shared, "a = 1").status == "answered"


def test_error_with_success_status_is_infra(shared: Any) -> None:
    """A result that says the index is not ready is no miss."""
    reply = ask(shared, "unready")
    assert (reply.status, reply.reason) == ("infra", "index not ready")


def test_overhead_of_an_instant_answer_is_small(shared: Any) -> None:
    """Crossing to the event loop and back costs a few milliseconds at most."""
    times = []
    for _ in range(50):
        began = time.perf_counter()
        ask(shared, "a = 1")
        times.append(time.perf_counter() - began)
    assert sorted(times)[25] < 0.05


def test_markdown_is_read_by_pattern(lab: Lab) -> None:
    """A tool that answers in prose is read by a regular expression per line."""
    session = open_server(
        lab,
        tool="find_text",
        arguments={"pattern": "{terms_regex}"},
        items=None,
        items_regex=r"^- \*\*(.+?)\*\*",
    )
    assert items(session, ask(session, "b = 2")) == ("src/b.py",)
    assert ask(session, "zzz").status == "abstained"
    assert session.close().invalid == ()


@pytest.mark.parametrize("until", [None, "^complete"])
def test_preparation_polls_until_the_index_is_ready(lab: Lab, until: str | None) -> None:
    """A preparing call is repeated while it says it is not ready, or until a pattern is met."""
    poll = {"tool": "index_state", "every_seconds": 0.02, "until": until}
    session = open_server(lab, prepare=(*PREPARE, poll))
    assert ask(session, "a = 1").status == "answered"
    assert session.start.indexing_seconds >= 0.16
    session.close()


def test_preparation_that_never_ends_is_infra(lab: Lab) -> None:
    """A server that does not get ready in time says what it last said."""
    poll = {"tool": "index_state", "every_seconds": 0.05, "until": "^never", "timeout_seconds": 0.3}
    session = open_server(lab, prepare=(*PREPARE, poll))
    reply = ask(session)
    assert reply.status == "infra"
    assert "'index_state' was not ready after 0.3 s; it last said" in reply.reason
    session.close()


@pytest.mark.parametrize(
    ("arguments", "values", "reason"),
    [
        (("--fail",), {}, "exit code 6"),
        (("--sleep",), {"startup_timeout_seconds": 0.5}, "was not ready after 0.5 s"),
        pytest.param(
            *((), {"tool": "search"}, "has no tool 'search', but set_path"),
            marks=pytest.mark.soak,
        ),
        ((), {"prepare": ({"tool": "set_path", "arguments": {}},)}, "'set_path' failed"),
        ((), {"argv": ("no-such-server",)}, "'no-such-server' cannot be started"),
    ],
)
def test_server_that_does_not_start_gives_infra(
    lab: Lab, arguments: tuple[str, ...], values: dict[str, Any], reason: str
) -> None:
    """A server that cannot be used is a failure of its answers, with the reason."""
    session = open_server(lab, *arguments, **values)
    reply = ask(session)
    assert reply.status == "infra"
    assert reason in reply.reason
    assert session.close().invalid == ()


def test_crash_is_infra_and_the_server_is_prepared_again(lab: Lab) -> None:
    """Only the question in flight is lost; the new server gets the preparing calls too."""
    session = open_server(lab)
    reply = ask(session, "die")
    assert (reply.status, reply.reason) == ("infra", "the process ended with exit code 5")
    assert "boom" in reply.stderr
    assert ask(session, "a = 1").status == "answered"
    assert session.close().restarts == 1


def test_timeout_ends_the_group(lab: Lab) -> None:
    """A time-out kills the server and its children."""
    session = open_server(lab, timeout_seconds=0.7)
    reply = ask(session, "hang")
    assert reply.reason == "timed out after 0.7 s"
    assert is_gone(*(int(word) for word in reply.stderr.split()))
    session.close()


def test_flood_is_infra(lab: Lab) -> None:
    """A message that is too long is cut off, and the server started again."""
    session = open_server(lab, max_output_bytes=500_000)
    assert ask(session, "flood").reason == "wrote more than 500000 bytes for one answer"
    assert ask(session, "a = 1").status == "answered"
    session.close()


def test_stray_output_is_a_warning(lab: Lab) -> None:
    """Text that is no message is skipped, as the SDK does, and told."""
    session = open_server(lab)
    assert ask(session, "stray").status == "abstained"
    assert "wrote 1 line to stdout that is no message" in session.close().warnings


def test_abort_ends_a_question_in_flight(lab: Lab) -> None:
    """Another thread can end a session at once."""
    session = open_server(lab, timeout_seconds=60, retries=2)
    timer = threading.Timer(0.4, session.abort)
    timer.start()
    began = time.monotonic()
    reply = ask(session, "hang")
    assert reply.status == "infra"
    assert len(reply.attempts) == 1
    session.close()
    assert time.monotonic() - began < 5
    assert ask(session).reason == "the session was ended"
    timer.join()


def test_start_that_takes_long_can_be_ended(lab: Lab) -> None:
    """Whoever opens a session can end its start from another thread."""
    timers = []

    def end_soon(abort: Callable[[], None]) -> None:
        timers.append(threading.Timer(0.3, abort))
        timers[0].start()

    began = time.monotonic()
    context = replace(lab.context(make_arm(lab, "--sleep")), on_starting=end_soon)
    session = open_session(context)
    assert ask(session).reason == "the session was ended"
    session.close()
    assert time.monotonic() - began < 8
    timers[0].join()


@pytest.mark.network
@pytest.mark.skipif(shutil.which("uvx") is None, reason="needs uvx")
def test_code_index_mcp_answers(lab: Lab) -> None:
    """A real server from the package registry: set the project, then search."""
    declared = [name for name in os.environ if name.startswith(("UV_", "SSL_CERT_"))]
    arm = McpArm(
        name="code-index",
        kind="mcp",
        argv=("uvx", "code-index-mcp==2.17.1"),
        env=tuple(declared),
        prepare=({"tool": "set_project_path", "arguments": {"path": "{corpus}"}},),
        tool="search_code_advanced",
        arguments={"pattern": "{terms_regex}", "regex": True},
        items="$.results[*].file",
        startup_timeout_seconds=300,
    )
    session = open_session(lab.context(arm))
    reply = ask(session, "b = 2")
    assert reply.status == "answered", reply.reason
    assert items(session, reply) == ("src/b.py",)
    session.close()
