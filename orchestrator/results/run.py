"""A run as an object, for programs and notebooks: `from orchestrator import load_run`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from orchestrator.catalog import did_you_mean
from orchestrator.errors import UsageError
from orchestrator.model import Arm, Comparison, Contrast, Manifest, Plan
from orchestrator.results import tables
from orchestrator.results.comparison import gather, judge
from orchestrator.results.replicates import Replicate
from orchestrator.results.rundir import RunDir

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Run:
    """A run, read and judged. Of the replicates those that count: neither the pilot's nor those of a round redone."""

    path: Path
    comparison: Comparison
    replicates: tuple[Replicate, ...]

    @property
    def plan(self) -> Plan:
        return self.comparison.plan

    @property
    def manifest(self) -> Manifest:
        return self.comparison.manifest

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.comparison.arms

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        return self.comparison.contrasts

    @property
    def warnings(self) -> tuple[str, ...]:
        """What stands above every report; streams that break the contract come first."""
        return (*self.comparison.broken, *self.comparison.warnings)

    def to_arrow(self, what: str = "calls") -> pa.Table:
        """A table of `arms`, `contrasts`, `replicates` or `calls`; see docs/library.md for their columns."""
        if what not in tables.TABLES:
            raise UsageError(f"no table {what!r}{did_you_mean(what, tables.TABLES)}; it is {', '.join(tables.TABLES)}")
        if what == "calls":
            return tables.calls(RunDir.open(self.path), self.plan, self.replicates)
        if what == "replicates":
            return tables.replicates(self.plan, self.replicates)
        return tables.arms(self.comparison) if what == "arms" else tables.contrasts(self.comparison)

    def to_pandas(self, what: str = "calls") -> "pandas.DataFrame":
        """The same for pandas, which has to be installed beside tfcompare."""
        return self.to_arrow(what).to_pandas()


def load_run(path: str | Path, also: Callable[[pa.Table], None] | None = None) -> Run:
    """Whatever can be read of a run directory, finished or not. `also` is given the rows of each stream as it is read,
    for what needs every call and not to hold them all."""
    directory = RunDir.open(Path(path))
    found = gather(directory, also)
    return Run(directory.path, judge(found), found.replicates)
