"""Writing any file name of a repository as text, so that it can be read back.

A path that is UTF-8 stands as it is. One that is not is percent-encoded: each byte that is not
part of valid UTF-8 becomes `%XX`, and each literal `%` becomes `%25`. A path that is UTF-8 but
could be mistaken for an encoded one (percent-decoding it, once or repeatedly, gives bytes that
are not UTF-8) has its `%` written as `%25` too, so that every path has one text and every text
one path.
"""

from __future__ import annotations

import urllib.parse


def encode_path(raw_path: bytes) -> str:
    """The text of a path, by the rule of this module."""
    try:
        text = raw_path.decode("utf-8")
    except UnicodeDecodeError:
        return _escape(raw_path)
    return text.replace("%", "%25") if "%" in text and _looks_encoded(text) else text


def _looks_encoded(text: str) -> bool:
    while True:
        decoded = urllib.parse.unquote_to_bytes(text)
        try:
            inner = decoded.decode("utf-8")
        except UnicodeDecodeError:
            return True
        if inner == text:
            return False
        text = inner


def _escape(raw_path: bytes) -> str:
    text = raw_path.decode("utf-8", "surrogateescape").replace("%", "%25")
    return "".join(
        f"%{ord(character) - 0xDC00:02X}" if "\udc80" <= character <= "\udcff" else character
        for character in text
    )
