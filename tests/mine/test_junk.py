"""Messages that ask nothing, and messages that look like them and must stay."""

from __future__ import annotations

import pytest

from coldrun.tasks.lib.records import JUNK_REASONS
from coldrun.tasks.mine.junk import count_words, find_junk

JUNK = {
    "version_bump": [
        "v2.34.2",
        "- 2.0.19",
        "2.1.0b4",
        "Release 8.4.0",
        "release version 8.1.7",
        "start version 8.2.0",
        "Version 2.0.21 placeholder",
        "Bump version to 8.4.dev",
        "chore(release): 1.2.3",
        "Prepare release",
        "Bump version and add release notes for v2.32.4\n\nWith a body.",
        "Release Flask 2.0.1",
    ],
    "dependency_update": [
        "update dev requirements",
        "Update dependencies",
        "[pre-commit.ci] pre-commit autoupdate\n\nupdates: a lot of them",
        "Bump actions/setup-python from 4.6.1 to 4.7.0",
        "build(deps): bump the actions group from 1.0 to 2.0",
        "Update black to 24.1.1",
        "upgrade to pytest-httpbin 2.1.0 final",
        "add codespell pre-commit hook",
        "bump black, flake8",
    ],
    "revert": [
        'Revert "Use `default=True` as a sentinel for flags"\n\nThis reverts commit.',
        'Revert "Use a sentinel for non-boolean flags"',
        'Revert "Revert "Keep the parser newlines""\n\nThis reverts commit 12ab34cd.',
    ],
    "few_words": [
        "fix",
        "Fix typo",
        "Apply suggestions from code review",
        "Update docs/user/advanced.rst",
        "Update models.py",
        "more edits",
        "Fix typo in docs",
        "use uv",
        "s/a/b/",
    ],
}
STAYS = {
    "version_bump": [
        "Drop support for Python 3.7",
        "Add `@custom_version_option`, freeze `@version_option`",
        "Release the connection when the pool is full",
        "Fix release 2.0 packaging of the wheels",
        "Consider urllib3 version has 3 numbers at most",
        "Start testing Python 3.15 Alpha",
    ],
    "dependency_update": [
        "Update dependency injection of request handlers",
        "sessions: fix hooks type annotation",
        "Pin the objects that the cache hands out",
        "Increase chardet upper limit to 8",
        "Lock the file before the requirements parser reads it",
    ],
    "revert": [
        'Revert "Use a sentinel for flags"\n\nIt broke the parsing of empty values.',
        "Revert caching a default SSLContext",
    ],
    "few_words": [
        "Streamline option flag management",
        "deprecate MultiCommand class",
        "should_strip_ansi fails",
        "Fix it\n\nThe pager closed its stream before the writer was done.",
        "Update README.md\n\nNames the environment variables that the pager reads.",
        "修复 разбор строки ανάλυση",
    ],
}


@pytest.mark.parametrize("reason", JUNK_REASONS)
def test_find_junk_of_every_kind_is_found(reason):
    """Each message goes, for its own reason."""
    assert {message: find_junk(message) for message in JUNK[reason]} == dict.fromkeys(
        JUNK[reason], reason
    )


@pytest.mark.parametrize("reason", JUNK_REASONS)
def test_find_junk_what_only_looks_like_it_stays(reason):
    """Each message asks for something."""
    assert {message: find_junk(message) for message in STAYS[reason]} == dict.fromkeys(
        STAYS[reason]
    )


def test_count_words_identifiers_count_by_their_parts_and_repeats_once():
    """Common words of commits, single letters and digits do not count."""
    assert count_words("Fix getHTTPError: get_http_error(x, 2) is in HTTP") == 3
    assert count_words("") == 0
