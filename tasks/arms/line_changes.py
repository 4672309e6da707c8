"""What changed between two versions of a text, by line: counting the change is counting it all.

Words never reach over a line end, so the counts of a text are the sum of those of its lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping


def count_changes(
    old: str, new: str, count_line: Callable[[str], Mapping[str, int]]
) -> dict[str, int]:
    """How the counts of `new` differ from those of `old`; what does not differ is left out.

    Args:
        old: The earlier version.
        new: The later version.
        count_line: Counts the words of one line.
    """
    lines_before, lines_now = Counter(old.split("\n")), Counter(new.split("\n"))
    changed = {line for line, _ in lines_before.items() ^ lines_now.items()}
    changes: Counter[str] = Counter()
    for line in changed:
        times = lines_now[line] - lines_before[line]
        for word, count in count_line(line).items():
            changes[word] += count * times
    return {word: change for word, change in changes.items() if change}
