"""Counts with their nouns, and names with the count of those that are left out."""

from collections.abc import Sequence

MOST_NAMED = 3


def format_count(number: int, noun: str) -> str:
    """Return `1 case` or `2 cases`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def name_some(names: Sequence[str], most: int = MOST_NAMED, noun: str = "") -> str:
    """Return a number of names and the count of the others: `a, b, c and 2 more`, or with a noun `and 2 more cases`."""
    left = len(names) - most
    more = format_count(left, f"more {noun}") if noun else f"{left} more"
    return ", ".join(names[:most]) + (f" and {more}" if left > 0 else "")
