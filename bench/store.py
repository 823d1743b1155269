"""What a long bench has measured so far, so that an interrupted one can continue.

Raw results stay in a directory of the bench below runs/bench. When the whole bench is done, it gets another name:
the next bench measures everything again, and the last one is kept for a look.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator import files
from orchestrator.model import Finished
from orchestrator.results.rundir import RunDir

ROOT = Path(__file__).resolve().parent.parent / "runs" / "bench"


class Store:
    def __init__(self, bench: str, *, tiny: bool = False) -> None:
        self.directory = ROOT / (f"{bench}-tiny" if tiny else bench)
        self.directory.mkdir(parents=True, exist_ok=True)

    def run(self, name: str, measure: Callable[..., object], *how: object) -> Path:
        """Return the run directory of this name; measure it unless it was measured to its end before."""
        path = self.directory / name
        if not is_finished(path):
            shutil.rmtree(path, ignore_errors=True)
            measure(path, *how)
        return path

    def has(self, name: str) -> bool:
        return is_finished(self.directory / name)

    def read(self, name: str) -> Any:
        """Return a result that was written before, or None."""
        path = self.directory / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def write(self, name: str, result: object) -> None:
        files.write_atomically(self.directory / f"{name}.json", json.dumps(result).encode())

    def retire(self) -> None:
        """Put everything aside: it has been reported."""
        aside = self.directory.with_name(f"{self.directory.name}-last")
        shutil.rmtree(aside, ignore_errors=True)
        self.directory.rename(aside)


def is_finished(path: Path) -> bool:
    """Return whether a run came to its own end, rather than to that of its process."""
    return ending_of(path) is not None


def ending_of(path: Path) -> Finished | None:
    # Without a plan it ended before anything was measured.
    entries = RunDir.open(path).entries() if (path / "plan.json").exists() else ()
    return next((entry for entry in entries if isinstance(entry, Finished) and not entry.cut), None)


def seconds_of(path: Path) -> float:
    """Return the time that a run measured once its workers were up."""
    ending = ending_of(path)
    assert ending is not None
    return ending.seconds
