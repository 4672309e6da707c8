"""Long runs, some of them on a real Prefect server."""

from tests.server import prefect_server

__all__ = ["prefect_server"]
