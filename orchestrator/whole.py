"""Files that are written whole or not at all, whoever is killed meanwhile."""

import os
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
