"""Markdown for comments on pull requests, in which text from elsewhere is never markup."""

import re
from collections.abc import Iterable, Sequence

from orchestrator.terminal.text import clip, escape_unprintable

# GitHub refuses a comment of more than 65 536 characters; each list or table gets this much.
ROOM = 8_000
LONGEST_TEXT = 300


def code(text: str) -> str:
    """Quote foreign text so that nothing in it is markup, notifies a person or links to an issue.

    If even code between backticks would not be safe, every special character is written as a number.
    """
    clipped = clip(escape_unprintable(text).strip(), LONGEST_TEXT)
    if not re.search(r"[`|\\]", clipped):
        return f"`{clipped}`" if clipped else ""
    return f"<code>{re.sub(r'[^A-Za-z0-9 ]', lambda sign: f'&#{ord(sign[0])};', clipped)}</code>"


def build_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = join_lines("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([f"| {' | '.join(header)} |", "|---" * len(header) + "|", lines]) if lines else ""


def join_lines(lines: Iterable[str]) -> str:
    """Join as many lines as there is room for, and add how many are left out."""
    every = list(lines)
    room, count = ROOM, 0
    while count < len(every) and len(every[count]) < room:
        room -= len(every[count]) + 1
        count += 1
    more = [f"\n{len(every) - count} more are left out; other export formats list them."] if count < len(every) else []
    return "\n".join(every[:count] + more)
