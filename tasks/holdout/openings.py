"""The ledger of openings of the sealed part, and what `[holdout]` allows. Pure.

One line per opening, canonical JSON, chained: every line holds the hash of the line before it and
its own. The lock holds the last hash and the number of lines, so that a tail that was cut off is
noticed too. Whoever rewrites ledger and lock together is found by version control, not by this.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from coldrun.tasks.config import HoldoutConfig
from coldrun.tasks.lib.canonical import canonical_json, digest_json
from coldrun.tasks.lib.errors import LedgerError
from coldrun.tasks.lib.plain_text import counted, times
from coldrun.tasks.lib.safe_json import load_object, to_record

LEDGER_SCHEMA = 1
ANY_EVENT = HoldoutConfig().when

Status = Literal["opened", "withheld", "interrupted", "failed"]
"""`opened` gave aggregates and counts. The others gave none: the answers were no evidence
(`withheld`), or asking ended early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """One opening, as it is written down.

    `number` counts the lines from 1, `previous` is the hash of the line before. `arms` maps each
    arm that was asked to the digest of its configuration. `configurations_tried` is how many
    configurations the warehouse had seen on the dev part before. `result` holds the aggregates
    that were returned, None when none was.
    """

    number: int
    previous: str | None
    at: str
    who: str
    reason: str
    event: str | None
    is_override: bool
    is_task_level: bool
    sealed_digest: str
    panel_digest: str
    lock_digest: str
    tasks: int
    arms: Mapping[str, str]
    point: Mapping[str, Any] | None
    configurations_tried: int
    status: Status
    result: Mapping[str, Any] | None

    @property
    def is_counted(self) -> bool:
        """Whether it uses up one of the declared openings: only if something came back."""
        return self.result is not None

    def to_values(self) -> dict[str, Any]:
        """The line as JSON values, its own hash included."""
        values = {
            "schema": LEDGER_SCHEMA,
            **{name: getattr(self, name) for name in Opening.__dataclass_fields__},
            "arms": dict(self.arms),
        }
        return {**values, "hash": digest_json(values)}

    @property
    def hash(self) -> str:
        """The hash that the next line and the lock hold."""
        return str(self.to_values()["hash"])


def ledger_to_bytes(openings: Sequence[Opening]) -> bytes:
    """The ledger's bytes: one line per opening."""
    return b"".join(canonical_json(opening.to_values()) + b"\n" for opening in openings)


def ledger_from_bytes(data: bytes, *, source: str) -> tuple[Opening, ...]:
    """The openings in a ledger's bytes, every line checked against the one before."""
    openings: list[Opening] = []
    for number, line in enumerate(data.splitlines(), 1):
        opening = opening_from_line(line, place=f"{source}:{number}")
        previous = last_hash(openings)
        if opening.number != number or opening.previous != previous:
            raise LedgerError(
                f"{source}:{number} does not follow the line before it (it says number "
                f"{opening.number} after {opening.previous}, expected {number} after {previous}): "
                "a line was removed, moved or added; restore the ledger from version control"
            )
        openings.append(opening)
    if b"\r\n" in data:
        raise LedgerError(
            f"{source} has CRLF line ends: git rewrote them (see core.autocrlf); say "
            f"`{PurePath(source).name} -text` in .gitattributes and check it out again"
        )
    if ledger_to_bytes(openings) != data:
        raise LedgerError(
            f"{source} is not written as coldrun writes it (white space, order or line ends were "
            "changed); restore the ledger from version control"
        )
    return tuple(openings)


def opening_from_line(line: bytes, *, place: str) -> Opening:
    """The opening in one line."""
    try:
        values = load_object(line)
        stated = values.pop("hash")
        schema = values.pop("schema")
        if schema != LEDGER_SCHEMA:
            raise LedgerError(
                f"{place} was written by another version of coldrun (ledger schema {schema}, this "
                f"one reads {LEDGER_SCHEMA})"
            )
        opening = to_record(values, Opening)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerError(
            f"{place} is no ledger line ({type(error).__name__}); restore the ledger from version "
            "control"
        ) from None
    if opening.hash != stated:
        raise LedgerError(
            f"{place} was edited: it says its hash is {stated}, its contents have {opening.hash}; "
            "restore the ledger from version control"
        )
    return opening


def check_head(openings: Sequence[Opening], count: int, head: str | None, *, source: str) -> None:
    """Compare the ledger with what the lock knows of it: how many lines, and the last one's hash.

    Raises:
        LedgerError: The tail was cut off, lines were rewritten, or the ledger is ahead of the
            lock, which a crash between the two writes leaves behind.
    """
    extra = len(openings) - count
    if extra < 0:
        raise LedgerError(
            f"{source} has {counted(len(openings), 'opening')}, the lock knows of {count} (the "
            f"last is {head}): its tail was cut off; restore the ledger from version control"
        )
    last_known = last_hash(openings[:count])
    if last_known != head:
        raise LedgerError(
            f"{source}:{count} has the hash {last_known}, the lock says {head}: the "
            "ledger was rewritten; restore it from version control"
        )
    if extra:
        raise LedgerError(
            f"{source} continues what the lock knows by {counted(extra, 'opening')}: coldrun ended "
            "after it wrote the ledger and before it wrote the lock, or an older lock was restored"
            "; the openings count, take them over with `coldrun holdout log CONFIG --adopt`"
        )


def last_hash(openings: Sequence[Opening]) -> str | None:
    """The hash of the last line, None without one; the next line and the lock hold it."""
    return openings[-1].hash if openings else None


def known_head(lock: Mapping[str, Any]) -> tuple[int, str | None]:
    """How many lines a lock knows of, and the last one's hash; none without the entry."""
    known = lock.get("holdout") or {}
    return known.get("count", 0), known.get("head")


def demotion_of(lock: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The entry of the task-level opening that made the sealed part dev for good, if any."""
    demoted = (lock.get("holdout") or {}).get("demoted")
    return demoted if isinstance(demoted, Mapping) else None


def is_demoted(lock: Mapping[str, Any]) -> bool:
    """Whether the present sealed part was read task by task, and so is dev now."""
    demoted, sealed = demotion_of(lock), lock.get("sealed")
    return bool(demoted and sealed and demoted["digest"] == sealed["digest"])


def judge_opening(
    holdout: HoldoutConfig, openings: Sequence[Opening], *, event: str | None, elsewhere: int = 0
) -> tuple[str, ...]:
    """What puts one more opening outside of `[holdout]`; empty where it is allowed.

    Openings count whatever panel was frozen when they were made: another sample of the same tasks
    is not unread. `elsewhere` are openings of any of the tasks under other configurations. Raising
    `openings` is a change of the lock, which the lock records.
    """
    problems = []
    used = count_openings(openings) + elsewhere
    if used >= holdout.openings:
        problems.append(
            f"[holdout] allows it to be opened {times(holdout.openings)}, and it was opened "
            f"{times(used)}" + (f" ({elsewhere} elsewhere, by task)" if elsewhere else "")
        )
    if holdout.when != ANY_EVENT:
        if event is None:
            problems.append(
                f'[holdout] when = "{holdout.when}"; say that it has happened with '
                f"--event {json.dumps(holdout.when, ensure_ascii=False)}"
            )
        elif _plain(event) != _plain(holdout.when):
            problems.append(f'[holdout] when = "{holdout.when}", and the event given is "{event}"')
    return tuple(problems)


def count_openings(openings: Sequence[Opening]) -> int:
    """How many openings gave something back."""
    return sum(opening.is_counted for opening in openings)


def opening_words(opening: Opening, openings: Sequence[Opening], allowed: int) -> str:
    """Which opening a result is of, e.g. "opening 2 of 1 declared, by override"."""
    used = count_openings([other for other in openings if other.number <= opening.number])
    what = f"opening {used} of {allowed} declared"
    if not opening.is_counted:
        what = f"no opening ({opening.status}; {used} of {allowed} declared are used)"
    flags = [
        *(["by override"] if opening.is_override else []),
        *(["task level: the sealed part is dev from now on"] if opening.is_task_level else []),
    ]
    return f"{what}, {', '.join(flags)}" if flags else what


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
