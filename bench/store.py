"""What a long bench has measured so far, so that an interrupted one can continue, also on another machine.

Raw runs stay below runs/bench. What a bench makes of them is kept in bench/measured, which is part of the repository:
a reader can count again what the page says. After a bench has finished, the next one starts from nothing.
"""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.git import current_commit
from orchestrator import files
from orchestrator.machine.host import host_facts
from orchestrator.model import Finished
from orchestrator.results.run_folder import RunFolder

BENCH = Path(__file__).resolve().parent
RAW, MEASURED = BENCH.parent / "runs" / "bench", BENCH / "measured"


class Store:
    def __init__(self, bench: str, *, tiny: bool = False) -> None:
        self.folder = RAW / (f"{bench}-tiny" if tiny else bench)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = (self.folder if tiny else MEASURED) / f"{bench}.json"
        kept = json.loads(self._file.read_text()) if self._file.exists() else {"finished": True}
        self._results: dict[str, Any] = {} if kept["finished"] else kept["results"]

    def run(self, name: str, measure: Callable[..., object], *how: object) -> Path:
        """Return the run folder of this name; measure it unless it was measured to its end before."""
        path = self.folder / name
        if not is_finished(path):
            shutil.rmtree(path, ignore_errors=True)
            measure(path, *how)
        return path

    def read(self, name: str) -> Any:
        """Return a result that was written before, or None."""
        return self._results[name]["result"] if name in self._results else None

    def write(self, name: str, result: object) -> None:
        """Keep a result, and what it was measured on."""
        on = {"day": f"{datetime.now(UTC):%Y-%m-%d}", "cpu": host_facts()["cpu"], "commit": current_commit()}
        self._results[name] = {**on, "result": result}
        self._save(finished=False)

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits at which the results were measured; no commit outside of a git clone."""
        return tuple(sorted({each["commit"] for each in self._results.values()} - {""}))

    def describe(self) -> str:
        """Say when and on what the results were measured."""
        days = sorted({each["day"] for each in self._results.values()})
        cpus = sorted({each["cpu"] for each in self._results.values()})
        return f"Measured on {', '.join(days)}; cpu {' and '.join(cpus)}."

    def retire(self) -> None:
        """Put raw runs aside and let the next bench start from nothing: all this has been reported."""
        aside = self.folder.with_name(f"{self.folder.name}-last")
        shutil.rmtree(aside, ignore_errors=True)
        self.folder.rename(aside)
        if self._results and self._file.parent == MEASURED:
            self._save(finished=True)

    def _save(self, *, finished: bool) -> None:
        self._file.parent.mkdir(exist_ok=True)
        # One result per line, so that version control shows what was added.
        lines = (f"{json.dumps(name)}: {json.dumps(result)}" for name, result in self._results.items())
        text = f'{{"finished": {json.dumps(finished)}, "results": {{\n' + ",\n".join(lines) + "\n}}\n"
        files.write_atomically(self._file, text.encode())


def is_finished(path: Path) -> bool:
    """Return whether a run came to its own end, rather than to that of its process."""
    return ending_of(path) is not None


def ending_of(path: Path) -> Finished | None:
    # Without a plan it ended before anything was measured.
    entries = RunFolder.open(path).entries() if (path / "plan.json").exists() else ()
    return next((entry for entry in entries if isinstance(entry, Finished) and not entry.cut), None)


def seconds_of(path: Path) -> float:
    """Return the time that a run measured once its workers were up."""
    ending = ending_of(path)
    assert ending is not None
    return ending.seconds
