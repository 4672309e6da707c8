"""The key of a capture: every byte that could decide an answer, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.records import Question
from coldrun.tasks.run.arm_identity import ArmIdentity

CAPTURE_SCHEMA = 2
"""Raised when the meaning of a stored capture changes; older captures are then never reused."""

KEY_COMPONENTS = (
    "schema",
    "question",
    "corpus",
    "arm",
    "artifacts",
    "product",
    "code",
    "interpreter",
    "binaries",
    "environment",
    "session",
    "seed",
    "trial",
)


def constant_parts(identity: ArmIdentity) -> dict[str, str]:
    """The components that all captures of an arm share, each as canonical JSON text."""
    values: dict[str, Any] = {
        "schema": CAPTURE_SCHEMA,
        "arm": dict(identity.arm),
        "artifacts": dict(identity.artifacts),
        "product": None if identity.product is None else dict(identity.product),
        "code": dict(identity.code),
        "interpreter": identity.interpreter,
        "binaries": dict(identity.binaries),
        "environment": identity.environment,
        "session": None if identity.session is None else dict(identity.session),
    }
    return {name: canonical_json(value).decode() for name, value in values.items()}


def key_parts(
    constant: Mapping[str, str],
    *,
    question: Question,
    corpus: Mapping[str, str],
    trial: int,
    asked_before: str | None = None,
) -> dict[str, str]:
    """All components of one capture's key, each as canonical JSON text, by component name.

    `constant` comes from `constant_parts`; `corpus` maps the names of the searched trees to their
    tree ids; `asked_before` is a digest of the questions that a stateful arm was asked before this
    one. Gold is never among the arguments: an answer does not depend on it.
    """
    asked = {} if asked_before is None else {"asked_before": asked_before}
    values: dict[str, Any] = {
        "question": {
            "id": question.id,
            "query": question.query,
            "answer": question.answer,
            "k": question.k,
            **asked,
        },
        "corpus": dict(corpus),
        "seed": question.seed,
        "trial": trial,
    }
    own = {name: canonical_json(value).decode() for name, value in values.items()}
    parts = {**constant, **own}
    return {name: parts[name] for name in KEY_COMPONENTS}


def capture_key(parts: Mapping[str, str]) -> str:
    """SHA-256 (64 hexadecimal digits) of the canonical JSON of the key's components."""
    return hashlib.sha256(canonical_json(dict(parts))).hexdigest()


def differing_components(mine: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the components in which two keys differ, in the key's order."""
    return tuple(name for name in KEY_COMPONENTS if mine.get(name) != other.get(name))
