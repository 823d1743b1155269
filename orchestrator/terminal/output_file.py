"""Writes files that a user names for a report or an export; all failures are reported in one way."""

import errno
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from orchestrator import files


def check_output(path: Path) -> None:
    """Raise UsageError if no file can be written here, so that no time is wasted on reading and drawing."""
    with writing_output(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if path.is_file():
            path.open("ab").close()
        elif not path.exists():
            # Permissions do not suffice: a superuser has them even in folders where no file can be created.
            tempfile.TemporaryFile(dir=path.parent).close()


def write_output(path: Path, text: str, flag: str = "--output", *, within: bool = False) -> None:
    """Write a file that a user names or, with `within`, a file of a run folder, where links are not followed."""
    with writing_output(path, flag):
        if within:
            files.write_atomically(path, text.encode())
        else:
            path.write_text(text, encoding="utf-8")


def writing_output(path: Path, flag: str = "--output") -> AbstractContextManager[None]:
    return files.writing(path, f"name another place with {flag}")
