"""Whatever is wrong with the input: one line that says what to do, exit 2, nothing half-written."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import RepositoryBuilder
from tests.evaluations import CONFIG, EvaluationLab

MINED = """\
[panel]
kind = "commit-files"
repo = "{repo}"
base = "{base}"
head = "{head}"
"""


@pytest.fixture
def lab(tmp_path: Path) -> EvaluationLab:
    return EvaluationLab(tmp_path)


@pytest.fixture
def call(lab: EvaluationLab) -> Callable[..., str]:
    """Call a command that must fail with exit code 2, and give the one line it prints."""

    def run(*arguments: str | Path) -> str:
        before = snapshot(lab.root)
        nobody_there = {"PREFECT_API_URL": "http://127.0.0.1:9/api"}  # must not be asked
        done = lab.invoke(*arguments, env=nobody_there)
        assert done.returncode == 2, done.stderr
        lines: list[str] = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("coldrun: ")
        assert snapshot(lab.root) == before
        return lines[0]

    return run


def snapshot(folder: Path) -> dict[str, bytes]:
    """The files of an evaluation; scratch, the warehouse and repositories may hold anything."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob("evaluation/*")
        if path.is_file()
    }


@pytest.fixture
def garden(new_repository: Callable[..., RepositoryBuilder]) -> RepositoryBuilder:
    """Two files at `v0`, two commits that change them, and a branch of its own."""
    repository = new_repository("garden")
    start = repository.commit("start", {"a.py": "1", "b.py": "1"})
    repository.git("tag", "v0", start)
    repository.branch("side", start)
    repository.commit("mend the first header", {"a.py": "2"})
    repository.commit("mend the second header", {"b.py": "2"})
    repository.commit("aside", {"a.py": "3"}, branch="side")
    return repository


def test_mine_of_a_folder_that_is_no_repository(
    lab: EvaluationLab, call: Callable[..., str]
) -> None:
    """The folder is named."""
    (lab.root / "plain").mkdir()
    lab.write(MINED.format(repo="../plain", base="v0", head="HEAD"))

    for command in ("mine", "freeze"):
        assert "plain is not a git repository; name a clone" in call(command, lab.config)
    assert str(lab.root / "plain") in call("try", lab.root / "plain")


@pytest.mark.parametrize(
    ("base", "head", "message"),
    [
        ("nope", "HEAD", "nope"),
        ("v0", "nope", "nope"),
        ("side", "main", "ancestor"),
        ("v0", "v0", "empty|no commit|nothing"),
    ],
)
def test_mine_of_a_range_that_cannot_be_mined(
    lab: EvaluationLab,
    garden: RepositoryBuilder,
    call: Callable[..., str],
    base: str,
    head: str,
    message: str,
) -> None:
    """An unknown revision, a base that is no ancestor, an empty range."""
    lab.write(MINED.format(repo="../garden", base=base, head=head))

    for command in ("mine", "freeze"):
        assert re.search(message, call(command, lab.config))


def test_mine_of_a_range_in_which_nothing_is_solvable(
    lab: EvaluationLab, garden: RepositoryBuilder, call: Callable[..., str]
) -> None:
    """The drops say why, so that the range can be mended."""
    garden.git("tag", "v1", garden.git("rev-parse", "main"))
    garden.commit("parse the third header", {"c.py": "1"})
    lab.write(MINED.format(repo="../garden", base="v1", head="main"))

    line = call("freeze", lab.config)
    assert "of 1 candidate none is solvable (1 created_after_base)" in line
    assert not lab.files.lock.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[panel\n", "is not valid TOML"),
        ("", "`panel` is missing"),
        (CONFIG.replace("answer", "anwser"), "unknown key `panel.anwser`; did you mean `answer`"),
        (CONFIG + '\n[measure]\nprimary = "recall"\n', "recall cannot tell systems apart"),
    ],
)
def test_every_command_refuses_a_configuration_that_cannot_be_used(
    lab: EvaluationLab, call: Callable[..., str], text: str, message: str
) -> None:
    """Unreadable, empty, unknown key, impossible measure."""
    lab.write(text)

    for command in ("mine", "freeze", "run"):
        assert message in call(command, lab.config)
        assert "`coldrun init` writes one" in call(command, lab.root / "missing.toml")


def test_run_without_a_lock_says_freeze_first(lab: EvaluationLab, call: Callable[..., str]) -> None:
    """The line holds the command."""
    lab.write()

    assert f"run `coldrun freeze {lab.config}` first" in call("run", lab.config)


def test_run_with_a_lock_that_does_not_fit_names_both_hashes(
    lab: EvaluationLab, call: Callable[..., str]
) -> None:
    """Before anything is started."""
    lab.prepare()
    lock = json.loads(lab.files.lock.read_bytes())
    lab.files.panel.write_bytes(lab.files.panel.read_bytes() + b"{}\n")

    line = call("run", lab.config)
    assert lock["panel"]["digest"] in line
    assert line.count("sha256:") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--resume", "nothing"), "no run 'nothing' to continue; no run is unfinished"),
        (("--resume", "last", "--reuse"), "--resume continues a run as it was"),
        (("--commit", "v1"), "has no \\[product\\] to check out"),
    ],
)
def test_run_with_options_that_make_no_sense(
    lab: EvaluationLab, call: Callable[..., str], arguments: tuple[str, ...], message: str
) -> None:
    """Nothing to resume, contradicting options, a commit of no product."""
    lab.prepare()

    assert re.search(message, call("run", lab.config, *arguments))


def test_run_on_a_warehouse_that_cannot_be_written(
    lab: EvaluationLab, call: Callable[..., str]
) -> None:
    """A file is in its place: said before a server is started for it."""
    lab.prepare()
    lab.warehouse.touch()

    line = call("run", lab.config)
    assert f"cannot write the warehouse {lab.warehouse}" in line
    assert "--warehouse" in line


def test_run_whose_base_is_not_in_the_repository_names_it(
    lab: EvaluationLab, garden: RepositoryBuilder, call: Callable[..., str]
) -> None:
    """Another clone lies where the frozen one lay."""
    base = garden.git("rev-parse", "v0")
    lab.write(MINED.format(repo="../garden", base="v0", head="main"))
    lab.freeze()
    shutil.rmtree(garden.path)
    other = type(garden)(garden.path)
    other.commit("another start", {"z.py": "1"})

    assert f"does not have the frozen base {base}" in call("run", lab.config)


@pytest.mark.parametrize(
    "arguments",
    [("report", "last"), ("report", "2026"), ("show", "last"), ("why", "last", "t1", "bm25")],
)
def test_commands_that_read_say_when_there_is_no_run(
    call: Callable[..., str], arguments: tuple[str, ...]
) -> None:
    """An empty warehouse is no error of the program."""
    assert "there are none yet" in call(*arguments)


def test_unknown_command_names_the_nearest(lab: EvaluationLab) -> None:
    """click's own two lines, with a hint."""
    done = lab.invoke("freze")

    assert done.returncode == 2
    assert "No such command 'freze'. Did you mean 'freeze'?" in done.stderr


def test_nightly_serve_refuses_what_would_fail_every_night(
    lab: EvaluationLab, call: Callable[..., str]
) -> None:
    """Said now, by the line that each night would say, and before a server is asked for."""
    lab.write()
    lab.write_arm("def answer(query):\n    return {'items': []}\n")
    lab.write_tasks(10)
    assert "coldrun freeze" in call("nightly", "serve", lab.config)
    lab.freeze()
    assert "has no [product]" in call("nightly", "serve", lab.config)
