"""Texts kept to the letter; `UPDATE_SNAPSHOTS=1 pytest tests/unit/reports` writes them anew for review."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "unit" / "snapshots"


def kept(name: str, found: str) -> str:
    """What is kept under a name, or, where it is to be written anew, what was found."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        path.write_text(found)
    return path.read_text()
