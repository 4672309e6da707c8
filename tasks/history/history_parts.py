"""Parts of history reports made from the analysis."""

from __future__ import annotations

from coldrun.tasks.history.history_model import FloorPart
from coldrun.tasks.lib.plain_text import counted, noun
from coldrun.tasks.stats.decomposition import Change
from coldrun.tasks.stats.noise import PooledFloor


def floor_part(floor: PooledFloor | None) -> FloorPart | None:
    """The noise floor as it is reported; None where no repeat is known."""
    if floor is None:
        return None
    return FloorPart(
        runs=floor.runs,
        pairs=floor.pairs,
        flips=floor.flips,
        flip_rate=floor.flip_rate,
        flip_rate_upper=floor.flip_rate_upper,
        band_tasks=floor.band,
    )


def tasks_text(number: float) -> str:
    """A number of tasks with its sign: whole where it is whole."""
    rounded = round(number, 2)
    if rounded == 0:
        return "0"
    return f"{int(rounded):+d}" if rounded == int(rounded) else f"{rounded:+.2f}"


def total_text(number: float) -> str:
    """A score as a sum over tasks: whole where it is whole."""
    return tasks_text(number).lstrip("+")


def p_text(p: float) -> str:
    """A p-value as it is printed."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def tasks_words(number: float) -> str:
    """A number of tasks with its sign and its noun."""
    text = tasks_text(number)
    return f"{text} {noun(float(text), 'task')}"


def floor_words(floor: FloorPart | None) -> str:
    """The noise floor in words."""
    if floor is None:
        return "noise floor not known (nothing was run twice)"
    band = noun(floor.band_tasks, "task")
    return f"noise floor ±{floor.band_tasks} {band} from {counted(floor.pairs, 'pair')} of runs"


def change_words(measure: str, change: Change) -> str:
    """A change in one line, ready to be quoted."""
    return (
        f"{measure} {total_text(change.before)} → {total_text(change.after)} of {change.n} "
        f"({tasks_words(change.difference)} [{change.low:+.1f}, {change.high:+.1f}], "
        f"{len(change.up)} up, {len(change.down)} down, p = {p_text(change.p)})"
    )


def first_line(text: str | None) -> str:
    """The first line of a reason."""
    return (text or "").partition("\n")[0]
