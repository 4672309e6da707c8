"""`[[arm]]`: the settings that arms share, and where each kind of arm declares its own."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError


def _as_several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_several)]
"""A list of names; one alone may be written without its brackets."""


class Section(BaseModel):
    """A table of the file: frozen, and strict about its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


ARM_KINDS: dict[str, str] = {
    "grep": "coldrun.tasks.arms.builtin.builtin_kinds:GREP",
    "bm25": "coldrun.tasks.arms.builtin.builtin_kinds:BM25",
    "history": "coldrun.tasks.arms.builtin.builtin_kinds:HISTORY",
    "command": "coldrun.tasks.arms.command.command_kind:COMMAND",
    "mcp": "coldrun.tasks.arms.mcp.mcp_kind:MCP",
    "http": "coldrun.tasks.arms.service.http_kind:HTTP",
    "chat": "coldrun.tasks.arms.service.chat_kind:CHAT",
}
"""The registry: each kind with the module and name of its `ArmKind`, imported when first used."""

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

NO_CORPUS = "no-corpus"
"""The null of an arm that may remember: the same arm with an empty corpus."""

HEADER_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""`${NAME}` in a header: the value of a declared variable."""

CREDENTIAL_HEADERS = ("authorization", "proxy-authorization", "cookie", "x-api-key", "api-key")

DESCRIPTIVE_KEYS = ("ablation_of", "factor", "uses", "min_use_share")
"""Keys that say how an arm is to be compared, and decide no answer."""

LATER_KEYS = (
    *(*DESCRIPTIVE_KEYS, "cwd", "items_may_be_new"),
    *("sandbox", "network", "devices", "product", "package", "has_corpus"),
)
"""Keys that are left out of an arm's serialised form while they are unset, so that the keys of
captures from before they existed stay valid."""


def find_kind(kind: str) -> Any:
    """The `ArmKind` of a kind of arm. Raises KeyError when the registry has no such kind."""
    module, _, name = ARM_KINDS[kind].partition(":")
    return getattr(import_module(module), name)


class ArmConfig(Section):
    """Settings that every kind of arm has."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")
    kind: str
    role: Literal["candidate", "control", "floor", "null"] = "candidate"
    has_corpus: bool = True
    trials: int = Field(default=1, ge=1)
    sessions: int = Field(default=1, ge=1)
    order: Literal["any", "fixed"] = "any"
    knowledge_cutoff: dt.date | None = None
    component: str | None = None
    ablation_of: str | None = None
    factor: Names = ()

    @field_validator("role", "has_corpus")
    @classmethod
    def _is_for_people_to_say(cls, value: object) -> object:
        if value == "null" or value is False:
            raise ValueError("nulls are made by coldrun, and so are arms without the corpus")
        return value

    @model_validator(mode="after")
    def _ablation_has_its_factor(self) -> ArmConfig:
        if (self.ablation_of is None) != (not self.factor):
            raise ValueError(
                "`ablation_of` goes with `factor`, the key in which the two arms differ"
            )
        return self

    @model_serializer(mode="wrap")
    def _leave_out_unset_keys(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = serialize(self)
        unset = set(LATER_KEYS) - self.model_fields_set
        return {key: value for key, value in values.items() if key not in unset}

    @property
    def runs_program(self) -> bool:
        """Whether sessions start a program of the user's, in the product's checkout if any."""
        return False

    @property
    def reads_history(self) -> bool:
        """Whether the log up to the base commit decides an answer, beside the tree."""
        return False

    @property
    def is_identified(self) -> bool:
        """Whether coldrun sees all that decides an answer, so that it may be reused."""
        return True

    @property
    def may_remember(self) -> bool:
        """Whether what answers may know the corpus from elsewhere, such as a model's training."""
        return False

    def without_corpus(self) -> ArmConfig:
        """The same arm over an empty corpus, once: what it still finds is memory."""
        name = f"{NO_CORPUS}:{self.name}"
        return self.model_copy(
            update={"name": name, "role": "null", "has_corpus": False, "trials": 1}
        )


class ProcessArm(ArmConfig):
    """Settings of arms whose answers come from outside coldrun: a program, or an endpoint."""

    argv: tuple[str, ...] = ()
    cwd: Literal["{corpus}"] | None = None
    sandbox: bool = True
    network: bool = False
    devices: tuple[str, ...] = ()
    product: bool | None = None
    package: str | None = None
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
        """Whether coldrun starts what answers; an endpoint can change at any time."""
        return bool(self.argv)

    @property
    def may_remember(self) -> bool:
        """Whether it reaches the network, and so whatever is known there."""
        return self.network

    @property
    def is_served(self) -> bool:
        """Whether the program listens, and is asked over HTTP."""
        return False

    @property
    def is_the_product(self) -> bool:
        """Whether it is the product, and so cannot answer without it; by default every program that
        is no package and has no `url`."""
        if self.product is not None:
            return self.product
        return self.runs_program and self.package is None and not self.is_served

    @property
    def deciding_variables(self) -> tuple[str, ...]:
        """The declared variables whose values are part of the key of an answer."""
        return self.env

    @model_validator(mode="after")
    def _package_runs_here(self) -> ProcessArm:
        if self.package is not None and not (self.argv and self.sandbox):
            raise ValueError("`package` goes with `argv`, the program of it, in the sandbox")
        return self

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


class ServerArm(ProcessArm):
    """Settings of arms that can be asked over HTTP: at a remote `url`, or at one that the server
    started with `argv` listens on."""

    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)

    @property
    def is_served(self) -> bool:
        """Whether coldrun starts a server that listens at `url`."""
        return bool(self.argv) and self.url is not None

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of a request, with the names of variables in place of their values."""
        return self.headers

    @property
    def header_variables(self) -> tuple[str, ...]:
        """The variables that the headers are filled from, in order."""
        return _named_variables(self.sent_headers.values())

    @property
    def deciding_variables(self) -> tuple[str, ...]:
        """Without the variables that only tell a remote endpoint who asks."""
        if self.runs_program:
            return self.env
        credentials = _named_variables(
            text for name, text in self.sent_headers.items() if name.lower() in CREDENTIAL_HEADERS
        )
        return tuple(name for name in self.env if name not in credentials)

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


def _read_arm(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kinds = ", ".join(ARM_KINDS)
    if "kind" not in value:
        raise PydanticCustomError("no_kind", " needs a `kind`: {kinds}", {"kinds": kinds})
    if value["kind"] not in ARM_KINDS:
        raise PydanticCustomError(
            "no_kind",
            ": kind {found} is not one of {kinds}",
            {"found": repr(value["kind"]), "kinds": kinds},
        )
    return find_kind(value["kind"]).settings.model_validate(value)


AnyArm = Annotated[SerializeAsAny[ArmConfig], BeforeValidator(_read_arm)]
"""An arm of any kind of the registry."""


def names_the_question(template: str) -> bool:
    """Whether a template has a placeholder that differs from question to question."""
    return any(name in template for name in ("{query}", "{terms}", "{terms_regex}"))


def _named_variables(texts: Iterable[str]) -> tuple[str, ...]:
    names = (name for text in texts for name in HEADER_VARIABLE.findall(text))
    return tuple(dict.fromkeys(names))


def _url_problem(url: str) -> str | None:
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
