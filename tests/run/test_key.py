"""The key of a capture: everything that could decide an answer, and never gold."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.lib.records import Question
from coldrun.tasks.run.arm_identity import ArmIdentity
from coldrun.tasks.run.capture_key import (
    KEY_COMPONENTS,
    capture_key,
    constant_parts,
    differing_components,
    key_parts,
)

IDENTITY = ArmIdentity(
    arm={"name": "tool", "kind": "command", "argv": ["tool"]},
    artifacts={"adapter.py": "sha256:a"},
    product={"commit": "c" * 40, "tree": "d" * 40},
    code={"source": "sha256:s", "packages": "sha256:p"},
    interpreter="CPython 3.11",
    binaries={"rg": "sha256:r"},
    environment="sha256:e",
)
QUESTION = Question(id="t1", query="where?", answer="ranking", k=8, seed=0)
CORPUS = {".": "1" * 40}


def parts_of(
    identity: ArmIdentity = IDENTITY,
    question: Question = QUESTION,
    corpus: dict[str, str] = CORPUS,
    trial: int = 0,
) -> dict[str, str]:
    return key_parts(constant_parts(identity), question=question, corpus=corpus, trial=trial)


CHANGES: dict[str, dict[str, Any]] = {
    "question": {"question": replace(QUESTION, query="where ?")},
    "corpus": {"corpus": {".": "2" * 40}},
    "arm": {"identity": replace(IDENTITY, arm={**IDENTITY.arm, "timeout_seconds": 61})},
    "artifacts": {"identity": replace(IDENTITY, artifacts={"adapter.py": "sha256:b"})},
    "product": {"identity": replace(IDENTITY, product={"commit": "c" * 40, "tree": "e" * 40})},
    "code": {"identity": replace(IDENTITY, code={**IDENTITY.code, "source": "sha256:t"})},
    "interpreter": {"identity": replace(IDENTITY, interpreter="CPython 3.12")},
    "binaries": {"identity": replace(IDENTITY, binaries={})},
    "environment": {"identity": replace(IDENTITY, environment="sha256:f")},
    "session": {"identity": replace(IDENTITY, session={"system": "another"})},
    "seed": {"question": replace(QUESTION, seed=1)},
    "trial": {"trial": 1},
}
"""For each component, what changes it and nothing else."""


@pytest.mark.parametrize("component", sorted(CHANGES))
def test_key_of_one_changed_component_differs_in_that_component_alone(component: str) -> None:
    """Every component decides the key by itself, and is named when it differs."""
    mine, other = parts_of(), parts_of(**CHANGES[component])

    assert differing_components(mine, other) == (component,)
    assert capture_key(mine) != capture_key(other)


def test_changes_cover_every_component_but_the_schema() -> None:
    """A component that is added later needs its line above."""
    assert {*CHANGES, "schema"} == set(KEY_COMPONENTS) == set(parts_of())


def test_question_has_no_field_for_gold() -> None:
    """What an arm is asked cannot carry the right answer, so the key cannot either."""
    assert {field.name for field in fields(Question)} == {
        *("id", "query", "answer", "k", "seed", "base"),
    }


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), min_size=2, max_size=6),
    st.randoms(),
)
def test_key_ignores_the_order_in_which_things_were_found(
    artifacts: dict[str, str], random: Any
) -> None:
    """Equal contents give equal keys, whatever order a folder was read in."""
    shuffled = list(artifacts.items())
    random.shuffle(shuffled)
    mine = parts_of(replace(IDENTITY, artifacts=artifacts))
    other = parts_of(replace(IDENTITY, artifacts=dict(shuffled)))

    assert capture_key(mine) == capture_key(other)


@given(st.text(), st.text(), st.text(), st.text())
def test_keys_of_different_texts_never_meet(id_: str, query: str, id2: str, query2: str) -> None:
    """No shifting of text between fields gives the same key."""
    mine = parts_of(question=replace(QUESTION, id=id_, query=query))
    other = parts_of(question=replace(QUESTION, id=id2, query=query2))

    assert (capture_key(mine) == capture_key(other)) == ((id_, query) == (id2, query2))


def test_key_parts_are_json_texts_that_why_can_read() -> None:
    """Each component is canonical JSON, so that the differing entry can be named."""
    parts = parts_of()

    assert json.loads(parts["product"]) == IDENTITY.product
    assert json.loads(parts["question"])["query"] == "where?"
    assert json.loads(parts["corpus"]) == CORPUS
