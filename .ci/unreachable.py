#!/usr/bin/env python3
"""List definitions that no command reaches: code that only tests or benchmarks name.

A definition (function, method, class or constant of a module) is reached when reached code names
it, starting from what modules do when they are imported and from the entry points in `KEPT`. Names
are compared as text, so that two definitions of one name keep each other; nothing is imported.
Exit code 1 when there is one.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field
from pathlib import Path

FOLDERS = ("cli", "flows", "tasks", "warehouse")

KEPT = {
    "main": "entry point of pyproject.toml",
    **dict.fromkeys(("GREP", "BM25", "MCP", "CHAT", "HTTP"), "ARM_KINDS names it as text"),
    "list_commands": "click calls it",
    "get_command": "click calls it",
    "resolve_command": "click calls it",
    "format_commands": "click calls it",
    "do_POST": "http.server calls it",
    "handle_async_request": "httpx calls it",
    "aclose": "httpx calls it",
    "emit": "logging calls it",
    "process_renderables": "rich calls it",
}
"""Names that something outside the source reaches, with the reason."""

KEPT_DECORATORS = {
    "field_validator": "pydantic calls it",
    "model_validator": "pydantic calls it",
    "model_serializer": "pydantic calls it",
    "command": "click calls it",
    "group": "click calls it",
    "flow": "a deployment of prefect.yaml names it",
    "tool": "the MCP SDK calls it",
}
"""Decorators whose definitions something outside the source reaches, with the reason."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Found:
    """One definition: where it stands, the class that holds it, and the names in its body."""

    name: str
    place: str
    owner: Found | None = None
    uses: set[str] = field(default_factory=set)
    is_kept: bool = False
    is_reached: bool = False


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    found: list[Found] = []
    named: set[str] = set()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            tree = ast.parse(path.read_bytes())
            _read(tree.body, str(path.relative_to(root)), None, found, named)
    _reach(found, named)
    missing = [
        one for one in found if not one.is_reached and (not one.owner or one.owner.is_reached)
    ]
    for one in missing:
        owner = f"{one.owner.name}." if one.owner else ""
        sys.stdout.write(f"{one.place}: {owner}{one.name} is reached by no command\n")
    return 1 if missing else 0


def _read(
    body: list[ast.stmt], path: str, owner: Found | None, found: list[Found], named: set[str]
) -> None:
    """Sort statements into definitions, and names that are used at once."""
    for statement in body:
        if isinstance(statement, Definition):
            one = Found(statement.name, f"{path}:{statement.lineno}", owner)
            one.is_kept = _is_kept(statement, owner)
            found.append(one)
            if isinstance(statement, ast.ClassDef):
                for part in (*statement.bases, *statement.keywords, *statement.decorator_list):
                    one.uses |= _names(part)
                _read(statement.body, path, one, found, one.uses)
            else:
                one.uses |= _names(statement)
        elif owner is None and (targets := _constants(statement)):
            one = Found(targets[0], f"{path}:{statement.lineno}", uses=_names(statement))
            one.uses -= {targets[0]}
            one.is_kept = targets[0] in KEPT or targets[0].startswith("__")
            found.append(one)
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            named |= _names(statement)


def _is_kept(statement: Definition, owner: Found | None) -> bool:
    name = statement.name
    if name in KEPT or (owner is not None and name.startswith("__") and name.endswith("__")):
        return True
    return any(_names(part) & KEPT_DECORATORS.keys() for part in statement.decorator_list)


def _constants(statement: ast.stmt) -> list[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names if len(names) == len(targets) == 1 else []


def _names(node: ast.AST) -> set[str]:
    """Every name, attribute and single-word string: `getattr` and quoted annotations count."""
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            names.add(part.id)
        elif isinstance(part, ast.Attribute):
            names.add(part.attr)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            if part.value.isidentifier():
                names.add(part.value)
            elif part.value.isascii() and len(part.value) < 120 and " " not in part.value.strip():
                names.update(part.value.replace("[", ".").replace("]", ".").split("."))
    return names


def _reach(found: list[Found], named: set[str]) -> None:
    by_name: dict[str, list[Found]] = {}
    waiting: list[Found] = []
    for one in found:
        by_name.setdefault(one.name, []).append(one)
        if one.is_kept:
            waiting.append(one)
    words = list(named)
    seen = set(named)
    while words or waiting:
        if words:
            waiting += by_name.get(words.pop(), [])
            continue
        one = waiting.pop()
        if one.is_reached:
            continue
        one.is_reached = True
        fresh = one.uses - seen
        seen |= fresh
        words += fresh


if __name__ == "__main__":
    sys.exit(main())
