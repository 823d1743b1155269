"""The run directory: everything needed to redraw every report.

plan.json       what was to be done                manifest.json   tool, machine, sources, environments
journal.jsonl   how each replicate ended, in order
results/        one Arrow stream a version (a restarted worker opens the next part)
logs/           what workers, installs and image builds printed
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from orchestrator import whole
from orchestrator.errors import ContractBroken, UsageError
from orchestrator.model import Entry, Manifest, Plan

T = TypeVar("T")

PLAN = TypeAdapter(Plan)
MANIFEST = TypeAdapter(Manifest)
ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)

# A stream whose worker has not closed it: the rows up to its last flush are good.
PARTIAL = ".partial"


class RunDir:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.results = path / "results"
        self.logs = path / "logs"
        self.journal = path / "journal.jsonl"

    @classmethod
    def create(cls, path: Path) -> "RunDir":
        run = cls(path)
        try:
            if path.is_dir() and any(path.iterdir()):
                raise UsageError(
                    f"{path} is not empty; choose another --out, or `tfcompare report {path}` if it holds a run"
                )
            run.results.mkdir(parents=True)
            run.logs.mkdir()
            (path / "plan.json").touch()
        except OSError as error:
            raise UsageError(
                f"cannot write the run directory {path}: {error.strerror}; choose another --out"
            ) from error
        return run

    @classmethod
    def open(cls, path: Path) -> "RunDir":
        # Unlike Path's own, it says no to a folder that may not be looked into.
        if not os.path.isfile(path / "plan.json"):
            raise UsageError(f"{path} holds no run (no plan.json in it); `tfcompare run --out DIR` makes one")
        return cls(path)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """For as long as somebody measures into it."""
        try:
            handle = (self.path / ".lock").open("w")
        except OSError as error:
            raise UsageError(f"cannot write into {self.path}: {error.strerror}") from error
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(f"another tfcompare is measuring into {self.path}; wait for its end") from error
            yield

    def write_plan(self, plan: Plan) -> None:
        self._write("plan.json", PLAN.dump_json(plan, indent=1))

    def write_manifest(self, manifest: Manifest) -> None:
        self._write("manifest.json", MANIFEST.dump_json(manifest, indent=1))

    def _write(self, name: str, data: bytes) -> None:
        whole.write(self.path / name, data + b"\n")

    def record(self, entry: Entry) -> None:
        with self.journal.open("ab") as journal:
            journal.write(ENTRY.dump_json(entry) + b"\n")

    def read_plan(self) -> Plan:
        return self._read("plan.json", PLAN)

    def read_manifest(self) -> Manifest:
        return self._read("manifest.json", MANIFEST)

    def _read(self, name: str, adapter: TypeAdapter[T]) -> T:
        try:
            return adapter.validate_json((self.path / name).read_bytes())
        except OSError as error:
            raise ContractBroken(
                f"{self.path / name}: {error.strerror}; the run ended before its first round"
            ) from error
        except ValidationError as error:
            raise ContractBroken(f"{self.path / name} is not what this tfcompare writes: {error}") from error

    def entries(self) -> Iterator[Entry]:
        """The journal; a last line cut short by a kill is left out."""
        if not self.journal.exists():
            return
        for line in self.journal.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                return
            try:
                yield ENTRY.validate_json(line)
            except ValidationError as error:
                raise ContractBroken(f"{self.journal} is not what this tfcompare writes: {error}") from error

    def stream(self, version: str, part: int) -> Path:
        """Where a worker is to write; under its temporary name until `settle`."""
        return self.results / f"{version}-{part}.arrow{PARTIAL}"

    def parts(self, version: str) -> int:
        """How many streams a version has; the next worker writes the next part."""
        return sum(1 for path in self.streams() if path.name.partition(".arrow")[0].rpartition("-")[0] == version)

    def settle(self, stream: Path) -> Path | None:
        """Gives a stream that its worker closed its final name."""
        if not stream.exists():
            return None
        return stream.replace(stream.with_name(stream.name.removesuffix(PARTIAL)))

    def streams(self) -> list[Path]:
        return sorted([*self.results.glob("*.arrow"), *self.results.glob(f"*.arrow{PARTIAL}")])
