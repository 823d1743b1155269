"""Copies saved models from a place that a worker or a stranger wrote to: only regular files, and limited in size."""

import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from orchestrator import contract, files

# A SavedModel has a few files in three levels of folders; some layers add one file per table.
MOST_FILES, DEEPEST = 200, 6
MOST_BYTES = contract.LARGEST_FILE
NAME = re.compile(r"[A-Za-z0-9_][\w.+ -]{0,120}", re.ASCII)


class NotTaken(Exception):
    """Something that no version saves, such as a link; the message says what."""


@dataclass
class _Count:
    files: int = 0
    bytes: int = 0


def take_model(root: Path, place: Path, target: Path, names: int | None = 1) -> int:
    """Copy a file or a folder below `root` to `target`, and return its bytes; raise NotTaken, or OSError.

    Links are not followed, and a file is copied only if it is regular and has exactly `names` names (hard links). With
    None, the number of names is not checked.
    """
    count = _Count()
    try:
        with files.open_folder(root, *place.relative_to(root).parent.parts) as within:
            _take(within, place.name, target, count, names, depth=0)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True) if target.is_dir() else target.unlink(missing_ok=True)
        raise
    return count.bytes


def _take(within: int, name: str, target: Path, count: _Count, names: int | None, depth: int) -> None:
    if depth and not NAME.fullmatch(name):
        raise NotTaken(f"it holds a file with an odd name: {name[:80]!a}")
    mode = os.stat(name, dir_fd=within, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        raise NotTaken(f"{name if depth else 'it'} is a symbolic link, which is not followed")
    count.files += 1
    if count.files > MOST_FILES or depth > DEEPEST:
        raise NotTaken(f"it holds more than {MOST_FILES} files, or {DEEPEST} levels of folders")
    if stat.S_ISDIR(mode):
        handle = os.open(name, files.FOLDER, dir_fd=within)
        try:
            target.mkdir(mode=0o755)
            for inner in sorted(os.listdir(handle)):
                _take(handle, inner, target / inner, count, names, depth + 1)
        finally:
            os.close(handle)
        return
    # Since the last call, the file may have been replaced by a link or a pipe.
    handle = os.open(name, files.READ, dir_fd=within)
    with os.fdopen(handle, "rb") as source:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or (names and status.st_nlink != names):
            raise NotTaken(f"{name if depth else 'it'} is not a regular file, or has hard links")
        # A sparse file is found by its stated size, a growing file only while it is read.
        excess = NotTaken(f"it has more than {MOST_BYTES / 2**20:.0f} MiB")
        if count.bytes + status.st_size > MOST_BYTES:
            raise excess
        with target.open("xb") as copy:
            target.chmod(0o644)
            while chunk := source.read(files.CHUNK_BYTES):
                count.bytes += len(chunk)
                if count.bytes > MOST_BYTES:
                    raise excess
                copy.write(chunk)
