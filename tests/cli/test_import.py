"""From a published benchmark to an evaluation that runs."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from coldrun.cli.main import main
from tests.conftest import RepositoryBuilder
from tests.evaluations import EvaluationLab


def call(*words: object) -> Result:
    return CliRunner().invoke(main, ["import", *map(str, words)])


def patch_of(path: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-1\n+2\n"


@pytest.mark.parametrize("form", ["parquet", "json", "jsonl"])
def test_swe_bench_becomes_an_evaluation_that_searches_each_base(
    tmp_path: Path, new_repository: Callable[..., RepositoryBuilder], form: str
) -> None:
    """Import, freeze, run: gold is that of the patch where the base has it."""
    shop = new_repository("shop")
    first = shop.commit("start", {"cart.py": "cart total\n", "tax.py": "tax rate\n"})
    second = shop.commit("more", {"ship.py": "ship weight\n"})
    rows = [
        {"instance_id": f"s-{at}", "repo": "org/shop", "base_commit": base, "patch": patch,
         "problem_statement": text, "created_at": f"2024-01-0{at}T00:00:00Z"}
        for at, (base, patch, text) in enumerate(
            [
                (first, patch_of("cart.py"), "the cart total is wrong"),
                (second, patch_of("ship.py"), "ship by weight"),
                (first, patch_of("ship.py"), "not there yet"),
                ("0" * 40, patch_of("cart.py"), "of a base that is gone"),
            ],
            start=1,
        )
    ]  # fmt: skip
    source = tmp_path / f"bench.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), source)
    else:
        lines = "\n".join(map(json.dumps, rows))
        source.write_text(json.dumps(rows) if form == "json" else lines)
    done = call("swe-bench", source, "--output", tmp_path / "evaluation", "--json", tmp_path / "j")
    assert done.exit_code == 0, done.output
    assert "4 samples − 0 dropped = 4 tasks in 1 panel" in done.output
    assert json.loads((tmp_path / "j").read_text())["samples"] == 4
    lab = EvaluationLab(tmp_path, name="org__shop")
    text = lab.config.read_text()
    assert 'repo = "https://github.com/org/shop"' in text
    lab.config.write_text(text.replace("https://github.com/org/shop", str(shop.path)))
    lab.freeze()
    frozen = lab.load().frozen
    assert {task.id: (task.base, task.shape) for task in frozen.tasks} == {
        "s-1": (first, ("cart.py",)),
        "s-2": (second, ("ship.py",)),
    }
    assert frozen.lock["panel"]["drops"]["created_after_base"] == 2
    report = lab.run().report
    bm25 = next(arm for arm in report.arms if arm.name == "bm25")
    assert bm25.measures["hit@1"].count == 2

    again = call("swe-bench", source, "--output", tmp_path / "evaluation")
    assert (again.exit_code, "is there already" in again.output) == (2, True)


def test_trec_beir_and_inspect_give_panels_that_can_be_mined(tmp_path: Path) -> None:
    """Each in its own form; what they hold is what `mine` finds."""
    (tmp_path / "topics").write_text("1\tforeign crime\n")
    (tmp_path / "qrels").write_text("1 0 d1 2\n7 0 d2 1\n")
    beir = tmp_path / "set"
    (beir / "qrels").mkdir(parents=True)
    (beir / "queries.jsonl").write_text('{"_id": "q1", "text": "polio"}\n')
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td9\t1\n")
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as log:
        log.writestr("header.json", "{}")
        log.writestr("samples/1.json", json.dumps({"id": 1, "input": "which", "target": "a.py"}))
    for words, gold in (
        (("trec", tmp_path / "topics", tmp_path / "qrels"), "d1"),
        (("beir", beir), "d9"),
        (("inspect", tmp_path / "log.eval"), "a.py"),
    ):
        folder = tmp_path / words[0]
        done = call(*words, "--output", folder)
        assert (done.exit_code, "= 1 task in 1 panel" in done.output) == (0, True), done.output
        config = next(folder.glob("*.toml"))
        mined = CliRunner().invoke(main, ["mine", str(config), "--json", "-"])
        assert mined.exit_code == 0, mined.output
        assert json.loads(mined.stdout)["gold"][0]["item"] == gold


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("trec", "t"), "trec needs two files"),
        (("swe-bench", "none.jsonl"), "no file at none.jsonl"),
        (("swe-bench", "broken.jsonl"), "broken.jsonl:1: not JSON"),
        (("swe-bench", "broken.parquet"), "cannot read broken.parquet"),
        (("inspect", "broken.eval"), "cannot read broken.eval as an inspect log"),
    ],
)
def test_sources_that_cannot_be_read_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    """Nothing is written."""
    monkeypatch.chdir(tmp_path)
    for ending in ("jsonl", "parquet", "eval"):
        (tmp_path / f"broken.{ending}").write_text("{")
    done = call(*words, "--output", "out")
    assert (done.exit_code, message in done.output) == (2, True), done.output
    assert not (tmp_path / "out").exists()


def test_lines_name_a_base_all_or_none(tmp_path: Path) -> None:
    """A base needs the repository that it is in."""
    lab = EvaluationLab(tmp_path)
    lab.write('[panel]\nkind = "jsonl"\nfile = "tasks.jsonl"\n')
    row = {"id": "1", "query": "where", "gold": ["a"], "base": "HEAD"}
    lab.write_rows([row])
    done = CliRunner().invoke(main, ["mine", str(lab.config)])
    assert "names a base for each task; give the panel its `repo`" in done.output
