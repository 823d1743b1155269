"""Writes files completely or not at all, even if a process is killed meanwhile."""

from pathlib import Path

from orchestrator import confined


def write(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file as a whole; if `mode` is given, it is set before any content is written."""
    confined.replace(path.parent, path, data, mode)
