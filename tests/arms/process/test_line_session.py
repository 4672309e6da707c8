"""JSON Lines sessions against real programs that behave, fail, hang, flood and fork."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Session
from tests.sessions import Lab, ask, is_gone

TALKING = """
def answer(q):
    match q["query"]:
        case "hello":
            return {"paths": [], "stop_reason": json.dumps([hello, q])}
        case "nothing":
            return {"items": []}
        case "abstain":
            return {"items": ["src/a.py"], "abstained": True}
        case "usage":
            say(type="usage", id=q["id"], model="m", input_tokens=1)
            total = [{"model": "m", "input_tokens": 9}, {"model": "n", "output_tokens": 2}]
            return {"items": ["src/a.py"], "usage": total}
        case "events":
            say(type="event", id=q["id"], name="search", arguments={"q": 1}, returned_bytes=10)
            say(type="event", id=q["id"], name="read")
            return {"items": ["src/a.py"], "trajectory": [{"step": 1}], "stop_reason": "done"}
        case "error":
            say(type="error", id=q["id"], message="model overloaded", usage={"input_tokens": 3})
        case "unready":
            return {"items": [], "message": "Index is not ready yet"}
        case _:
            return {"items": [{"path": "src/a.py", "lines": "raise Error('timed out')"}]}
"""


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One session for the tests that leave it alive."""
    with Lab(tmp_path_factory.mktemp("talking")).session(TALKING) as session:
        yield session
        assert session.close().restarts == 0


def test_question_answered_keeps_raw_line(talking: Session) -> None:
    """An answer's raw text is the line as the arm wrote it, read at scoring time; a pattern of
    failure inside an honest result is no failure."""
    reply = ask(talking, "fix: request timed out")
    assert (reply.status, reply.reason) == ("answered", None)
    assert json.loads(reply.raw)["items"][0]["path"] == "src/a.py"
    assert len(reply.attempts) == 1
    assert 0 < reply.seconds < 5


def test_hello_carries_what_the_design_says(talking: Session) -> None:
    """The greeting has the protocol, the corpus, the kind of answer, k, the seed and a nonce."""
    hello, question = json.loads(ask(talking, "hello").stop_reason)
    assert len(hello.pop("nonce")) == 32
    assert hello == {
        "type": "hello",
        "protocol": 1,
        "corpus": talking.start.corpus_dir,
        "answer": "ranking",
        "k": 5,
        "seed": 7,
    }
    assert question == {"type": "question", "id": "q1", "query": "hello"}


def test_abstained_flag_or_empty_ranking_abstains(talking: Session, lab: Lab) -> None:
    """Nothing found is an abstention of a ranking, as is saying so; an empty set is an answer."""
    assert ask(talking, "nothing").status == "abstained"
    assert ask(talking, "abstain").status == "abstained"
    lab.adapter('answer = lambda q: {"items": []}')
    session = open_session(lab.context(lab.arm(), answer="set"))
    assert ask(session).status == "answered"
    session.close()


def test_usage_in_the_answer_is_the_total(talking: Session) -> None:
    """The answer's own usage replaces the increments, and one attempt is kept per model."""
    attempts = ask(talking, "usage").attempts
    assert [(a.number, a.model, a.input_tokens, a.output_tokens) for a in attempts] == [
        (1, "m", 9, None),
        (1, "n", None, 2),
    ]
    assert attempts[0].seconds > 0
    assert attempts[1].seconds == 0


def test_events_and_trajectory_are_kept(talking: Session) -> None:
    """Component events get a position and a digest of their arguments."""
    reply = ask(talking, "events")
    assert [(e.name, e.position, e.returned_bytes) for e in reply.events] == [
        ("search", 0, 10),
        ("read", 1, None),
    ]
    assert len(reply.events[0].arguments_digest) == 64
    assert json.loads(reply.trajectory) == [{"step": 1}]
    assert reply.stop_reason == "done"


def test_error_that_the_arm_reports_is_infra_without_a_restart(talking: Session) -> None:
    """An error line keeps what was spent; an empty answer that says it is not ready is no miss."""
    reply = ask(talking, "error")
    assert (reply.status, reply.reason) == ("infra", "model overloaded")
    assert reply.attempts[0].input_tokens == 3
    reply = ask(talking, "unready")
    assert reply.status == "infra"
    assert "not ready" in reply.reason


def test_overhead_of_an_instant_answer_is_below_three_milliseconds(talking: Session) -> None:
    """Asking costs next to nothing beside what a tool takes."""
    times = []
    for number in range(300):
        began = time.perf_counter()
        ask(talking, name=str(number))
        times.append(time.perf_counter() - began)
    assert sorted(times)[150] < 0.003


def test_ready_reports_name_degraded_and_indexing(lab: Lab) -> None:
    """What the arm says when it is ready is kept; indexing time is kept apart from start-up."""
    body = """
    def ready():
        time.sleep(0.2)
        return {"name": "mytool", "degraded": ["no gpu"], "indexing_seconds": 0.15}
    """
    with lab.session(body) as session:
        assert session.start.name == "mytool"
        assert session.start.degraded == ("no gpu",)
        assert session.start.indexing_seconds == 0.15
        assert session.start.startup_seconds >= 0.05
        assert ask(session).degraded == ("no gpu",)


def test_crash_is_infra_and_only_the_question_in_flight_is_lost(lab: Lab) -> None:
    """A session that dies is started again; what it logged for this question is quoted."""
    body = """
    def answer(q):
        print("about " + q["query"], file=sys.stderr, flush=True)
        if q["query"] == "die":
            print("Traceback: boom", file=sys.stderr, flush=True)
            os._exit(3)
        return {"items": ["src/a.py"]}
    """
    with lab.session(body) as session:
        assert ask(session, "first").status == "answered"
        reply = ask(session, "die")
        assert reply.status == "infra"
        assert reply.reason == "the process ended with exit code 3"
        assert reply.stderr == "about die\nTraceback: boom"
        assert ask(session, "third").status == "answered"
        end = session.close()
    assert end.restarts == 1
    assert end.log is not None
    assert "boom" in end.log


def test_timeout_ends_the_group_and_keeps_usage(lab: Lab) -> None:
    """A time-out kills grandchildren too, and what was spent until then stays in the attempt."""
    body = """
    import subprocess
    def answer(q):
        child = subprocess.Popen(["sleep", "60"])
        say(type="usage", id=q["id"], model="m", input_tokens=100, output_tokens=5)
        say(type="usage", id=q["id"], model="m", input_tokens=50)
        print(child.pid, os.getpid(), file=sys.stderr, flush=True)
        time.sleep(60)
    """
    with lab.session(body, timeout_seconds=0.6, sandbox=False) as session:
        began = time.monotonic()
        reply = ask(session)
        assert time.monotonic() - began < 5
        assert reply.status == "infra"
        assert reply.reason == "timed out after 0.6 s"
        (attempt,) = reply.attempts
        assert (attempt.model, attempt.input_tokens, attempt.output_tokens) == ("m", 150, 5)
        assert attempt.cache_read_tokens is None
        assert attempt.seconds >= 0.6
        pids = [int(word) for word in reply.stderr.split()]
        assert len(pids) == 2
        assert is_gone(*pids)


def test_daemon_that_left_its_group_is_ended_at_close(lab: Lab) -> None:
    """A process that escaped the group is found by its private HOME and named in a warning."""
    body = """
    import subprocess
    def answer(q):
        child = subprocess.Popen(["sleep", "60"], start_new_session=True, stdout=2)
        return {"items": [], "stop_reason": str(child.pid)}
    """
    with lab.session(body, sandbox=False) as session:
        pid = int(ask(session).stop_reason)
        end = session.close()
    assert is_gone(pid)
    assert "left 1 process outside its process group, now ended" in end.warnings


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("answer = lambda q: print('not json', flush=True)", "expected a JSON object"),
        ("answer = lambda q: print('[1]', flush=True)", "expected a JSON object"),
        ("answer = lambda q: say(type='what')", "unexpected line"),
        ("answer = lambda q: say(type='answer', id='other', items=[])", "an answer for 'other'"),
        ("answer = lambda q: {'files': []}", "neither a list `items` nor a list `paths`"),
        ("answer = lambda q: {'items': [{'file': 'a'}]}", "has no `path`"),
        ("answer = lambda q: {'items': [], 'usage': {'input_tokens': -1}}", "below 0"),
        ("answer = lambda q: {'items': ['/etc/passwd']}", "outside the corpus"),
        ("answer = lambda q: {'items': ['../x']}", "not a path in the corpus"),
        ("answer = lambda q: os.write(1, b'\\xff\\xfe\\n') and None", "not UTF-8"),
    ],
)
def test_malformed_output_is_infra(lab: Lab, body: str, reason: str) -> None:
    """Output that the protocol does not allow is the tool's failure, and says why."""
    with lab.session(body, timeout_seconds=5) as session:
        reply = ask(session)
        assert reply.status == "infra"
        assert reason in reply.reason


@pytest.mark.parametrize("end", ["", "\\n"])
def test_oversized_output_is_infra_and_the_session_lives_on(lab: Lab, end: str) -> None:
    """A flood is cut off at the declared size, whether or not the line ever ends."""
    body = f"""
    def answer(q):
        if q["query"] == "flood":
            sys.stdout.write("x" * 5_000_000 + "{end}")
            sys.stdout.flush()
            time.sleep(30)
        return {{"items": ["src/a.py"]}}
    """
    with lab.session(body, max_output_bytes=100_000) as session:
        reply = ask(session, "flood")
        assert reply.reason == "wrote more than 100000 bytes for one question"
        assert ask(session, "small").status == "answered"


def test_stray_line_between_questions_restarts_the_session(lab: Lab) -> None:
    """Output that nobody asked for must not be taken for the next answer."""
    body = """
    def answer(q):
        say(type="answer", id=q["id"], items=["src/b.py"])
        say(type="answer", id="q2", items=["x.md"])
    """
    with lab.session(body) as session:
        assert "src/b.py" in ask(session, name="q1").raw
        time.sleep(0.1)
        assert "src/b.py" in ask(session, name="q2").raw
        end = session.close()
    assert end.restarts == 1
    assert any("between questions" in warning for warning in end.warnings)


def test_question_larger_than_a_pipe_is_sent_whole(lab: Lab) -> None:
    """A long query reaches an arm that floods its own output meanwhile."""
    body = """
    def answer(q):
        say(type="usage", id=q["id"], note="y" * 300_000)
        return {"items": [], "stop_reason": str(len(q["query"]))}
    """
    with lab.session(body) as session:
        assert ask(session, "x" * 500_000).stop_reason == "500000"


def test_environment_holds_declared_variables_alone(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the user's environment is passed on but what is declared."""
    monkeypatch.setenv("MY_SECRET", "s")
    monkeypatch.setenv("MYTOOL_MODE", "fast")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    body = 'answer = lambda q: {"items": [], "stop_reason": json.dumps(dict(os.environ))}'
    with lab.session(body, env=("MYTOOL_MODE",), set_env={"LEVEL": "3"}) as session:
        found = json.loads(ask(session).stop_reason)
        home = Path(found["HOME"])
        assert os.path.commonpath([home, lab.scratch]) == str(lab.scratch)
    assert found["MYTOOL_MODE"] == "fast"
    assert found["LEVEL"] == "3"
    for name in ("LC_CTYPE", "PWD"):  # The child's interpreter and the sandbox set them.
        found.pop(name, None)
    assert set(found) == {
        *("PATH", "LANG", "HOME", "TMPDIR", "TMP", "TEMP", "MYTOOL_MODE", "LEVEL"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"),
        *("XDG_RUNTIME_DIR", "GIT_CEILING_DIRECTORIES", "GIT_CONFIG_NOSYSTEM"),
        "GIT_TERMINAL_PROMPT",
    }


def test_adapter_sees_declared_files_and_no_panel(lab: Lab) -> None:
    """An undeclared helper cannot be imported, and the panel beside the configuration is away."""
    lab.write("panel.jsonl", "gold")
    lab.write("helper.py", "VALUE = 1\n")
    body = """
    def answer(q):
        try:
            import helper
            found = "helper"
        except ImportError:
            found = "none"
        names = sorted(set(os.listdir(".")) - {"__pycache__"})
        return {"items": [], "stop_reason": " ".join([found, *names])}
    """
    with lab.session(body) as session:
        assert ask(session).stop_reason == "none adapter.py"
    with lab.session(body, files=("helper.py",)) as session:
        assert ask(session).stop_reason == "helper adapter.py helper.py"


def test_script_of_the_command_line_counts_as_declared(lab: Lab) -> None:
    """Without a product, relative words of the command line that name files are copied."""
    lab.adapter("", name="tools/run.py")
    arm = lab.arm(argv=("{python}", "tools/run.py"), adapter=None)
    session = open_session(lab.context(arm))
    assert ask(session).status == "answered"
    session.close()
