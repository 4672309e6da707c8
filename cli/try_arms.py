"""The tools that `try` is given on its command line, as `[[arm]]` tables."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coldrun.tasks.arms.mcp.mcp_kind import McpArm
from coldrun.tasks.config import ServerArm, names_the_question
from coldrun.tasks.config.evaluation_config import BUILTIN_ROLES
from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.machine.files import session_search_path
from coldrun.tasks.lib.machine.sandbox import sandbox_problem
from coldrun.tasks.lib.records import NULL_NAMES

Table = dict[str, Any]

BUILTIN: Final[tuple[Table, ...]] = tuple(
    {"name": kind, "role": role, "kind": kind} for kind, role in BUILTIN_ROLES.items()
)

EXAMPLE = '--arm "rg -l {terms_regex}"'
STARTUP_SECONDS = 300
"""A server may have to be downloaded first."""

NAMED = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._+-]*)=(?=\S)")
LAUNCHER = re.compile(r"uvx?|pipx|npx|npm|node|bunx?|deno|env|exec|run|tool|(ba)?sh|python[\d.]*")
"""Words of a command that start something else, and give no name."""

VALUED = ("--from", "--index", "--package", "--python", "--with", "-p")
"""Options of package runners whose value is not what is run."""

RUNNERS: Final = {
    "uv": ("UV_",),
    "uvx": ("UV_",),
    "pipx": ("PIP_", "PIPX_", "UV_"),
    "npm": ("npm_config_", "NPM_CONFIG_"),
    "npx": ("npm_config_", "NPM_CONFIG_"),
}
"""Programs that download what they run, and the variables that they are told by."""

NETWORK = re.compile(
    r"SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|((HTTPS?|ALL|NO)_PROXY)",
    re.IGNORECASE,
)
CACHES: Final = {
    "UV_CACHE_DIR": "~/.cache/uv",
    "UV_PYTHON_INSTALL_DIR": "~/.local/share/uv/python",
    "PIPX_HOME": "~/.local/share/pipx",
    "npm_config_cache": "~/.npm",
}
"""Where such programs keep their downloads, which a session's fresh HOME would hide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTools:
    """The options of `try` that say how the user's tools are asked."""

    commands: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    tool: str | None = None
    arguments: tuple[str, ...] = ()
    items: str | None = None


def read_arms(given: GivenTools) -> tuple[Table, ...]:
    """The arms that `try` asks: the built-in ones, and those that are given.

    Returns:
        Tables of a configuration; none at all when no tool is given: then the built-in arms are
        asked anyway.
    """
    _check_options(given)
    reading = _read_items(given.items)
    tables: list[Table] = []
    for option, text in [
        *(("--arm", text) for text in given.commands),
        *(("--mcp", text) for text in given.servers),
    ]:
        name, argv = _read_command(option, text)
        named, settings = argv, _package_settings(argv)
        argv = settings.pop("argv", argv)
        start = {"argv": argv, "cwd": "{corpus}", **settings}
        if option == "--arm":
            own = {"kind": "command", "mode": "per-task", **start}
        else:
            own = {"kind": "mcp", **start, "startup_timeout_seconds": STARTUP_SECONDS}
            own |= {"tool": given.tool or "", "arguments": _read_arguments(given.arguments)}
        taken = {*NULL_NAMES, *(table["name"] for table in (*BUILTIN, *tables))}
        tables.append(
            {"name": name or _free_name(named, taken), "role": "candidate", **own, **reading}
        )
    return (*BUILTIN, *tables) if tables else ()


def check_server(arm: ServerArm, scratch: Path) -> None:
    """Start a server, and see that it has the tool and that the tool takes the arguments."""
    from coldrun.tasks.arms.mcp.mcp_connection import ServerError
    from coldrun.tasks.arms.mcp.mcp_stdio import list_tools

    if not isinstance(arm, McpArm):
        return
    try:
        tools = list_tools(arm, scratch=scratch)
    except ServerError as error:
        raise UsageError(f"--mcp {shlex.join(arm.argv)!r} does not start: {error}") from None
    check_tool(arm, tools)


def check_tool(arm: McpArm, tools: Mapping[str, Mapping[str, Any]]) -> None:
    """See that a tool is there and takes the arguments, by the schemas of a server's tools."""
    if arm.tool not in tools:
        found = ", ".join(
            f"{name}({', '.join(schema.get('required') or ())})" for name, schema in tools.items()
        )
        why = f"there is no tool {arm.tool!r}" if arm.tool else "--mcp needs --tool NAME"
        raise UsageError(f"{why}; with what they need, the server has: {found or 'none'}")
    schema = tools[arm.tool]
    known = schema.get("properties") or arm.arguments
    wrong = [name for name in arm.arguments if name not in known]
    missing = [name for name in schema.get("required") or () if name not in arm.arguments]
    if wrong or missing:
        said = f"has no argument {wrong[0]!r}" if wrong else f"needs the argument {missing[0]!r}"
        raise UsageError(
            f"the tool {arm.tool!r} {said}; it takes {_parameters(schema) or 'none'} (* needed); "
            "give each that it needs as --argument NAME=VALUE, the question among them as {query}, "
            "{terms} or {terms_regex}"
        )


def _parameters(schema: Mapping[str, Any]) -> str:
    needed = schema.get("required") or ()
    return ", ".join(
        f"{name}*" if name in needed else name for name in schema.get("properties") or ()
    )


def arms_text(tables: Sequence[Table]) -> str:
    """Arms as a configuration has them."""
    return "".join(
        "\n[[arm]]\n" + "".join(f"{key} = {toml_value(value)}\n" for key, value in table.items())
        for table in tables
    )


def toml_value(value: object) -> str:
    """A value as TOML."""
    if value is None:
        raise UsageError("--argument: a configuration has no null; leave that argument out")
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_toml_key(key)} = {toml_value(inner)}" for key, inner in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return str(value).lower()


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def _check_options(given: GivenTools) -> None:
    if len(given.servers) > 1:
        raise UsageError(
            "one --mcp at a time, because --tool and --argument are its own; a configuration "
            "(`coldrun init`) holds as many servers as you like"
        )
    if not given.servers and (given.tool or given.arguments):
        option = "--tool" if given.tool else "--argument"
        raise UsageError(f'{option} goes with --mcp, such as --mcp "uvx server==1.0" --tool search')
    if given.items is not None and not (given.commands or given.servers):
        raise UsageError(f"--items says how --arm or --mcp is read, such as {EXAMPLE}")


def _read_command(option: str, text: str) -> tuple[str | None, list[str]]:
    named = NAMED.match(text)
    try:
        words = shlex.split(text[named.end() :] if named else text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {str(error).lower()}; check its quotes") from None
    if not words:
        raise UsageError(f"{option} is empty; give it a command, such as {EXAMPLE}")
    if option == "--arm" and not names_the_question(text):
        raise UsageError(
            f"{option} {text!r} has no {{query}}, {{terms}} or {{terms_regex}}, so every task "
            f'would be asked the same; such as {option} "{shlex.join(words)} {{query}}"'
        )
    argv = [_find_program(option, words[0]), *(_find_file(word) for word in words[1:])]
    return named and named[1], argv


def _find_program(option: str, word: str) -> str:
    """A program as sessions find it: by its absolute path unless it is on their PATH."""
    if "{" in word:
        return word
    place = Path(word).expanduser()
    if "/" not in word:
        if shutil.which(word, path=session_search_path()):
            return word
        found = shutil.which(word)
        if found is not None:
            return str(Path(found).absolute())
        near = f"./{word}" if place.exists() else f"./{word}, say"
        raise UsageError(
            f"{option}: there is no program {word!r} on the PATH; install it, or name it by its "
            f"path ({near})"
        )
    if not os.access(place, os.X_OK) or place.is_dir():
        what = "is not there"
        if place.exists():
            what = "is not executable; `chmod +x` it, or put its interpreter before it"
        raise UsageError(f"{option}: {place.absolute()} {what}")
    return os.path.abspath(place)  # noqa: PTH100 - `..` is left out, links are kept


def _find_file(word: str) -> str:
    """A word that names a file of the user's, by its absolute path; other words as they are.

    One without a dot or a slash is more likely a subcommand.
    """
    place = os.path.abspath(os.path.expanduser(word))  # noqa: PTH100, PTH111 - any text will do
    is_file = ("." in word or "/" in word) and os.path.isfile(place)  # noqa: PTH113
    return place if is_file else word


def _free_name(argv: Sequence[str], taken: set[str]) -> str:
    words = [
        word.split()[0]
        for before, word in zip(("", *argv), argv, strict=False)
        if word.strip() and word[0] not in "-{" and before not in VALUED
    ]
    bases = [re.split(r"[=<>~!@\[{]", Path(word).name)[0] for word in words]
    base = next((name for name in bases if name and not LAUNCHER.fullmatch(name)), "tool")
    base = re.sub(r"[^A-Za-z0-9._+-]+", "-", base).lstrip("._+-") or "tool"
    names = [base, *(f"{base}-{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def _read_package(argv: Sequence[str]) -> Table:
    """`uvx NAME==X …` and `npx -y NAME@X …` as a package and its program; else nothing."""
    runner, words = Path(argv[0]).name, list(argv[1:])
    if runner == "npx":
        words = [word for word in words if word not in ("-y", "--yes")]
        spec = words[0] if words else ""
        found = re.fullmatch(r"(@?[\w./-]+?)(@[\w.+-]+)?", spec)
        if found is None or spec.startswith("-"):
            return {}
        program = found[1].rpartition("/")[2]
        return {"package": f"npm:{spec}", "argv": [program, *words[1:]]}
    if runner == "uvx":
        spec = words[1] if words[:1] == ["--from"] and len(words) > 2 else words[0] if words else ""
        found = re.fullmatch(r"([A-Za-z0-9][\w.-]*)(==[\w.+!-]+)?", spec)
        if found is None:
            return {}
        argv = words[2:] if words[0] == "--from" else [found[1], *words[1:]]
        return {"package": f"pypi:{spec}", "argv": argv}
    return {}


def _package_settings(argv: Sequence[str]) -> Table:
    """How a program that downloads what it runs is run: installed once where that is possible,
    else outside of the sandbox, with the caches and settings of the user."""
    package = _read_package(argv) if sandbox_problem() is None else {}
    if package:
        return package
    prefixes = RUNNERS.get(Path(argv[0]).name)
    if prefixes is None:
        return {}
    env = [name for name in os.environ if name.startswith(prefixes) or NETWORK.fullmatch(name)]
    caches = {name: Path(folder).expanduser() for name, folder in CACHES.items()}
    set_env = {
        name: str(folder)
        for name, folder in caches.items()
        if name.startswith(prefixes) and name not in env and folder.is_dir()
    }
    return {
        **({"env": sorted(env)} if env else {}),
        **({"set_env": set_env} if set_env else {}),
        "sandbox": False,
    }


def _read_arguments(texts: Sequence[str]) -> dict[str, Any]:
    """`KEY=VALUE` pairs; values are JSON where they can be, else text."""
    arguments: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UsageError(f"--argument {text!r} is not KEY=VALUE, such as limit=20")
        try:
            arguments[key] = json.loads(value)
        except ValueError:
            arguments[key] = value
    if not names_the_question(str(arguments)):
        arguments = {"query": "{query}", **arguments}
    return arguments


def _read_items(text: str | None) -> Table:
    if text is None:
        return {}
    if text.startswith("$"):
        from jsonpath_ng.exceptions import JSONPathError
        from jsonpath_ng.ext.parser import parse

        try:
            parse(text)
        except (JSONPathError, ValueError) as error:
            raise UsageError(f"--items {text!r} is not a JSON path: {error}") from None
        return {"items": text}
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise UsageError(f"--items {text!r} is not a regular expression: {error}") from None
    if groups != 1:
        raise UsageError(
            f"--items {text!r} has {groups} groups, but one is needed, which is the path: "
            '--items "^([^:]+):" for lines; a JSON path begins with $: --items "$.results[*].file"'
        )
    return {"items_regex": text}
