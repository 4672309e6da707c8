"""Endpoints that coldrun cannot see into: measured, never reused, resumed in their own run."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coldrun.tasks.report.answer_document import why_document
from coldrun.tasks.report.markdown import to_markdown
from coldrun.tasks.run.execute import Progress, execute_shard
from coldrun.tasks.run.key_differences import explain_answer
from tests.evaluations import EvaluationLab, arm_of
from tests.holdouts import build_garden
from tests.services import SERVICE, Service, run_service

GARDENER = SERVICE.replace(
    "def answer(handler, data):",
    """def answer(handler, data):
    if handler.headers.get("Authorization") != "Bearer tok-12345678":
        raise SystemExit("who are you?")
    if "messages" in data:
        said = data["messages"][-1]["content"]
        found = re.findall(r"Water the (\\w+)", said)
        text = "" if len(data["messages"]) == 1 else json.dumps([f"beds/{found[0]}.py"])
        usage = {"prompt_tokens": 50, "completion_tokens": 7}
        message = {"role": "assistant", "content": text}
        choice = {"message": message, "finish_reason": "stop"}
        return {"model": "tiny-2026-05-01", "choices": [choice], "usage": usage}
    found = re.findall(r"Water the (\\w+)", data["query"])
    return {"results": [{"file": f"beds/{word}.py"} for word in found]}


def unused(handler, data):""",
)

CONFIG = """\
[panel]
kind = "commit-files"
repo = "{repo}"
base = "{base}"
head = "main"

[[arm]]
name = "grep"
role = "floor"
kind = "grep"

[[arm]]
name = "service"
kind = "http"
url = "{url}/search"
items = "$.results[*].file"
env = ["GARDEN_TOKEN"]
headers = {{ Authorization = "Bearer ${{GARDEN_TOKEN}}" }}

[[arm]]
name = "direct"
role = "control"
kind = "chat"
url = "{url}/v1"
model = "tiny"
api_key_env = "GARDEN_TOKEN"
prompt = "{{query}}"

[[arm]]
name = "retry"
role = "control"
kind = "chat"
url = "{url}/v1"
model = "tiny"
api_key_env = "GARDEN_TOKEN"
prompt = "{{query}}"
retry = "once"
retry_prompt = "Name a file. {{query}}"
"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with run_service(tmp_path / "service", GARDENER) as found:
        yield found


@pytest.fixture
def lab(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> EvaluationLab:
    """Twelve tasks; a service that knows the answers, and a model that needs a second call."""
    monkeypatch.setenv("GARDEN_TOKEN", "tok-12345678")
    base = build_garden(tmp_path / "garden", commits=12)
    lab = EvaluationLab(tmp_path)
    lab.write(CONFIG.format(repo=tmp_path / "garden", base=base, url=service.url))
    lab.freeze()
    return lab


def test_endpoints_are_executed_in_spite_of_reuse_and_it_shows(
    lab: EvaluationLab, service: Service
) -> None:
    """The second run replays grep alone; report and `why` say what the others are."""
    first = lab.run()
    asked = len(service.requests())
    second = lab.run("reuse").report

    assert first.report.counts.executed == 48
    assert (second.counts.executed, second.counts.replayed, second.counts.infra) == (39, 9, 0)
    assert len(service.requests()) == 2 * asked
    assert arm_of(second, "service").measures["hit@1"].value == 1.0
    assert any(
        text.startswith(f"service: answered by {service.url}/search, which coldrun cannot identify")
        and text.endswith("executed in spite of --reuse")
        for text in second.warnings
    )
    assert any("so its answers are never reused" in text for text in first.report.warnings)
    (row,) = lab.select("SELECT min(task_id) AS task FROM captures")
    found = explain_answer(lab.warehouse, "last", task_id=row["task"], arm="service", trial=0)
    lines = to_markdown(why_document(found))
    assert "its session was not sealed, so bytes outside the key may have decided it" in lines
    assert "same key, of a session that was not sealed" in lines
    assert "a hit" not in lines


def test_tokens_of_every_call_and_the_name_of_the_model_are_in_the_ledger(
    lab: EvaluationLab,
) -> None:
    """The retry arm pays twice for each task; the first call is an attempt like any other."""
    report = lab.run().report
    rows = lab.select(
        "SELECT arm, number, model, count(*) AS calls, sum(input_tokens) AS tokens, "
        "min(reason) AS reason FROM attempts WHERE model IS NOT NULL GROUP BY ALL ORDER BY 1, 2"
    )
    signal = "failure signal: the answer is empty"
    assert [tuple(row.values()) for row in rows] == [
        ("direct", 1, "tiny-2026-05-01", 12, 600, None),
        ("retry", 1, "tiny-2026-05-01", 12, 600, signal),
        ("retry", 2, "tiny-2026-05-01", 12, 600, None),
    ]
    names = lab.select("SELECT DISTINCT arm, reported_name FROM sessions WHERE arm = 'direct'")
    assert [row["reported_name"] for row in names] == ["tiny-2026-05-01"]
    assert arm_of(report, "direct").measures["hit@1"].value == 0.0
    assert arm_of(report, "retry").measures["hit@1"].value == 1.0


def test_no_secret_is_stored_and_none_is_part_of_a_key(
    lab: EvaluationLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing on disk holds the token, and another one that works changes no key."""
    lab.run()
    keys = lab.select("SELECT DISTINCT key FROM captures WHERE arm <> 'grep' ORDER BY key")
    for table in ("runs", "captures", "attempts", "events", "sessions"):
        assert "tok-12345678" not in repr(lab.select(f"SELECT * FROM {table}"))
    found = subprocess.run(
        ["grep", "-rl", "tok-12345678", lab.warehouse, lab.scratch],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""
    monkeypatch.setenv("GARDEN_TOKEN", "tok-87654321")
    started = lab.start()
    planned = {ask.key for arm in started.run.arms for ask in arm.asks if arm.name != "grep"}
    started.abandon()
    assert planned == {row["key"] for row in keys}


def test_dead_run_is_resumed_with_its_own_answers(lab: EvaluationLab, service: Service) -> None:
    """What an endpoint said in this run counts when the run goes on."""
    done: list[Progress] = []
    started = lab.start(on_progress=done.append)
    for shard in started.shards():
        if shard.arm.name == "service" and shard.number == 1:
            execute_shard(started.run, shard)
    started.abandon()
    asked = len(service.requests())

    report = lab.run("resume", resume="last").report

    assert (report.counts.executed, report.counts.resumed) == (48, len(done))
    questions = [item for item in service.requests() if item["path"] == "/search"]
    assert len(questions) == 12 == len({json.dumps(item["body"]) for item in questions})
    assert asked == len(done)


def test_run_without_its_variable_is_refused_before_anything_starts(
    lab: EvaluationLab,
) -> None:
    """One line, exit code 2."""
    done = lab.coldrun("run", lab.config, env={"GARDEN_TOKEN": ""})
    assert done.returncode == 2
    assert re.fullmatch(
        r"coldrun: arm 'service': GARDEN_TOKEN is not set, and the requests need it; .*",
        done.stderr.strip(),
    )
