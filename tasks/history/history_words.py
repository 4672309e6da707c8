"""Changes and noise floors in words."""

from __future__ import annotations

from coldrun.tasks.lib.plain_text import counted, noun
from coldrun.tasks.report.run_words import p_words
from coldrun.tasks.stats.decomposition import Change
from coldrun.tasks.stats.noise import PooledFloor


def tasks_text(number: float) -> str:
    """A number of tasks with its sign: whole where it is whole."""
    rounded = round(number, 2)
    if rounded == 0:
        return "0"
    return f"{int(rounded):+d}" if rounded == int(rounded) else f"{rounded:+.2f}"


def total_text(number: float) -> str:
    """A score as a sum over tasks: whole where it is whole."""
    return tasks_text(number).lstrip("+")


def tasks_words(number: float) -> str:
    """A number of tasks with its sign and its noun."""
    text = tasks_text(number)
    return f"{text} {noun(float(text), 'task')}"


def interval_text(low: float, high: float) -> str:
    """The limits of a change, in tasks."""
    return f"[{low:+.1f}, {high:+.1f}]"


def floor_words(floor: PooledFloor | None) -> str:
    """The noise floor in words."""
    if floor is None:
        return "noise floor not known (nothing was run twice)"
    band = noun(floor.band_tasks, "task")
    return f"noise floor ±{floor.band_tasks} {band} from {counted(floor.pairs, 'pair')} of runs"


def change_words(measure: str, change: Change) -> str:
    """A change in one line, ready to be quoted."""
    return (
        f"{measure} {total_text(change.before)} → {total_text(change.after)} of {change.n} "
        f"({tasks_words(change.difference)} {interval_text(change.low, change.high)}, "
        f"{change.up} up, {change.down} down, p = {p_words(change.p)})"
    )


def first_line(text: str | None) -> str:
    """The first line of a reason."""
    return (text or "").partition("\n")[0]
