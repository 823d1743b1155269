"""The files of a run folder as they travel between machines: names and contents, with limits, and no links."""

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from orchestrator import files
from orchestrator.contract import LARGEST_FILE
from orchestrator.errors import ContractBroken

# These limits are for one file, and for all files together.
MOST_BYTES_EACH, MOST_BYTES = 2**28, 2**29
MOST_FILES = 20_000
# Only this much of the end of a log is kept.
LOG_BYTES = 2**16
LONGEST_NAME = 200
PART = r"[^/\0.][^/\0]*"
NAMES = re.compile(
    rf"(begun|plan|manifest)\.json|journal\.jsonl|streams/{PART}\.arrow|results/{PART}/stream\.arrow|logs/{PART}\.log"
)


def _list_names(run: Path) -> Iterator[str]:
    """Yield the names of the files that make up a run folder, without other files that workers left in it."""
    for inner, folders, names in os.walk(run):
        folders.sort()
        yield from filter(NAMES.fullmatch, (Path(inner, each).relative_to(run).as_posix() for each in sorted(names)))


def read_files(run: Path) -> dict[str, bytes]:
    """Return the files of a run folder, even while it is measured, without those that are too large."""
    contents: dict[str, bytes] = {}
    left = MOST_BYTES
    for name in islice(_list_names(run), MOST_FILES):
        with suppress(OSError):
            data = files.read(run, run / name, min(MOST_BYTES_EACH, left), names=None)
            contents[name] = data[-LOG_BYTES:] if name.endswith(".log") else data
            left -= len(contents[name])
    return contents


def copy_files(run: Path, place: Path) -> None:
    """Copy the files of a run folder, however large they are."""
    for name in _list_names(run):
        write_files(place, {name: files.read(run, run / name, LARGEST_FILE, names=None)})


def write_files(
    folder: Path, contents: Mapping[str, bytes], executable: Container[str] = (), folders: Iterable[str] = ()
) -> None:
    """Write files and folders into a new folder; raise ContractBroken for a name that leads out of it.

    Files whose names are in `executable` can be executed; a sender cannot set any other bit of a mode.
    """
    for name in folders:
        _find_place(folder, name).mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        path = _find_place(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if name in executable:
            path.chmod(0o755)


def _find_place(folder: Path, name: str) -> Path:
    path = folder / name
    if (path.is_absolute() and not path.is_relative_to(folder)) or ".." in path.parts:
        raise ContractBroken(f"{name[:LONGEST_NAME]!r} is no name of a file in a folder")
    return path


def check_files(contents: Mapping[str, bytes]) -> None:
    """Raise ContractBroken unless these files, which another machine sent, can be those of a run folder."""
    if len(contents) > MOST_FILES or sum(map(len, contents.values())) > MOST_BYTES:
        raise ContractBroken(f"it sent more than {MOST_FILES} files, or more than {MOST_BYTES // 2**20} MB")
    for name in contents:
        if len(name) > LONGEST_NAME or not NAMES.fullmatch(name):
            raise ContractBroken(f"it sent a file that no run has: {name[:LONGEST_NAME]!r}")
