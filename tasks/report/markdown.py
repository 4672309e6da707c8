"""Documents as Markdown, in which whatever was quoted stays text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from coldrun.tasks.lib.plain_text import one_line
from coldrun.tasks.report.document import (
    Block,
    Code,
    Heading,
    Image,
    Line,
    Paragraph,
    Table,
    Words,
)

_MARKS = re.compile(
    r"""
    (?P<own>`(?:(?:coldrun|git\ config|uv|pip\ install)\ [^`]+
      |changed|max_infra_share|panel\.gold_from|also|writes)`)
    | ^[-+#](?=[-+#\ ]|$)                         # a list, a heading, a rule
    | ^>                                        # a quote
    | ^\[(?=.*\]:|[ xX]\])                     # a definition, a box to tick
    | (?P<number>^\d+)(?P<after>[.)])(?=\ |$)   # a numbered list
    | \\(?=[!-/:-@\[-`{-~]|$)                   # a backslash that would escape something
    | [`~$]                                     # code, struck out, mathematics
    | (?P<stars>[*_]+)                          # emphasis
    | \](?P<link>[(\[])                         # a link
    | (?P<html>[<&])                            # a tag, an entity
    """,
    re.VERBOSE,
)
"""What Markdown would take for markup. `own` is what coldrun says itself: commands, and the names
of settings. As code they are as harmless where somebody else's text has them."""


def to_markdown(document: Iterable[Block]) -> str:
    """A document as Markdown, without a line feed at its end."""
    text: list[str] = []
    before: Block | None = None
    for block in document:
        if before is not None and not (isinstance(before, Line) and isinstance(block, Line)):
            text.append("")
        text += _render(block)
        before = block
    return "\n".join(text)


def _render(block: Block) -> Iterator[str]:
    match block:
        case Line():
            marker = "-" if block.number is None else f"{block.number}."
            yield f"{'  ' * block.depth}{marker} {_emphasise(_inline(block.text), block.is_strong)}"
        case Paragraph():
            yield _emphasise(inert(block.text), block.is_strong)
        case Heading():
            # a # at the end of a heading would count as its closing sequence
            yield "#" * block.level + " " + re.sub(r"(?<= )(#+)$", r"\\\1", inert(block.text))
        case Table():
            yield _row(map(inert, block.headers))
            places = range(len(block.headers))
            yield _row("---" if place < block.text_columns else "---:" for place in places)
            yield from (_row(map(inert, cells)) for cells in block.rows)
        case Image():
            yield f"![{inert(block.text)}](<{block.path}>)"


def _emphasise(text: str, is_strong: bool) -> str:
    return f"**{text}**" if is_strong and text else text


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _inline(text: Words) -> str:
    parts: Sequence[str] = [text] if isinstance(text, str) else text
    return "".join(map(_part, parts)).strip()


def _part(part: str) -> str:
    if isinstance(part, Code):
        return code(part)
    before, after = " " * part[:1].isspace(), " " * part[-1:].isspace()
    return f"{before}{inert(part)}{after}"


def inert(text: str) -> str:
    """Text on one line that Markdown shows as it is: no markup, tag or link comes of it.

    Commands and settings in coldrun's own sentences are code, as they are written there.
    """
    flat = " ".join(one_line(text).split())
    return _MARKS.sub(lambda found: _defuse(found, flat), flat)


def code(text: str) -> str:
    """Text as a code span, whatever is in it."""
    flat = " ".join(one_line(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", flat)), default=0))
    pad = " " if flat[:1] in ("`", "") or flat[-1:] == "`" else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _defuse(found: re.Match[str], text: str) -> str:
    if found["own"]:
        return found["own"]
    if found["html"]:
        return {"<": "&lt;", "&": "&amp;"}[found["html"]]
    if found["link"]:
        return f"]\\{found['link']}"
    if found["number"]:
        return f"{found['number']}\\{found['after']}"
    if found["stars"] and _is_idle(found["stars"], text[: found.start()], text[found.end() :]):
        return found["stars"]
    return "".join(f"\\{character}" for character in found[0])


def _is_idle(stars: str, before: str, after: str) -> bool:
    if stars == "**":
        return not before[-1:].strip() and not after[:1].strip()
    return set(stars) == {"_"} and before[-1:].isalnum() and after[:1].isalnum()
