"""The actions by which a search affects the outside world; another machine or a test can replace each of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.bisect import commits
from orchestrator.bisect.state import State
from orchestrator.catalog import changed, lock_on_demand
from orchestrator.catalog.package_index import list_final_releases
from orchestrator.catalog.version import FlavourName
from orchestrator.errors import TfCompareError
from orchestrator.machine.host import Facts, host_facts, is_here
from orchestrator.measure import run as running
from orchestrator.measure.run import Done
from orchestrator.plan.request import RunOptions
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View


@dataclass(frozen=True)
class SearchActions:
    """The functions through which a search acts on the outside world."""

    measure: Callable[[RunOptions, View], Done] = running.plan_and_measure
    provide: Callable[[Sequence[str], View, FlavourName], tuple[str, ...]] = changed.provide_targets
    nightlies: Callable[[], Iterable[str]] = lock_on_demand.nightlies
    releases: Callable[[str, str], Iterable[str]] = list_final_releases
    obstacle: Callable[[RunOptions, str, RunFolder, View], TfCompareError | None] | None = None
    build: Callable[[Path, State, tuple[str, ...], View], Mapping[str, Path]] = commits.build_wheels
    # These describe the machine that measures, and check whether stored facts are of this machine.
    host: Callable[[], Facts] = host_facts
    is_here: Callable[[Mapping[str, object]], bool] = is_here
