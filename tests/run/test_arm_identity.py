"""What decides an answer changes its key: the seven ways in which stale answers were replayed."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from coldrun.tasks.arms.builtin.builtin_kinds import Bm25Arm
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.records import Point, Question
from coldrun.tasks.run.arm_identity import ArmIdentity, identify_arm
from coldrun.tasks.run.capture_key import (
    capture_key,
    constant_parts,
    differing_components,
    key_parts,
)
from tests.sessions import Lab

QUESTION = Question(id="q1", query="where?", answer="ranking", k=5, seed=0)


def parts_of(lab: Lab, point: Point | None = None, **values: Any) -> ArmIdentity:
    product = lab.product(setup=values.pop("setup", ()))
    return identify_arm(lab.arm(**values), config_dir=lab.config_dir, point=point, product=product)


def key_of(lab: Lab, point: Point | None = None, **values: Any) -> dict[str, str]:
    """The components of the key of one answer."""
    identity = parts_of(lab, point, **values)
    return key_parts(constant_parts(identity), question=QUESTION, corpus={".": "t"}, trial=0)


@pytest.fixture
def product(lab: Lab) -> Lab:
    """A product with one commit, and an adapter."""
    lab.commit_files("product", {"tool.py": "from rank import rank\n", "rank.py": "rank = 1\n"})
    lab.adapter("")
    return lab


def test_key_is_the_same_when_nothing_changed(product: Lab) -> None:
    """The same point, files and variables give the same key."""
    assert key_of(product, product.point()) == key_of(product, product.point())


def test_product_changed_and_committed_changes_the_key(product: Lab) -> None:
    """The first way: the product changed, and the old answers came back."""
    before = key_of(product, product.point())
    product.commit_files("product", {"tool.py": "rank = 3\n"})
    assert differing_components(before, key_of(product, product.point())) == ("product",)


def test_imported_helper_of_the_product_changes_the_key(product: Lab) -> None:
    """The second way: only a helper that the product imports changed, committed or not."""
    before = key_of(product, product.point())
    (product.root / "product" / "rank.py").write_text("rank = 2\n")
    dirty = key_of(product, product.point("worktree"))
    product.commit_files("product", {})
    committed = key_of(product, product.point())
    assert len({capture_key(parts) for parts in (before, dirty, committed)}) == 3


def test_declared_helper_of_the_adapter_changes_the_key(product: Lab) -> None:
    """The third way: a helper beside the adapter changed; undeclared, it cannot be imported."""
    product.write("helper.py", "x = 1\n")
    point = product.point()
    before = key_of(product, point, files=("helper.py",))
    product.write("helper.py", "x = 2\n")
    after = key_of(product, point, files=("helper.py",))
    assert differing_components(before, after) == ("artifacts",)


def test_adapter_changes_the_key(product: Lab) -> None:
    """The adapter is no part of the product, and part of the key."""
    point = product.point()
    before = key_of(product, point)
    product.adapter("# a comment")
    assert differing_components(before, key_of(product, point)) == ("artifacts",)


def test_script_and_its_import_change_the_key_without_a_product(product: Lab) -> None:
    """The fourth way: a script's import changed; scripts and folders of the command line count."""
    product.write("tools/run.py", "import more\n")
    product.write("tools/more.py", "x = 1\n")
    values = {"argv": ("{python}", "tools/run.py"), "adapter": None, "files": ("tools",)}
    before = key_of(product, **values)
    product.write("tools/more.py", "x = 2\n")
    after = key_of(product, **values)
    assert differing_components(before, after) == ("artifacts",)
    product.write("tools/run.py", "import more # again\n")
    script = {"argv": ("{python}", "tools/run.py"), "adapter": None}
    assert parts_of(product, **script).artifacts.keys() == {"tools/run.py"}


def test_model_in_the_configuration_changes_the_key(
    product: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fifth way: the model changed, by a setting or by a declared variable's value."""
    point = product.point()
    monkeypatch.setenv("MODEL", "one")
    before = key_of(product, point, env=("MODEL",))
    monkeypatch.setenv("MODEL", "two")
    after = key_of(product, point, env=("MODEL",))
    assert differing_components(before, after) == ("environment",)
    assert "two" not in "".join(after.values())
    set_one = key_of(product, point, set_env={"MODEL": "one"})
    set_two = key_of(product, point, set_env={"MODEL": "two"})
    assert differing_components(set_one, set_two) == ("arm", "environment")


def test_gold_and_added_tasks_are_no_part_of_a_key(product: Lab) -> None:
    """The sixth and seventh way, gold changed or a task added, do not touch other answers' keys.

    Gold is applied at scoring time, always the present one, and each task has its own key.
    """
    parts = key_of(product, product.point())
    assert "gold" not in "".join(parts)
    identity_only = {name: text for name, text in parts.items() if name != "question"}
    assert "q1" not in "".join(identity_only.values())


def test_wrong_directory_cannot_enter_the_key(product: Lab) -> None:
    """A point is what its repository says it is, wherever the program was started."""
    other = Lab(product.root / "elsewhere")
    other.root.mkdir()
    other.commit_files("product", {"tool.py": "from rank import rank\n"})
    here, there = product.point(), other.point()
    assert here.commit != there.commit
    assert key_of(product, here) != key_of(product, there)


def test_set_up_changes_the_key(product: Lab) -> None:
    """Another set-up can give another product from the same commit."""
    one = key_of(product, product.point(setup=("true",)), setup=("true",))
    two = key_of(product, product.point(setup=("true", "x")), setup=("true", "x"))
    assert differing_components(one, two) == ("artifacts",)


def test_declared_program_changes_the_key(product: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search program that was upgraded answers differently."""
    folder = product.root / "bin"
    folder.mkdir()
    program = folder / "searcher"
    program.write_text("#!/bin/sh\necho 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    before = key_of(product, binaries=("searcher",))
    by_argv = parts_of(product, argv=("searcher", "{query}")).binaries
    assert by_argv.keys() == {"searcher"}
    program.write_text("#!/bin/sh\necho 2\n")
    after = key_of(product, binaries=("searcher",))
    assert differing_components(before, after) == ("binaries", "session")
    with pytest.raises(ConfigError, match="'missing' of `binaries`"):
        parts_of(product, binaries=("missing",))


def test_declared_file_that_is_missing_is_an_error(product: Lab) -> None:
    """A file that decides the answer must be there when the run is planned."""
    with pytest.raises(ConfigError, match="there is nothing at"):
        parts_of(product, files=("missing.txt",))


def test_built_in_arm_has_no_product(product: Lab) -> None:
    """A control is the same at every point."""
    arm = Bm25Arm(name="b", kind="bm25")
    one = identify_arm(arm, config_dir=product.config_dir, point=product.point())
    two = identify_arm(arm, config_dir=product.config_dir, point=None)
    assert one == two
    assert one.product is None


def test_renamed_file_of_a_declared_folder_changes_the_key(product: Lab) -> None:
    """Names count as much as bytes; bytecode does not."""
    product.write("index/a", "x")
    product.write("index/__pycache__/a.pyc", "1")
    before = parts_of(product, files=("index",)).artifacts["index"]
    product.write("index/__pycache__/a.pyc", "2")
    assert parts_of(product, files=("index",)).artifacts["index"] == before
    shutil.move(product.config_dir / "index" / "a", product.config_dir / "index" / "b")
    assert parts_of(product, files=("index",)).artifacts["index"] != before


def test_arm_configuration_is_a_component(product: Lab) -> None:
    """A changed time-out or pattern is another configuration."""
    point = product.point()
    before = key_of(product, point)
    after = key_of(product, point, timeout_seconds=11)
    assert differing_components(before, after) == ("arm",)


def test_folder_is_in_the_key_only_when_set(product: Lab) -> None:
    """Keys of captures from before `cwd` existed stay valid; where it is set, it decides."""
    before = key_of(product)
    assert "cwd" not in json.loads(before["arm"])
    assert json.loads(key_of(product, cwd="{corpus}")["arm"])["cwd"] == "{corpus}"
