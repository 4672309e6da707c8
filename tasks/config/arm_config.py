"""`[[arm]]`: the settings of each kind of arm."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from coldrun.tasks.config.section import Names, Section

DEFAULT_INFRA_PATTERNS = (
    r"index(?:ing)? (?:is )?not (?:yet )?(?:ready|built|available|complete)",
    r"still indexing",
    r"timed? ?out",
    r"connection (?:refused|reset|closed)",
    r"internal (?:server )?error",
    r"rate limit",
    r"project path (?:is )?not set",
)
"""A tool that says one of these with a success status has failed (case-insensitive regex)."""

DEFAULT_EMPTY_PATTERNS = (
    r"\b(?:no|0|zero)\b[^.\n]{0,40}\b(?:results?|match(?:es)?|files?|hits?|documents?)\b",
    r"\b(?:nothing|none|not) (?:was |were )?found\b",
)
"""A tool that says one of these in a short text has honestly found nothing."""

DEFAULT_LISTING_BYTES = 100_000
"""About 25,000 tokens: what a listing of the corpus may take of a prompt."""

HEADER_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""`${NAME}` in a header: the value of a declared variable."""

CREDENTIAL_HEADERS = ("authorization", "proxy-authorization", "cookie", "x-api-key", "api-key")

OWN_FIELDS = ("model", "messages", "stream", "n")
"""What coldrun writes into the request of a `chat` arm itself, or cannot read in more than one."""


DESCRIPTIVE_KEYS = ("ablation_of", "factor", "uses", "min_use_share")
"""Keys that say how an arm is to be compared, and decide no answer."""

LATER_KEYS = (*DESCRIPTIVE_KEYS, "cwd", "items_may_be_new")
"""Keys that are left out of an arm's serialised form while they are unset, so that the keys of
captures from before they existed stay valid."""


class ToolCall(Section):
    """One call of an MCP tool while a session is prepared, repeated until it is ready."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    until: str | None = None
    every_seconds: float = Field(default=0.5, gt=0)
    timeout_seconds: float = Field(default=300, gt=0)


class BuiltinArm(Section):
    """Settings that every kind of arm has."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")
    role: Literal["candidate", "control", "floor"] = "candidate"
    trials: int = Field(default=1, ge=1)
    sessions: int = Field(default=1, ge=1)
    order: Literal["any", "fixed"] = "any"
    knowledge_cutoff: dt.date | None = None
    component: str | None = None
    ablation_of: str | None = None
    factor: Names = ()

    @model_validator(mode="after")
    def _ablation_has_its_factor(self) -> BuiltinArm:
        if (self.ablation_of is None) != (not self.factor):
            raise ValueError(
                "`ablation_of` goes with `factor`, the key in which the two arms differ"
            )
        return self

    @model_serializer(mode="wrap")
    def _leave_out_what_is_not_said(
        self, serialize: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        """Unset keys of `LATER_KEYS` are left out."""
        values: dict[str, Any] = serialize(self)
        unset = set(LATER_KEYS) - self.model_fields_set
        return {key: value for key, value in values.items() if key not in unset}

    @property
    def runs_program(self) -> bool:
        """Whether sessions start a program of the user's, in the product's checkout if any."""
        return False

    @property
    def is_identified(self) -> bool:
        """Whether coldrun sees all that decides an answer, so that it may be reused."""
        return True


class GrepArm(BuiltinArm):
    """`kind = "grep"`: the words of the query against file contents."""

    kind: Literal["grep"]


class Bm25Arm(BuiltinArm):
    """`kind = "bm25"`: BM25 over identifier-aware tokens."""

    kind: Literal["bm25"]
    k1: float = Field(default=1.5, gt=0)
    b: float = Field(default=0.75, ge=0, le=1)


class ProcessArm(BuiltinArm):
    """Settings of arms whose answers come from outside coldrun: a program, or an endpoint."""

    argv: tuple[str, ...] = ()
    cwd: Literal["{corpus}"] | None = None
    adapter: str | None = None
    files: tuple[str, ...] = ()
    binaries: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    set_env: dict[str, str] = Field(default_factory=dict)
    writes: tuple[str, ...] = ()
    timeout_seconds: float = Field(default=60, gt=0)
    startup_timeout_seconds: float = Field(default=120, gt=0)
    retries: int = Field(default=0, ge=0)
    max_output_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    infra_patterns: tuple[str, ...] = DEFAULT_INFRA_PATTERNS
    empty_patterns: tuple[str, ...] = DEFAULT_EMPTY_PATTERNS
    items: str | None = None
    items_regex: str | None = None
    items_may_be_new: bool = False
    uses: str | None = Field(default=None, min_length=1)
    min_use_share: float = Field(default=0.0, ge=0, le=1)

    @property
    def runs_program(self) -> bool:
        """Whether there is a command line; without one an endpoint is asked."""
        return bool(self.argv)

    @property
    def is_identified(self) -> bool:
        """An endpoint that coldrun did not start can be anything at any time."""
        return bool(self.argv)

    @model_validator(mode="after")
    def _one_parser(self) -> ProcessArm:
        if self.items is not None and self.items_regex is not None:
            raise ValueError("an arm takes `items` (JSON path) or `items_regex`, not both")
        return self

    @model_validator(mode="after")
    def _share_is_of_a_component(self) -> ProcessArm:
        if self.min_use_share and self.uses is None:
            raise ValueError("`min_use_share` goes with `uses`, the name of a component")
        return self


class CommandArm(ProcessArm):
    """`kind = "command"`: a JSON Lines session, or one process per task."""

    kind: Literal["command"]
    argv: tuple[str, ...] = Field(min_length=1)
    mode: Literal["session", "per-task"] = "session"


class ServerArm(ProcessArm):
    """Settings of arms that can be asked over HTTP: at a remote `url`, or at one that the server
    started with `argv` listens on."""

    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _url_is_usable(self) -> ServerArm:
        if self.url is None:
            if self.headers:
                raise ValueError("`headers` go with `url`")
            return self
        problem = _url_problem(self.url.replace("{port}", "1"))
        if problem:
            raise ValueError(f"url = {_without_userinfo(self.url)!r} {problem}")
        if self.argv and "{port}" not in self.url:
            raise ValueError(
                "an arm takes `argv` or `url`; with both, coldrun starts the server, and `url` and "
                "`argv` say with {port} where it listens"
            )
        if self.argv and not any("{port}" in word for word in self.argv):
            raise ValueError("`url` has {port}, so `argv` must tell it to the server")
        if not self.argv:
            self._refuse_what_needs_a_program(self.url)
        return self

    @model_validator(mode="after")
    def _headers_hold_no_secret(self) -> ServerArm:
        for name, text in self.headers.items():
            variables = HEADER_VARIABLE.findall(text)
            undeclared = [variable for variable in variables if variable not in self.env]
            if undeclared:
                raise ValueError(
                    f"headers.{name} uses ${{{undeclared[0]}}}, which is not declared; add "
                    f'env = ["{undeclared[0]}"]'
                )
            if name.lower() in CREDENTIAL_HEADERS and not variables:
                raise ValueError(
                    f"headers.{name} is written out, and a configuration is stored with every "
                    f"answer; put it into a variable: {name} = "
                    '"Bearer ${MYTOOL_TOKEN}", env = ["MYTOOL_TOKEN"]'
                )
        return self

    def _refuse_what_needs_a_program(self, url: str) -> None:
        if "{port}" in url:
            raise ValueError("`url` has {port}, the port of a server that `argv` starts")
        idle = [
            name
            for name in ("cwd", "adapter", "files", "binaries", "set_env")
            if getattr(self, name)
        ]
        if idle:
            raise ValueError(f"`{idle[0]}` goes with `argv`: it cannot reach the endpoint at `url`")


class McpArm(ServerArm):
    """`kind = "mcp"`: a server over stdio, or over streamable HTTP."""

    kind: Literal["mcp"]
    prepare: tuple[ToolCall, ...] = ()
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_a_server(self) -> McpArm:
        if not self.argv and self.url is None:
            raise ValueError(
                'kind = "mcp" needs `argv` (a server over stdio) or `url` (one over HTTP)'
            )
        return self


class HttpArm(ServerArm):
    """`kind = "http"`: one POST of JSON per question."""

    kind: Literal["http"]
    url: str
    body: dict[str, Any] = Field(default_factory=lambda: {"query": "{query}", "k": "{k}"})

    @model_validator(mode="after")
    def _asks_the_question(self) -> HttpArm:
        if not names_the_question(str(self.body)):
            raise ValueError("`body` has no {query}, so every task would be asked the same")
        return self


class ChatArm(ServerArm):
    """`kind = "chat"`: one call per question of an endpoint that is compatible with OpenAI's."""

    kind: Literal["chat"]
    url: str
    model: str
    prompt: str
    system: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    listing_bytes: int = Field(default=DEFAULT_LISTING_BYTES, ge=1000)
    retry: Literal["none", "once"] = "none"
    failure_signal: str | None = None
    retry_prompt: str | None = None

    @model_validator(mode="after")
    def _retry_has_its_settings(self) -> ChatArm:
        idle = [name for name in ("failure_signal", "retry_prompt") if getattr(self, name)]
        if self.retry == "none" and idle:
            raise ValueError(f'`{idle[0]}` goes with retry = "once"')
        if self.failure_signal is not None:
            try:
                re.compile(self.failure_signal)
            except re.error as error:
                raise ValueError(
                    f"failure_signal = {self.failure_signal!r} is not a pattern: {error}"
                ) from None
        return self

    @model_validator(mode="after")
    def _request_is_one_answer(self) -> ChatArm:
        taken = [name for name in OWN_FIELDS if name in self.parameters]
        if taken:
            raise ValueError(f"parameters.{taken[0]} is written by coldrun; leave it out")
        if not names_the_question(self.prompt):
            raise ValueError("`prompt` has no {query}, so every task would be asked the same")
        return self


ArmConfig = Annotated[
    GrepArm | Bm25Arm | CommandArm | McpArm | HttpArm | ChatArm, Field(discriminator="kind")
]

ARM_KINDS: dict[str, type[BaseModel]] = {
    "grep": GrepArm,
    "bm25": Bm25Arm,
    "command": CommandArm,
    "mcp": McpArm,
    "http": HttpArm,
    "chat": ChatArm,
}


def names_the_question(template: str) -> bool:
    """Whether a template has a placeholder that differs from question to question."""
    return any(name in template for name in ("{query}", "{terms}", "{terms_regex}"))


def _url_problem(url: str) -> str | None:
    """What is wrong with an endpoint's address; None when it can be asked."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        return f"is no address: {error}"
    if parts.scheme not in ("http", "https") or not has_host:
        return "is no address; it begins with https:// or http:// and has a host"
    if "@" in parts.netloc:
        return (
            "holds a user or password, and a configuration is stored with every answer; use "
            "`headers` with ${NAME}"
        )
    return None


def _without_userinfo(url: str) -> str:
    return re.sub(r"//[^/?#]*@", "//…@", url)
