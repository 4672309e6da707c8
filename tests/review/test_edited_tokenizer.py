"""A cold run counts tokens with the tokenizer that is there, not with an earlier one's counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from coldrun.tasks.arms.builtin import token_cache
from coldrun.tasks.lib import tokens


def test_token_counts_are_kept_by_the_source_of_the_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version may be forgotten: the counts of an edited tokenizer are others all the same."""
    before = token_cache.TokenCache(tmp_path).path
    assert token_cache.TokenCache(tmp_path).path == before
    edited = tmp_path / "tokens.py"
    edited.write_bytes(Path(tokens.__file__ or "").read_bytes() + b"# another\n")
    monkeypatch.setattr(tokens, "__file__", str(edited))
    token_cache._source_digest.cache_clear()
    try:
        assert token_cache.TokenCache(tmp_path).path != before
    finally:
        token_cache._source_digest.cache_clear()
