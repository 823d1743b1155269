"""Text from elsewhere (workloads, logs, machines), made harmless for a terminal."""

import re

from rich.style import StyleType
from rich.text import Text


def plain(text: str, style: StyleType = "") -> Text:
    """Never markup, and nothing in it moves a cursor, rings, or turns the reading direction: what cannot be printed is
    shown as Python would write it. Line ends become blanks, or a reason could forge a row."""
    return Text("".join(map(_shown, re.sub(r"[ \t]*\n[ \t\n]*", " ", text))), style=style)


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
