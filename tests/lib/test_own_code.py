"""What coldrun itself is: every source file counts."""

from __future__ import annotations

import os
import re
import shutil
from importlib.metadata import distributions
from pathlib import Path

import pytest

from coldrun.tasks.lib.own_code import (
    SOURCE_FOLDERS,
    digest_source,
    installed_packages,
    own_code,
    source_root,
)
from tests.conftest import EXAMPLES
from tests.evaluations import ROOT


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of coldrun's own source."""
    root = tmp_path_factory.mktemp("source")
    for folder in SOURCE_FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "data")
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    return root


def test_digest_source_of_a_copy_equals_that_of_the_original(copied: Path) -> None:
    """Where the clone lies does not matter."""
    assert digest_source(copied) == digest_source(ROOT) == own_code()["source"]


def test_digest_source_changes_with_every_single_file(copied: Path) -> None:
    """A comment added to any file of coldrun, a view included, makes other keys."""
    before = digest_source(copied)
    files = [path for path in copied.rglob("*") if path.suffix in {".py", ".sql"}]
    assert len(files) > 100

    # one in eight of them in the gate, each of them every night
    for path in sorted(files)[:: 8 // EXAMPLES]:
        data = path.read_bytes()
        path.write_bytes(data + b"\n")
        assert digest_source(copied) != before, path
        path.write_bytes(data)
    assert digest_source(copied) == before


def test_digest_source_changes_with_names_and_ignores_bytecode(copied: Path) -> None:
    """A renamed or added file counts; what Python leaves behind does not."""
    before = digest_source(copied)
    bytecode = copied / "tasks" / "__pycache__" / "canonical.cpython-311.pyc"
    bytecode.parent.mkdir(exist_ok=True)
    bytecode.write_bytes(b"x")
    os.utime(copied / "tasks" / "lib" / "canonical.py", (0, 0))
    assert digest_source(copied) == before

    (copied / "tasks" / "lib" / "canonical.py").rename(copied / "tasks" / "lib" / "canon.py")
    assert digest_source(copied) != before
    (copied / "tasks" / "lib" / "canon.py").rename(copied / "tasks" / "lib" / "canonical.py")


def test_digest_source_ignores_the_warehouse_data(copied: Path) -> None:
    """Results land below `warehouse/data`, and a run must not change its own key."""
    before = digest_source(copied)
    stray = copied / "warehouse" / "data" / "captures" / "run" / "template.html"
    stray.parent.mkdir(parents=True)
    stray.write_text("<p>not source</p>")

    assert digest_source(copied) == before


def test_source_root_is_where_the_running_code_lies() -> None:
    """The digest is of the code that runs."""
    assert source_root() == ROOT


def test_installed_packages_equal_what_importlib_says() -> None:
    """The quick way of reading versions finds the same as the slow one."""
    slow = {
        re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower(): package.version
        for package in distributions()
    }
    slow.pop("coldrun", None)

    assert installed_packages() == slow
