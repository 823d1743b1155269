"""Where exports go: what cannot be written there is told with what to do."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from orchestrator.errors import UsageError


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error) from error


def write_json(path: Path, value: dict[str, Any]) -> Path:
    """Strictly: a NaN or an infinity would be no JSON."""
    write_text(path, json.dumps(value, allow_nan=False))
    return path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name beside it to write to, which becomes the file once all is written."""
    if path.is_dir():
        raise UsageError(f"--output {path}: it is a folder; name a file in it")
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def new_folder(path: Path) -> Path:
    try:
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(f"{path} is not empty; remove it, or name another folder with --output")
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {path}: {error.strerror or error}; name another place with --output")
