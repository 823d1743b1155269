"""Files that are written whole or not at all, whoever is killed meanwhile."""

from pathlib import Path

from orchestrator import confined


def write(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file as a whole; with `mode`, it has that mode before it has content."""
    confined.replace(path.parent, path, data, mode)
