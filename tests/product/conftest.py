"""Sessions on real processes."""

from tests.sessions import lab

__all__ = ["lab"]
