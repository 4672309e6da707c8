"""An adapter to start from: it answers over JSON Lines by counting the words of file names.

Replace `build_index` and `search` with calls of your tool; the rest is the protocol. It runs in a
folder of its own, with a private copy of the corpus. Only stdout is read; logs belong on stderr.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any


def build_index(corpus: Path) -> dict[str, set[str]]:
    """The words of every file's path. Yours: index, embed, connect."""
    files = (path.relative_to(corpus).as_posix() for path in corpus.rglob("*") if path.is_file())
    return {name: words_of(name) for name in files}


def search(index: dict[str, set[str]], query: str, k: int) -> list[tuple[str, float]]:
    """The best k files with their scores, best first. Yours: ask your tool."""
    wanted = words_of(query)
    scores = {name: len(wanted & words) / len(words) for name, words in index.items() if words}
    ranked = sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(name, score) for name, score in ranked[:k] if score > 0]


def words_of(text: str) -> set[str]:
    """Its words in lower case, identifiers taken apart."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", text)}


def say(message: dict[str, Any]) -> None:
    """Write one line of the protocol."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Greet, index once, then answer question by question until the input ends."""
    hello = json.loads(sys.stdin.readline())
    index = build_index(Path(hello["corpus"]))
    say({"type": "ready", "nonce": hello["nonce"], "name": "mytool"})
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] != "question":
            break
        found = search(index, message["query"], hello["k"])
        items = [{"path": path, "score": score} for path, score in found]
        say({"type": "answer", "id": message["id"], "items": items})


if __name__ == "__main__":
    main()
