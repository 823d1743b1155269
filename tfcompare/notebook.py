"""Measures and loads runs from Python, for programs and for notebooks, which show a run as a table."""

import io
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.catalog.outside import find_allowed
from orchestrator.cli import parse
from orchestrator.cli.run import find_own_and_newest
from orchestrator.engines import ENGINES
from orchestrator.errors import UsageError
from orchestrator.measure.run import plan_and_measure
from orchestrator.metrics import NAMES
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions
from orchestrator.reports.matrix import describe_compared, layout
from orchestrator.results import run as runs
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.progress import choose_view

if TYPE_CHECKING:
    import pyarrow as pa

# A notebook shows lines of about this length.
WIDTH = 110
# The command line also requires at least this many rounds.
FEWEST = 2
PAGE = '<pre style="line-height: 1.3; white-space: pre; overflow-x: auto">{code}</pre>'


class Run(runs.Run):
    """A run that was read and judged. It prints as one line, and a notebook shows the table of its report."""

    def __repr__(self) -> str:
        cases = format_count(len({arm.case for arm in self.arms}), "case")
        return f"<Run {self.plan.run}: {describe_compared(self.plan)}, {cases}, in {self.path}>"

    def _repr_html_(self) -> str:
        console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
        console.print(layout(self.evaluation, WIDTH))
        return console.export_html(inline_styles=True, code_format=PAGE)


def load_run(path: str | Path, also: "Callable[[pa.Table], None] | None" = None) -> Run:
    """Load whatever can be read of a run folder, finished or not.

    `also` is called with the rows of each stream as it is read, for callers that need every call without holding all of
    them in memory.
    """
    loaded = runs.load_run(path, also)
    return Run(loaded.path, loaded.evaluation, loaded.replicates, loaded.openings)


def compare_targets(
    *targets: str,
    workload_folder: str | Path | None = None,
    suite: str | None = None,
    cases: Sequence[str] = (),
    budget: str | None = None,
    rounds: int | None = None,
    margin: str = "5%",
    metrics: Sequence[str] | None = None,
    engine: str = "auto",
    gpu: bool = False,
    output: str | Path | None = None,
    quiet: bool = False,
) -> Run:
    """Measure these targets, the baseline first, as `tfcompare run` does with the flags of these names.

    Without targets, the TensorFlow of the active environment is compared with the newest release.
    If some arms died, they are in the run, and a warning says so. If nothing could be measured, the error is raised.
    """
    parse.one_of("engine", "engine", engine, ("auto", *ENGINES))
    for name in metrics or ():
        parse.one_of("metrics", "metric", name, NAMES)
    if rounds is not None and rounds < FEWEST:
        raise UsageError(f"rounds must be at least {FEWEST}, not {rounds}")
    view = choose_view(Console(stderr=True), quiet=quiet, verbose=False)
    named = targets or find_own_and_newest(view)
    parse.check_targets(named)
    margins, folder = parse.margin(margin), Path(workload_folder) if workload_folder is not None else None
    options = RunOptions(
        versions=named,
        suite=suite,
        selected=tuple(cases),
        own_workloads=folder,
        outside=find_allowed(folder, ()),
        engine=engine,
        environments=EngineOptions(gpu=gpu),
        out=Path(output) if output is not None else None,
        rounds=rounds,
        budget_s=parse.budget(budget),
        margin=margins.share,
        margins=margins.of_metrics,
        metrics=None if metrics is None else tuple(metrics),
        command=("compare_targets", *named),
    )
    with view:
        done = plan_and_measure(options, view)
    if done.error:
        warnings.warn(str(done.error), stacklevel=2)
    return load_run(done.path)
