"""Secrets that are cut out of all that is stored or printed: one list a process, one function.

What is declared becomes known when a configuration is read: the values of variables that arms and
set-ups are given, and credentials in URLs. Each is known in the encodings that tools write it in.
"""

from __future__ import annotations

import base64
import json
import os
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SHORTEST = 6
"""Shorter values are words that may stand in an answer."""
CUT = "…"

_PUBLIC = re.compile(
    r"(?i)(.*_)?(path|home|dir|folder|file|lang|language|lc_.*|term|tz|user|shell|pwd|tmp(dir)?"
    r"|temp|no_proxy|model|level|mode|port|host|hosts|region|locale|threads|version)"
)
"""Names of variables whose values are settings; all others are taken for secrets."""

_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)([^/\s@?#]*)@")
_known: set[str] = set()
_pattern: list[re.Pattern[str]] = []


def keep_secret(values: Iterable[str]) -> None:
    """Let `conceal` cut these out from now on, and what encodes them."""
    fresh = {form for value in values for form in _forms(value)} - _known
    if fresh:
        _known.update(fresh)
        longest_first = sorted(_known, key=lambda form: (-len(form), form))
        _pattern[:] = [re.compile("|".join(map(re.escape, longest_first)))]


def keep_variables_secret(names: Iterable[str]) -> None:
    """The same for the values of variables, but for settings and for paths."""
    for name in names:
        value = os.environ.get(name, "")
        if "://" in value:
            keep_url_secret(value)
        elif len(value) >= SHORTEST and not _PUBLIC.fullmatch(name) and not value.startswith("/"):
            keep_secret([value])


def keep_url_secret(url: str) -> None:
    """The same for the user and password of a URL; a user alone is a secret in HTTP only."""
    for scheme, given in _USERINFO.findall(url):
        user, _, password = given.partition(":")
        if password or scheme.startswith("http"):
            keep_secret([f"{given}@"])
            parts = [password] if password else [user]
            plain = [urllib.parse.unquote(part) for part in parts]
            keep_secret(part for part in [*parts, *plain] if len(part) >= SHORTEST)


def without_credentials(url: str) -> str:
    """A URL without user and password."""
    return _USERINFO.sub(r"\1", url)


def conceal(text: str) -> str:
    """`text` without the secrets that are known; of a URL its user and password are left out."""
    if not _pattern:
        return text
    return _pattern[0].sub(lambda found: "" if found[0].endswith("@") else CUT, text)


def conceal_values(value: Any) -> Any:
    """JSON values without the secrets that are known."""
    if not _pattern:
        return value
    if isinstance(value, str):
        return conceal(value)
    if isinstance(value, list | tuple):
        return type(value)(conceal_values(item) for item in value)
    if isinstance(value, dict):
        return {conceal_values(key): conceal_values(item) for key, item in value.items()}
    return value


def conceal_file(path: Path) -> None:
    """Cut secrets out of a file of text."""
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    if (kept := conceal(text)) != text:
        path.write_bytes(kept.encode("utf-8", "surrogateescape"))


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield urllib.parse.quote(secret, safe="")
    yield urllib.parse.quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    data = secret.encode("utf-8", "surrogateescape")
    for before in range(3):  # how many bytes stand before it in its group of three
        whole = base64.b64encode(bytes(before) + data).decode("ascii").rstrip("=")
        first = (8 * before + 5) // 6
        inner = whole[first : (8 * (before + len(data))) // 6]
        if len(inner) >= SHORTEST:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")
