"""What a configuration must fulfil before anything is frozen or run."""

from __future__ import annotations

from pathlib import Path

import pytest

from coldrun.tasks.config import load_config, parse_config
from coldrun.tasks.freeze.check_config import check_config
from coldrun.tasks.lib.errors import ConfigError
from tests.evaluations import CONFIG, EvaluationLab

SETS = {"panel": {"kind": "jsonl", "file": "tasks.jsonl", "answer": "set"}}
RANKINGS = {"panel": {"kind": "jsonl", "file": "tasks.jsonl"}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SETS | {"measure": {"primary": "hit@5"}}, "'hit@5' does not score answers that are a set"),
        (RANKINGS | {"measure": {"primary": "exact"}}, "use hit@5, mrr@8, ndcg@10"),
        (SETS | {"measure": {"primary": "recall"}}, "use f1 or exact, and keep recall in also"),
        (SETS | {"measure": {"primary": "exakt"}}, "exakt"),
        (SETS | {"measure": {"also": ["f2"]}}, "f2"),
        (
            SETS | {"bar": [{"arm": "bm52", "measure": "exact", "at_least": 0.1}]},
            "bar.arm = 'bm52' names nothing in this configuration; did you mean 'bm25'",
        ),
        (
            SETS | {"bar": [{"arm": "bm25", "measure": "hit@5", "at_least": 0.1}]},
            "bar.measure = 'hit@5' names nothing in this configuration; known are exact",
        ),
        (
            SETS | {"bar": [{"arm": "bm25", "measure": "exact", "against": "constnat"}]},
            "did you mean 'constant'",
        ),
        (
            {"panel": SETS["panel"] | {"unit": "merge"}},
            "panel.unit decides nothing where kind = .jsonl., only where it is .commit-files.",
        ),
        (
            {"panel": {"kind": "ticket-repos", "repos": ["a"], "exclude_gold": ["b"]}},
            "panel.exclude_gold decides nothing where kind = .ticket-repos.",
        ),
        (
            {"panel": {"kind": "ticket-repos", "repos": ["a"], "keep_unnamed_tickets": True}},
            "panel.keep_unnamed_tickets needs `tickets`",
        ),
        (
            SETS | {"arm": [{"name": "t", "kind": "command", "argv": ["t"], "cwd": "{corpus}"}]},
            "arm 't': cwd = '{corpus}', but the panel has no corpus",
        ),
        (SETS | {"holdout": {"arms": ["grepp"]}}, "did you mean 'grep'"),
        (SETS | {"holdout": {"aggregates": ["exat"]}}, "did you mean 'exact'"),
    ],
)
def test_check_config_names_the_key_and_what_would_do(
    data: dict[str, object], message: str
) -> None:
    """A measure or a bar that cannot work is refused before anything is frozen."""
    with pytest.raises(ConfigError, match=message):
        check_config(parse_config(data))


def test_check_config_accepts_bars_against_arms_and_nulls() -> None:
    """Everything that a report has a line for can be a reference."""
    bars = [
        {"arm": "bm25", "measure": "exact", "against": name, "margin_tasks": 1}
        for name in ("grep", "constant", "everything", "permuted")
    ]
    check_config(parse_config(SETS | {"bar": bars}))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[sample]", "[sampel]", "unknown key `sampel`; did you mean `sample`"),
        ("rule =", "rulle =", "unknown key `sample.rulle`; did you mean `rule`"),
        ("adapter =", "adaptor =", r"unknown key `arm\[0\].adaptor`; did you mean `adapter`"),
        ("answer =", "zzzzzz =", "unknown key `panel.zzzzzz`; known keys: answer, base"),
        ('kind = "command"', 'kind = "comand"', "kind 'comand' is not one of grep, bm25, hist"),
        ('kind = "command"', "", r"`arm\[0\]` needs a `kind`: grep, bm25, history, command, mcp"),
        ('name = "reader"', "", r"`arm\[0\].name` is missing"),
        ('name = "reader"', 'name = "constant"', "'constant' is the name of a null strategy"),
        ("concurrency = 2", "concurrency = 0", "`run.concurrency`: .* found 0"),
        ('file = "tasks.jsonl"', "", "needs `file`"),
        ('rule = "all"', 'rule = "all', "is not valid TOML"),
    ],
)
def test_load_config_that_cannot_be_used_is_one_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """The key, the nearest known one, and nothing of a traceback."""
    lab = EvaluationLab(tmp_path)
    lab.write(CONFIG.replace(old, new, 1))

    with pytest.raises(ConfigError, match=message) as caught:
        load_config(lab.config)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_load_config_as_windows_writes_it_is_the_same_configuration(
    tmp_path: Path, mark: bytes
) -> None:
    """TOML allows CRLF, and some editors write it, or put a byte order mark before it."""
    lab = EvaluationLab(tmp_path)
    lab.write()
    before = load_config(lab.config)
    lab.config.write_bytes(mark + CONFIG.replace("\n", "\r\n").encode())

    assert load_config(lab.config) == before


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"\xff\xfe", "is not UTF-8"), (None, "is a folder"), (b"", "`panel` is missing")],
)
def test_load_config_that_cannot_be_read_says_why(
    tmp_path: Path, data: bytes | None, message: str
) -> None:
    """UTF-16, a folder, an empty file."""
    path = tmp_path / "x.toml"
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)

    with pytest.raises(ConfigError, match=message):
        load_config(path)
    with pytest.raises(ConfigError, match="no configuration at"):
        load_config(tmp_path / "y.toml")
