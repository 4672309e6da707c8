"""A kind of arm from outside: its own module, and one entry in the registry."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.config import parse_config
from coldrun.tasks.config.arm_config import ARM_KINDS
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.run.arm_identity import identify_arm
from tests.sessions import Lab, ask

TOY = '''
"""`kind = "toy"`: answers what it is told to, in capital letters between stars."""

import os
from typing import Literal

from coldrun.tasks.arms.arm_kind import ArmKind, Unwrapped
from coldrun.tasks.arms.driven_session import open_driven
from coldrun.tasks.arms.driver import Driver
from coldrun.tasks.config import ProcessArm
from coldrun.tasks.lib.records import Reply


class ToyArm(ProcessArm):
    kind: Literal["toy"]
    says: str


class ToyDriver(Driver):
    def ask(self, question, earlier):
        if question.query == "fail" and not earlier:
            return Reply(status="infra", reason="the toy broke")
        return Reply(status="answered", raw=f"*{self.arm.says.upper()}*")


def unwrap(raw, arm):
    return Unwrapped(documents=[], texts=[raw.strip("*").lower()], form="text")


TOY = ArmKind(
    settings=ToyArm,
    unwrap=unwrap,
    open_session=lambda context: open_driven(context, ToyDriver),
)
'''


@pytest.fixture(autouse=True)
def _registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_kind.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(ARM_KINDS, "toy", "toy_kind:TOY")
    monkeypatch.delitem(sys.modules, "toy_kind", raising=False)


def configure(**arm: object) -> object:
    table = {"name": "it", "kind": "toy", **arm}
    return parse_config({"panel": {"kind": "jsonl", "file": "tasks.jsonl"}, "arm": [table]}).arm[0]


def test_toy_kind_is_configured_asked_and_read(lab: Lab) -> None:
    """The session shell gives it retries, attempts, a workspace and the common parser."""
    arm = configure(says="src/a.py", retries=1, env=["TOY_MODE"])
    assert arm.model_dump(mode="json")["says"] == "src/a.py"
    session = open_session(lab.context(arm))
    reply = ask(session, "fail")
    assert (reply.status, reply.raw) == ("answered", "*SRC/A.PY*")
    assert [(each.number, each.reason) for each in reply.attempts] == [
        (1, "the toy broke"),
        (2, None),
    ]
    assert session.close().invalid == ()
    parsed = parse_answer(reply.raw, arm, answer="ranking", corpus_dir=None)
    assert parsed.items == ("src/a.py",)


def test_toy_kind_brings_its_settings_to_the_key(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """What any program declares is identified without a word of its own."""
    arm = configure(says="x", env=["TOY_MODE"])
    found = []
    for value in ("one", "two"):
        monkeypatch.setenv("TOY_MODE", value)
        found.append(identify_arm(arm, config_dir=lab.root, point=None).environment)
    assert found[0] != found[1]


def test_toy_kind_settings_are_checked_by_name() -> None:
    """Errors name its keys, and the registry's kinds."""
    with pytest.raises(ConfigError, match=r"unknown key `arm\[0\].sayz`; did you mean `says`?"):
        configure(says="x", sayz="y")
    with pytest.raises(ConfigError, match=r"`arm\[0\].says` is missing"):
        configure()
    with pytest.raises(ConfigError, match=r"kind 'top' is not one of .*, toy"):
        configure(kind="top")
