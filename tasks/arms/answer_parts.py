"""Where an answer of each kind of arm has its JSON and its words."""

from __future__ import annotations

from typing import Any

from coldrun.tasks.arms.answer_text import json_documents, read_json, read_protocol_line
from coldrun.tasks.arms.service.chat_protocol import read_completion
from coldrun.tasks.config import ChatArm, HttpArm, McpArm, ProcessArm


def answer_parts(raw: str, arm: ProcessArm) -> tuple[list[Any], list[str]]:
    """The JSON documents and the texts of an answer.

    Raises:
        MalformedError: The answer of an endpoint is not of the form that its kind has.
    """
    if isinstance(arm, ChatArm):
        content = read_completion(raw).content
        return list(json_documents([content])), [content]
    if isinstance(arm, HttpArm) and arm.items_regex is None:
        return [read_json(raw)], [raw]
    if not isinstance(arm, McpArm):
        return list(json_documents([raw])), [raw]
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
        # The SDK wraps what is no object as {"result": …}, text that holds JSON included.
        if isinstance(structured, dict) and structured.keys() == {"result"}:
            inner = structured["result"]
            documents += json_documents([inner]) if isinstance(inner, str) else [inner]
    documents += json_documents(texts)
    return documents, texts
