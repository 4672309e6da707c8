"""What the session does for every kind of arm: abort, long starts, tries, restarts, bases."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.command.command_kind import CommandArm
from coldrun.tasks.arms.mcp.mcp_kind import McpArm
from coldrun.tasks.arms.service.chat_kind import ChatArm
from coldrun.tasks.arms.service.http_kind import HttpArm
from coldrun.tasks.config import ProcessArm
from coldrun.tasks.lib.errors import ConfigError, UsageError
from coldrun.tasks.lib.records import Question
from tests.arms.mcp.test_mcp import BARE_SERVER
from tests.services import Service, run_service
from tests.sessions import Lab, ask

HANGING = "import sys, time\nprint('started', file=sys.stderr, flush=True)\ntime.sleep(60)\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """An endpoint that hangs when asked to."""
    with run_service(tmp_path_factory.mktemp("service")) as found:
        yield found


def make_arm(lab: Lab, kind: str, url: str) -> ProcessArm:
    """An arm that does not answer the question "hang"."""
    lab.adapter("answer = lambda q: time.sleep(60)")
    lab.write("hang.py", HANGING)
    lab.write("server.py", BARE_SERVER)
    common: dict[str, Any] = {"name": "it", "retries": 3, "timeout_seconds": 60}
    python = "{python}"
    match kind:
        case "session":
            return lab.arm(**common)
        case "per-task":
            argv = (python, "hang.py")
            return CommandArm(kind="command", mode="per-task", argv=argv, **common)
        case "mcp":
            arguments = {"pattern": "{query}"}
            argv = (python, "server.py")
            return McpArm(kind="mcp", argv=argv, tool="find", arguments=arguments, **common)
        case "http":
            return HttpArm(kind="http", url=url, **common)
        case _:
            body = {"query": "hang"}
            values = {"prompt": "{query}", "parameters": body, "retry": "once"}
            return ChatArm(kind="chat", url=url, model="m", **values, **common)


@pytest.mark.parametrize("kind", ["session", "per-task", "mcp", "http", "chat"])
def test_abort_ends_a_question_in_flight(lab: Lab, service: Service, kind: str) -> None:
    """Another thread can end a session at once; no retry follows, and it stays ended."""
    session = open_session(lab.context(make_arm(lab, kind, service.url)))
    timer = threading.Timer(0.4, session.abort)
    timer.start()
    began = time.monotonic()
    reply = ask(session, "hang")
    assert (reply.status, reply.reason) == ("infra", "the session was ended")
    assert len(reply.attempts) == 1
    assert ask(session).reason == "the session was ended"
    session.close()
    assert time.monotonic() - began < 5
    timer.join()


@pytest.mark.parametrize("kind", ["session", "mcp", "http"])
def test_start_that_takes_long_can_be_ended(lab: Lab, kind: str) -> None:
    """Whoever opens a session can end its start from another thread."""
    lab.write("hang.py", HANGING)
    lab.adapter("")
    arms = {
        "session": lab.arm(argv=("{python}", "hang.py")),
        "mcp": McpArm(name="it", kind="mcp", argv=("{python}", "hang.py"), tool="find"),
        "http": HttpArm(
            name="it",
            kind="http",
            argv=("{python}", "hang.py", "{port}"),
            url="http://127.0.0.1:{port}/",
        ),
    }
    timers = []

    def end_soon(abort: Callable[[], None]) -> None:
        timers.append(threading.Timer(0.3, abort))
        timers[0].start()

    began = time.monotonic()
    session = open_session(replace(lab.context(arms[kind]), on_starting=end_soon))
    assert ask(session).reason == "the session was ended"
    session.close()
    assert time.monotonic() - began < 8
    timers[0].join()


def test_retries_are_attempts(lab: Lab) -> None:
    """A declared retry is made, and the failure before it stays in the record; else there is none.

    What a session kept is there for its restart, as of a deployed tool.
    """
    body = """
    import pathlib
    def answer(q):
        mark = pathlib.Path(os.environ["TMPDIR"], "tried")
        if not mark.exists():
            mark.touch()
            os._exit(9)
        return {"items": ["src/a.py"]}
    """
    with lab.session(body, retries=2) as session:
        reply = ask(session)
        assert reply.status == "answered"
        assert [(a.number, a.status) for a in reply.attempts] == [(1, "infra"), (2, "ok")]
        assert reply.attempts[0].reason == "the process ended with exit code 9"
        assert reply.seconds == pytest.approx(sum(a.seconds for a in reply.attempts))
    with lab.session(body) as session:
        assert len(ask(session).attempts) == 1


def test_start_that_keeps_failing_is_given_up(lab: Lab) -> None:
    """After three failed starts in a row there is no fourth."""
    with lab.session("sys.exit(4)") as session:
        replies = [ask(session, name=str(number)) for number in range(4)]
        assert all(reply.status == "infra" for reply in replies)
        assert "exit code 4" in replies[0].reason
        assert "(3 times; given up)" in replies[3].reason


@pytest.mark.parametrize(
    ("body", "values", "reasons"),
    [
        ("", {"argv": ("no-such-program",)}, ["'no-such-program' cannot be started"]),
        ("time.sleep(60)", {"startup_timeout_seconds": 0.3}, ["was not ready after 0.3 s"]),
        ("print('Welcome!', flush=True)", {}, ["'Welcome!'", "write logs to stderr"]),
    ],
)
def test_start_that_fails_says_why(
    lab: Lab, body: str, values: dict[str, Any], reasons: list[str]
) -> None:
    """The session opens all the same; its answers are infra."""
    with lab.session(body, **values) as session:
        reply = ask(session)
        assert reply.status == "infra"
        assert all(reason in reply.reason for reason in reasons)


def test_task_with_its_own_base_is_asked_over_that_tree(lab: Lab) -> None:
    """Each base gets a fresh session at the same place; nothing kept for one is there for another.

    The corpus folder stays the one that was reported at the start, for scoring.
    """
    corpus = lab.corpus()
    base = lab.git("corpus", "rev-parse", "base")
    later = lab.git("corpus", "rev-parse", "HEAD")
    lab.adapter(
        """
        def answer(q):
            kept = os.path.join(os.environ["TMPDIR"], "kept")
            found = [open(hello["corpus"] + "/src/a.py").read(), os.path.exists(kept)]
            open(kept, "w").close()
            return {"items": [hello["corpus"] + "/src/a.py"], "stop_reason": json.dumps(found)}
        """
    )
    session = open_session(lab.context(lab.arm(), corpus=corpus))
    found = []
    for name in (None, later, later, base, None):
        question = Question(id="q", query="x", answer="ranking", k=5, seed=0, base=name)
        reply = session.ask(question)
        assert reply.status == "answered"
        found.append(json.loads(reply.stop_reason or ""))
        assert session.start.corpus_dir is not None
        assert session.start.corpus_dir in (reply.raw or "")
    assert found == [
        ["a = 1\n", False],
        ["a = 'SECRET'\n", False],
        ["a = 'SECRET'\n", True],
        ["a = 1\n", False],
        ["a = 1\n", False],
    ]
    end = session.close()
    assert (end.invalid, end.warnings, end.restarts) == ((), (), 0)


def test_close_removes_every_folder_and_may_be_called_twice(lab: Lab) -> None:
    """Nothing of a session stays in the scratch folder, and looking after it is quick."""
    with lab.session() as session:
        began = time.monotonic()
        first = session.close()
        assert time.monotonic() - began < 2
        assert session.close() == first
    assert [path for path in (lab.scratch / "sessions").rglob("*") if path.name != "run"] == []


def test_arm_that_cannot_be_opened_is_an_error(lab: Lab, tmp_path: Path) -> None:
    """A declared file that is not there, and a scratch folder inside a repository."""
    with pytest.raises(ConfigError, match=r"there is nothing at .*adapter\.py"):
        open_session(lab.context(lab.arm()))
    assert not list((lab.scratch / "sessions" / "run").iterdir())
    lab.adapter("")
    inside = Lab(tmp_path / "inside")
    inside.commit_files("scratch", {"x": "y"})
    with pytest.raises(UsageError, match="lies inside the git repository"):
        open_session(replace(lab.context(lab.arm()), scratch=inside.scratch))
