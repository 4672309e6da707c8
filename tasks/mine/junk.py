"""Messages that ask nothing: a search could not answer them, however good it is. Pure.

Each kind is a drop reason that `[panel] drop` names, and is looked for in the subject:

- `version_bump`: only words of releasing and version numbers ("v2.1", "Prepare release 2.1").
- `dependency_update`: only words of dependencies and of git hooks, or "Bump X from 1 to 2".
- `revert`: git's own text for undoing a commit, without a reason of one's own.
- `few_words`: fewer than three different words, apart from those that any commit may have, or the
  text that a web editor proposes ("Update README.md").
"""

from __future__ import annotations

import re

from coldrun.tasks.lib.records import JunkReason
from coldrun.tasks.lib.tokens import STOP_WORDS

FEWEST_WORDS = 3

_PREFIX = re.compile(
    r"^(?:[-*#>]+ *|\[[\w .-]+\] *|(?:build|chore|ci|deps|release)(?:\(.*?\))?!?: *)+"
)
_VERSION = re.compile(r"v?\d+(?:\.(?:\d+|x))+[\w.+-]*|v\d+\w*|\d+(?:a|b|rc|dev)\d*", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['.-][^\W_]+)*")
_RELEASE_WORDS = frozenset(
    """
    a add after alpha and back begin beta bump bumped bumping bumps candidate changelog cut dev
    development dot final finalise finalize first for from in is last major mark minor new next
    notes now number numbers of official open package patch placeholder point post pre preparation
    prepare prepared preparing publish publishing rc ready release released releases releasing set
    snapshot stable start starting switch tag test the this to towards up update updated version
    versions
    """.split()  # noqa: SIM905  a word list reads better than a hundred quoted lines
)
_RELEASE_VERB = re.compile(
    r"\b(?:bump\w*|releas\w+|prepar\w+|publish\w*|versions?|(?P<weak>cut|start\w*|begin|tag|set|mark))\b",
    re.IGNORECASE,
)
_DEPENDENCY_WORDS = frozenset(
    """
    a action actions add added adding all and auto autoupdate build bump bumped bumping bumps ci
    commit config configuration constraint constraints dep dependencies dependency deps dev docs
    environment file files fix for freeze from gha github hook hooks in increase into latest
    lint linter linters linting lock locked lockfile lower lowest minimum newer of our pin
    pinned pinning pins pip pip-compile pip-compile-multi pip-tools pre pre-commit precommit
    python raise refresh remove requirement requirements run sync test testing tests the to tool
    tooling tools tox typing unpin unpinned up update updated updates updating upgrade upgraded
    upgrades upgrading use using version versions via with
    """.split()  # noqa: SIM905
)
_DEPENDENCY_NOUN = re.compile(
    r"\b(?:(?P<certain>pre[- ]?commit|(?:github|gha) actions?|gha)|dep(?:endenc(?:y|ies)|s)?"
    r"|requirements?|hooks?|lock ?files?|pins?|constraints)\b",
    re.IGNORECASE,
)
_BUMP = re.compile(
    r"(?:auto)?(?:bump|update|upgrade|pin|downgrade)(?:d|s|ed|ing)?(?: (?:the|to|dependency|version"
    r"|of|group|package))* (?:\S+ ){1,2}?(?:(?:requirement|version|hook|action|group|pin) )?"
    r"(?:from \S+ )?(?:to|in /?\S* to) \S*\d\S*(?: final| in \S+)?"
    r"|(?:update|upgrade|bump)(?:d|ed|ing|s)? to \S+ v?\d\S*(?: final)?",
    re.IGNORECASE,
)
_BUMP_NAMES = re.compile(
    r"(?:auto)?bump(?:s|ed|ing)? [\w./-]+(?:(?:,| and|, and) [\w./-]+)*", re.IGNORECASE
)
_REVERT = re.compile(r"(?:(?:Revert|Reapply|Undo) +\")+[^\n]*\"")
_REVERT_NOTE = re.compile(
    r"(?:This reverts (?:commit|merge request|pull request)?|,? ?reversing\s+changes made to)"
    r"[ \t]*\S*[.,]?[ \t]*"
)
_WEB_EDIT = re.compile(r"(?:Update|Create|Delete|Rename|Add files via) (?:\S+\.\w+|\S*/\S+|upload)")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
_COMMON_WORDS = STOP_WORDS | frozenset(
    """
    accidental add added adding additional adds adjust adjusted adjustments amend another apply
    applied attempt better bit bug bugfix bugs change changed changes changing chore clean cleaned
    cleaning cleanup cleanups comment comments commit corrected correct correction corrections
    couple cs details edits feat feature feedback few final fix fixed fixes fixing fixup forgot
    format formatting further grammar hopefully improve improved improvement improvements initial
    issue issues lint linter linting little make makes making merge minor misc missed missing
    mistake move moved nit nits oops ops please polish pr problem problems pull quick really redo
    refactor refactored refactoring remove removed removes removing rename renamed request requested
    review revise rework reword rewording rewrite s simplify slight small solve some spacing
    spelling stuff style suggestion suggestions t temporary thing things tidy try tweak tweaks
    typo typos unneeded unused up update updated updates updating use used using various whitespace
    whoops wip wording words work works wrong
    """.split()  # noqa: SIM905
)


def find_junk(query: str) -> JunkReason | None:
    """Why a query asks nothing: one of `JUNK_REASONS`, the first that holds, or None.

    Args:
        query: A commit's message, cleaned.
    """
    subject, _, body = query.partition("\n")
    bare = _PREFIX.sub("", subject, count=1).strip(" .:;!")
    if _is_version_bump(bare):
        return "version_bump"
    if _is_dependency_update(bare):
        return "dependency_update"
    reverted = _REVERT.match(query)
    if reverted and not _REVERT_NOTE.sub("", query[reverted.end() :]).strip():
        return "revert"
    is_proposed = _WEB_EDIT.fullmatch(subject) is not None and not body.strip()
    return "few_words" if is_proposed or count_words(query) < FEWEST_WORDS else None


def count_words(text: str) -> int:
    """How many different words a text has, apart from those that any commit may have.

    Identifiers count by their parts, single letters and digits not at all.
    """
    words = {piece.lower() for piece in _PIECE.findall(text)}
    return sum(len(word) > 1 and word not in _COMMON_WORDS for word in words)


def _is_version_bump(subject: str) -> bool:
    rest, versions = _VERSION.subn(" ", subject)
    words = [word.lower() for word in _WORD.findall(rest)]
    if not words:
        return versions > 0
    unknown = sum(word not in _RELEASE_WORDS for word in words)
    verb = _RELEASE_VERB.search(rest)
    if verb is None:
        return False
    if versions:  # one unknown word may be the project's name
        return unknown == 0 or (unknown == 1 and not verb["weak"])
    return unknown == 0 and not {"release", "version"}.isdisjoint(words)


def _is_dependency_update(subject: str) -> bool:
    if _BUMP.fullmatch(subject) or _BUMP_NAMES.fullmatch(subject):
        return True
    noun = _DEPENDENCY_NOUN.search(subject)
    if noun is None:
        return False
    words = [word.lower() for word in _WORD.findall(_VERSION.sub(" ", subject))]
    return sum(word not in _DEPENDENCY_WORDS for word in words) <= bool(noun["certain"])
