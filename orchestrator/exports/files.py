"""The files and folders that exports write."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from orchestrator.errors import UsageError
from orchestrator.terminal import output_file


def write_text(path: Path, text: str) -> None:
    output_file.write(path, text + "\n")


def write_json(path: Path, value: dict[str, Any]) -> Path:
    """Write strict JSON: a NaN or an infinity would not be valid."""
    write_text(path, json.dumps(value, allow_nan=False))
    return path


@contextmanager
def temporary_name(path: Path) -> Iterator[Path]:
    """Yield a temporary name next to the file, which becomes the file when everything is written."""
    output_file.check(path)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with output_file.writing(path):
            yield temporary
            os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def new_directory(path: Path) -> Path:
    with output_file.writing(path):
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(f"{path} is not empty; remove it, or name another folder with --output")
        path.mkdir(parents=True, exist_ok=True)
    return path
