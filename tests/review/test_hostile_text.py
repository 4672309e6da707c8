"""What arms, queries and paths say is data: it neither crashes a run nor dresses its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from coldrun.cli.options import people_console
from tests.evaluations import EvaluationLab

LONE = "caf\\udce9.py"
"""A name that is not UTF-8, as JSON from Python holds it."""

EVENT = f"""say(type="event", id=message["id"], name="{LONE}", returned_bytes=10**30)
            say(type="answer", id=message["id"], items=[])"""


RAW = (
    '{"type":"answer","id":"ID","items":[{"path":"\\ud83d"}]}',
    '{"type":"answer","id":"ID","items":[{"path":"a\\u0000b"}]}',
    '{"type":"answer","id":"ID","items":[{"path":"a","score":NaN}]}',
    '{"type":"answer","id":"ID","items":[{"path":"a","score":' + "9" * 1000 + "}]}",
    '{"type":"answer","id":"ID","items":' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"type":"answer","id":"ID","usage":{"input_tokens":1e400},"items":[]}',
)
"""Lines as no JSON library would write them."""


@pytest.mark.parametrize(
    "body",
    [
        f'say(type="error", id=message["id"], message="cannot read {LONE}")',
        f'say(type="answer", id=message["id"], items=[], stop_reason="{LONE}")',
        f'say(type="answer", id=message["id"], items=[], degraded=["{LONE}"])',
        f'say(type="answer", id=message["id"], items=[], trajectory="{LONE}")',
        f'say(type="answer", id=message["id"], items=["{LONE}"])',
        f'say(type="answer", id=message["id"], items=[], usage={{"model": "{LONE}"}})',
        'say(type="answer", id=message["id"], items=[], usage={"input_tokens": 10**30})',
        EVENT,
        *(f"say_raw({json.dumps(text)})" for text in RAW),
        "say_bytes(bytes([0xFF, 0xFE]))",
    ],
)
def test_odd_values_in_an_answer_never_stop_a_run(tmp_path: Path, body: str) -> None:
    lab = EvaluationLab(tmp_path).prepare(6)
    arm = lab.config.parent / "arm.py"
    arm.write_text(
        arm.read_text().replace(
            'say(type="answer", id=message["id"], **answer(message["query"]))', body
        )
        + "\n"
    )
    arm.write_text(
        "def say_bytes(data):\n    sys.stdout.buffer.write(data + b'\\n'); sys.stdout.flush()\n\n"
        "def say_raw(text):\n    print(text.replace('ID', message['id']), flush=True)\n\n"
        + arm.read_text().replace("def serve():", "def serve():\n    global message")
    )

    report = lab.run().report

    assert report.counts.executed == 6
    assert lab.invoke("report", "last").stderr == ""
    assert json.loads(lab.invoke("show", "last", "--json", "-").stdout)["answers"]


@pytest.mark.parametrize("extra", ["indexing_seconds=float('nan')", f'name="{LONE}"'])
def test_odd_values_at_the_start_never_stop_a_run(tmp_path: Path, extra: str) -> None:
    lab = EvaluationLab(tmp_path).prepare(6)
    arm = lab.config.parent / "arm.py"
    arm.write_text(
        arm.read_text().replace(
            'say(type="ready", nonce=message["nonce"])',
            f'say(type="ready", nonce=message["nonce"], {extra})',
        )
    )

    assert lab.run().report.counts.executed == 6


def test_neither_markup_nor_control_characters_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console = people_console()
    table = Table()
    table.add_column("name")
    table.add_row("[/] cell \x1b[2J")
    console.print("[bold]not bold[/bold] [/] \x1b[1A\x1b[2K verdict \r measured", soft_wrap=True)
    console.print(Text("text \x1b]0;title\x07 \u202e \udce9 \x9b2J"), table)
    shown = capsys.readouterr().out

    assert "[bold]not bold[/bold] [/]" in shown
    assert "[/] cell" in shown
    assert not set(shown) & set("\x1b\r\x07\u202e\udce9\x9b")


def test_a_tool_cannot_rewrite_the_report_that_quotes_it(tmp_path: Path) -> None:
    lab = EvaluationLab(tmp_path).prepare(6)
    arm = lab.config.parent / "arm.py"
    arm.write_text(
        arm.read_text().replace(
            'say(type="answer", id=message["id"], **answer(message["query"]))',
            'say(type="error", id=message["id"], message="\\x1b[9A\\x1b[2Kverdict measured [/]")',
        )
    )
    lab.run()

    for shown in (lab.coldrun("report", "last"), lab.invoke("show", "last", "--misses")):
        assert "verdict measured [/]" in shown.stdout
        assert "\x1b" not in shown.stdout + shown.stderr


def test_what_is_quoted_cannot_build_markdown(tmp_path: Path) -> None:
    lab = EvaluationLab(tmp_path).prepare(6)
    arm = lab.config.parent / "arm.py"
    arm.write_text(
        arm.read_text().replace(
            'say(type="answer", id=message["id"], **answer(message["query"]))',
            'say(type="error", id=message["id"], message="x\\n# verdict: measured\\n<b>ok</b>")',
        )
    )
    lab.run()

    shown = lab.invoke("report", "last", "--markdown", "-").stdout

    assert "\n# verdict: measured" not in shown
    assert "<b>" not in shown
