"""`kind = "mcp"`: an MCP server over stdio, or over streamable HTTP."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from coldrun.tasks.arms.answer_text import json_documents, read_protocol_line
from coldrun.tasks.arms.arm_kind import ArmKind, Unwrapped
from coldrun.tasks.arms.base import Session, SessionContext
from coldrun.tasks.config import Section, ServerArm


class ToolCall(Section):
    """One call of an MCP tool while a session is prepared, repeated until it is ready."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    until: str | None = None
    every_seconds: float = Field(default=0.5, gt=0)
    timeout_seconds: float = Field(default=300, gt=0)


class McpArm(ServerArm):
    """A server: `prepare` calls its tools once, and each question calls `tool`."""

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


def _unwrap(raw: str, _: McpArm) -> Unwrapped:
    """The structured content of a tool's result, then the JSON in its texts."""
    result = read_protocol_line(raw)
    texts = [
        block["text"]
        for block in result.get("content") or []
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    documents = []
    structured = result.get("structuredContent")
    if structured is not None:
        documents.append(structured)
        # The SDK wraps a result that is not an object as {"result": …}, JSON texts included.
        if isinstance(structured, dict) and structured.keys() == {"result"}:
            inner = structured["result"]
            documents += json_documents([inner]) if isinstance(inner, str) else [inner]
    in_texts = list(json_documents(texts))
    form: Literal["text", "json"] = "text" if texts and not in_texts else "json"
    return Unwrapped(documents=[*documents, *in_texts], texts=texts, form=form)


def _open_session(context: SessionContext) -> Session:
    from coldrun.tasks.arms.driven_session import open_driven
    from coldrun.tasks.arms.mcp.mcp_driver import McpDriver

    return open_driven(context, McpDriver)


MCP = ArmKind(settings=McpArm, unwrap=_unwrap, open_session=_open_session)
