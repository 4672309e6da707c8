"""Points that share a set-up: the product follows the commit, and nothing of it crosses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.lib.errors import ConfigError, PointError
from coldrun.tasks.lib.records import Point
from coldrun.tasks.product.point_use import hold_point, release_reserved, use_point
from coldrun.tasks.product.points import prune_points
from coldrun.tasks.run.arm_identity import identify_arm
from tests.sessions import Lab, ask, serve_repositories

COUNTED = 'echo run >> "$COUNT_FILE"; '
INSTALL = "mkdir -p .venv/lib .tool; echo ok > .venv/lib/ready; ln -sf ../tool.py .venv/tool; "
VENV = """
python3 -m venv --without-pip .venv
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '#!%s\\nimport mytool; print(mytool.answer())\\n' "$PWD/.venv/bin/python" > .venv/bin/mytool
chmod +x .venv/bin/mytool
"""
EDITABLE = VENV + 'echo "$PWD/src" > "$site/mytool.pth"; .venv/bin/mytool'
COPIED = VENV + 'cp -r src/mytool "$site/"'


class Product:
    """A product with a lock file, and the set-ups that it had."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.count_file = lab.scratch / "caches" / "count"
        self.count_file.parent.mkdir(parents=True, exist_ok=True)
        self.count_file.touch()
        self.setup = INSTALL

    def add(self, number: int, **more: str | None) -> str:
        """A commit whose answer is `number`; `lock` is the content of its lock file."""
        files = {
            "tool.py": f"answer = {number}\n",
            "src/mytool/__init__.py": f"def answer():\n    return {number}\n",
            **{name.replace("__", "/").replace("_", "."): text for name, text in more.items()},
        }
        return self.lab.commit_files("product", files, f"answer {number}")

    def point(self, revision: str, **values: Any) -> Point:
        setup = ("sh", "-c", COUNTED + self.setup)
        defaults = {"setup": setup, "setup_env": ("COUNT_FILE",), "setup_key": ("uv.lock",)}
        return self.lab.point(revision, **{**defaults, **values})

    @property
    def set_ups(self) -> int:
        """How often the set-up ran."""
        return self.count_file.read_text().count("run")


@pytest.fixture
def product(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Product:
    """A product without commits."""
    made = Product(lab)
    monkeypatch.setenv("COUNT_FILE", str(made.count_file))
    return made


def answer_of(point: Point) -> str:
    """What the installed product says."""
    done = subprocess.run(
        [point.directory / ".venv/bin/mytool"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def stamp_of(point: Point) -> dict[str, Any]:
    """What lies beside a checkout."""
    stamp: dict[str, Any] = json.loads((point.directory.parent / "point.json").read_bytes())
    return stamp


def test_commits_with_one_lock_file_share_a_set_up(lab: Lab, product: Product) -> None:
    """The place is one, its files are those of each commit, and the set-up runs once."""
    first = product.add(1, uv_lock="a", gone_py="x")
    second = product.add(2, gone_py=None, new_py="y")
    one = product.point(first)
    assert (one.commit, one.setup_commit) == (first, None)
    two = product.point(second)
    assert (two.commit, two.setup_commit, two.notes) == (second, first, ())
    assert two.tree == lab.git("product", "rev-parse", "HEAD^{tree}")
    assert two.directory == one.directory
    assert (two.directory / "tool.py").read_text() == "answer = 2\n"
    assert (two.directory / ".venv/tool").read_text() == "answer = 2\n"
    assert (two.directory / ".venv/lib/ready").read_text() == "ok\n"
    assert (two.directory / ".tool").is_dir()
    assert not (two.directory / "gone.py").exists()
    checkout = str(two.directory.relative_to(lab.root))
    assert lab.git(checkout, "rev-list", "--all", "HEAD").split() == [second]
    assert lab.git(checkout, "status", "--porcelain", "--untracked-files=no") == ""
    assert product.point(second) == two
    assert product.point(first) == one
    assert product.set_ups == 1
    stamp = stamp_of(one)
    assert (stamp["commit"], stamp["setup_commit"]) == (first, first)
    log = (one.directory.parent / "setup.log").read_text()
    assert f"shared with {second}, run at {first}" in log
    assert [path.name for path in one.directory.parent.parent.glob("worktree-*")] == []


@pytest.mark.soak  # a virtual environment
def test_installed_product_answers_as_its_commit_does(lab: Lab, product: Product) -> None:
    """A real virtual environment, the product in editable mode, a change at every commit and one
    of the lock file in the middle: every answer is its commit's, from two set-ups."""
    product.setup = EDITABLE
    commits = [product.add(n, uv_lock="old" if n < 4 else "new") for n in range(8)]
    for _ in range(2):
        for number in (0, 7, 1, 6, 2, 5, 3, 4, 0):
            point = product.point(commits[number])
            assert answer_of(point) == str(number)
            assert point.setup_commit in (None, commits[0], commits[7])
    assert product.set_ups == 2


@pytest.mark.soak  # a virtual environment
def test_sessions_ask_the_commit_of_their_point(lab: Lab, product: Product) -> None:
    """An adapter in the installed environment answers as each commit does, in one process after
    the other."""
    product.setup = EDITABLE
    commits = [product.add(n, uv_lock="a") for n in range(3)]
    body = """
    def answer(question):
        import mytool
        return {"items": [], "stop_reason": str(mytool.answer())}
    """
    for number in (0, 2, 1, 0):
        point = product.point(commits[number])
        argv = (".venv/bin/python", "{adapter}")
        with hold_point(point), lab.session(body, point=point, argv=argv) as session:
            assert ask(session).stop_reason == str(number)
    assert product.set_ups == 1


def test_nothing_that_a_session_left_crosses(lab: Lab, product: Product) -> None:
    """Bytecode, caches and folders of one commit are gone at the next; what was installed stays."""
    product.setup = INSTALL + (
        "mkdir .venv/__pycache__ src/mytool/__pycache__; echo x > .venv/__pycache__/a.pyc; "
        "echo x > src/mytool/__pycache__/old.pyc"
    )
    first, second = product.add(1, uv_lock="a"), product.add(2)
    checkout = product.point(first).directory
    for name in ("src/mytool/__pycache__/m.pyc", ".venv/__pycache__/b.pyc", ".venv/cache", "db"):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text("of the first commit")
    (checkout / "empty").mkdir()
    product.point(second)
    found = {str(path.relative_to(checkout)) for path in checkout.rglob("*") if path.is_file()}
    assert {name for name in found if not name.startswith(".git/")} == {
        *("tool.py", "uv.lock", "src/mytool/__init__.py"),
        *(".venv/lib/ready", ".venv/tool", ".venv/__pycache__/a.pyc"),
    }
    assert not (checkout / "empty").exists()
    assert product.set_ups == 1


def test_set_up_that_a_session_changed_is_made_again(product: Product) -> None:
    """What a session did to the installed files of one commit is not handed to the next."""
    first, second = product.add(1, uv_lock="a"), product.add(2)
    (product.point(first).directory / ".venv/lib/ready").write_text("touched")
    point = product.point(second)
    assert (point.directory / ".venv/lib/ready").read_text() == "ok\n"
    assert point.setup_commit is None
    assert product.set_ups == 2


def test_commit_without_the_lock_file_is_set_up_for_itself(product: Product) -> None:
    """An old commit has no lock file yet: it is measured all the same, and says so."""
    old, new = product.add(1), product.add(2, uv_lock="a")
    point = product.point(old)
    assert "has no uv.lock, which setup_key names" in point.notes[0]
    assert product.point(old) == point
    assert product.point(new).directory != point.directory
    link = product.point(new, setup_key=("tool.py", "missing/"))
    assert "has no missing, which" in link.notes[0]
    assert product.set_ups == 3
    assert product.point(old, setup_key=()).notes == ()


@pytest.mark.parametrize(
    ("setup", "why"),
    [
        ("mkdir -p .venv; cp -r src/mytool .venv", "copied src/mytool/__init__.py to .venv/"),
        ("mkdir -p .venv; cp tool.py .venv/x.py", "copied tool.py to .venv/x.py"),
        ("mkdir dist; echo 1 > dist/x.js", "built dist/"),
        ("cp tool.py src/mytool/_built.so", "made src/mytool/_built.so beside"),
        ("echo run > tool; chmod +x tool", "made tool beside"),
        ("mkdir .v; git rev-parse HEAD > .v/version", "wrote the commit's name into .v/version"),
        ("mkdir .v; echo g$(git rev-parse --short HEAD) > .v/v", "wrote the commit's name into"),
        ("git config core.x 1", "changed the repository"),
        ("git init -q sub; touch sub/x", "made a repository of its own in sub/"),
    ],
)
def test_set_up_that_made_something_of_the_product_is_not_shared(
    product: Product, setup: str, why: str
) -> None:
    """Copies, builds and stamps of one commit are not for the next, which is told why."""
    product.setup = setup
    first, second = product.add(1, uv_lock="a"), product.add(2)
    one, two = product.point(first), product.point(second)
    assert one.notes == ()
    assert f"{first[:12]} {why}" in two.notes[0]
    assert "editable" in two.notes[0]
    assert "leave out setup_key" in two.notes[0]
    assert one.directory != two.directory
    assert (one.setup_commit, two.setup_commit) == (None, None)
    assert product.point(second) == two
    assert product.point(first) == one
    assert product.set_ups == 2


def test_file_names_that_are_not_text_are_moved_and_compared(product: Product) -> None:
    """Names of any bytes: of what is made, and of what is copied."""
    odd = os.fsdecode(b"\xff.py")
    product.setup = "mkdir \"$(printf '.v\\377')\"; cp *.py .v*/"
    first = product.add(1, uv_lock="a", **{odd: "odd"})
    second, third = product.add(1, note="x"), product.add(1, **{odd: "odder"})
    product.point(first)
    two = product.point(second)
    assert two.setup_commit == first
    assert (two.directory / os.fsdecode(b".v\xff") / odd).read_text() == "odd"
    assert "copied %FF.py to .v%FF/%FF.py" in product.point(third).notes[0]


@pytest.mark.soak  # a virtual environment
def test_copied_product_answers_as_its_commit_does(product: Product) -> None:
    """An installation that is no link to the checkout is made anew where the package changed."""
    product.setup = COPIED
    commits = [product.add(n, uv_lock="a") for n in range(3)]
    commits.append(product.add(2, uv_lock="b"))
    commits.append(product.add(2, src__mytool__plugin_py="new"))
    answers = [answer_of(product.point(commit)) for commit in commits]
    assert answers == ["0", "1", "2", "2", "2"]
    plugin = product.point(commits[4]).directory.glob(".venv/lib/*/site-packages/mytool/plugin.py")
    assert len(list(plugin)) == 1


def test_copied_files_that_did_not_change_are_shared(product: Product) -> None:
    """A licence in the metadata of what is installed is no obstacle; nor are blank files."""
    product.setup = INSTALL + "cp LICENSE .venv/lib/; cp src/mytool/py.typed .venv/lib/"
    first = product.add(1, LICENSE="free", src__mytool__py_typed="\n", uv_lock="a")
    second = product.add(2)
    assert product.point(second).commit == second
    assert product.point(first).setup_commit == second
    third = product.add(3, LICENSE="freer")
    assert "copied LICENSE to .venv/lib/LICENSE" in product.point(third).notes[0]
    assert product.set_ups == 2


def test_set_up_is_not_moved_to_where_there_is_no_room(product: Product) -> None:
    """A commit that has files of its own where the set-up wrote, or no such folder."""
    product.setup = "mkdir -p sub/.venv; echo ok > sub/.venv/ready"
    first = product.add(1, uv_lock="a", sub__x_py="x")
    second = product.add(2, sub__x_py=None, y_py="y")
    third = product.add(3, sub__x_py="x", **{"sub__.venv__own": "z"})
    points = [product.point(commit) for commit in (first, second, third)]
    assert len({point.directory for point in points}) == 3
    assert {point.setup_commit for point in points} == {None}
    assert (points[2].directory / "sub/.venv/own").read_text() == "z"


def test_submodules_are_not_shared(lab: Lab, product: Product) -> None:
    """Git tells nothing of the files in a submodule."""
    other = lab.commit("other", x="1")
    first = product.add(1, uv_lock="a")
    lab.git("product", "update-index", "--add", "--cacheinfo", f"160000,{other},sub")
    lab.git("product", "commit", "--quiet", "-m", "with a submodule")
    second = lab.git("product", "rev-parse", "HEAD")
    third = product.add(3)
    assert product.point(second).setup_commit is None
    assert "submodule sub" in product.point(third).notes[0]
    assert product.point(first).commit == first


def test_other_set_ups_are_other_places(
    lab: Lab, product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Command, environment and files beside the configuration still decide, and so does each of
    several files."""
    lab.write("constraints.txt", "one")
    first = product.add(1, uv_lock="a", more__x_txt="b")
    second = product.add(2, more__x_txt="c")
    files = {"setup_files": ("constraints.txt",)}
    places = [product.point(first, **files), product.point(second, setup=("true",), **files)]
    places.append(product.point(second, setup_key=("uv.lock", "more"), **files))
    places.append(product.point(first, setup_key=("uv.lock", "more"), **files))
    lab.write("constraints.txt", "two")
    places.append(product.point(second, **files))
    monkeypatch.setenv("COUNT_FILE", str(product.count_file) + "2")
    places.append(product.point(second, **files))
    assert len({point.directory for point in places}) == 6
    assert {point.setup_commit for point in places} == {None}
    with pytest.raises(ConfigError, match="setup_files"):
        product.point(first, setup_files=("missing.txt",))


def test_script_of_the_set_up_counts_as_named(product: Product) -> None:
    """A script in the product that the command line names decides the set-up as well."""
    first = product.add(1, uv_lock="a", do_sh="mkdir -p .venv; echo 1 > .venv/x")
    second = product.add(2, do_sh="mkdir -p .venv; echo 2 > .venv/x")
    third = product.add(3)
    points = {c: product.point(c, setup=("sh", "./do.sh")) for c in (first, second, third)}
    assert (points[third].directory / ".venv/x").read_text() == "2\n"
    assert points[third].setup_commit == second
    assert points[first].directory != points[second].directory


@pytest.mark.parametrize("name", ["/etc/passwd", "../uv.lock", "", ".", "*.lock"])
def test_key_files_are_plain_paths_in_the_product(lab: Lab, name: str) -> None:
    """What cannot be looked up in a commit is refused when the configuration is read."""
    with pytest.raises(ValueError, match="setup_key"):
        lab.product(setup_key=(name,))


def test_dirty_work_tree_shares_nothing(lab: Lab, product: Product) -> None:
    """What is not committed is set up for itself; a clean work tree is its commit."""
    first, second = product.add(1, uv_lock="a"), product.add(2)
    product.point(first)
    assert product.point("worktree").setup_commit == first
    (lab.root / "product" / "tool.py").write_text("edited")
    dirty = product.point("worktree")
    assert dirty.is_dirty
    assert dirty.setup_commit is None
    assert (dirty.directory / "tool.py").read_text() == "edited"
    assert product.point(second).directory != dirty.directory
    assert product.set_ups == 2


def test_run_keeps_its_place_and_others_set_up_for_themselves(product: Product) -> None:
    """While a run measures one commit, another commit neither takes its place nor waits."""
    first, second, third = product.add(1, uv_lock="a"), product.add(2), product.add(3)
    one = product.point(first)
    with hold_point(one):
        two = product.point(second)
        assert two.directory != one.directory
        assert (one.directory / "tool.py").read_text() == "answer = 1\n"
        assert product.point(first).directory == one.directory
    assert product.point(third).directory == one.directory
    assert product.point(second) == two
    assert product.set_ups == 2
    with pytest.raises(PointError, match="another run has taken it over"), hold_point(one):
        pass
    with pytest.raises(PointError, match="another run has taken it over"):
        use_point(one)


def test_prepared_point_is_kept_until_its_run_begins(
    product: Product, other_program: subprocess.Popen[str]
) -> None:
    """Between its preparation and its run no other program moves a point."""
    first, second = product.add(1, uv_lock="a"), product.add(2)
    one = product.point(first)
    assert run_elsewhere(other_program, product, second) == 0
    assert (one.directory / "tool.py").read_text() == "answer = 1\n"
    assert product.set_ups == 2
    release_reserved()
    third = product.add(3)
    assert run_elsewhere(other_program, product, third) == 0
    assert (one.directory / "tool.py").read_text() == "answer = 3\n"
    assert product.set_ups == 2


ELSEWHERE = """
import json, os, signal, sys, traceback
from pathlib import Path
from tests.sessions import Lab
from tests.product.test_points_shared import Product

plain = Path.rename

def work(root, setup, revision, renames, variables):
    left = renames

    def rename(self, target):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(self, target)

    Path.rename = rename
    os.environ.update(variables)
    product = Product(Lab(Path(root)))
    product.setup = setup
    product.point(revision)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            work(**json.loads(line))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Prepares a point a line, each in a fork of a process that has imported everything already."""


@pytest.fixture(scope="module")
def other_program() -> Iterator[subprocess.Popen[str]]:
    """A process of its own, whose forks prepare points."""
    with subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        yield process
        process.stdin.close()


def run_elsewhere(
    program: subprocess.Popen[str], product: Product, revision: str, *, renames: int = 1000
) -> int:
    """Prepare a point in another process, which is killed before so many renames and one.

    Returns:
        How the process ended: its exit code, or minus the number of the signal.
    """
    assert program.stdin is not None
    assert program.stdout is not None
    call = {
        "root": str(product.lab.root),
        "setup": product.setup,
        "revision": revision,
        "renames": renames,
        "variables": {"COUNT_FILE": str(product.count_file)},
    }
    print(json.dumps(call), file=program.stdin, flush=True)
    return int(program.stdout.readline())


@pytest.mark.soak
def test_move_that_is_killed_leaves_a_point_or_nothing(
    product: Product, other_program: subprocess.Popen[str]
) -> None:
    """Killed at every step of a move, the next run finds the set-up whole or makes it anew."""
    commits = [product.add(n, uv_lock="a") for n in range(2)]
    for renames in range(20):
        product.point(commits[0])
        release_reserved()
        before = product.set_ups
        ended = run_elsewhere(other_program, product, commits[1], renames=renames)
        for number in (1, 0):
            checkout = product.point(commits[number]).directory
            assert (checkout / "tool.py").read_text() == f"answer = {number}\n"
            assert (checkout / ".venv/lib/ready").read_text() == "ok\n"
            assert (checkout / ".tool").is_dir()
        assert product.set_ups - before == (ended != 0)
        if ended == 0:
            break
        assert ended == -9
    assert renames == 5  # two parts of the output, twice the checkout, the stamp


def test_interrupted_set_up_is_made_again(lab: Lab, product: Product) -> None:
    """A shared set-up that fails, or hangs, leaves nothing that another commit could take."""
    first, second = product.add(1, uv_lock="a"), product.add(2, good="")
    product.setup = "mkdir .venv; echo half > .venv/ready; test -e good"
    with pytest.raises(PointError, match="exit code 1"):
        product.point(first)
    assert product.point(second).setup_commit is None
    product.setup = "sleep 60"
    with pytest.raises(PointError, match="not finished after"):
        product.point(first, setup_timeout_seconds=0.2)


def test_output_that_cannot_be_moved_is_made_again(product: Product) -> None:
    """A failure half-way through a move costs a set-up, and nothing else."""
    first, second = product.add(1, uv_lock="a"), product.add(2)
    product.point(first)
    plain = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name == ".venv":
            raise PermissionError(13, "no")
        return plain(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        point = product.point(second)
    assert (point.directory / "tool.py").read_text() == "answer = 2\n"
    assert (point.directory / ".venv/lib/ready").exists()
    assert point.setup_commit is None
    assert product.set_ups == 2


def test_shared_place_is_pruned_unless_a_run_holds_it(lab: Lab, product: Product) -> None:
    """Pruning leaves what a run measures, and takes locks along with the rest."""
    point = product.point(product.add(1, uv_lock="a"))
    with hold_point(point):
        assert prune_points(lab.scratch) == ()
    use = point.directory.parent.with_suffix(".use")
    os.utime(use, (time.time() - 7200,) * 2)
    product.point(product.add(2))
    release_reserved()
    assert prune_points(lab.scratch, unused_for_seconds=3600) == ()
    assert prune_points(lab.scratch) == (f"points/{point.directory.parent.name}",)
    assert {path.suffix for path in (lab.scratch / "points").iterdir()} <= {".lock"}


def test_remote_product_shares_too(lab: Lab, product: Product) -> None:
    """Of a remote repository the key files are read once it is fetched."""
    first, second = product.add(1, uv_lock="a"), product.add(2)
    third = product.add(3, uv_lock="b")
    with serve_repositories(lab.root) as url:
        values = {"repo": f"{url}/product/.git"}
        points = [product.point(commit, **values) for commit in (first, second, third, first)]
    assert [point.setup_commit for point in points] == [None, first, None, None]
    assert (points[3].directory / "tool.py").read_text() == "answer = 1\n"
    assert product.set_ups == 2


def test_key_of_an_answer_has_commit_and_what_was_installed(lab: Lab, product: Product) -> None:
    """Under one set-up the commits differ and the installed files do not; another set-up's may."""
    product.setup = INSTALL + "cat uv.lock > .venv/lock"
    first, second, third = (product.add(n, uv_lock="b" if n == 3 else "a") for n in (1, 2, 3))
    lab.adapter("")
    parts = []
    for commit in (first, second, third, second):
        found = identify_arm(
            lab.arm(argv=(".venv/bin/tool",)),
            config_dir=lab.config_dir,
            point=product.point(commit),
            product=lab.product(setup=("sh",)),
        )
        assert found.product is not None
        parts.append(found)
    assert [part.product["commit"] for part in parts if part.product] == [
        *(first, second, third, second)
    ]
    built = [part.product["built"] for part in parts if part.product]
    assert built[0] != built[1]  # a link among the installed files leads into the product
    assert built[1] == built[3]
    assert built[1] != built[2]
    assert len({part.artifacts["setup"] for part in parts}) == 1
