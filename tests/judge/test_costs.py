"""The cost axis of a report: tokens kept apart, dated prices, both axes paired."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from coldrun.tasks.config import load_prices
from coldrun.tasks.judge.cost_model import ArmCostPart, CostsPart
from coldrun.tasks.judge.load_run import load_report
from coldrun.tasks.judge.report_model import Report
from coldrun.tasks.judge.spending import add_tokens, price_exactly
from coldrun.tasks.report.cost_document import (
    _times,
    claim_words,
    cost_rows,
    pair_line,
    pair_rows,
    used_rows,
)
from coldrun.tasks.report.run_document import render_markdown
from tests.evaluations import CONFIG, EvaluationLab
from tests.holdouts import WORDS, build_garden
from tests.judge.test_report import printed
from tests.services import SERVICE, Service, run_service

PRICES = """\
date = 2026-11-30
source = "an example"
currency = "USD"

[models."example-model"]
input = 3.0
output = 15.0
cache_read = 0.3
cache_write = 3.75

[models.small]
input = 0.25
output = 2
"""

SPENDER = """
# half of the questions are beyond `direct`; `tool` gets them all, and spends more
def answer(query, plain=answer):
    number = int(re.findall(r"item-(\\d+)", query)[0])
    if "direct" in sys.argv:
        usage = {"model": "small", "input_tokens": 100, "output_tokens": 10 + number}
        return {"items": plain(query)["items"] if number % 2 else [], "usage": usage}
    big = {
        "model": "example-model", "input_tokens": 1000, "output_tokens": 200,
        "cache_read_tokens": 4000, "cache_write_tokens": 500,
    }
    return {**plain(query), "usage": [big, {"model": "small", "input_tokens": 40}]}
"""

ARMS = """\
[prices]
file = "prices.toml"

[[arm]]
name = "direct"
role = "control"
kind = "command"
argv = ["{python}", "{adapter}", "direct"]
adapter = "arm.py"

[[arm]]
name = "tool"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "arm.py"
retries = 1
"""
SPENDING = CONFIG.partition("[[arm]]")[0] + ARMS


def prepare(
    root: Path, *, arm: str = SPENDER, config: str = SPENDING, prices: str = PRICES
) -> EvaluationLab:
    lab = EvaluationLab(root)
    (lab.config.parent / "prices.toml").write_text(prices, encoding="utf-8")
    return lab.prepare(20, arm=arm, config=config)


def costs_of(report: Report) -> CostsPart:
    assert report.costs is not None
    return report.costs


def cost_of(report: Report, name: str) -> ArmCostPart:
    return next(arm for arm in costs_of(report).arms if arm.arm == name)


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> tuple[EvaluationLab, Report]:
    lab = prepare(tmp_path_factory.mktemp("spent"))
    return lab, lab.run().report


def test_costs_are_exact_and_keep_the_kinds_of_tokens_apart(
    spent: tuple[EvaluationLab, Report],
) -> None:
    """Twenty answers, added by hand in decimals: no kind is folded into another."""
    tool = cost_of(spent[1], "tool")

    each = Decimal("0.001") * 3 + Decimal("0.0002") * 15
    each += Decimal("0.004") * Decimal("0.3") + Decimal("0.0005") * Decimal("3.75")
    each += Decimal("0.00004") * Decimal("0.25")
    assert each == Decimal("0.009085")
    assert (tool.spent.cost, tool.cost_per_task) == (float(20 * each), float(each))
    assert tool.spent.tokens.model_dump() == {
        "input": 20 * 1040,
        "output": 20 * 200,
        "cache_read": 20 * 4000,
        "cache_write": 20 * 500,
    }
    assert (tool.spent.attempts, tool.spent.attempts_without_tokens) == (20, 0)
    assert tool.tokens_per_task == 5740
    direct = cost_of(spent[1], "direct")
    calls = [{"input": 100, "output": 10 + number} for number in range(20)]
    assert direct.spent.cost == float(
        price_exactly(add_tokens(calls), {"input": 0.25, "output": 2})
    )
    assert direct.spent.tokens.cache_read is None
    assert direct.cost_per_success == pytest.approx(0.00128 / 10, rel=1e-12)


def test_costs_compare_both_axes_and_claim_what_intervals_support(
    spent: tuple[EvaluationLab, Report],
) -> None:
    """Ten tasks more at 142 times the cost: better and dearer, so neither dominates."""
    report = spent[1]
    (pair,) = costs_of(report).pairs

    assert (pair.arm, pair.against, pair.standing) == ("tool", "direct", "trade_off")
    assert pair.difference == 0.5
    assert pair.cost_difference == pytest.approx(0.009085 - 0.000064, rel=1e-12)
    assert pair.cost_ratio == pytest.approx(0.1817 / 0.00128, rel=1e-12)
    assert (pair.cost_low or 0) < pair.cost_difference < (pair.cost_high or 0)
    assert (pair.low, pair.high) == (
        report.gates[0].compared[0].low,
        report.gates[0].compared[0].high,
    )
    assert [arm.standing for arm in costs_of(report).arms] == ["efficient", "efficient"]
    claim = (
        "tool: 10 of 20 more than direct at exact, at 142 times the cost: a trade-off; prices of"
    )
    for text in (printed(report), render_markdown(report)):
        assert claim in text


def test_every_sum_of_money_stands_beside_its_snapshot(
    spent: tuple[EvaluationLab, Report],
) -> None:
    """Date, source and digest in each line and above each table that holds a price."""
    lab, report = spent
    digest = load_prices(lab.config.parent / "prices.toml").digest
    assert digest is not None
    basis = f"prices of 2026-11-30 (an example, {digest[:19]})"

    for text in (printed(report), render_markdown(report)):
        for line in text.splitlines():
            assert not re.search(r"\d USD", line) or basis in line, line
        assert basis in text
    assert f"- prices `{digest}` of `prices.toml`" in render_markdown(report)


def test_costs_read_back_from_the_warehouse_need_no_file(
    spent: tuple[EvaluationLab, Report], tmp_path: Path
) -> None:
    """The run keeps what the snapshot said; another snapshot prices it anew, and it shows."""
    lab, report = spent
    file = lab.config.parent / "prices.toml"
    text = file.read_text(encoding="utf-8")
    file.unlink()
    again = load_report(lab.warehouse, report.run_id).report
    file.write_text(text, encoding="utf-8")
    same = costs_of(load_report(lab.warehouse, report.run_id, prices=load_prices(file)).report)
    assert same.prices is not None
    assert not same.prices.is_repriced
    other = tmp_path / "later.toml"
    other.write_text(PRICES.replace("2026-11-30", "2026-12-24").replace("3.0", "6.0", 1), "utf-8")

    repriced = load_report(lab.warehouse, report.run_id, prices=load_prices(other)).report

    assert again.costs == report.costs
    prices = costs_of(repriced).prices
    assert prices is not None
    assert (prices.date, prices.is_repriced) == ("2026-12-24", True)
    assert cost_of(repriced, "tool").cost_per_task == float(Decimal("0.012085"))
    assert "not those that the run was started with, sha256:" in printed(repriced)
    done = lab.invoke("report", report.run_id, "--full", "--prices", other)
    assert "prices of 2026-12-24 (an example" in done.stdout
    assert done.returncode == report.exit_code


def test_failed_attempts_are_paid_for_by_the_arm_that_made_them(tmp_path: Path) -> None:
    """A process that dies twice on one question, each time after its model was called."""
    arm = (
        SPENDER
        + """
def answer(query, spend=answer):
    found = spend(query)
    if "direct" not in sys.argv and "item-7 " in query:
        say(type="usage", id="t0007", **found["usage"][0])
        raise SystemExit(1)
    return found
"""
    )
    report = prepare(tmp_path, arm=arm).run().report
    tool = cost_of(report, "tool")

    # item-7 failed twice, both times after the large call; the other nineteen cost 0.009085
    assert tool.spent.attempts == 21
    assert tool.spent.cost == float(19 * Decimal("0.009085") + 2 * Decimal("0.009075"))
    assert tool.retry is not None
    assert (tool.retry.fired, tool.retry.fixed, tool.retry.broke) == (1, 0, 0)
    assert report.counts.infra == 1


def test_failed_answer_that_is_asked_again_was_paid_for_twice(tmp_path: Path) -> None:
    """The view and the counts see both; the second answer is no second call."""
    mended = tmp_path / "mended"
    arm = (
        SPENDER
        + f"""
def answer(query, spend=answer):
    found = spend(query)
    if "direct" not in sys.argv and not os.path.exists({str(mended)!r}):
        say(type="usage", id="t" + re.findall(r"item-(\\d+)", query)[0].zfill(4),
            **found["usage"][0])
        raise SystemExit(1)
    return found
"""
    )
    config = SPENDING.replace("retries = 1\n", "").replace(
        "concurrency = 2", 'concurrency = 2\nmax_infra_share = 1.0\nsandbox = "none"'
    )
    lab = prepare(tmp_path, arm=arm, config=config)
    first = lab.run().report
    mended.touch()
    report = lab.run("resume", resume="last").report
    tool = cost_of(report, "tool")

    assert (first.counts.infra, report.counts.infra) == (20, 0)
    assert tool.spent.attempts == 40
    assert tool.spent.cost == float(20 * (Decimal("0.009085") + Decimal("0.009075")))
    assert tool.retry is None
    assert report.arms[-1].measures["exact"].count == 20
    (view,) = lab.select(
        "SELECT sum(attempts) AS attempts, sum(cost) AS cost FROM answer_costs WHERE arm = 'tool'"
    )
    assert view["attempts"] == 40
    assert view["cost"] == pytest.approx(tool.spent.cost, rel=1e-12)
    again = load_report(lab.warehouse, report.run_id).report.costs
    assert again == report.costs


def test_figures_of_costs_have_no_exponent_and_agree_with_their_nouns(
    spent: tuple[EvaluationLab, Report],
) -> None:
    """`1e+02 times the cost` and `1.23e+03 of 2468 more` are nothing to quote."""
    report, costs = spent[1], costs_of(spent[1])
    words = {99.7: "100", 1234.5: "1,234", 0.00001234: "0.000012", 0.0: "0", 1.5: "1.5"}
    assert {ratio: _times(ratio) for ratio in words} == words

    def of_tasks(tasks: int) -> Report:
        counts = report.counts.model_copy(update={"tasks": tasks})
        return report.model_copy(update={"counts": counts})

    hits = costs.model_copy(update={"measure": "hit@5"})
    claim = claim_words(of_tasks(2468), hits, hits.pairs[0])
    assert claim.startswith("tool: 1,234 of 2468 more than direct at hit@5, at 142 times the cost")
    assert "paired over 1 task;" in pair_line(of_tasks(1), costs)


def test_attempts_from_before_replaced_ones_were_kept_are_readable(tmp_path: Path) -> None:
    """The column is not in older files, nor in the file of no rows beside them."""
    lab = prepare(tmp_path)
    report = lab.run().report
    for path in (lab.warehouse / "attempts").glob("*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns(["was_replaced"]), path)
    for path in (lab.warehouse / "runs").glob("*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns(["files", "digest"]), path)

    assert load_report(lab.warehouse, report.run_id).report.costs == report.costs
    assert lab.run("reuse").report.counts.replayed == 34


def test_replayed_answers_cost_nothing_and_show_what_they_once_did(tmp_path: Path) -> None:
    """The ledger of a run that replays is empty; the configuration costs what it costs."""
    lab = prepare(tmp_path)
    first = lab.run().report
    report = lab.run("reuse").report
    tool = cost_of(report, "tool")

    once = cost_of(first, "tool").spent
    assert 0 < tool.spent.attempts < once.attempts
    assert tool.spent.cost + tool.replayed.cost == pytest.approx(once.cost)
    assert tool.cost_per_task == cost_of(first, "tool").cost_per_task
    assert costs_of(report).pairs == costs_of(first).pairs
    assert "tool: 17 replayed answers cost nothing in this run" in printed(report)
    rows = lab.select(
        "SELECT sum(cost) AS cost, sum(answer_cost) AS once FROM answer_costs "
        "WHERE arm = 'tool' AND run_id = ?",
        report.run_id,
    )
    assert rows[0]["cost"] == pytest.approx(tool.spent.cost)
    assert rows[0]["once"] == pytest.approx(0.1817)


def test_model_without_a_price_has_no_cost_and_the_comparison_is_in_tokens(
    tmp_path: Path,
) -> None:
    """Nothing is guessed: the reason stands there, and tokens still compare."""
    prices = PRICES.partition("cache_write")[0] + "\n[models.small]\ninput = 0.25\noutput = 2\n"
    report = prepare(tmp_path, prices=prices).run().report
    costs, tool = costs_of(report), cost_of(report, "tool")

    assert (tool.spent.cost, tool.cost_per_task) == (None, None)
    assert tool.unpriced == "no price for cache_write tokens of example-model"
    assert cost_of(report, "direct").spent.cost == 0.00128
    assert (costs.unit, costs.reason) == ("tokens", f"tool: {tool.unpriced}")
    assert costs.pairs[0].cost_difference == 5740 - 119.5
    assert f"tool: no cost in USD, {tool.unpriced}" in printed(report)
    assert "at 48 times the cost: a trade-off" in printed(report)


def test_attempts_that_do_not_say_what_they_used_make_a_lower_bound(tmp_path: Path) -> None:
    """An arm that is silent half of the time may cost anything: it is never called cheaper."""
    arm = (
        SPENDER
        + """
def answer(query, spend=answer):
    found = spend(query)
    if "direct" not in sys.argv:
        found["usage"] = found["usage"][:0] if "5 " in query else {
            "model": "small", "input_tokens": 1}
    return found
"""
    )
    report = prepare(tmp_path, arm=arm).run().report
    (pair,) = costs_of(report).pairs

    assert cost_of(report, "tool").spent.attempts_without_tokens == 2
    assert (pair.cost_high, pair.cost_ratio, pair.standing) == (None, None, "unresolved")
    assert pair.cost_difference < 0
    assert "tool: 2 of 20 attempts did not say what they used" in printed(report)


def test_run_without_tokens_says_nothing_of_cost(tmp_path: Path) -> None:
    """No model, no axis: not a line more than before, with prices or without."""
    lab = prepare(tmp_path, arm="")
    report = lab.run().report

    assert report.costs is None
    assert json.loads(report.to_json())["costs"] is None
    assert "cost" not in printed(report)
    assert "cost" not in render_markdown(report)


def test_run_from_before_prices_were_kept_is_reported_in_tokens(tmp_path: Path) -> None:
    """Old rows have no prices in their manifest; what they used is in them all the same."""
    lab = prepare(tmp_path, config=SPENDING.replace('[prices]\nfile = "prices.toml"\n', ""))
    report = lab.run().report
    manifest = json.loads(lab.select("SELECT manifest FROM runs")[0]["manifest"])

    assert "prices" not in manifest["config"]
    assert (costs_of(report).unit, costs_of(report).prices) == ("tokens", None)
    assert cost_of(report, "tool").spent.cost is None
    text = printed(report)
    assert "what that comes to (no prices are configured)" in text
    assert "USD" not in text
    priced = load_report(
        lab.warehouse, "last", prices=load_prices(lab.config.parent / "prices.toml")
    ).report
    assert cost_of(priced, "tool").spent.cost == 0.1817
    assert "the run was started without any" in printed(priced)


NOTHING = """
def answer(query, spend=answer):
    return {**spend(query), "items": []} if "direct" not in sys.argv else spend(query)
"""
SLOW = "\n[measure]\nminimum_seconds_per_answer = 30\n"


@pytest.mark.parametrize(
    ("arm", "settings", "verdict"),
    [(SPENDER + NOTHING, "", "measured_nothing"), (SPENDER, SLOW, "did_not_run")],
)
def test_arm_without_a_measurement_has_a_ledger_and_no_comparison(
    tmp_path: Path, arm: str, settings: str, verdict: str
) -> None:
    """What it cost is a fact; what it was worth is withheld."""
    report = prepare(tmp_path, arm=arm, config=SPENDING + settings).run().report

    assert report.verdict == verdict
    assert (costs_of(report).pairs, cost_of(report, "tool").standing) == ([], None)
    assert cost_of(report, "tool").spent.cost == 0.1817
    if verdict == "measured_nothing":
        assert cost_of(report, "tool").score_per_cost is None
        assert "tool: ** measured nothing **, whatever it cost" in printed(report)


MODEL = SERVICE.replace(
    "def answer(handler, data):",
    """def answer(handler, data):
    if "messages" in data:
        first, *later = data["messages"]
        word = re.findall(r"Water the (\\w+)", first["content"])[0]
        right = json.dumps([f"beds/{word}.py"])
        text = {0: right, 1: "" if not later else right, 2: "cannot tell"}[len(word) % 3]
        usage = {"prompt_tokens": 80 if later else 50, "completion_tokens": 5}
        usage["prompt_tokens_details"] = {"cached_tokens": 30 if later else 0}
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"model": "example-model", "choices": [choice], "usage": usage}
    return {"results": []}


def unused(handler, data):""",
)
"""A model that knows, needs a second call, or never knows: by the length of the word."""

CHAT = """\
[panel]
kind = "commit-files"
repo = "{repo}"
base = "{base}"
head = "main"

[measure]
primary = "hit@1"
also = ["hit@5"]

[run]
max_infra_share = 1

[prices]
file = "prices.toml"

[[arm]]
name = "grep"
role = "floor"
kind = "grep"

[[arm]]
name = "direct"
role = "control"
kind = "chat"
url = "{url}/v1"
model = "example"
prompt = "{{query}}"

[[arm]]
name = "retry"
kind = "chat"
url = "{url}/v1"
model = "example"
prompt = "{{query}}"
retry = "once"
retry_prompt = "Name a file."
failure_signal = "cannot tell"
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(tmp_path_factory.mktemp("service"), MODEL) as found:
        yield found


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory, service: Service) -> Report:
    root = tmp_path_factory.mktemp("chats")
    base = build_garden(root / "garden", commits=34)
    lab = EvaluationLab(root)
    (lab.config.parent / "prices.toml").write_text(PRICES, encoding="utf-8")
    lab.write(CHAT.format(repo=root / "garden", base=base, url=service.url))
    lab.freeze()
    return lab.run().report


def test_second_calls_are_accounted_for(chats: Report) -> None:
    """How often it fired, what it cost when it fired, whether it fixed the task.

    The server counts cached tokens in the prompt; the ledger does not.
    """
    kinds = [len(word) % 3 for word in WORDS[:34]]
    once, twice, never = kinds.count(0), kinds.count(1), kinds.count(2)
    spent, retry = cost_of(chats, "retry").spent, cost_of(chats, "retry").retry
    assert retry is not None

    assert (retry.answers, retry.fired) == (34, twice + never)
    assert (retry.fixed, retry.broke) == (twice, 0)
    assert retry.first_pass == pytest.approx(once / 34)
    assert retry.final == pytest.approx((once + twice) / 34)
    assert (retry.signal_recall, retry.signal_precision) == (1.0, 1.0)
    again = Decimal(50) * 3 + Decimal(30) * Decimal("0.3") + Decimal(5) * 15
    assert retry.cost == pytest.approx(float((twice + never) * again / 1_000_000), rel=1e-12)
    assert retry.cost_per_net_fix == pytest.approx(retry.cost / twice, rel=1e-12)
    assert spent.tokens.input == 34 * 50 + retry.fired * 50
    assert spent.tokens.cache_read == retry.fired * 30
    assert spent.attempts == 34 + retry.fired
    assert cost_of(chats, "direct").retry is None
    assert f"retry: a second call on {twice + never} of 34 answers" in printed(chats)
    assert f"it fixed {twice} and broke 0 at hit@1" in printed(chats)


def test_built_in_arm_costs_nothing_and_stands_on_the_same_axes(chats: Report) -> None:
    """The cheapest alternative is there: a search without a model, at no cost."""
    grep = cost_of(chats, "grep")
    assert (grep.spent.cost, grep.cost_per_task, grep.tokens_per_task) == (0.0, 0.0, 0.0)
    assert grep.standing == "efficient"
    assert cost_of(chats, "retry").standing == "dominated"
    pairs = {(pair.arm, pair.against): pair for pair in costs_of(chats).pairs}
    assert set(pairs) == {("retry", "grep"), ("retry", "direct"), ("direct", "grep")}
    assert pairs["retry", "grep"].cost_ratio is None
    assert costs_of(chats).confidence == pytest.approx(0.975)
    assert Report.model_validate_json(chats.to_json()).costs == chats.costs


def test_cost_tables_fit_eighty_columns(chats: Report) -> None:
    """Cells break between words on a narrow terminal; no number is cut in two."""
    text = printed(chats, width=80)
    tables = text[text.index("what the arms used") : text.index("retry: 13 of 34 fewer")]

    cells = [cell for row in pair_rows(chats, costs_of(chats)) for cell in row.values()]
    cells += [cell for row in used_rows(costs_of(chats)) for cell in row.values()]
    cells += [cell for row in cost_rows(costs_of(chats)) for cell in row.values()]
    words = tables.split()
    assert all(word in words for cell in cells for word in cell.split())
