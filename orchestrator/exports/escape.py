"""Makes text from elsewhere (names, reasons, machines) harmless for the files of other programs."""

import hashlib
import re

from orchestrator.terminal.text import escape_unprintable

CHANGED_DIGITS = 8


def key(text: str, most: int = 1000) -> str:
    """Return a name by which other programs distinguish things, with at most this many bytes.

    If the text had to be changed or cut, a digest of all of it keeps the name unique.
    """
    escaped = escape_unprintable(text).strip()
    if escaped == text and len(text.encode()) <= most:
        return text
    cut = escaped.encode()[: most - CHANGED_DIGITS - 1].decode(errors="ignore")
    return f"{cut}~{_digest(text)}"


def file_name(text: str) -> str:
    """Return a name that stays inside its folder, since a run folder may come from anywhere."""
    safe = re.sub(r"[^A-Za-z0-9.+_-]", "_", text)[:100].lstrip(".")
    return text if safe == text and text else f"{safe}_{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:CHANGED_DIGITS]
