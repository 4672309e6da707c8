"""Canonical JSON and digests: equal values give equal bytes on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys, no white space, and no NaN or infinity.

    Raises:
        ValueError: The value holds NaN, an infinity or a lone surrogate.
    """
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode("utf-8")


def digest_bytes(data: bytes) -> str:
    """`sha256:` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_json(value: Any) -> str:
    """The digest of a value's canonical JSON."""
    return digest_bytes(canonical_json(value))
