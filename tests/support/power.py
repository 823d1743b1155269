"""A disk that loses its power: it keeps the content and the names that were synced, and nothing else.

A real one may keep more. So the journal, which is appended to, can also be given as it was at that moment.
"""

import os
import stat
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Moment:
    """Content of files and names in folders by inode, as of their last sync; and the journal as the host had it."""

    files: dict[int, bytes]
    folders: dict[int, dict[str, int]]
    journal: bytes


class Disk:
    """Keeps one moment for each time that something is written through to the disk."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.moments: list[Moment] = []
        self._files: dict[int, bytes] = {}
        self._folders: dict[int, dict[str, int]] = {}
        # An inode that is held is not given to another file.
        self._held: list[int] = []
        self._fsync = os.fsync
        # Threads sync, too: what one has seen of a folder must not replace what another has seen later.
        self._order = threading.Lock()
        monkeypatch.setattr(os, "fsync", self._sync)

    def _sync(self, handle: int) -> None:
        status = os.fstat(handle)
        place = f"/proc/self/fd/{handle}"
        with self._order:
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(handle) as entries:
                    self._folders[status.st_ino] = {entry.name: entry.inode() for entry in entries}
            else:
                self._files[status.st_ino] = Path(place).read_bytes()
            self._held.append(os.dup(handle))
            self._fsync(handle)
            self.keep()

    def keep(self) -> None:
        """Keep this moment."""
        journal = self.root / "journal.jsonl"
        written = journal.read_bytes() if journal.exists() else b""
        self.moments.append(Moment(dict(self._files), dict(self._folders), written))

    def close(self) -> None:
        for handle in self._held:
            os.close(handle)


def restore(moment: Moment, inode: int, folder: Path, *, journal: bool = False) -> None:
    """Write what a moment has of a folder with this inode; with its journal as the host had it, if asked."""
    folder.mkdir(exist_ok=True)
    for name, inner in moment.folders.get(inode, {}).items():
        if inner in moment.files:
            (folder / name).write_bytes(moment.files[inner])
        elif inner in moment.folders:
            restore(moment, inner, folder / name)
        elif name in ("results", "streams", "logs"):
            (folder / name).mkdir(exist_ok=True)
        else:
            # A name without content.
            (folder / name).touch()
    if journal and moment.journal:
        (folder / "journal.jsonl").write_bytes(moment.journal)
