"""A run as an object, for programs and notebooks: `from tfcompare import load_run`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from orchestrator.catalog import did_you_mean
from orchestrator.errors import UsageError
from orchestrator.model import ArmResult, Comparison, Evaluation, Manifest, Plan, Replicate
from orchestrator.results import tables
from orchestrator.results.evaluation import gather, judge_gathered
from orchestrator.results.run_folder import RunFolder

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Run:
    """A run, read and judged.

    Its replicates are those that count: neither the pilot's nor those of a repeated round.
    """

    path: Path
    evaluation: Evaluation
    replicates: tuple[Replicate, ...]
    # The build and the first call of these replicates count, even if they made no other call.
    openings: tuple[Replicate, ...]

    @property
    def plan(self) -> Plan:
        return self.evaluation.plan

    @property
    def manifest(self) -> Manifest:
        return self.evaluation.manifest

    @property
    def arms(self) -> tuple[ArmResult, ...]:
        return self.evaluation.arms

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return self.evaluation.comparisons

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings at the top of every report; streams that break the contract come first."""
        return (*self.evaluation.broken, *self.evaluation.warnings)

    def to_arrow(self, what: str = "calls") -> pa.Table:
        """Return `arms`, `comparisons`, `metrics`, `replicates` or `calls`, as docs/library.md describes the tables."""
        if what not in tables.TABLES:
            raise UsageError(
                f"no table {what!r}{did_you_mean(what, tables.TABLES)}; choose from {', '.join(tables.TABLES)}"
            )
        if what == "calls":
            return tables.calls(RunFolder.open(self.path), self.replicates)
        if what == "replicates":
            return tables.replicates(self.plan, self.replicates)
        if what == "arms":
            return tables.arms(self.evaluation)
        return tables.comparisons(self.plan, self.comparisons if what == "comparisons" else self.evaluation.of_metrics)

    def to_pandas(self, what: str = "calls") -> "pandas.DataFrame":
        """Return the same table for pandas, which must be installed in addition to tfcompare."""
        return self.to_arrow(what).to_pandas()


def load_run(path: str | Path, also: Callable[[pa.Table], None] | None = None) -> Run:
    """Load whatever can be read of a run folder, finished or not.

    `also` is called with the rows of each stream as it is read, for callers that need every call without holding all of
    them in memory.
    """
    folder = RunFolder.open(Path(path))
    contents = gather(folder, also)
    return Run(folder.path, judge_gathered(contents), contents.replicates, contents.openings)
