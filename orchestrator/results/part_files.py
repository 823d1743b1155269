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

# Of one file, and of all together.
MOST_BYTES_EACH, MOST_BYTES = 2**28, 2**29
MOST_FILES = 20_000
# Of a log, its end.
LOG_BYTES = 2**16
LONGEST_NAME = 200
PART = r"[^/\0.][^/\0]*"
NAMES = re.compile(
    rf"(begun|plan|manifest)\.json|journal\.jsonl|streams/{PART}\.arrow|results/{PART}/stream\.arrow|logs/{PART}\.log"
)


def _list_names(run: Path) -> Iterator[str]:
    """Yield the names of what makes up a run folder; what else workers left in it is no part of it."""
    for inner, folders, names in os.walk(run):
        folders.sort()
        yield from filter(NAMES.fullmatch, (Path(inner, each).relative_to(run).as_posix() for each in sorted(names)))


def read_files(run: Path) -> dict[str, bytes]:
    """Return what makes up a run folder, also one that is still measured; what is too large is left out."""
    contents: dict[str, bytes] = {}
    left = MOST_BYTES
    for name in islice(_list_names(run), MOST_FILES):
        with suppress(OSError):
            data = files.read(run, run / name, min(MOST_BYTES_EACH, left), names=None)
            contents[name] = data[-LOG_BYTES:] if name.endswith(".log") else data
            left -= len(contents[name])
    return contents


def copy_files(run: Path, place: Path) -> None:
    """Copy what makes up a run folder, however large."""
    for name in _list_names(run):
        write_files(place, {name: files.read(run, run / name, LARGEST_FILE, names=None)})


def write_files(
    folder: Path, contents: Mapping[str, bytes], executable: Container[str] = (), folders: Iterable[str] = ()
) -> None:
    """Write files and folders into a new folder; the names have no way out of it.

    Files can be executed or not, by their names; no sender sets other bits of a mode.
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
    """Raise ContractBroken unless these can be the files of a run folder: another machine sent them."""
    if len(contents) > MOST_FILES or sum(map(len, contents.values())) > MOST_BYTES:
        raise ContractBroken(f"it sent more than {MOST_FILES} files, or more than {MOST_BYTES // 2**20} MB")
    for name in contents:
        if len(name) > LONGEST_NAME or not NAMES.fullmatch(name):
            raise ContractBroken(f"it sent a file that no run has: {name[:LONGEST_NAME]!r}")
