"""Checkouts and corpora that somebody touched since they were made."""

from __future__ import annotations

import shutil

import pytest

from coldrun.tasks.arms.workspace.corpora import copy_corpus
from coldrun.tasks.lib.errors import PointError
from coldrun.tasks.lib.records import Point
from coldrun.tasks.run.arm_identity import ArmIdentity, identify_arm
from tests.sessions import Lab, ask


def parts(lab: Lab, *, point: Point | None = None, **values: object) -> ArmIdentity:
    lab.config_dir.mkdir(exist_ok=True)
    product = None if point is None else lab.product()
    return identify_arm(lab.arm(**values), config_dir=lab.config_dir, point=point, product=product)


def built_point(lab: Lab, text: str) -> Point:
    source = lab.scratch / "caches" / "source"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(text)
    if not (lab.root / "product").exists():
        lab.commit_files("product", {"a.py": "a = 1\n", ".gitignore": "built/\n"})
    return lab.point(setup=("sh", "-c", f"mkdir -p built && cp {source} built/table"))


def test_what_a_set_up_made_is_part_of_the_key(lab: Lab) -> None:
    """The same set-up run again may make something else: another version of a package, say."""
    found = []
    for text in ("one", "one", "two"):
        point = built_point(lab, text)
        found.append(parts(lab, point=point, adapter=None, argv=("sh", "-c", "true")).product)
        shutil.rmtree(lab.scratch / "points")
    before, again, after = found

    assert before == again
    assert before != after


@pytest.mark.parametrize("how", ["changed", "removed"])
def test_a_checkout_whose_built_files_were_touched_is_set_up_again(lab: Lab, how: str) -> None:
    point = built_point(lab, "one")
    table = point.directory / "built" / "table"
    if how == "changed":
        table.write_text("eno")
    else:
        table.unlink()

    again = built_point(lab, "one")

    assert (again.directory / "built" / "table").read_text() == "one"


def test_touched_but_equal_built_files_are_left_alone(lab: Lab) -> None:
    point = built_point(lab, "one")
    table = point.directory / "built" / "table"
    table.write_text("one")
    inode = table.stat().st_ino

    assert built_point(lab, "one").directory == point.directory
    assert table.stat().st_ino == inode


def test_a_session_that_changes_what_the_set_up_made_is_named(lab: Lab) -> None:
    point = built_point(lab, "one")
    with lab.session(
        """
        def answer(question):
            open("built/table", "w").write("poisoned")
            return {"items": [{"path": "src/a.py"}]}
        """,
        point=point,
        sandbox=False,
    ) as session:
        ask(session)
        end = session.close()

    assert any("built/table" in text for text in end.warnings)


def test_a_set_up_that_changes_and_stages_tracked_files_is_refused(lab: Lab) -> None:
    """`git apply --index` and its like leave a clean status against the index."""
    lab.commit("product", a_py="a = 1\n")

    with pytest.raises(PointError, match="changed tracked files"):
        lab.point(setup=("sh", "-c", "echo 'a = 2' > a.py && git add a.py"))


def test_a_session_that_stages_its_changes_is_invalid(lab: Lab) -> None:
    lab.commit("product", a_py="a = 1\n")
    with lab.session(
        """
        def answer(question):
            open("a.py", "w").write("a = 2")
            os.system("git add a.py")
            return {"items": [{"path": "src/a.py"}]}
        """,
        point=lab.point(),
        sandbox=False,
    ) as session:
        ask(session)
        end = session.close()

    assert any("a.py" in text for text in end.invalid)


def test_a_pristine_corpus_that_was_edited_is_written_again(lab: Lab) -> None:
    first = copy_corpus(lab.corpus(), scratch=lab.scratch, target=lab.root / "one")
    (pristine,) = first.originals.values()
    (pristine / "src" / "a.py").write_text("edited by hand\n")
    (pristine / "extra.py").write_text("left behind\n")

    second = copy_corpus(lab.corpus(), scratch=lab.scratch, target=lab.root / "two")

    assert (second.directory / "src" / "a.py").read_text() == "a = 1\n"
    assert not (second.directory / "extra.py").exists()
