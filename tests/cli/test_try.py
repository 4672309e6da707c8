"""`try` with tools of the user's: from one command line to a table and a file that repeats it."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from coldrun.cli.main import main
from coldrun.cli.try_arms import GivenTools, arms_text, check_tool, read_arms
from coldrun.tasks.arms.mcp.mcp_kind import McpArm
from coldrun.tasks.arms.mcp.mcp_stdio import list_tools
from coldrun.tasks.config import parse_config
from coldrun.tasks.lib.errors import UsageError
from tests.conftest import RepositoryBuilder
from tests.evaluations import EvaluationLab

SEARCH = """\
import pathlib, re, sys
word = re.search(r"topic\\d+", sys.argv[1])[0]
for path in sorted(pathlib.Path(".").rglob("*.py")):
    if word in path.read_text().split():
        print(sys.argv[2].format(path) if sys.argv[2:] else path)
"""

SERVER = """\
import json, pathlib, re, sys

def find(question, limit):
    word = re.search(r"topic\\d+", question)[0]
    found = [path for path in sorted(pathlib.Path(".").rglob("*.py")) if word in path.read_text()]
    return "\\n".join(f"./{path}:1:{word}" for path in found[:limit])

def schema(**kinds):
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": list(kinds)}

TOOLS = [
    {"name": "find", "inputSchema": schema(question="string", limit="integer")},
    {"name": "reset", "inputSchema": schema()},
]
for line in sys.stdin:
    message = json.loads(line)
    asked = message.get("params", {})
    if message["method"] == "initialize":
        result = {"protocolVersion": asked["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "finder", "version": "1"}}
    elif message["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": find(**asked["arguments"])}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

TASKS = 8
PANEL = {"kind": "commit-files", "repo": ".", "base": "HEAD"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the user is in, with a script, an MCP server and a program."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "search.py").write_text(SEARCH, encoding="utf-8")
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    (folder / "my-tool").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "my-tool").chmod(0o755)
    monkeypatch.chdir(folder)
    return folder


def test_try_asks_given_tools_and_its_configuration_repeats_the_run(
    here: Path,
    new_repository: Callable[..., RepositoryBuilder],
) -> None:
    """A script by its relative path and a server are candidates; output that cannot be read counts
    as tool failures, and is quoted."""
    repository = new_repository("shop")
    names = [f"src/part{number}.py" for number in range(TASKS)]
    repository.commit("start", {name: f"topic{at}\n" for at, name in enumerate(names)})
    for at, name in enumerate(names):
        repository.commit(f"mend broken handler topic{at}", {name: f"topic{at}\nmended\n"})
    lab = EvaluationLab(here.parent)

    done = lab.coldrun(
        *("try", repository.path, "--tasks", str(TASKS), "--json", "report.json"),
        *("--arm", "python3 search.py {query}", "--arm", "odd=python3 search.py {query} 9|{}"),
        *("--mcp", "{python} server.py", "--tool", "find"),
        *("--argument", "question={query}", "--argument", "limit=3"),
        cwd=here,
    )

    assert done.returncode == 5, done.stderr
    report = json.loads((here / "report.json").read_text())
    arms = {arm["name"]: arm for arm in report["arms"] if arm["role"] != "null"}
    assert list(arms) == ["bm25", "history", "grep", "search.py", "odd", "server.py"]
    for name in ("search.py", "server.py"):
        assert (arms[name]["role"], arms[name]["infra"]) == ("candidate", 0)
        assert arms[name]["measures"]["hit@5"]["value"] == 1.0
    assert arms["odd"]["infra"] == TASKS
    assert "what was read first is '9|src/part" in done.stdout

    (lab.config,) = (lab.scratch / "try").glob("*/shop.toml")
    assert f"coldrun run {lab.config}" in done.stdout
    again = lab.run().report
    assert {
        arm.name: (arm.infra, arm.measures["hit@5"].value)
        for arm in again.arms
        if arm.role != "null"
    } == {name: (arm["infra"], arm["measures"]["hit@5"]["value"]) for name, arm in arms.items()}


def arms_of(**given: Any) -> list[dict[str, Any]]:
    """The arms of a configuration beside the built-in ones, as they come back from its TOML."""
    text = arms_text(read_arms(GivenTools(**given)))
    tables: list[dict[str, Any]] = tomllib.loads(text)["arm"]
    assert [table["name"] for table in tables[:3]] == ["bm25", "history", "grep"]
    parse_config({"panel": PANEL, "arm": tables})
    return tables[3:]


@pytest.mark.usefixtures("here")
def test_names_are_those_of_what_is_run_and_unique() -> None:
    """Interpreters, package runners, versions and options give no name; a name can be given."""
    names = {
        "grep -rl {query} .": "grep-2",
        "./my-tool {query}": "my-tool",
        "./my-tool -v {query}": "my-tool-2",
        "rival=sh my-tool {k} {query}": "rival",
        "env python3 -m finder.cli {query}": "finder.cli",
        "sh -c 'cat \"$1\" | sort' x {query}": "cat",
        "env uvx --with 'lib<2' --from finder==1.0 code-finder {query}": "code-finder",
    }
    assert [arm["name"] for arm in arms_of(commands=tuple(names))] == list(names.values())


def test_words_that_name_files_become_absolute(here: Path) -> None:
    """The configuration lies elsewhere; a subcommand that happens to be a file's name stays."""
    (here / "search").touch()
    (arm,) = arms_of(commands=("./my-tool search search.py ../here/my-tool src/none.py . {query}",))
    own = str(here / "my-tool")
    assert arm["argv"] == [
        own,
        "search",
        str(here / "search.py"),
        own,
        "src/none.py",
        ".",
        "{query}",
    ]
    assert arm["cwd"] == "{corpus}"


def test_package_runner_gets_its_caches_and_certificates(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exact package is installed once; what else a runner runs needs the user's caches."""
    npx = here / "npx"
    npx.write_text("#!/bin/sh\n", encoding="utf-8")
    npx.chmod(0o755)
    for name in [name for name in os.environ if name.lower().endswith(("_proxy", "_certs"))]:
        monkeypatch.delenv(name)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "UV_CACHE_DIR"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("HOME", str(here))
    (here / ".npm").mkdir()
    (arm,) = arms_of(
        servers=(f"{npx} -y @org/code-search@1.2 {{corpus}}",),
        tool="search",
        arguments=("limit=20", "deep=true", 'filter={"a b": [1.5]}', 'note=say "no"'),
        items="$.results[*].file",
    )
    assert arm["name"] == "code-search"
    assert (arm["package"], arm["argv"]) == (
        "npm:@org/code-search@1.2",
        ["code-search", "{corpus}"],
    )
    (other,) = arms_of(servers=(f"{npx} --node-options=x code-search",), tool="search")
    assert other["sandbox"] is False
    assert other["env"] == ["REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"]
    assert other["set_env"] == {"npm_config_cache": str(here / ".npm")}
    assert arm["arguments"] == {
        "query": "{query}",
        "limit": 20,
        "deep": True,
        "filter": {"a b": [1.5]},
        "note": 'say "no"',
    }
    assert (arm["items"], arm["startup_timeout_seconds"]) == ("$.results[*].file", 300)


def test_program_of_the_users_own_environment_is_found(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions do not see the environment that coldrun is installed in; the user's shell does."""
    monkeypatch.setattr(sys, "prefix", str(here))
    (here / "bin").mkdir()
    (here / "my-tool").rename(here / "bin" / "my-tool")
    monkeypatch.setenv("PATH", str(here / "bin"), prepend=os.pathsep)
    (arm,) = arms_of(commands=("my-tool {query}",))
    assert arm["argv"] == [str(here / "bin" / "my-tool"), "{query}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--arm 'no-such-tool {query}'", "no program 'no-such-tool' on the PATH; install it"),
        ("--arm 'my-tool {query}'", "name it by its path (./my-tool)"),
        ("--arm './search.py {query}'", "search.py is not executable; `chmod +x` it"),
        ("--arm './none {query}'", "here/none is not there"),
        (
            "--arm './my-tool --all'",
            'so every task would be asked the same; such as --arm "./my-to',
        ),
        ("--arm ''", '--arm is empty; give it a command, such as --arm "rg -l {terms_regex}"'),
        ("--arm './my-tool \"{query}'", "no closing quotation; check its quotes"),
        ("--arm 'grep=./my-tool {query}'", "two arms are named 'grep'"),
        ("--arm 'random=./my-tool {query}'", "'random' is the name of a null strategy"),
        ("--tool find", "--tool goes with --mcp"),
        ("--argument limit=2", "--argument goes with --mcp"),
        ("--items '(.+)'", "--items says how --arm or --mcp is read"),
        ("--arm './my-tool {query}' --items '(.+'", "is not a regular expression: missing )"),
        ("--arm './my-tool {query}' --items '.+'", "has 0 groups, but one is needed"),
        ("--arm './my-tool {query}' --items '$.[['", "is not a JSON path"),
        ("--mcp ./my-tool --mcp ./my-tool", "one --mcp at a time"),
        ("--mcp ''", "--mcp is empty"),
        ("--mcp ./my-tool --argument limit", "'limit' is not KEY=VALUE, such as limit=20"),
        ("--mcp ./my-tool", "does not start: the process ended with exit code 0"),
    ],
)
def test_options_that_cannot_work_are_one_line(here: Path, options: str, message: str) -> None:
    """Said before a repository is looked at."""
    done = CliRunner().invoke(main, ["try", str(here / "no-repository"), *shlex.split(options)])
    assert done.exit_code == 2, done.output
    *_, line = done.stderr.splitlines()
    assert line.startswith("coldrun: ")
    assert message in line


def test_argument_that_is_null_is_refused() -> None:
    """TOML has no null."""
    with pytest.raises(UsageError, match="no null"):
        arms_text(({"arguments": {"a": None}},))


@pytest.mark.usefixtures("here")
def test_server_says_which_tools_it_has(here: Path) -> None:
    """And what they take, so that the next try is right."""
    done = CliRunner().invoke(main, ["try", "none", "--mcp", "{python} server.py"])
    assert done.exit_code == 2, done.output
    told = (
        "--mcp needs --tool NAME; with what they need, the server has: find(question, limit), reset"
    )
    assert told in done.stderr.splitlines()[-1]

    tables = read_arms(GivenTools(servers=("{python} server.py",), tool="find"))
    arm = parse_config({"panel": PANEL, "arm": tables}).arms[-1]
    assert isinstance(arm, McpArm)
    tools = list_tools(arm, scratch=here.parent / "scratch")
    for changes, message in (
        ({"tool": "fin"}, "there is no tool 'fin'"),
        ({}, r"'find' has no argument 'query'; it takes question\*, limit\*"),
        ({"arguments": {"question": "{query}"}}, "'find' needs the argument 'limit'"),
    ):
        with pytest.raises(UsageError, match=message):
            check_tool(arm.model_copy(update=changes), tools)
