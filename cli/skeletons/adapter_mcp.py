"""An MCP server to start from: it finds files by counting the words of their names.

Replace it with your own server by changing `argv` of the arm, and say in `prepare`, `tool`,
`arguments` and `items` how it is asked and read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mcp.server.fastmcp import FastMCP

server = FastMCP("mytool", log_level="ERROR")
index: dict[str, set[str]] = {}


@server.tool()
def set_project_path(path: str) -> str:
    """Index the files below a folder."""
    root = Path(path)
    files = (found.relative_to(root).as_posix() for found in root.rglob("*") if found.is_file())
    index.update({name: words_of(name) for name in files})
    return f"{len(index)} files are indexed"


@server.tool()
def search_code(query: str, limit: int) -> dict[str, Any]:
    """The best files, best first."""
    wanted = words_of(query)
    scores = {name: len(wanted & words) / len(words) for name, words in index.items() if words}
    ranked = sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))
    return {"results": [{"file": name} for name, score in ranked[:limit] if score > 0]}


def words_of(text: str) -> set[str]:
    """Its words in lower case, identifiers taken apart."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", text)}


if __name__ == "__main__":
    server.run()
