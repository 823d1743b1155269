"""Makes text from elsewhere (workloads, logs, machines) harmless for a terminal, and draws pages without one."""

import codecs
import io
import os
import re
import shutil
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.style import StyleType
from rich.text import Text

# This matches all but printable ASCII, line ends and tabs; most of it is harmless.
OBEYED = re.compile(r"[^\t\n -~]")
COLOUR = re.compile(r"\x1b\[[0-9;:]{0,30}m")
REDRAW = re.compile(r"[\r\b]+\n?")
BEGUN = re.compile(r"(\x1b(\[[0-9;:]{0,30})?|[\r\b]{1,30})\Z")


def safe_text(text: str, style: StyleType = "") -> Text:
    """Return text that is never markup and contains nothing that controls a terminal.

    Nothing in it moves a cursor, rings, or changes the reading direction: what cannot be printed is shown as Python
    would write it. Line ends become blanks; otherwise a reason could forge a row.
    """
    return Text(escape_unprintable(text), style=style)


def escape_unprintable(text: str) -> str:
    # Nearly every text is printable, and a table may have ten thousand cells.
    if text.isprintable():
        return text
    return "".join(map(_escape_character, re.sub(r"[ \t]*\n[ \t\n]*", " ", text)))


class LogCleaner:
    """Cleans what a program prints, chunk by chunk, for a log that people show in a terminal.

    Lines and tabs stay, colours are dropped, and what redraws a line begins a new one. Anything else that a terminal
    would obey is written as Python would write it.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode
        # This may be the first part of a sequence that the next chunk completes.
        self._held = ""

    def clean(self, chunk: bytes, *, final: bool = False) -> bytes:
        text = self._held + self._decode(chunk, final)
        end = len(text)
        if not final and (match := BEGUN.search(text)):
            end = match.start()
        self._held = text[end:]
        return clean_log(text[:end]).encode()


def clean_log(text: str) -> str:
    """Return the whole text of a log, cleaned."""
    # Nearly every log needs no cleaning.
    if not OBEYED.search(text):
        return text
    return OBEYED.sub(lambda character: _escape_character(character[0]), REDRAW.sub("\n", COLOUR.sub("", text)))


def escape_lines(text: str) -> Text:
    """Return harmless text that keeps its line ends, such as an error that quotes a log."""
    return Text("\n").join(map(safe_text, text.splitlines()))


def clip(text: str, most: int) -> str:
    """Shorten a text that is too long to be read to its head, its tail and its length."""
    if len(text) <= most:
        return text
    note = f" … ({len(text)} characters) … "
    tail = max((most - len(note)) // 4, 0)
    return f"{text[: max(most - len(note) - tail, 1)]}{note}{text[len(text) - tail :]}"


def render_plain(layout: Callable[[int], RenderableType]) -> str:
    """Draw a layout for a file or a pipe: without colour, in the width of COLUMNS or 80."""
    width = shutil.get_terminal_size((80, 24)).columns if "COLUMNS" in os.environ else 80
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(layout(width))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")


def print_table(layout: Callable[[int], RenderableType]) -> None:
    console = Console()
    if console.is_terminal:
        console.print(layout(console.width))
    else:
        print(render_plain(layout))


def _escape_character(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def natural_key(text: str) -> list[tuple[int, str]]:
    """Return a sort key in which numbers count as numbers: size=2 comes before size=11."""
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
