"""How often what answers a session was started, and when it is given up."""

from __future__ import annotations

from dataclasses import dataclass

MAX_FAILED_STARTS = 3
"""After so many starts in a row that failed, nothing is started again."""


@dataclass(slots=True, eq=False)
class Starts:
    """The starts of a session's program or server; `failure` says why the last one failed."""

    failure: str | None = None
    _count: int = 0
    _failed: int = 0

    @property
    def restarts(self) -> int:
        """How many there were after the first."""
        return max(0, self._count - 1)

    @property
    def refusal(self) -> str | None:
        """Why there will be no other start; None while there may be one."""
        if self._failed < MAX_FAILED_STARTS:
            return None
        return f"{self.failure} ({self._failed} times; given up)"

    def begin(self) -> None:
        """Another start begins."""
        self._count += 1
        self.failure = None

    def succeed(self) -> None:
        """It came up."""
        self._failed = 0

    def fail(self, failure: str) -> None:
        """It did not come up."""
        self.failure = failure
        self._failed += 1
