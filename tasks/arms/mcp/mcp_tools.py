"""The tools of an MCP server, asked for before anything else is."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coldrun.tasks.arms.mcp.mcp_connection import ServerConnection, ServerError
from coldrun.tasks.arms.mcp.mcp_stdio import StdioTransport
from coldrun.tasks.arms.templates import fill_text
from coldrun.tasks.arms.workspace.isolation import PRIVATE_FOLDERS, session_environment
from coldrun.tasks.config import McpArm
from coldrun.tasks.lib.machine.child_process import end_strays

SAID = 300
"""How much of what went wrong, and of what a server logged, stands in an error, in characters."""


def list_tools(arm: McpArm) -> Mapping[str, Mapping[str, Any]]:
    """The tools that a server over stdio has, each with the JSON schema of its arguments.

    The server is started as in a session, with an empty folder in place of the corpus, and ended.

    Raises:
        ServerError: It did not start; the text ends with the last that it logged.
    """
    with tempfile.TemporaryDirectory(prefix="coldrun-") as name:
        root = Path(name).resolve()
        for folder in {"corpus", *PRIVATE_FOLDERS.values()}:
            (root / folder).mkdir()
        values = {"corpus": str(root / "corpus"), "python": sys.executable}
        log = root / "stderr.log"
        server = ServerConnection(
            transport=StdioTransport(
                argv=[fill_text(word, values) for word in arm.argv],
                cwd=root / "corpus",
                environment=session_environment(arm, root),
                log=log,
                max_line_bytes=arm.max_output_bytes,
            ),
            root=values["corpus"],
        )
        try:
            return server.open(timeout_seconds=arm.startup_timeout_seconds).tools
        except ServerError as error:
            said = " ".join(log.read_text("utf-8", "replace").split()) if log.exists() else ""
            reason = str(error)[:SAID]
            raise ServerError(f"{reason}; it said …{said[-SAID:]}" if said else reason) from None
        finally:
            server.close()
            end_strays(root / "home")
