"""What changed between two versions of a text, by line: counting the change is counting it all.

Words never reach over a line end, so the counts of a text are the sum of those of its lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

REMEMBERED_PAIRS = 256
"""Versions whose difference is remembered: several arms ask for it, one shortly after another."""


def count_changes(
    old: bytes, new: bytes, count: Callable[[bytes], Mapping[str, int]]
) -> dict[str, int]:
    """How the counts of `new` differ from those of `old`; what does not differ is left out.

    Args:
        old: The earlier version.
        new: The later version.
        count: Counts the words of some lines.
    """
    lost, gained = changed_lines(old, new)
    changes = Counter(count(gained))
    changes.subtract(count(lost))
    return {word: change for word, change in changes.items() if change}


@lru_cache(maxsize=REMEMBERED_PAIRS)
def changed_lines(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """The lines that only `old` has and those that only `new` has, repeats counted.

    A line that moved is in neither. Only what lies between the first and the last difference is
    split into lines.
    """
    before, now = _differing_part(old, new)
    lines_before, lines_now = Counter(before.split(b"\n")), Counter(now.split(b"\n"))
    differing = {line for line, _ in lines_before.items() ^ lines_now.items()}
    more = {line: lines_now[line] - lines_before[line] for line in differing}
    lost = (line for line, times in more.items() for _ in range(-times))
    gained = (line for line, times in more.items() for _ in range(times))
    return b"\n".join(lost), b"\n".join(gained)


def _differing_part(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Both without the whole lines that they begin and end with in common."""
    start = old.rfind(b"\n", 0, _common_length(_bytes(old), _bytes(new))) + 1
    old, new = old[start:], new[start:]
    shared = _common_length(_bytes(old)[::-1], _bytes(new)[::-1])
    end = old.find(b"\n", len(old) - shared)
    kept = len(old) - end if end >= 0 else 0
    return old[: len(old) - kept], new[: len(new) - kept]


def _bytes(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, dtype=np.uint8)


def _common_length(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> int:
    """How many bytes both begin with."""
    length = min(one.size, other.size)
    differs = one[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length
