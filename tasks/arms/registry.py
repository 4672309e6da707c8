"""Which module opens the sessions of which kind of arm; each is imported when first needed."""

from __future__ import annotations

from tasks.arms.base import Session, SessionContext


def open_session(context: SessionContext) -> Session:
    """Open one session of an arm.

    Raises:
        ColdrunError: It cannot be opened at all; a tool that fails later gives `infra` replies.
    """
    match context.arm.kind:
        case "grep":
            from tasks.arms.builtin.grep import open_grep_session

            return open_grep_session(context)
        case "bm25":
            from tasks.arms.builtin.bm25 import open_bm25_session

            return open_bm25_session(context)
        case "command":
            from tasks.arms.command import open_command_session

            return open_command_session(context)
        case "mcp":
            from tasks.arms.mcp.session import open_mcp_session

            return open_mcp_session(context)
        case "http":
            from tasks.arms.service.http import open_http_session

            return open_http_session(context)
        case "chat":
            from tasks.arms.service.chat import open_chat_session

            return open_chat_session(context)
