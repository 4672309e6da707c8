"""Bytes that an arm did not declare: out of reach, or in the key. Each has replayed a lie once."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.machine.sandbox import sandbox_problem
from tests.evaluations import EvaluationLab, arm_of

pytestmark = pytest.mark.skipif(sandbox_problem() is not None, reason=str(sandbox_problem()))

PANEL = """\
[panel]
kind = "jsonl"
file = "tasks.jsonl"
answer = "ranking"

[sample]
rule = "all"

[measure]
primary = "hit@1"
also = []
"""

TOOL = """
import json, os, sys
{imports}
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print(json.dumps(dict(type="ready")), flush=True)
    elif message["type"] == "question":
        number = message["query"].split()[2].split("-")[1]
        found = f"item-{{number}}" if {good} else "item-0"
        print(json.dumps(dict(type="answer", id=message["id"], paths=[found])), flush=True)
"""


def tool(place: Path, good: str, imports: str = "") -> None:
    """A session that answers right where the expression `good` says so."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(TOOL.format(good=good, imports=textwrap.dedent(imports)))


def lab_of(root: Path, argv: list[str], *lines: str, product: Path | None = None) -> EvaluationLab:
    """A frozen evaluation of twenty tasks with one candidate."""
    lab = EvaluationLab(root)
    lines = ("[[arm]]", 'name = "toy"', 'kind = "command"', f"argv = {argv!r}", *lines)
    own = "" if product is None else f'\n[product]\nrepo = "{product}"\n'
    lab.write(PANEL + "\n" + "\n".join(lines) + "\n" + own)
    lab.write_tasks(20)
    lab.freeze()
    return lab


def run(lab: EvaluationLab, *options: str) -> Report:
    """A run by the command line, since that resolves the product."""
    done = lab.invoke("run", lab.config, "--json", lab.root / "r.json", *options)
    assert (lab.root / "r.json").exists(), done.stderr
    return Report.model_validate_json((lab.root / "r.json").read_bytes())


def right(report: Report) -> float:
    return arm_of(report, "toy").measures["hit@1"].value


def commit(repository: Path, message: str) -> str:
    for words in (["add", "--all"], ["commit", "--quiet", "-m", message]):
        subprocess.run(["git", *words], cwd=repository, check=True)
    said = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=repository, text=True)
    return said.strip()


@pytest.fixture
def product(tmp_path: Path) -> Path:
    place = tmp_path / "product"
    place.mkdir()
    for words in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@example.org"],
    ):
        subprocess.run(["git", *words], cwd=place, check=True)
    return place


def test_outside_environment_that_was_upgraded_is_executed(tmp_path: Path) -> None:
    """A virtual environment is mounted with its base, and is in the key by content."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (package,) = venv.glob("lib/python*/site-packages")
    (package / "mytool.py").write_text("GOOD = True\n")
    lab = lab_of(tmp_path, [f"{venv}/bin/python", "{adapter}"], 'adapter = "ad.py"')
    tool(lab.config.parent / "ad.py", "GOOD", "from mytool import GOOD")
    first = run(lab)
    assert (right(first), first.not_sealed) == (1.0, {})
    assert run(lab, "--reuse").evidence != "executed"
    (package / "mytool.py").write_text("GOOD = False\n")
    again = run(lab, "--reuse")
    assert (again.counts.replayed, right(again)) == (0, 0.05)


def test_helper_beside_a_script_is_out_of_reach_until_it_is_declared(tmp_path: Path) -> None:
    """An absolute script shows itself alone; with its folder in `files`, both are in the key."""
    place = tmp_path / "tool"
    tool(place / "main.py", "GOOD", "from helper import GOOD")
    (place / "helper.py").write_text("GOOD = True\n")
    argv = ["{python}", str(place / "main.py")]
    lab = lab_of(tmp_path, argv)
    undeclared = run(lab)
    assert (undeclared.verdict, undeclared.counts.infra) == ("invalid", 20)
    assert any("No module named 'helper'" in text for text in undeclared.warnings)
    declared = lab_of(tmp_path, argv, f'files = ["{place}"]')
    assert right(run(declared)) == 1.0
    (place / "helper.py").write_text("GOOD = False\n")
    again = run(declared, "--reuse")
    assert (again.counts.replayed, right(again)) == (0, 0.05)


def test_file_behind_a_variable_or_a_flag_is_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is declared, its bytes are not."""
    data = tmp_path / "index.txt"
    data.write_text("good")
    monkeypatch.setenv("TOOL_INDEX", str(data))
    for name, where in (("one", "os.environ['TOOL_INDEX']"), ("two", "sys.argv[1].split('=')[1]")):
        lab = lab_of(
            tmp_path / name,
            ["{python}", "{adapter}", f"--index={data}"],
            'adapter = "ad.py"',
            'env = ["TOOL_INDEX"]',
        )
        tool(lab.config.parent / "ad.py", f"os.path.exists({where})")
        assert right(run(lab)) == 0.05


def test_package_runner_is_refused_with_what_takes_its_place(tmp_path: Path) -> None:
    """What a registry has today is in no key, and no session has the network."""
    lab = lab_of(tmp_path, ["uvx", "toytool", "{query}"], 'mode = "per-task"')
    for options in ((), ("--reuse",)):
        done = lab.invoke("run", lab.config, *options)
        assert done.returncode == 2
        assert 'say package = "pypi:NAME==VERSION"' in done.stderr


def test_cache_below_bytecode_serves_no_later_run(
    tmp_path: Path, product: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cold run sees a fresh checkout, `__pycache__` included."""
    tool(
        product / "serve.py",
        "cached(number)",
        """
        os.makedirs("__pycache__", exist_ok=True)
        place = "__pycache__/answers.json"
        known = json.load(open(place)) if os.path.exists(place) else {}
        def cached(number):
            known.setdefault(number, os.environ["MODEL"] == "good")
            json.dump(known, open(place, "w"))
            return known[number]
        """,
    )
    commit(product, "serve from a cache")
    lab = lab_of(tmp_path, ["{python}", "serve.py"], 'env = ["MODEL"]', product=product)
    for model, score in (("good", 1.0), ("bad", 0.05)):
        monkeypatch.setenv("MODEL", model)
        report = run(lab)
        assert (report.evidence, right(report)) == ("executed", score)


def test_program_of_the_path_is_no_score_of_a_commit(
    tmp_path: Path, product: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers with an empty checkout too, so it is not the product."""
    tool(product / "serve.py", "False")
    commit(product, "answer wrong")
    program = tmp_path / "bin" / "toytool"
    tool(program, "True")
    program.write_text(f"#!{sys.executable}\n{program.read_text()}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    report = run(lab_of(tmp_path / "one", ["toytool"], product=product))
    assert (report.verdict, report.exit_code) == ("invalid", 5)
    assert any("answers without its product" in reason for reason in report.reasons)
    other = run(lab_of(tmp_path / "two", ["toytool"], "product = false", product=product))
    assert (other.evidence, right(other)) == ("executed", 1.0)


def test_frozen_panel_in_the_checkout_is_hidden(tmp_path: Path, product: Path) -> None:
    """An evaluation that lives in its product's repository: an honest grep finds no gold."""
    product.joinpath("serve.py").write_text(
        textwrap.dedent(
            """
            import json, re, subprocess, sys
            for line in sys.stdin:
                message = json.loads(line)
                if message["type"] == "hello":
                    print(json.dumps({"type": "ready"}), flush=True)
                elif message["type"] == "question":
                    grep = ["grep", "-rhF", "--", message["query"], "."]
                    said = subprocess.run(grep, capture_output=True, text=True).stdout
                    paths = re.findall(r'"(item-[0-9]+)"', said)[:1]
                    answer = {"type": "answer", "id": message["id"], "paths": paths}
                    print(json.dumps(answer), flush=True)
            """
        )
    )
    lab = EvaluationLab(product)
    lab = lab_of(product, ["python3", "serve.py"], product=product)
    commit(product, "add the evaluation, as freeze says")
    report = run(lab, "--scratch", str(tmp_path / "scratch"))
    assert (report.verdict, arm_of(report, "toy").abstained) == ("measured_nothing", 20)
