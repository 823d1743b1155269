"""The limits of what a worker may leave on this machine's disk: its log, and the folder for its results."""

import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator import contract, files
from orchestrator.terminal.text import LogCleaner

# A log larger than the first limit is cut: only its end is kept, up to the size of the second limit.
MOST_LOG_BYTES, KEPT_LOG_BYTES = 10 * 2**20, 5 * 2**20
# A worker writes one file. More files than this, or deeper folders, cannot be results.
MOST_ENTRIES, DEEPEST = 500, 8
# XLA keeps a file for each function that it compiles.
MOST_CODE_ENTRIES = 5000
EVERY_S = 1.0


@dataclass
class WorkerFiles:
    """The files of a worker: its log and, as far as it has them, its results and the code of XLA."""

    log: Path
    results: Path | None = None
    xla_code: Path | None = None
    _checked: float = field(default_factory=time.monotonic)

    def check_if_due(self) -> None:
        """Check the files unless that was done a moment ago."""
        if time.monotonic() - self._checked > EVERY_S:
            self.check()

    def check(self) -> None:
        """Cut the log back to its end if it is too long; raise ContractError if there is too much in a folder."""
        self._checked = time.monotonic()
        self.cut_log()
        for name, folder, most in (
            ("its results folder", self.results, MOST_ENTRIES),
            ("the folder for the code of XLA", self.xla_code, MOST_CODE_ENTRIES),
        ):
            if folder and (excess := describe_excess(folder, most_entries=most)):
                raise contract.ContractError(f"{name} {excess}")

    def cut_log(self) -> None:
        files.cut_to_end(self.log, MOST_LOG_BYTES, KEPT_LOG_BYTES)

    def settle_log(self) -> None:
        """Clean and cut the log of a worker that wrote it directly and has ended."""
        self.cut_log()
        files.rewrite(self.log, MOST_LOG_BYTES, lambda data: LogCleaner().clean(data, final=True))
        self.cut_log()


def describe_excess(folder: Path, most_bytes: int = contract.LARGEST_FILE, most_entries: int = MOST_ENTRIES) -> str:
    """Describe how a folder of a worker exceeds its limits, or return ''; an unreadable one also counts as excess."""
    entries = taken = 0
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        try:
            with files.open_folder(folder, *parts) as handle, os.scandir(handle) as found:
                for entry in found:
                    status = entry.stat(follow_symlinks=False)
                    entries += 1
                    taken += status.st_blocks * 512
                    if entries > most_entries:
                        return f"holds more than {most_entries} files"
                    if taken > most_bytes:
                        return f"takes more than {most_bytes / 2**20:.0f} MiB"
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append((*parts, entry.name))
        except FileNotFoundError:
            # The folder is being changed, and the next check sees more.
            continue
        except OSError as error:
            return f"cannot be looked into: {error.strerror}"
        if waiting and len(waiting[-1]) > DEEPEST:
            return f"is more than {DEEPEST} levels deep"
    return ""
