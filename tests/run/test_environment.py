"""The fingerprint of the machine."""

from __future__ import annotations

import json

from coldrun.tasks.run.environment import digest_environment, environment_fingerprint


def test_fingerprint_is_stable_and_complete() -> None:
    """Taken twice it is the same, plain JSON, with a digest of its facts."""
    facts = environment_fingerprint()
    assert facts == environment_fingerprint()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["digest"] == digest_environment(facts)
    assert facts["tools"]["git"].startswith("git version")
    assert facts["cpus"] >= 1
    assert len(facts["packages_digest"]) == 64


def test_digest_changes_with_any_fact() -> None:
    """Another interpreter is another environment."""
    facts = environment_fingerprint()
    assert digest_environment({**facts, "python": "CPython 2.7"}) != facts["digest"]
