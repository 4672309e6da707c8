"""The snapshot of prices: read strictly, dated, and no part of what identifies a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coldrun.tasks.config import load_prices
from coldrun.tasks.lib.canonical import digest_bytes
from coldrun.tasks.lib.errors import ConfigError
from tests.judge.test_costs import PRICES, prepare

WRONG = {
    "date": (PRICES.replace("date = 2026-11-30\n", ""), "`date` is missing"),
    "number": (
        PRICES.replace("2026-11-30", "20261130"),
        "`date`: 20261130 is no date; write it as",
    ),
    "source": (PRICES.replace('"an example"', '""'), "`source`: string should have at least 1"),
    "currency": (PRICES.replace('"USD"', '"$"'), r"`currency`: string should match pattern"),
    "key": (PRICES.replace("cache_read", "cache_reads"), "did you mean `cache_read`?"),
    "top": (PRICES.replace("source", "sources"), "did you mean `source`?"),
    "negative": (
        PRICES.replace("15.0", "-15.0"),
        r"`models.example-model.output`: input should be greater than or equal to 0, found -15.0",
    ),
    "infinite": (PRICES.replace("15.0", "inf"), "should be a finite number"),
    "toml": ("date = ", "is not valid TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_prices_that_are_wrong_are_refused_in_one_line(tmp_path: Path, case: str) -> None:
    """The file is named, and what to write instead."""
    text, message = WRONG[case]
    file = tmp_path / "prices.toml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError, match=re.escape(message)) as raised:
        load_prices(file)

    assert str(raised.value).startswith(str(file))


def test_prices_that_are_not_there_stop_a_run_before_anything_is_asked(tmp_path: Path) -> None:
    """A typing error in a file's name costs no tokens."""
    lab = prepare(tmp_path)
    (lab.config.parent / "prices.toml").unlink()

    done = lab.invoke("run", lab.config)

    assert done.returncode == 2
    assert "no prices at" in done.stderr
    assert lab.select("SELECT * FROM captures") == []


def test_prices_keep_the_digest_of_the_bytes_of_their_file(tmp_path: Path) -> None:
    """`sha256sum` says the same; 0 is a price, and no price is none."""
    file = tmp_path / "prices.toml"
    file.write_text(PRICES.replace("input = 0.25", "input = 0"), encoding="utf-8")

    found = load_prices(file)

    assert found.digest == digest_bytes(file.read_bytes())
    assert found.snapshot is not None
    assert found.snapshot.models["small"].by_kind() == {"input": 0.0, "output": 2.0}


def test_prices_are_part_of_no_lock_and_of_no_key(tmp_path: Path) -> None:
    """Other prices, or none: the same panel, and the same answers may be reused."""
    lab = prepare(tmp_path)
    lock = lab.files.lock.read_bytes()
    started = lab.start()
    before = {ask.key for arm in started.run.arms for ask in arm.asks}
    started.abandon()

    lab.write(lab.config.read_text().replace('[prices]\nfile = "prices.toml"\n', ""))
    again = lab.start()
    after = {ask.key for arm in again.run.arms for ask in arm.asks}
    again.abandon()

    assert after == before
    lab.freeze()
    assert lab.files.lock.read_bytes() == lock


def test_example_of_the_page_about_reports_is_a_snapshot(tmp_path: Path) -> None:
    """What people copy from it is accepted as it is, and names no real model."""
    page = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(# prices/.*?)^```", page, re.DOTALL | re.MULTILINE)
    file = tmp_path / "prices.toml"
    file.write_text(example, encoding="utf-8")

    found = load_prices(file).snapshot

    assert found is not None
    assert list(found.models) == ["example-model"]
    assert len(found.models["example-model"].by_kind()) == 4
