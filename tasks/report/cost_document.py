"""The cost axis of a run's report. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context, Decimal

from coldrun.tasks.judge.cost_model import (
    ArmCostPart,
    CostPairPart,
    CostsPart,
    LatencyPart,
    PricesPart,
    RetryPart,
    SpentPart,
)
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.lib.plain_text import counted, short_digest
from coldrun.tasks.report.document import Block, Code, Line, Paragraph, lines, table_of
from coldrun.tasks.report.run_words import (
    arm_named,
    interval_words,
    seconds_words,
    withheld_word,
)
from coldrun.tasks.stats.measures import parse_measure


def amount(value: float, unit: str) -> str:
    """An amount with its unit: money to four digits, tokens as they are counted."""
    return f"{number(value, unit)} {unit}"


def number(value: float, unit: str, *, digits: int = 4) -> str:
    """An amount without its unit; small sums of money keep their digits, and no exponent."""
    if unit == "tokens":
        return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.1f}"
    exact = Decimal(repr(value))
    rounded = round(exact, 2) if abs(exact) >= 100 else Context(prec=digits).plus(exact)
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def price_words(prices: PricesPart) -> str:
    """Which snapshot: its date, source and digest; no money is printed without it."""
    return f"prices of {prices.date} ({prices.source}, {short_digest(prices.digest)})"


def cost_blocks(report: Report, costs: CostsPart) -> Iterator[Block]:
    """What the arms used, what that costs, and what the two axes together support."""
    yield Paragraph("what the arms used, failed attempts included, in tokens:")
    yield table_of(used_rows(costs))
    yield Paragraph(cost_line(costs))
    yield table_of(cost_rows(costs), text_columns=1)
    if costs.prices is not None:
        yield Line(("prices ", Code(costs.prices.digest), " of ", Code(costs.prices.file)))
    yield from lines(cost_notes(report, costs))
    rows = list(pair_rows(report, costs))
    if rows:
        yield Paragraph(pair_line(report, costs))
        yield table_of(rows)
    for claim in claim_lines(report, costs):
        yield Line(claim, is_strong=True)


def used_rows(costs: CostsPart) -> Iterator[dict[str, str]]:
    """The table of tokens: a row for each arm, and one for what its replayed answers once took."""
    for arm in costs.arms:
        for name, spent in _spent_by_name(arm).items():
            tokens, is_replayed = spent.tokens, spent is arm.replayed
            yield {
                "arm": name,
                "role": arm.role,
                "attempts": str(spent.attempts),
                "input": _optional(tokens.input, "tokens"),
                "output": _optional(tokens.output, "tokens"),
                "cache read": _optional(tokens.cache_read, "tokens"),
                "cache write": _optional(tokens.cache_write, "tokens"),
                "tokens a task": "" if is_replayed else number(arm.tokens_per_task, "tokens"),
            }


def _spent_by_name(arm: ArmCostPart) -> dict[str, SpentPart]:
    replayed = {} if arm.replayed is None else {f"{arm.arm}, replayed": arm.replayed}
    return {arm.arm: arm.spent, **replayed}


def cost_line(costs: CostsPart) -> str:
    """What the table of costs below it shows."""
    if costs.prices is None:
        return "what that comes to (no prices are configured):"
    prices = price_words(costs.prices)
    if costs.prices.is_repriced:
        before = costs.prices.replaces_digest
        own = f"not those that the run was started with, {short_digest(before)}" if before else ""
        prices = f"{prices}, {own or 'the run was started without any'}"
    return f"what that costs in {costs.prices.currency} at {prices}:"


def cost_rows(costs: CostsPart) -> Iterator[dict[str, str]]:
    """The table of costs and times, with the same rows as that of tokens."""
    money = costs.prices.currency if costs.prices else None
    for arm in costs.arms:
        for name, spent in _spent_by_name(arm).items():
            is_replayed = spent is arm.replayed
            if is_replayed and not money:
                continue
            record = {"arm": name}
            if money:
                record[money] = _optional(spent.cost, money)
                record[f"{money} a task"] = _optional(arm.cost_per_task, money)
            share = "" if arm.on_frontier is None else f" ({arm.on_frontier:.0%})"
            record[f"{costs.unit} a success"] = _optional(arm.cost_per_success, costs.unit)
            record["s mean"] = seconds_words(arm.mean_seconds)
            record["s median"] = seconds_words(arm.median_seconds)
            record["s p95"] = seconds_words(arm.p95_seconds)
            record["frontier"] = f"{arm.standing or '–'}{share if arm.standing else ''}"
            kept = ("arm", money) if is_replayed else record
            yield {header: cell if header in kept else "" for header, cell in record.items()}


def _optional(value: float | None, unit: str) -> str:
    return "–" if value is None else number(value, unit)


def cost_notes(report: Report, costs: CostsPart) -> Iterator[str]:
    """What a reader must know of the table above: gaps, replays, second calls."""
    for arm in costs.arms:
        if arm.unpriced is not None and costs.prices is not None:
            yield f"{arm.arm}: no cost in {costs.prices.currency}, {arm.unpriced}"
        missing = arm.spent.attempts_without_tokens
        if missing and arm.tokens_per_task:
            yield (
                f"{arm.arm}: {missing} of {counted(arm.spent.attempts, 'attempt')} did not say "
                "what they used: its tokens and costs are at least these"
            )
        if arm.replayed is not None:
            yield (
                f"{arm.arm}: {counted(arm.replayed.answers, 'replayed answer')} cost nothing in "
                "this run; per task and against others they count with what they took when executed"
            )
        if arm.retry is not None:
            yield retry_line(report, costs, arm.arm, arm.retry)
    for name in costs.silent_arms:
        yield f"{name}: reported no tokens, so its cost is not known and it is not compared"
    for latency in costs.latencies:
        yield _latency_words(latency)


def _latency_words(part: LatencyPart) -> str:
    found, ratio = part.seconds, ""
    if found.ratio is not None and found.ratio_interval is not None:
        limits = f"[{_times(found.ratio_interval.low)}, {_times(found.ratio_interval.high)}]"
        ratio = f"; typically {_times(found.ratio)} times as long {limits}"
    p50, p95 = found.p50_interval, found.p95_interval
    return (
        f"{part.arm} against {part.against}, seconds a task, paired over "
        f"{counted(part.tasks, 'task')}: "
        f"median {found.p50:+.3g} [{p50.low:+.3g}, {p50.high:+.3g}], "
        f"95th percentile {found.p95:+.3g} [{p95.low:+.3g}, {p95.high:+.3g}]{ratio}"
    )


def retry_line(report: Report, costs: CostsPart, name: str, retry: RetryPart) -> str:
    """What an arm's second calls did, and cost."""
    share = retry.fired / retry.answers
    line = (
        f"{name}: a second call on {retry.fired} of {counted(retry.answers, 'answer')} "
        f"({share:.0%}), {amount(retry.cost, costs.unit)}"
    )
    if retry.fired and not arm_named(report, name).is_withheld:
        line += f"; it fixed {retry.fixed} and broke {retry.broke} at {costs.measure}"
        if retry.cost_per_net_fix is not None:
            line += f", {amount(retry.cost_per_net_fix, costs.unit)} a net fix"
        if retry.signal_recall is not None:
            line += f"; {retry.signal_recall:.0%} of the wrong first answers were asked again"
    return line + _price_suffix(costs)


def _price_suffix(costs: CostsPart) -> str:
    if costs.prices is None or costs.unit == "tokens":
        return ""
    return f"; {price_words(costs.prices)}"


def pair_line(report: Report, costs: CostsPart) -> str:
    """What the table of pairs below it shows."""
    unit = f"{costs.unit} a task"
    why = f" (in tokens: {costs.reason})" if costs.reason and costs.prices else ""
    confidence = costs.confidence or 0.95
    return (
        f"every two arms at {costs.measure} and in {unit}{why}, paired over "
        f"{counted(report.counts.tasks, 'task')}; each interval {100 * confidence:.3g} %, those "
        "of one arm together 95 % on each axis; the order is claimed where both intervals support "
        "it:"
    )


def pair_rows(report: Report, costs: CostsPart) -> Iterator[dict[str, str]]:
    """The table of pairs; those in which no arm used a token are left out."""
    n = report.counts.tasks
    for pair in _told_pairs(costs):
        low = _limit(pair.cost_low, costs.unit, "−∞")
        high = _limit(pair.cost_high, costs.unit, "∞")
        yield {
            "arm": pair.arm,
            "against": pair.against,
            "Δ tasks": f"{pair.difference * n:+.1f}",
            "interval": interval_words(pair.low, pair.high, n),
            "cost more": _signed(pair.cost_difference, costs.unit),
            "cost interval": f"[{low}, {high}]",
            "times": "–" if pair.cost_ratio is None else _times(pair.cost_ratio),
            "standing": pair.standing.replace("_", "-"),
        }


def _told_pairs(costs: CostsPart) -> list[CostPairPart]:
    users = {arm.arm for arm in costs.arms if arm.tokens_per_task}
    return [pair for pair in costs.pairs if pair.arm in users or pair.against in users]


def _signed(value: float, unit: str) -> str:
    return f"{'+' if value > 0 else ''}{number(value, unit, digits=3)}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 99.5 else number(ratio, "", digits=2)


def _limit(value: float | None, unit: str, unbounded: str) -> str:
    return unbounded if value is None else _signed(value, unit)


def claim_lines(report: Report, costs: CostsPart) -> Iterator[str]:
    """A sentence to quote for each judged arm and each other: both axes, and what they support."""
    judged = {gate.arm for gate in report.gates}
    for arm in costs.arms:
        if arm.arm in judged and arm_named(report, arm.arm).is_withheld:
            word = withheld_word(report, arm_named(report, arm.arm))
            yield f"{arm.arm}: {word}, whatever it cost; it is compared with no other arm"
    for pair in _told_pairs(costs):
        if pair.arm in judged:
            yield claim_words(report, costs, pair)


def claim_words(report: Report, costs: CostsPart, pair: CostPairPart) -> str:
    """One pair in a sentence. No order is claimed that an interval does not support."""
    text = f"{pair.arm}: {_score_words(report, costs, pair)} {_cost_claim(costs, pair)}"
    standing = {
        "dominates": f"dominates {pair.against}",
        "dominated": f"dominated by {pair.against}",
        "trade_off": "a trade-off",
        "unresolved": "unresolved, no order is claimed",
    }[pair.standing]
    return f"{text}: {standing}{_price_suffix(costs)}"


def _score_words(report: Report, costs: CostsPart, pair: CostPairPart) -> str:
    n = report.counts.tasks
    gain = abs(pair.difference)
    is_counted = parse_measure(costs.measure).definition.is_binary
    size = f"{number(round(gain * n, 1), '')} of {n}" if is_counted else f"{gain:.3f}"
    where = f"{pair.against} at {costs.measure}"
    if pair.low > 0 or pair.high < 0:
        return f"{size} {'more' if pair.low > 0 else 'fewer'} than {where},"
    sign = "+" if pair.difference > 0 else "−" if pair.difference < 0 else "±"
    return f"{sign}{size} against {where} (not resolved),"


def _cost_claim(costs: CostsPart, pair: CostPairPart) -> str:
    is_resolved = (pair.cost_low is not None and pair.cost_low > 0) or (
        pair.cost_high is not None and pair.cost_high < 0
    )
    if pair.cost_ratio is None:
        more = _signed(pair.cost_difference, costs.unit)
        text = f"at {more} {costs.unit} a task"
    else:
        text = f"at {_times(pair.cost_ratio)} times the cost"
    is_same = pair.cost_low == pair.cost_high == 0
    return text if is_resolved or is_same else f"{text} (not resolved)"
