"""What the configuration of an endpoint must say, and what of it is part of a key."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.arms.service.chat_kind import ChatArm
from coldrun.tasks.arms.service.http_kind import HttpArm
from coldrun.tasks.config import parse_config
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.run.arm_identity import identify_arm

PORT = "http://127.0.0.1:{port}/x"
REMOTE = "https://example.org/x"
CHAT = {"kind": "chat", "url": REMOTE, "model": "m", "prompt": "{query}"}
HTTP = {"kind": "http", "url": REMOTE}
MCP = {"kind": "mcp", "tool": "find"}


def parse(**arm: Any) -> Any:
    data = {"panel": {"kind": "jsonl", "file": "tasks.jsonl"}, "arm": [{"name": "it", **arm}]}
    return parse_config(data).arm[0]


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        (MCP, 'kind = "mcp" needs `argv` (a server over stdio) or `url`'),
        ({**MCP, "argv": ["x"], "url": REMOTE}, "an arm takes `argv` or `url`; with both"),
        ({**MCP, "argv": ["x"], "url": PORT}, "`argv` must tell it to the server"),
        ({**MCP, "argv": ["x"], "headers": {"A": "b"}}, "`headers` go with `url`"),
        ({**MCP, "url": PORT}, "the port of a server that `argv` starts"),
        ({"kind": "http"}, "`arm[0].url` is missing"),
        ({**HTTP, "url": "example.org/x"}, "begins with https:// or http://"),
        ({**HTTP, "url": "https://"}, "begins with https:// or http://"),
        ({**HTTP, "url": "https://a:99999/"}, "is no address"),
        ({**HTTP, "url": "https://me:pw@example.org/"}, "'https://…@example.org/' holds a user"),
        ({**HTTP, "body": {"q": "fixed"}}, "`body` has no {query}"),
        ({**HTTP, "files": ["a"]}, "`files` goes with `argv`"),
        ({**HTTP, "header": {}}, "unknown key `arm[0].header`; did you mean `headers`?"),
        ({**HTTP, "headers": {"Authorization": "Bearer abc"}}, "headers.Authorization is written"),
        ({**HTTP, "headers": {"x-api-key": "abc"}}, "headers.x-api-key is written out"),
        ({**HTTP, "headers": {"X": "${TOKEN}"}}, 'not declared; add env = ["TOKEN"]'),
        ({**HTTP, "items": "$", "items_regex": "x"}, "`items` (JSON path) or `items_regex`"),
        ({**CHAT, "prompt": "Which files?"}, "`prompt` has no {query}"),
        ({**CHAT, "parameters": {"stream": True}}, "parameters.stream is written by coldrun"),
        ({**CHAT, "failure_signal": "x"}, '`failure_signal` goes with retry = "once"'),
        ({**CHAT, "retry": "once", "failure_signal": "("}, "is not a pattern"),
        ({**CHAT, "retry": "twice"}, "should be 'none' or 'once', found 'twice'"),
        ({**CHAT, "modle": "m"}, "unknown key `arm[0].modle`; did you mean `model`?"),
    ],
)
def test_impossible_endpoint_is_refused(arm: dict[str, Any], words: str) -> None:
    """The message names the key and what to do."""
    with pytest.raises(ConfigError) as caught:
        parse(**arm)
    assert words in str(caught.value)
    assert "abc" not in str(caught.value)
    assert "pw" not in str(caught.value)


def test_remote_endpoint_is_not_identified_and_a_started_server_is() -> None:
    """Only what coldrun starts itself may be reused, and runs the product."""
    remote = parse(**HTTP)
    own = parse(**{**HTTP, "url": PORT, "argv": ["serve", "{port}"]})
    assert (remote.is_identified, remote.runs_program) == (False, False)
    assert (own.is_identified, own.runs_program) == (True, True)


def test_value_of_a_variable_is_in_the_key_unless_it_says_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy or an index can decide an answer; a token only opens the door."""
    arm = HttpArm(
        name="it",
        kind="http",
        url=REMOTE,
        env=("TOKEN", "INDEX", "HTTPS_PROXY"),
        headers={"Authorization": "Bearer ${TOKEN}", "X-Index": "${INDEX}"},
    )

    def environment() -> str:
        return identify_arm(arm, config_dir=tmp_path, point=None).environment

    for name in arm.env:
        monkeypatch.setenv(name, "one")
    before = environment()
    monkeypatch.setenv("TOKEN", "two")
    assert environment() == before
    for name in ("INDEX", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "two")
        assert environment() != before
        monkeypatch.setenv(name, "one")
    assert environment() == before


def test_all_settings_of_a_chat_arm_are_in_its_configuration() -> None:
    """The key holds the configuration in full, with the names of variables and no values."""
    arm = parse(**CHAT, api_key_env="KEY", parameters={"temperature": 0})
    assert isinstance(arm, ChatArm)
    values = arm.model_dump(mode="json")
    assert values["parameters"] == {"temperature": 0}
    assert (values["model"], values["prompt"], values["api_key_env"]) == ("m", "{query}", "KEY")


def test_examples_of_the_page_about_arms_are_configurations() -> None:
    """Each [[arm]] that people copy from it is accepted as it is."""
    page = Path(__file__).parents[3] / "docs" / "arms.md"
    blocks = re.findall(
        r"^ *```toml\n(.*?)^ *```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    examples = [tomllib.loads(textwrap.dedent(block)).get("arm", []) for block in blocks]
    kinds = {arm["kind"] for arms in examples for arm in arms}
    assert kinds == {"command", "mcp", "http", "chat"}
    for arms in examples:
        parse_config({"panel": {"kind": "jsonl", "file": "tasks.jsonl"}, "arm": arms})
