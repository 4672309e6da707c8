"""Secrets are cut out in every form that a tool may write them in."""

from __future__ import annotations

import base64
import json
import urllib.parse

import pytest

from coldrun.tasks.lib.concealment import (
    conceal,
    conceal_values,
    keep_secret,
    keep_url_secret,
    keep_variables_secret,
    without_credentials,
)

SECRET = 'p@ss/w"ord+é&='


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        urllib.parse.quote(SECRET, safe=""),
        urllib.parse.quote_plus(SECRET),
        json.dumps(SECRET),
        *(base64.b64encode(b"x" * n + SECRET.encode()).decode() for n in range(4)),
        base64.b64encode(f"user:{SECRET}".encode()).decode(),
        base64.urlsafe_b64encode(f"user:{SECRET}!".encode()).decode(),
    ],
)
def test_a_secret_is_cut_out_in_each_encoding(form: str) -> None:
    keep_secret([SECRET])
    cut = conceal(f"before {form} after")
    assert "…" in cut
    assert form not in cut
    assert cut.startswith("before ")
    assert cut.endswith(" after")


def test_credentials_of_a_url_are_left_out_everywhere() -> None:
    keep_url_secret("https://me:hunter2!@example.org/x.git")
    assert conceal("cannot read https://me:hunter2!@example.org/x.git") == (
        "cannot read https://example.org/x.git"
    )
    assert conceal_values({"a": ["hunter2!", 1]}) == {"a": ["…", 1]}
    keep_url_secret("ssh://git@example.org/x.git")
    assert conceal("ssh://git@example.org/x.git") == "ssh://git@example.org/x.git"
    assert without_credentials("https://token@example.org/x") == "https://example.org/x"


def test_variables_that_are_settings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "TOOL_KEY": "sesame-open",
        "TOOL_HOME": "somewhere",
        "MODEL": "large-model",
        "DATA": "/srv/data",
        "INDEX": "https://me:hunter2!@example.org/simple",
        "SHORT": "abc",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    keep_variables_secret([*given, "UNSET"])
    assert conceal(" ".join(given.values())) == (
        "… somewhere large-model /srv/data https://example.org/simple abc"
    )
