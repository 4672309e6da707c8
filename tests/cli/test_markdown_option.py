"""`--markdown` of the commands that list and explain, as a forge renders it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.evaluations import EvaluationLab

FORGE = MarkdownIt("commonmark").enable(["table", "strikethrough"])

HOSTILE = """
def answer(query):
    (item,) = re.findall(r"item-\\d+", query)
    if item == "item-3":
        raise RuntimeError("| # no <b>index</b> __yet__ [a](http://x)")
    return {"paths": ["src/__init__.py", "a`b|c*d*", item]}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> EvaluationLab:
    """A landed run whose arm says whatever could be taken for markup."""
    lab = EvaluationLab(tmp_path_factory.mktemp("markdown")).prepare(arm=HOSTILE)
    lab.run()
    return lab


def rendered(lab: EvaluationLab, *arguments: str | Path) -> str:
    """The page that a command wrote, as HTML; the terminal shows people's text all the same."""
    page = lab.root / "page.md"
    done = lab.invoke(*arguments, "--markdown", page)
    assert done.returncode in (0, 3, 5), done.stderr
    assert done.stdout
    html = FORGE.render(page.read_text(encoding="utf-8"))
    for element in ("<b>", "<strong>init", "<em>", "href="):
        assert element not in html
    return html


def test_show_has_a_section_for_each_answer_with_the_right_items_marked(
    lab: EvaluationLab,
) -> None:
    """Paths stand as code, whatever is in them."""
    html = rendered(lab, "show", "last", "--limit", "2")

    assert html.startswith("<h1>answers of run ")
    assert html.count("<h3>") == 2
    assert "<li><code>src/__init__.py</code></li>" in html
    assert "<li><code>a`b|c*d*</code></li>" in html
    assert "<li>+ <code>item-0</code></li>" in html
    assert "… 10 more; --limit 12 prints them" in html


def test_show_misses_counts_them_first(lab: EvaluationLab) -> None:
    """By class, below the arm."""
    html = rendered(lab, "show", "last", "--misses")

    assert "<li>reader: 12 of 12 answers missed at exact" in html
    assert "the tool itself failed" in html
    assert html.partition("<h3>")[0].count("<ul>") == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("show", "last", "--discrimination"), "<li>12 tasks, 1 arm, solved or not at exact</li>"),
        (("runs",), "<th>verdict</th>"),
        (("panels",), "<li>used for: not declared</li>"),
        (("why", "last", "t0001", "reader"), "<li>no other run asked this question"),
        (("report", "last"), "<th>arm</th>"),
        (("doctor",), "<li>ok: "),
        (("prune", "--dry-run"), "would be freed"),
    ],
)
def test_page_says_what_the_terminal_says(
    lab: EvaluationLab, arguments: tuple[str, ...], expected: str
) -> None:
    """Every command that reports has the same report as Markdown."""
    assert expected in rendered(lab, *arguments)


def test_mine_and_freeze_show_the_nulls(lab: EvaluationLab) -> None:
    """What a pull request that freezes a panel has to show."""
    for command in ("mine", "freeze"):
        html = rendered(lab, command, lab.config)
        assert "<th>null</th>" in html
        assert "<td>constant</td>" in html
    values = json.loads(lab.invoke("freeze", lab.config, "--json", "-").stdout)
    assert (values["status"], values["sampled"], values["primary"]) == ("unchanged", 12, "exact")
    assert values["nulls"]["constant"]["after"] == pytest.approx(1 / 12)


def test_two_reports_on_stdout_or_a_missing_folder_are_refused_before_anything_runs(
    lab: EvaluationLab,
) -> None:
    """Neither is found out after an hour of measuring."""
    both = lab.invoke("run", lab.config, "--json", "-", "--markdown", "-")
    nowhere = lab.invoke("run", lab.config, "--json", lab.root / "no" / "report.json")

    assert (both.returncode, nowhere.returncode) == (2, 2)
    assert "stdout takes one of --json and --markdown" in both.stderr
    assert f"there is no folder {lab.root / 'no'}" in nowhere.stderr
    assert lab.select("SELECT count(*) AS n FROM runs") == [{"n": 1}]


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "C"),
        ("backfill", "C", "--commits", "HEAD"),
        ("decompose", "C", "--from", "a", "--to", "b"),
        ("nightly", "once", "C"),
        ("compare", "last", "last"),
        ("holdout", "open", "C", "--reason", "release"),
    ],
)
@pytest.mark.parametrize("option", ["--json", "--markdown", "--svg"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    lab: EvaluationLab, arguments: tuple[str, ...], option: str
) -> None:
    """A folder has that name, a file lies where a folder should be, or a name is too long."""
    if option == "--svg" and arguments[0] not in ("backfill", "decompose"):
        return
    words = [str(lab.config) if word == "C" else word for word in arguments]
    (lab.root / "taken").mkdir(exist_ok=True)
    for name, why in (("taken", "Is a directory"), ("x" * 300, "File name too long")):
        done = lab.invoke(*words, option, lab.root / name)
        assert done.returncode == 2, done.stderr
        assert why in done.stderr
        assert "cannot write" in done.stderr


def test_a_file_that_can_be_written_is_left_alone_until_there_is_a_report(
    lab: EvaluationLab,
) -> None:
    """A command that fails leaves an earlier report as it was, and makes none."""
    kept, new = lab.root / "kept.json", lab.root / "new.md"
    kept.write_text("earlier")
    (lab.root / "link.md").symlink_to(new)
    done = lab.invoke("report", "nope", "--json", kept, "--markdown", lab.root / "link.md")

    assert done.returncode == 2
    assert kept.read_text() == "earlier"
    assert (lab.root / "link.md").is_symlink()
    assert not new.exists()


def test_a_summary_that_cannot_be_written_is_refused_before_the_night(lab: EvaluationLab) -> None:
    """Where a job's summary cannot be appended to, nothing is measured for it."""
    summary = {"GITHUB_STEP_SUMMARY": str(lab.root / "no" / "summary.md")}
    done = lab.invoke("nightly", "once", lab.config, env=summary)

    assert done.returncode == 2
    assert "cannot append to $GITHUB_STEP_SUMMARY" in done.stderr


@pytest.mark.parametrize("command", ["runs", "panels", "show", "why"])
def test_json_on_stdout_is_alone_there(lab: EvaluationLab, command: str) -> None:
    """People's text goes to stderr then."""
    more = {"show": ("last",), "why": ("last", "t0001", "reader")}.get(command, ())
    done = lab.invoke(command, *more, "--json", "-")

    assert json.loads(done.stdout)
    assert done.stderr
