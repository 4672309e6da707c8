"""The command line, some of it on a real Prefect server."""

from tests.server import prefect_server

__all__ = ["prefect_server"]
