"""Whether an arm is what the run says it measures: the commit, the place and the session."""

from __future__ import annotations

import hmac

from coldrun.tasks.lib.records import Point, SessionStart

SHORTEST_COMMIT = 7


def find_mismatches(start: SessionStart, *, point: Point | None, nonce: str) -> tuple[str, ...]:
    """Why the arm is not the point's product in this session; empty when all it reported fits.

    What an arm does not report is not checked. Without a product there is no commit or place to
    compare with, and the nonce alone counts.

    Args:
        start: What the arm reported.
        point: The product that should be running.
        nonce: The secret that this start of the session was given.
    """
    found = []
    if start.nonce is not None and not hmac.compare_digest(start.nonce.encode(), nonce.encode()):
        found.append(
            f"the arm answered with the nonce {start.nonce!r}, which belongs to another session"
        )
    if point is not None:
        found += [
            text for text in (_commit_mismatch(start, point), _place_mismatch(start, point)) if text
        ]
    return tuple(found)


def _commit_mismatch(start: SessionStart, point: Point) -> str | None:
    if start.commit is None:
        return None
    reported = start.commit.strip().lower()
    if len(reported) >= SHORTEST_COMMIT and point.commit.startswith(reported):
        return None
    return f"the arm reports commit {start.commit!r}, but the point is {point.commit}"


def _place_mismatch(start: SessionStart, point: Point) -> str | None:
    """Links are followed on both sides, so a link out of the checkout does not count as inside."""
    if start.loaded_from is None:
        return None
    directory = point.directory.resolve()
    place = (directory / start.loaded_from).resolve()
    if not place.exists():
        return f"the arm reports that it was loaded from {start.loaded_from}, which does not exist"
    if place.is_relative_to(directory):
        return None
    where = "an installed copy" if "site-packages" in place.parts else "another folder"
    return (
        f"the arm was loaded from {place}, {where}, not from the checkout {directory} of "
        f"{point.commit}; install the product inside its checkout in `setup`, and report the "
        "product's own file, not the adapter's"
    )
