"""Small file systems, to be filled or made read-only. Root only."""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest


def mounted(folder: Path, size: str) -> Path:
    """Make a folder that has this much room, in memory."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no right to mount: {done.stderr.strip()}")
    return folder


def fill(disk: Path) -> Path:
    """Take all room that is left, and return the file that has it."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return filler


def make_read_only(disk: Path) -> None:
    """Let nothing be opened for writing at this place from now on, until it is unmounted once."""
    # Over itself: a disk on which files are open for writing cannot be made read-only.
    subprocess.run(["mount", "--bind", str(disk), str(disk)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(disk)], check=True)


def unmount(disk: Path) -> bool:
    """Take away what was mounted last at this place, if anything was."""
    return subprocess.run(["umount", "-l", str(disk)], capture_output=True, check=False).returncode == 0
