"""What a commit message asks, without what only the tooling wrote.

The rules, in order:

1. The text is UTF-8 (undecodable bytes become U+FFFD), lines end in LF, no trailing blanks.
2. Merge boilerplate in the first line goes; the title of a pull request stays
   (`split_merge_title` has the forms).
3. Lists of conflicts ("Conflicts:", "# Conflicts:" and the lines below that name files) go.
4. Lines that tools add anywhere go: cherry-pick notes, git-svn-id and the like, and, after the
   first line, trailers that name people or changes (Signed-off-by, Co-authored-by, Change-Id, …).
5. Last paragraphs that consist of trailer lines alone go, as long as one of them is a usual
   trailer or has a hyphen ("Fixes: #12", "Closes-Bug: 7"): "Note: …" is prose and stays.
6. HTML comments that fill whole lines go: they are the instructions of pull-request templates.
7. What names the change itself goes: numbers of issues and pull requests ("(#12)", "Fixes #12."),
   their addresses, and commit names. An arm with a network could look the answer up there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_REQUEST_TITLES = tuple(
    re.compile(pattern)
    for pattern in (
        r"Merge pull request #\d+ (?:from|in) .*(?P<title>)",
        r"Pull request #\d+: *(?P<title>.*)",
        r"Merged? PR #?\d+: *(?P<title>.*)",
        r"Merged in \S+ \(pull request #\d+\)(?P<title>)",
        r"Merge \"(?P<title>.+)\"(?: into \S+)?",
        r"Merge(?: #\d+)+(?P<title>)",
        r"Auto merge of #\d+.*(?P<title>)",
    )
)
_BRANCH_MERGE = re.compile(
    r"Merge (?P<remote>remote-tracking )?(?:branch(?:es)?|tags?|commits?) +(?P<source>.*?)"
    r"(?P<url> of \S+)?(?: into (?P<target>\S+))?"
    r"|Merge (?P<bare_source>\S+) into (?P<bare_target>\S+)"
)
_LONG_LIVED = re.compile(
    r"(?:(?:origin|upstream)/)?"
    r"(?:main|master|trunk|dev|devel|develop|development|default|stable|next|staging|production"
    r"|(?:rel|release|releases|maint|maintenance|stable)[-/_].*|v?\d+(?:\.(?:\d+|x))+|v?\d+\.x)"
)
_SEE_REQUEST = re.compile(r"^See merge request .*$\n?", re.MULTILINE)

_CONFLICTS = re.compile(r"#? ?Conflicts?:$", re.IGNORECASE)
_TOOL_LINE = re.compile(
    r"\((?:cherry[- ]picked|backported|grafted|rebased) from .*\)?$"
    r"|(?:git-svn-id|git-p4|former-commit-id|git-subtree-[a-z]+|svn path):?[ =].*$",
    re.IGNORECASE,
)
_PEOPLE_LINE = re.compile(
    r"(?:(?:signed-off|co-authored|co-developed|reviewed|acked|tested|reported|suggested|helped"
    r"|approved|originally|committed|authored)-by|change-id|reviewed-on|pick-to) *:",
    re.IGNORECASE,
)
_TRAILER = re.compile(r"(?P<token>[A-Za-z0-9][A-Za-z0-9-]*)[ \t]*:(?!//)[ \t]*\S")
_USUAL_TOKENS = frozenset(
    {
        *("bug", "bugs", "cc", "closes", "fix", "fixes", "issue", "issues", "jira", "link", "pr"),
        *("ref", "reference", "references", "refs", "related", "resolves", "reviewers", "see"),
        *("task", "ticket", "tickets", "url"),
    }
)
_TEMPLATE_NOTE = re.compile(r"^[ \t]*<!--.*?-->[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_RULE_LINE = re.compile(r"[-=_*]{3,}$")
_NUMBER = r"(?:(?<![\w&/])[\w.-]+/[\w.-]+#|(?<![\w&])#+|\bgh-)\d+\b"
_ADDRESS = (
    r"https?://\S+/(?:pull|pulls|issues?|commits?|compare|merge_requests|pull-requests|tickets?|c"
    r"|browse|bugs?|show_bug\.cgi\?id=)[/=]?[\w./#-]*[\w#/]"
)
_SAID_OF = (
    r"(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?|ref(?:erence)?s?|see(?: also)?|relate[sd](?: to)?"
    r"|address(?:es|ed)?|part of|follow[- ]?up (?:to|of|from|on)|issues?|bugs?|tickets?|prs?"
    r"|pull[- ]requests?|merge[- ]requests?|in|from|by|for|of|since)"
)
_REFERENCES = re.compile(
    rf"[(\[]?(?:\b{_SAID_OF}[ :-]*)*(?:{_NUMBER}|{_ADDRESS})"
    rf"(?:(?:,? and |,? & |, ?| |/)(?:{_NUMBER}|{_ADDRESS}))*[)\]]?"
    rf"|(?:\b{_SAID_OF}[ :-]*)*\b(?:issue|bug|ticket|pr|pull request)s? \d{{2,}}\b",
    re.IGNORECASE,
)
_COMMIT_NAME = re.compile(
    r"(?:\b(?:in|by|from|of|since|commits?|revision) )*"
    r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b"
)
_LEFT_OVER = re.compile(r"\W*(?:and|\w*)\W*(?:commit\W*)?")


@dataclass(frozen=True, slots=True)
class MergeTitle:
    """A message without merge boilerplate.

    `is_sync` says that the merge brought a branch up to date instead of bringing in work;
    `source` is the merged branch, where the boilerplate names it.
    """

    text: str
    is_sync: bool
    source: str


def clean_message(message: bytes, *, subject_only: bool = False) -> str:
    """The query of a commit message, by the rules of this module; empty when nothing is left."""
    text = split_merge_title(decode_message(message)).text
    return clean_text(text, subject_only=subject_only)


def decode_message(message: bytes) -> str:
    """The text of a message with LF line ends and nothing around it."""
    text = message.decode("utf-8", "replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.strip()


def split_merge_title(text: str) -> MergeTitle:
    """Take merge boilerplate off a message.

    The forms of GitHub, GitLab, Bitbucket, Azure, Gerrit and bors are pull requests: their title
    stays. "Merge branch 'x'" is a pull request when "See merge request" follows. It is a sync
    when it merges a remote-tracking branch, a branch from a URL or a long-lived branch (main,
    develop, 8.1.x, release/…), or when nothing else is said.
    """
    if text[:1] not in "MPA" or not text.startswith(("Merge", "Pull request", "Auto merge")):
        return MergeTitle(text, False, "")
    first, _, rest = text.partition("\n")
    for pattern in _REQUEST_TITLES:
        if match := pattern.fullmatch(first):
            title = match["title"]
            return MergeTitle(f"{title}\n{rest}" if title else rest.strip(), False, first)
    match = _BRANCH_MERGE.fullmatch(first)
    if match is None:
        return MergeTitle(text, False, "")
    said, requests = _SEE_REQUEST.subn("", rest)
    said = said.strip()
    source = (match["source"] or match["bare_source"] or "").strip("'\"")
    if requests:
        return MergeTitle(said, False, source)
    is_sync = (
        match["remote"] is not None
        or match["url"] is not None
        or _LONG_LIVED.fullmatch(source) is not None
        or said.startswith(f"* {source}:")  # git's own list of what was merged
        or not clean_text(said)
    )
    return MergeTitle(said, is_sync, source)


def clean_text(text: str, *, subject_only: bool = False) -> str:
    """Rules 3 to 7 on a message that has no merge boilerplate."""
    return _without_references(_without_tooling(text, subject_only=subject_only))


def _without_references(text: str) -> str:
    """Rule 7. A line of which no more than a word is left goes whole."""
    lines: list[str] = []
    for line in text.split("\n"):
        rest = _COMMIT_NAME.sub("", _REFERENCES.sub("", line))
        if rest == line:
            lines.append(line)
        elif not _LEFT_OVER.fullmatch(rest):
            rest = re.sub(r" +(?=[.,:;)]|$)", "", re.sub(r"(?<=\S)  +", " ", rest))
            lines.append(re.sub(r"^[\s.,:;-]+", "", rest) if line[:1] not in " -*" else rest)
    return "\n".join(lines).strip()


def _without_tooling(text: str, *, subject_only: bool) -> str:
    if "<!--" in text:
        text = _TEMPLATE_NOTE.sub("", text).strip()
    if "\n" not in text:
        text = text.strip()
        return "" if _TOOL_LINE.match(text) else text
    lines = [line.rstrip() for line in text.split("\n")]
    if "onflict" in text:
        lines = _without_conflicts(lines)
    kept = _without_tool_lines(lines)
    while kept and not kept[0]:
        del kept[0]
    if subject_only:
        return kept[0].strip() if kept else ""
    end = _end_of_prose(kept)
    return "\n".join(kept[:end]).strip()


def _without_tool_lines(lines: list[str]) -> list[str]:
    kept: list[str] = []
    is_trailer = False
    for line in lines:
        if is_trailer and line[:1] in (" ", "\t"):
            continue  # A trailer's value goes on.
        is_trailer = bool(kept) and ":" in line and _PEOPLE_LINE.match(line) is not None
        if not is_trailer and not _TOOL_LINE.match(line):
            kept.append(line)
    return kept


def _without_conflicts(lines: list[str]) -> list[str]:
    kept = []
    is_listing = False
    for line in lines:
        if _CONFLICTS.match(line):
            is_listing = True
        elif not is_listing or (line and not line[0].isspace() and line[0] != "#"):
            is_listing = False
            kept.append(line)
    return kept


def _end_of_prose(lines: list[str]) -> int:
    end = len(lines)
    while True:
        while end and (not lines[end - 1] or _RULE_LINE.match(lines[end - 1])):
            end -= 1
        start = end
        while start and lines[start - 1]:
            start -= 1
        if start == 0 or not _are_trailers(lines[start:end]):
            return end
        end = start


def _are_trailers(paragraph: list[str]) -> bool:
    has_usual = False
    for at, line in enumerate(paragraph):
        if at and line[0] in " \t":
            continue
        match = _TRAILER.match(line)
        if match is None:
            return False
        token = match["token"].lower()
        has_usual = has_usual or "-" in token or token in _USUAL_TOKENS
    return has_usual
