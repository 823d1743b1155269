"""Text from elsewhere (workloads, logs, machines) made harmless for a terminal, and pages drawn without one."""

import io
import os
import re
import shutil
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.style import StyleType
from rich.text import Text


def plain(text: str, style: StyleType = "") -> Text:
    """Never markup, and nothing in it moves a cursor, rings, or turns the reading direction: what cannot be printed is
    shown as Python would write it. Line ends become blanks, or a reason could forge a row."""
    return Text(harmless(text), style=style)


def harmless(text: str) -> str:
    # Nearly everything is, and there may be ten thousand cells of it.
    if text.isprintable():
        return text
    return "".join(map(_shown, re.sub(r"[ \t]*\n[ \t\n]*", " ", text)))


def lines(text: str) -> Text:
    """The same where line ends are the text's own, as in an error that quotes a log."""
    return Text("\n").join(map(plain, text.splitlines()))


def clipped(text: str, most: int) -> str:
    """A text that nobody would read to its end, with its head, its tail, and its length."""
    if len(text) <= most:
        return text
    told = f" … ({len(text)} characters) … "
    tail = max((most - len(told)) // 4, 0)
    return f"{text[: max(most - len(told) - tail, 1)]}{told}{text[len(text) - tail :]}"


def drawn(layout: Callable[[int], RenderableType]) -> str:
    """For a file or a pipe: no colour, the width of COLUMNS or 80."""
    width = shutil.get_terminal_size((80, 24)).columns if "COLUMNS" in os.environ else 80
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(layout(width))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")


def draw(layout: Callable[[int], RenderableType]) -> None:
    console = Console()
    if console.is_terminal:
        console.print(layout(console.width))
    else:
        print(drawn(layout))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
