"""Counts with their nouns."""


def format_count(number: int, noun: str) -> str:
    """Return `1 case` or `2 cases`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
