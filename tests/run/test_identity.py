"""What an arm reports must fit the point and the session."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from coldrun.tasks.arms.command.line_protocol import find_mismatches
from coldrun.tasks.lib.errors import InvalidRunError
from coldrun.tasks.lib.records import Point, SessionStart
from tests.sessions import Lab, ask

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def point(tmp_path: Path) -> Point:
    """A checkout with a module, and a virtual environment inside."""
    directory = tmp_path / "checkout"
    packages = directory / ".venv" / "lib" / "python3" / "site-packages" / "mytool"
    packages.mkdir(parents=True)
    (packages / "__init__.py").touch()
    (directory / "mytool.py").touch()
    return Point(repo="r", directory=directory, commit=COMMIT, tree="t")


def mismatches(point: Point | None, **reported: str) -> tuple[str, ...]:
    return find_mismatches(SessionStart(**reported), point=point, nonce="right")


def test_what_is_not_reported_is_not_checked(point: Point) -> None:
    """An arm may report nothing of itself."""
    assert mismatches(point) == ()


def test_what_fits_is_accepted(point: Point) -> None:
    """The full or shortened commit, files in the checkout or its own environment, the nonce."""
    inside = point.directory
    assert mismatches(point, commit=COMMIT, nonce="right") == ()
    assert mismatches(point, commit=COMMIT[:7].upper()) == ()
    assert mismatches(point, loaded_from=str(inside)) == ()
    assert mismatches(point, loaded_from=str(inside / "mytool.py")) == ()
    assert mismatches(point, loaded_from="mytool.py") == ()
    package = ".venv/lib/python3/site-packages/mytool/__init__.py"
    assert mismatches(point, loaded_from=package) == ()


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        ({"nonce": "wrong"}, "another session"),
        ({"commit": "f" * 40}, "but the point is"),
        ({"commit": "0123"}, "but the point is"),
        ({"commit": ""}, "but the point is"),
        ({"loaded_from": "../other/mytool.py"}, "another folder"),
        ({"loaded_from": "missing.py"}, "does not exist"),
        ({"loaded_from": "link/mytool.py"}, "another folder"),
        ({"loaded_from": "../site-packages/mytool.py"}, "an installed copy"),
    ],
)
def test_what_does_not_fit_is_named(point: Point, reported: dict[str, str], words: str) -> None:
    """Another commit, session, checkout or installed copy is told, links followed."""
    for name in ("other", "site-packages", "checkout-2"):
        folder = point.directory.parent / name
        folder.mkdir()
        (folder / "mytool.py").touch()
    (point.directory / "link").symlink_to("../other")
    (found,) = mismatches(point, **reported)
    assert words in found


def test_checkout_with_a_longer_name_is_another_folder(point: Point) -> None:
    """A folder whose name begins like the checkout's is not inside it."""
    other = point.directory.parent / "checkout-2"
    other.mkdir()
    assert len(mismatches(point, loaded_from=str(other))) == 1


def test_without_a_product_the_nonce_alone_counts() -> None:
    """There is no commit to compare with."""
    assert mismatches(None, commit="abc", loaded_from="/x", nonce="right") == ()
    assert len(mismatches(None, nonce="other")) == 1


REPORTING = """
def ready():
    sys.path.insert(0, {where})
    import mytool
    return {{"commit": {commit}, "loaded_from": mytool.__file__}}
"""


def open_reporting(lab: Lab, where: str, commit: str) -> tuple[object, tuple[str, ...]]:
    """Ask one question of an adapter that loads the product from somewhere."""
    body = REPORTING.format(where=where, commit=commit)
    with lab.session(body, point=lab.point("HEAD~1"), sandbox=False) as session:
        try:
            reply: object = ask(session)
        except InvalidRunError as error:
            reply = error
        return reply, session.close().invalid


def test_product_of_the_point_answers(lab: Lab) -> None:
    """An adapter outside the product loads it from the checkout it runs in."""
    lab.commit_files("product", {"mytool.py": "V = 1\n"})
    lab.commit_files("product", {"mytool.py": "V = 2\n"})
    commit = lab.git("product", "rev-parse", "HEAD~1")
    reply, invalid = open_reporting(lab, "os.getcwd()", repr(commit))
    assert reply.status == "answered"  # type: ignore[attr-defined]
    assert invalid == ()


def test_wrong_directory_makes_the_run_invalid(lab: Lab) -> None:
    """A product imported from the repository it was developed in is not the point's."""
    lab.commit_files("product", {"mytool.py": "V = 1\n"})
    lab.commit_files("product", {"mytool.py": "V = 2\n"})
    commit = lab.git("product", "rev-parse", "HEAD~1")
    where = repr(str(lab.root / "product"))
    error, invalid = open_reporting(lab, where, repr(commit))
    assert isinstance(error, InvalidRunError)
    assert "loaded from" in str(error)
    assert len(invalid) == 1
    assert str(lab.root / "product") in invalid[0]


def test_commit_that_was_never_checked_out_makes_the_run_invalid(lab: Lab) -> None:
    """A product that says it is the newest commit is not the one that was asked for."""
    lab.commit_files("product", {"mytool.py": "V = 1\n"})
    newest = lab.commit_files("product", {"mytool.py": "V = 2\n"})
    error, invalid = open_reporting(lab, "os.getcwd()", repr(newest))
    assert isinstance(error, InvalidRunError)
    assert newest in invalid[0]


def test_installed_copy_makes_the_run_invalid(lab: Lab, tmp_path: Path) -> None:
    """A product that was installed somewhere else answers for another commit."""
    lab.commit_files("product", {"mytool.py": "V = 1\n"})
    lab.commit_files("product", {"mytool.py": "V = 2\n"})
    installed = tmp_path / "lib" / "site-packages"
    installed.mkdir(parents=True)
    shutil.copy(lab.root / "product" / "mytool.py", installed)
    error, invalid = open_reporting(lab, repr(str(installed)), "None")
    assert isinstance(error, InvalidRunError)
    assert "an installed copy" in invalid[0]


def test_foreign_nonce_makes_the_run_invalid(lab: Lab) -> None:
    """A greeting that was recorded in another session is found out."""
    body = """
    def serve():
        sys.stdin.readline()
        say(type="ready", nonce="recorded earlier")
        for line in sys.stdin:
            say(type="answer", id=json.loads(line).get("id"), items=[])
    """
    with lab.session(body) as session:
        with pytest.raises(InvalidRunError, match="another session"):
            ask(session)
        assert len(session.close().invalid) == 1


def test_interpreter_of_the_tests_is_not_in_a_session_path(lab: Lab) -> None:
    """`python` on a session's PATH is not coldrun's own interpreter."""
    body = """
    import shutil
    def answer(q):
        return {"items": [], "stop_reason": shutil.which("python3") or ""}
    """
    with lab.session(body) as session:
        found = ask(session).stop_reason
    assert Path(found).parent != Path(sys.prefix) / "bin"
