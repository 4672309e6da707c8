"""An HTTP service to start from: it finds files by counting the words of their names.

Replace it with your own service by changing `argv` of the arm (or leave `argv` out and name the
`url` of one that runs), and say in `body` and `items` how it is asked and read.
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT, CORPUS = int(sys.argv[1]), Path(sys.argv[2])
INDEX: dict[str, set[str]] = {}


class Handler(BaseHTTPRequestHandler):
    """Answers each POST with the best files, best first."""

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = search(question["query"], question["limit"])
        answer = json.dumps({"results": [{"file": name} for name in found]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def search(query: str, limit: int) -> list[str]:
    """The files whose names share most words with the query. Yours: ask your tool."""
    wanted = words_of(query)
    scores = {name: len(wanted & words) / len(words) for name, words in INDEX.items() if words}
    ranked = sorted(scores, key=lambda name: (-scores[name], name))
    return [name for name in ranked[:limit] if scores[name] > 0]


def words_of(text: str) -> set[str]:
    """Its words in lower case, identifiers taken apart."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", text)}


if __name__ == "__main__":
    for path in CORPUS.rglob("*"):
        if path.is_file():
            name = path.relative_to(CORPUS).as_posix()
            INDEX[name] = words_of(name)
    ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
