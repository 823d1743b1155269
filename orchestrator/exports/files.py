"""The files and folders that exports write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.terminal import output_file, strict_json


def write_text(path: Path, text: str) -> None:
    output_file.write_output(path, text + "\n")


def write_json(path: Path, value: dict[str, Any]) -> Path:
    """Write strict JSON: a NaN or an infinity would not be valid."""
    write_text(path, strict_json.dump(value))
    return path


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file, which becomes the file when everything is written."""
    output_file.check_output(path)
    with output_file.writing_output(path), files.open_atomically(path) as file:
        yield file


def new_folder(path: Path) -> Path:
    with output_file.writing_output(path):
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(f"{path} is not empty; remove it, or name another folder with --output")
        path.mkdir(parents=True, exist_ok=True)
    return path
