"""Text from elsewhere (names, reasons, machines) made harmless for the files of other programs."""

import hashlib
import re

from orchestrator.terminal.text import harmless

CHANGED_DIGITS = 8


def key(text: str, most: int = 1000) -> str:
    """A name by which others tell things apart, of so many bytes at most: where it had to be changed or cut, a digest
    of the whole keeps it one of its own."""
    shown = harmless(text).strip()
    if shown == text and len(text.encode()) <= most:
        return text
    cut = shown.encode()[: most - CHANGED_DIGITS - 1].decode(errors="ignore")
    return f"{cut}~{_digest(text)}"


def file_name(text: str) -> str:
    """A name that stays inside the folder it is put into; a run directory may come from anywhere."""
    safe = re.sub(r"[^A-Za-z0-9.+_-]", "_", text)[:100].lstrip(".")
    return text if safe == text and text else f"{safe}_{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:CHANGED_DIGITS]
