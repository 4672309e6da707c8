"""Which module opens the sessions of which kind of arm; each is imported when first needed."""

from __future__ import annotations

from coldrun.tasks.arms.base import Session, SessionContext


def open_session(context: SessionContext) -> Session:
    """Open one session of an arm.

    Raises:
        ColdrunError: It cannot be opened at all; a tool that fails later gives `infra` replies.
    """
    match context.arm.kind:
        case "grep":
            from coldrun.tasks.arms.builtin.grep import open_grep_session

            return open_grep_session(context)
        case "bm25":
            from coldrun.tasks.arms.builtin.bm25 import open_bm25_session

            return open_bm25_session(context)
        case "command":
            from coldrun.tasks.arms.command_arm import open_command_session

            return open_command_session(context)
        case "mcp":
            from coldrun.tasks.arms.mcp.mcp_session import open_mcp_session

            return open_mcp_session(context)
        case "http":
            from coldrun.tasks.arms.service.http_arm import open_http_session

            return open_http_session(context)
        case "chat":
            from coldrun.tasks.arms.service.chat_arm import open_chat_session

            return open_chat_session(context)
