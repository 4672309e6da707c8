"""The knock-out check: an arm that is the product cannot answer without it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from coldrun.tasks.lib.errors import ColdrunError
from coldrun.tasks.lib.plain_text import cut_text, one_line
from coldrun.tasks.run.execute import PlannedArm

LIMIT_SECONDS = 10.0
QUESTIONS = 3
ANSWERED = "answered"
MOST_REASON = 200


def ask_without_product(arms: Sequence[PlannedArm]) -> dict[str, str]:
    """Ask the arms that are the product a few questions with an empty checkout, all at once.

    Returns:
        By arm, "answered", or why it did not: refused, hung, abstained.
    """
    asked = [arm for arm in arms if arm.open_without_product is not None and arm.asks]
    if not asked:
        return {}
    with ThreadPoolExecutor(max_workers=len(asked)) as pool:
        return dict(zip([arm.name for arm in asked], pool.map(_ask, asked), strict=True))


def answered_without_product(knock_outs: Mapping[str, str]) -> list[str]:
    """The reasons for which a run with these knock-outs is invalid."""
    return [
        f"{arm} answers without its product: with an empty checkout it answered all the same, so "
        "its answers come from somewhere else; run the product's own files (for a tool that is not "
        "the product, `product = false`)"
        for arm, found in knock_outs.items()
        if found == ANSWERED
    ]


def _ask(arm: PlannedArm) -> str:
    if arm.open_without_product is None:
        raise ValueError(f"{arm.name} is not the product")
    timers: list[threading.Timer] = []

    def end_in_time(abort: object) -> None:
        if callable(abort):
            timers.append(threading.Timer(LIMIT_SECONDS, abort))
            timers[-1].start()

    try:
        session = arm.open_without_product(0, end_in_time)
        try:
            said = "it abstained"
            for ask in arm.asks[:QUESTIONS]:
                reply = session.ask(ask.question)
                if reply.status == "answered" and arm.parse(reply, session.start.corpus_dir):
                    return ANSWERED
                if reply.reason:
                    said = reply.reason
        finally:
            session.close()
    except ColdrunError as error:
        said = str(error)
    finally:
        for timer in timers:
            timer.cancel()
    return cut_text(one_line(said), MOST_REASON)
