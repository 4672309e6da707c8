"""Tools by package: real wheels, installed from a folder in place of a registry."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.machine.sandbox import sandbox_problem
from coldrun.tasks.lib.machine.tree_digest import digest_tree
from coldrun.tasks.product.packages import install_package
from coldrun.tasks.run.arm_identity import identify_arm
from tests.sessions import Lab, ask, items

pytestmark = pytest.mark.skipif(sandbox_problem() is not None, reason=str(sandbox_problem()))


def write_wheel(folder: Path, version: str, found: str) -> None:
    """A tool that answers every question with one file."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"toytool-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("toytool.py", f"def main():\n    print({found!r})\n")
        about = f"toytool-{version}.dist-info/"
        wheel.writestr(
            about + "METADATA", f"Metadata-Version: 2.1\nName: toytool\nVersion: {version}\n"
        )
        wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(about + "entry_points.txt", "[console_scripts]\ntoytool=toytool:main\n")
        wheel.writestr(about + "RECORD", "")


@pytest.fixture
def registry(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that the package managers are told of, and no registry."""
    folder = lab.root / "wheels"
    for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, str(folder))
    for name in ("UV_NO_INDEX", "PIP_NO_INDEX"):
        monkeypatch.setenv(name, "1")
    write_wheel(folder, "1.0", "src/a.py")
    return folder


def test_package_answers_sealed_and_is_identified_by_content(lab: Lab, registry: Path) -> None:
    """A newer version in the registry changes nothing; another version is another key."""
    arm = lab.arm(
        package="pypi:toytool==1.0", argv=("toytool", "{query}"), mode="per-task", adapter=None
    )
    session = open_session(lab.context(arm))
    assert items(session, ask(session)) == ("src/a.py",)
    session.close()
    before = identify_arm(arm, config_dir=lab.config_dir, point=None, scratch=lab.scratch)
    assert before.is_identified
    write_wheel(registry, "2.0", "src/b.py")
    again = identify_arm(arm, config_dir=lab.config_dir, point=None, scratch=lab.scratch)
    assert again.session == before.session
    newer = arm.model_copy(update={"package": "pypi:toytool==2.0"})
    after = identify_arm(newer, config_dir=lab.config_dir, point=None, scratch=lab.scratch)
    assert after.session != before.session


@pytest.mark.usefixtures("registry")
def test_two_installs_of_a_package_are_one(lab: Lab) -> None:
    """In two scratch folders, file for file, and without compiled files."""
    found = [
        install_package("pypi:toytool==1.0", arm="x", scratch=lab.root / name)
        for name in ("one", "two")
    ]
    assert found[0].folder != found[1].folder
    assert digest_tree(found[0].folder) == digest_tree(found[1].folder)
    assert not list(found[0].folder.rglob("*.pyc"))
    assert "toytool==1.0" in found[0].resolved


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pypi:toytool", "names no exact version; the newest is pypi:toytool==1.0"),
        ("pypi:toytool==1.*", "names no exact version"),
        ("pypi:toytool==9.9", "cannot be installed"),
        ("toytool==1.0", 'is neither "pypi:NAME==VERSION" nor'),
    ],
)
def test_package_that_cannot_be_had_is_one_line(lab: Lab, text: str, words: str) -> None:
    """The line says what to write."""
    with pytest.raises(ConfigError) as caught:
        install_package(text, arm="tool", scratch=lab.scratch)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
