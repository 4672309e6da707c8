"""The plan of a backfill, before anything is executed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from coldrun.tasks.history.history_lifecycle import Estimate
from coldrun.tasks.history.history_plan import Node, interleave_ends
from coldrun.tasks.lib.plain_text import counted, noun


def plan_lines(nodes: Sequence[Node], estimate: Estimate) -> Iterator[str]:
    """The order in which points are measured, what stands for what, and the estimated time."""
    distinct = [node for node in nodes if not node.is_repeated]
    commits = sum(len(node.commits) for node in nodes)
    yield (
        f"{counted(commits, 'commit')}, {counted(len(distinct), 'point')} (equal trees are "
        "measured once), in this order:"
    )
    for number, place in enumerate(interleave_ends(len(distinct)), start=1):
        commit = distinct[place].first
        yield f"{number:>4}  {commit.commit[:12]}  {commit.committed_at[:10]}  {commit.subject}"
    if len(distinct) > 1:
        again = distinct[0].first.commit
        yield f"{len(distinct) + 1:>4}  {again[:12]}  once more, for the controls"
    for node in nodes:
        for commit in node.commits if node.is_repeated else node.commits[1:]:
            stand_in = nodes[node.stand_in].first.commit
            yield f"      {commit.commit[:12]}  has the tree of {stand_in[:12]}"
    if estimate.measured_before:
        were = noun(estimate.measured_before, "was", "were")
        yield (
            f"{estimate.measured_before} of them {were} measured before: matching answers of "
            "candidates are replayed, controls are executed again"
        )
    yield _time_words(estimate)


def plan_values(nodes: Sequence[Node], estimate: Estimate) -> str:
    """The same as JSON."""
    distinct = [node for node in nodes if not node.is_repeated]
    return json.dumps(
        {
            "schema": 1,
            "commits": sum(len(node.commits) for node in nodes),
            "points": [
                {
                    "commit": distinct[place].first.commit,
                    "tree": distinct[place].tree,
                    "subject": distinct[place].first.subject,
                }
                for place in interleave_ends(len(distinct))
            ],
            "measured_before": estimate.measured_before,
            "seconds_per_point": estimate.seconds_per_point,
            "estimated_seconds": estimate.seconds,
        },
        indent=1,
    )


def _time_words(estimate: Estimate) -> str:
    if estimate.seconds is None or estimate.seconds_per_point is None:
        return "estimated time: not known, no point of this panel was measured yet"
    return (
        f"estimated time: {estimate.seconds:.0f} s, from {estimate.seconds_per_point:.1f} s for a "
        "point measured earlier"
    )
