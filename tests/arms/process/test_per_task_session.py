"""One process per question, made from a template."""

from __future__ import annotations

import json
import shutil
import time

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Session
from coldrun.tasks.arms.parse import parse_answer
from tests.sessions import Lab, ask, is_gone


def open_script(lab: Lab, body: str, *arguments: str, **values: object) -> Session:
    """A per-task session that runs a Python script with arguments."""
    lab.write("tool.py", "import json, os, sys, time, subprocess\n" + body)
    arm = lab.arm(mode="per-task", argv=("{python}", "tool.py", *arguments), adapter=None, **values)
    return open_session(lab.context(arm))


@pytest.mark.parametrize(
    ("body", "status", "raw"),
    [
        ("print('src/a.py\\n./src/b.py')", "answered", "src/a.py\n./src/b.py\n"),
        ("sys.exit(1)", "abstained", ""),
        (
            "print('no results for ' + sys.argv[1])",
            "abstained",
            "no results for request timed out\n",
        ),
    ],
)
def test_output_is_paths_or_nothing_found(lab: Lab, body: str, status: str, raw: str) -> None:
    """Without a parser every line is a path. Search programs end with 1 when they found nothing,
    and a tool that repeats a question about time-outs has not timed out."""
    session = open_script(lab, body, "{query}")
    reply = ask(session, "request timed out")
    assert (reply.status, reply.raw) == (status, raw)
    assert session.close().restarts == 0


def test_placeholders_are_filled(lab: Lab) -> None:
    """The command line is filled from the question and the session."""
    session = open_script(
        lab,
        "print(json.dumps({'items': [], 'got': sys.argv[1:]}))",
        *("{query}", "{terms}", "{terms_regex}", "{k}", "{corpus}", "{seed}", "{id}", "{other}"),
    )
    got = json.loads(ask(session, "Fix the FooBar in a.b").raw)["got"]
    corpus = session.start.corpus_dir
    assert got == [
        *("Fix the FooBar in a.b", "FooBar a.b", r"FooBar|a\.b", "5", corpus, "7", "q1"),
        "{other}",
    ]
    session.close()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit(2)", "the process ended with exit code 2"),
        ("print('src/a.py'); sys.exit(1)", "the process ended with exit code 1"),
        ("sys.stderr.write('bad'); sys.exit(1)", "the process ended with exit code 1"),
        ("os.kill(os.getpid(), 9)", "the process was ended by signal SIGKILL"),
        ("print('Error: operation timed out')", "Error: operation timed out"),
        ("print(json.dumps({'error': 'index not ready'}))", "index not ready"),
        ("print('x' * 5000)", "wrote more than 2000 bytes for one question"),
    ],
)
def test_failures_are_infra(lab: Lab, body: str, reason: str) -> None:
    """An exit code, a signal, a flood, and an error that claims success are failures."""
    session = open_script(lab, body, max_output_bytes=2000)
    reply = ask(session)
    assert reply.status == "infra"
    assert reason in reply.reason
    session.close()


def test_timeout_ends_grandchildren(lab: Lab) -> None:
    """The whole process group of a task ends with its time-out."""
    body = (
        "child = subprocess.Popen(['sleep', '60'])\n"
        "print(child.pid, file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    )
    session = open_script(lab, body, timeout_seconds=0.5, sandbox=False)
    reply = ask(session)
    assert reply.reason == "timed out after 0.5 s"
    assert is_gone(int(reply.stderr))
    session.close()


def test_grandchild_that_keeps_the_pipe_open_does_not_delay_the_answer(lab: Lab) -> None:
    """An answer is complete when its process ends, whoever still holds its output."""
    body = "subprocess.Popen(['sleep', '60'])\nprint('src/a.py')\n"
    session = open_script(lab, body, timeout_seconds=20)
    began = time.monotonic()
    reply = ask(session)
    assert (reply.status, reply.raw) == ("answered", "src/a.py\n")
    assert time.monotonic() - began < 5
    session.close()


def test_unreadable_answer_is_kept_for_scoring(lab: Lab) -> None:
    """An answer that the arm's parser does not fit is stored, so that the parser can be mended."""
    session = open_script(lab, "print(json.dumps({'hits': ['src/a.py']}))", items="$.results[*]")
    reply = ask(session)
    arm = session.context.arm  # type: ignore[attr-defined]
    assert reply.status == "answered"
    assert parse_answer(reply.raw, arm, answer="ranking", corpus_dir=None).problem is not None
    mended = arm.model_copy(update={"items": "$.hits[*]"})
    found = parse_answer(reply.raw, mended, answer="ranking", corpus_dir=None)
    assert found.items == ("src/a.py",)
    session.close()


@pytest.mark.skipif(shutil.which("grep") is None, reason="needs grep")
def test_grep_as_a_tool_answers(lab: Lab) -> None:
    """A program of the system searches the corpus by absolute path; paths are read back."""
    arm = lab.arm(mode="per-task", argv=("grep", "-rlE", "{terms_regex}", "{corpus}"), adapter=None)
    session = open_session(lab.context(arm))
    reply = ask(session, "b = 2")
    corpus = session.start.corpus_dir
    assert ask(session, "no_such_word").status == "abstained"
    session.close()
    found = parse_answer(reply.raw, arm, answer="ranking", corpus_dir=corpus)
    assert found.items == ("src/b.py",)


def test_query_with_a_nul_byte_is_asked(lab: Lab) -> None:
    """A byte that no command line can hold does not break the session."""
    session = open_script(lab, "print('src/a.py')", "{query}")
    assert ask(session, "a\0b").status == "answered"
    assert ask(session, "x" * 3_000_000).status == "infra"
    session.close()


@pytest.mark.parametrize("has_product", [False, True])
def test_program_runs_in_the_corpus_when_told_so(lab: Lab, *, has_product: bool) -> None:
    """Relative words start there, also those that name a file beside the configuration."""
    lab.write("src/a.py", "the configuration's\n")
    lab.commit_files("product", {"src/a.py": "the product's\n"})
    point = lab.point() if has_product else None
    arm = lab.arm(mode="per-task", argv=("cat", "src/a.py"), adapter=None, cwd="{corpus}")
    session = open_session(lab.context(arm, point=point))
    assert ask(session).raw == "a = 1\n"
    assert session.close().invalid == ()


@pytest.mark.parametrize("values", [{}, {"items_regex": "^(.+)$"}])
def test_answer_without_a_file_of_the_corpus_is_infra(lab: Lab, values: dict[str, str]) -> None:
    """Output that was misread must not score zero like a bad ranking, unless files may be new."""
    session = open_script(lab, "print('0.9|src/a.py')", **values)
    reply = ask(session)
    assert reply.status == "infra"
    assert "names no file of the corpus" in reply.reason
    assert reply.reason.endswith("'0.9|src/a.py'")
    session.close()
    session = open_script(lab, "print('src/new.py')", **values, items_may_be_new=True)
    assert ask(session).status == "answered"
    session.close()
