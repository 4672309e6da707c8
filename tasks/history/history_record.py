"""What a history left behind, for its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from coldrun.tasks.freeze.lock import FrozenPanel
from coldrun.tasks.history.history_plan import Node
from coldrun.tasks.history.journal import Entry
from coldrun.tasks.history.outcomes import MeasuredRun
from coldrun.tasks.stats.decomposition import Yardstick
from coldrun.tasks.stats.noise import PooledFloor


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecord:
    """All that a history left behind. `runs` are usable runs by (commit, repeat)."""

    kind: Literal["backfill", "decompose"]
    history_id: str
    frozen: FrozenPanel
    arm: str
    primary: str
    started_at: str
    wall_seconds: float
    is_interrupted: bool
    nodes: tuple[Node, ...]
    entries: tuple[Entry, ...]
    runs: Mapping[tuple[str, int], MeasuredRun]
    floors: Mapping[str, PooledFloor | None]
    notes: tuple[str, ...] = ()

    @property
    def seed(self) -> int:
        """The seed of resamples, as a run of this panel has it."""
        return int(self.frozen.digest.removeprefix("sha256:")[:8], 16)

    @property
    def yardstick(self) -> Yardstick:
        """What its steps are judged by."""
        return Yardstick(primary=self.primary, floors=self.floors, seed=self.seed)

    @property
    def known_nodes(self) -> tuple[Node, ...]:
        """The nodes that were measured, those with the tree of a measured one included."""
        return tuple(node for node in self.nodes if self.run_of(node) is not None)

    def entry_of(self, node: Node) -> Entry | None:
        """The first measurement of a node's own tree, failed ones included."""
        return next(
            (
                entry
                for entry in self.entries
                if entry.commit == node.first.commit and entry.repeat == 0
            ),
            None,
        )

    def run_of(self, node: Node) -> MeasuredRun | None:
        """The run that stands for a node, that of an equal tree included."""
        return self.runs.get((self.nodes[node.stand_in].first.commit, 0))
