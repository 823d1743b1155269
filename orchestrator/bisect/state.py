"""The stored state of a search: the question, the versions it considers, and every step that was measured.

FOLDER/bisect.json   everything, written as a whole after every step
FOLDER/steps/NN/     the run of each step, as `tfcompare run` leaves it
FOLDER/logs/         output of the installs of single versions
"""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType

from pydantic import TypeAdapter

from orchestrator import files
from orchestrator.bisect.search import BisectFinding, SearchResult, StepKind, search
from orchestrator.catalog import seals
from orchestrator.formats import SEARCH
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS, TIME, Followed
from orchestrator.model import STRICT, Case
from orchestrator.plan.request import RunOptions
from orchestrator.results.stamped import read_stamped

STATE_FILE = "bisect.json"
# The commits of a package are searched, and not its releases.
GIT = "@git"
# The state file of a search is never larger than this.
MOST_BYTES = 2**28


@dataclass(frozen=True, kw_only=True)
class Question:
    """The question of a search; `run` says how to measure each step, without its versions."""

    __pydantic_config__ = STRICT

    good: str
    bad: str
    run: RunOptions
    # Every version is measured with these changes, each written as in a target, such as TF_ENABLE_ONEDNN_OPTS=0.
    changes: tuple[str, ...] = ()
    nightlies: bool = False
    every: bool = False
    # The search looks for a change in this metric.
    metric: Followed = TIME
    # The search is over the releases of this package, over its commits if it ends with @git, or over TensorFlow if it
    # is ''. With a package, every candidate has this version of TensorFlow. Commits may come from a checkout.
    over: str = ""
    version: str = ""
    source: Path | None = None

    @property
    def package(self) -> str:
        """The package that is searched, or ''."""
        return self.over.removesuffix(GIT)

    @property
    def is_over_commits(self) -> bool:
        return self.over.endswith(GIT)

    def targets(self, candidates: Iterable[str], wheels: Mapping[str, Path] = MappingProxyType({})) -> tuple[str, ...]:
        """Return the target of each candidate, which is a release or a name such as `keras-3.8.0`.

        A commit needs its wheel.
        """
        if not self.over:
            return tuple(shlex.join([number, *self.changes]) for number in candidates)
        pinned = {
            name: f"wheel={wheels[name]}"
            if self.is_over_commits
            else f"{self.over}=={name.removeprefix(f'{self.over}-')}"
            for name in candidates
        }
        return tuple(shlex.join([self.version, *self.changes, pin, "as", name]) for name, pin in pinned.items())

    @property
    def margin(self) -> float:
        """The smallest difference of the metric that counts; results use the margin of times."""
        run, spec = self.run, METRICS[TIME if self.metric == RESULTS else self.metric]
        return run.margins.get(spec.name, run.margin if spec.margin is None else spec.margin)

    @property
    def scaled_margin(self) -> float:
        """The margin on the scale of the metric."""
        return METRICS[TIME if self.metric == RESULTS else self.metric].scale.to_scale(self.margin)

    def with_index(self, url: str | None) -> "Question":
        """Return the question with another index URL, which is never stored because it may contain a login."""
        environments = replace(self.run.environments, index_url=url)
        return replace(self, run=replace(self.run, environments=environments))


@dataclass(frozen=True, kw_only=True)
class SkippedVersion:
    """A version that cannot be measured; if its `environment` could not be made ready, another attempt may succeed."""

    __pydantic_config__ = STRICT

    version: str
    reason: str
    environment: bool


@dataclass(frozen=True, kw_only=True)
class Step:
    """A run and what was learned from it.

    A step without a run holds a comparison of environment sizes, or a version that cannot be measured.
    """

    __pydantic_config__ = STRICT

    kind: StepKind
    versions: tuple[str, ...]
    run: str | None
    seconds: float
    findings: tuple[BisectFinding, ...] = ()
    skipped: tuple[SkippedVersion, ...] = ()


@dataclass(frozen=True, kw_only=True)
class State:
    __pydantic_config__ = STRICT

    created: datetime
    tool: str
    contract: str
    host: dict[str, str | int | float | None]
    sources: dict[str, str]
    question: Question
    case: Case
    candidates: tuple[str, ...]
    engine: str | None = None
    # This is true once the nightlies between neighbouring releases were added; the notes are about them.
    deepened: bool = False
    notes: tuple[str, ...] = ()
    steps: tuple[Step, ...] = field(default=())

    @property
    def findings(self) -> tuple[BisectFinding, ...]:
        return tuple(finding for step in self.steps for finding in step.findings)

    @property
    def skipped(self) -> dict[str, SkippedVersion]:
        """The versions that are left out; one that was measured once is kept, even if it failed at another time."""
        measured = {version for finding in self.findings for version in (finding.earlier, finding.later)}
        by_version = {skipped.version: skipped for step in self.steps for skipped in step.skipped}
        return {version: skipped for version, skipped in by_version.items() if version not in measured}

    @property
    def measured(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.run is not None or step.findings)

    @property
    def search_result(self) -> SearchResult:
        question = self.question
        return search(self.candidates, self.findings, self.skipped, question.scaled_margin, every=question.every)


@cache
def _adapter() -> TypeAdapter[State]:
    return TypeAdapter(State)


def exists(folder: Path) -> bool:
    return (folder / STATE_FILE).is_file()


def seal(folder: Path, state: State) -> None:
    """Record that this user asked the question, or has looked at it; the steps that follow are not sealed."""
    seals.write_seal(folder, _dump_question(state))


def require_search_seal(folder: Path, state: State) -> None:
    """Raise UsageError unless the user asked the question of a search, because it names code that will be executed."""
    seals.require(folder, _dump_question(state))


def _dump_question(state: State) -> bytes:
    question = TypeAdapter(Question).dump_json(state.question.with_index(None))
    return b"\n".join([question, json.dumps(state.sources, sort_keys=True).encode()])


def describe_question(state: State) -> list[str]:
    """Return the settings that decide what a search executes and reads, one per line."""
    question = TypeAdapter(Question).dump_python(state.question, mode="json")
    run = question.pop("run")
    environments = run.pop("environments")
    return [f"{name}: {value}" for name, value in {**question, **run, **environments}.items() if value]


def write_state(folder: Path, state: State) -> None:
    seal(folder, state)
    with files.writing(folder / STATE_FILE, f"the measured steps are in {folder / 'steps'}"):
        stored = replace(state, question=state.question.with_index(None))
        files.write_atomically(folder / STATE_FILE, SEARCH.stamp(_adapter().dump_json(stored, indent=1)) + b"\n")


def read_state(folder: Path) -> State:
    missing = f"holds no search (it has no {STATE_FILE}); `tfcompare bisect --output FOLDER` starts one"
    return read_stamped(folder / STATE_FILE, SEARCH, _adapter(), MOST_BYTES, missing)


def retry_skipped(state: State) -> State:
    """Return the state to resume with, in which versions that could not be made ready are tried again.

    The reason may have been the network or the disk.
    """
    steps = tuple(
        replace(step, skipped=tuple(skipped for skipped in step.skipped if not skipped.environment))
        for step in state.steps
    )
    return replace(state, steps=tuple(step for step in steps if step.run is not None or step.findings or step.skipped))
