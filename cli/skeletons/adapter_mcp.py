"""An MCP server to start from: it finds files by counting the words of their names.

Replace it with your own server by changing `argv` of the arm, and say in `prepare`, `tool`,
`arguments` and `items` how it is asked and read. It needs no package, so that `{python}` runs it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

index: dict[str, set[str]] = {}


def set_project_path(path: str) -> str:
    """Index the files below a folder."""
    root = Path(path)
    files = (found.relative_to(root).as_posix() for found in root.rglob("*") if found.is_file())
    index.update({name: words_of(name) for name in files})
    return f"{len(index)} files are indexed"


def search_code(query: str, limit: int) -> str:
    """The best files, best first."""
    wanted = words_of(query)
    scores = {name: len(wanted & words) / len(words) for name, words in index.items() if words}
    ranked = sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))
    return json.dumps({"results": [{"file": name} for name, score in ranked[:limit] if score > 0]})


def words_of(text: str) -> set[str]:
    """Its words in lower case, identifiers taken apart."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", text)}


TOOLS: dict[str, Callable[..., str]] = {
    "set_project_path": set_project_path,
    "search_code": search_code,
}


def reply_to(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The result of a request."""
    if method == "initialize":
        version = parameters["protocolVersion"]
        about = {"name": "mytool", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    if method == "tools/call":
        text = TOOLS[parameters["name"]](**parameters["arguments"])
        return {"content": [{"type": "text", "text": text}]}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = reply_to(message["method"], message.get("params") or {})
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            sys.stdout.write(f"{json.dumps(answer)}\n")
            sys.stdout.flush()
