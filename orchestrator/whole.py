"""Files that are written whole or not at all, whoever is killed meanwhile."""

import os
from pathlib import Path


def write(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file as a whole; with `mode`, it has that mode before it has content."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if mode is not None:
            # The umask takes bits from `touch`, and a file left behind by a killed process keeps the mode it has.
            partial.touch(mode)
            partial.chmod(mode)
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
