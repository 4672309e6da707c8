"""An arm that may remember the corpus is asked without it: what it finds then is memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from coldrun.tasks.config import parse_config
from coldrun.tasks.lib.errors import ConfigError
from tests.conftest import RepositoryBuilder
from tests.evaluations import EvaluationLab, arm_of

TASKS = 12

CONFIG = """
[panel]
kind = "commit-files"
repo = "{repo}"
base = "{base}"

[sample]
rule = "all"

[measure]
primary = "hit@1"
also = []

[[arm]]
name = "tool"
kind = "command"
argv = ["{{python}}", "{{adapter}}"]
adapter = "arm.py"
network = true
"""

SEARCHES = """
from pathlib import Path

def answer(query):
    word = re.findall("topic[0-9]+", query)[0]
    paths = sorted(Path(corpus).rglob("*.py"))
    return {"paths": [str(path) for path in paths if word + "\\n" in path.read_text()]}
"""

REMEMBERS = """
def answer(query):
    return {"paths": ["src/part" + re.findall("topic([0-9]+)", query)[0] + ".py"]}
"""

SERVE = """
def serve():
    global corpus
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "hello":
            corpus = message["corpus"]
            say(type="ready", nonce=message["nonce"])
        elif message["type"] == "question":
            say(type="answer", id=message["id"], **answer(message["query"]))
        else:
            break
"""


@pytest.mark.parametrize(
    ("arm", "verdict"), [(SEARCHES, "measured"), (REMEMBERS, "measured_nothing")]
)
def test_what_an_arm_finds_without_the_corpus_is_a_null(
    tmp_path: Path, new_repository: type[RepositoryBuilder], arm: str, verdict: str
) -> None:
    """An arm that answers from memory is as good with an empty corpus, and measured nothing."""
    repository = new_repository("shop")
    names = [f"src/part{number}.py" for number in range(TASKS)]
    base = repository.commit("start", {name: f"topic{at}\n" for at, name in enumerate(names)})
    for at, name in enumerate(names):
        repository.commit(f"mend broken handler topic{at}", {name: f"topic{at}\nmended\n"})
    lab = EvaluationLab(tmp_path)
    lab.write(CONFIG.format(repo=repository.path, base=base))
    lab.write_arm(arm + SERVE)
    lab.freeze()
    report = lab.run().report
    assert report.verdict == verdict
    memory = arm_of(report, "no-corpus:tool")
    assert (memory.role, memory.executed) == ("null", TASKS)
    assert memory.measures["hit@1"].value == (0.0 if arm == SEARCHES else 1.0)
    assert "no-corpus:tool" in {part.arm for part in report.gates[0].against}


@pytest.mark.parametrize("line", ['role = "null"', "has_corpus = false"])
def test_nulls_are_made_by_coldrun_alone(line: str) -> None:
    """A configuration can neither make one nor take the corpus from an arm."""
    text = {"name": "x", "kind": "grep"}
    name, _, value = line.partition(" = ")
    text |= {name: "null" if value == '"null"' else False}
    with pytest.raises(ConfigError, match="made by coldrun"):
        parse_config({"panel": {"kind": "jsonl", "file": "t"}, "arm": [text]})
