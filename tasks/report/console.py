"""The console for people: what is printed on it is text, and it wraps between words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from coldrun.tasks.lib.plain_text import plain_text

WIDE = 200
"""Columns of output that goes to no terminal."""


class PeopleConsole(Console):
    """Writes for people: no markup is read in what it prints, and control characters are escaped.

    On a terminal, sentences break between words. A file or a pipe gets lines as long as they are.
    """

    def __init__(
        self, *, stderr: bool = False, file: IO[str] | None = None, width: int | None = None
    ) -> None:
        super().__init__(stderr=stderr, file=file, width=width, highlight=False, markup=False)
        if width is None and not self.is_screen:
            self.width = WIDE
        self.push_render_hook(_PlainText())

    @property
    def is_screen(self) -> bool:
        """Whether this is a real terminal, whatever FORCE_COLOR makes of the colours."""
        return self.file.isatty()

    @property
    def is_live(self) -> bool:
        """Whether lines can be drawn again: a terminal that understands cursor movements."""
        return self.is_screen and self.is_terminal and not self.is_dumb_terminal

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Print; a sentence that would be left to the terminal to break is broken between words."""
        (only, *others) = objects or ("",)
        if soft_wrap and self.is_screen and not others and isinstance(only, str | Text):
            for line in break_lines(Text(only) if isinstance(only, str) else only, self.width):
                super().print(line, soft_wrap=True, **options)
        else:
            super().print(*objects, soft_wrap=soft_wrap, **options)

    def print_command(self, words: str, command: str) -> None:
        """Print a command to copy, on a line of its own that nothing breaks."""
        self.print(words, soft_wrap=True)
        self.print_whole(f"  {command}")

    def print_whole(self, line: str | Text, **options: Any) -> None:
        """Print a line to copy, or a row of a drawing: the terminal alone breaks it."""
        super().print(line, soft_wrap=True, **options)


def break_lines(text: Text, width: int) -> Iterator[Text]:
    """Lines of at most `width` columns, broken between words and indented as the first one.

    A word that is longer than a line stays whole: a path or a command can still be copied.
    """
    for line in text.split("\n", allow_blank=True):
        indent = len(line.plain) - len(line.plain.lstrip(" "))
        breaks, column = [], 0
        for word in re.finditer(r"\s*\S+", line.plain):
            columns = cell_len(word[0])
            if column > indent and column + columns > width:
                breaks.append(word.start() + len(word[0]) - len(word[0].lstrip()))
                columns = indent + cell_len(word[0].lstrip())
                column = 0
            column += columns
        for number, part in enumerate(line.divide(breaks)):
            part.rstrip()
            if number:
                part.pad_left(indent)
            yield part


class _PlainText(RenderHook):
    """Control characters become escapes in all that a console prints."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wrap what is about to be printed."""
        return [_Plain(renderable) for renderable in renderables]


@dataclass(frozen=True, slots=True)
class _Plain:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.inner, options):
            if segment.control is None:
                yield Segment(plain_text(segment.text), segment.style)
            else:
                yield segment
