"""The stored state of an upgrade: the question, and each part of the answer as soon as it is available.

FOLDER/upgrade.json    everything, written as a whole after every part
FOLDER/run/            both ends, as `tfcompare run` leaves it
FOLDER/why/            why the largest change occurred, as `tfcompare why` leaves it
FOLDER/helped/         the old end and what may help, as `tfcompare run` leaves it
FOLDER/between/        the old end and releases between the two, as `tfcompare run` leaves it
FOLDER/logs/           output of the installs
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from orchestrator import files
from orchestrator.catalog import seals
from orchestrator.formats import UPGRADE
from orchestrator.model import STRICT
from orchestrator.plan.request import RunOptions
from orchestrator.results.stamped import read_stamped

STATE_FILE = "upgrade.json"
RUN, WHY, HELPED, BETWEEN = "run", "why", "helped", "between"
# The state file of an upgrade is never larger than this.
MOST_BYTES = 2**24


@dataclass(frozen=True, kw_only=True)
class UpgradeQuestion:
    """May one move from a target to another? `run` says how to measure, without targets."""

    __pydantic_config__ = STRICT

    old: str
    new: str
    run: RunOptions
    gates: str
    # Both ends are measured for `budget_s`, and after that everything else for `more_s`.
    budget_s: float
    more_s: float
    # If this is set and the answer is `not yet`, causes, remedies and the releases between are also measured.
    remedies: bool = True

    def with_index(self, url: str | None) -> "UpgradeQuestion":
        """Return the question with another index URL, which is never stored because it may contain a login."""
        environments = replace(self.run.environments, index_url=url)
        return replace(self, run=replace(self.run, environments=environments))


@dataclass(frozen=True, kw_only=True)
class CodeWarning:
    """A warning that the code gets in the new target: a line of the user's own code, or a package."""

    __pydantic_config__ = STRICT

    kind: str
    text: str
    place: str
    line: int
    own: bool
    case: str


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """A package of the user's: it stays as it is, gets another release, or is not available in the new target."""

    __pydantic_config__ = STRICT

    text: str
    outcome: Literal["stays", "moves", "cannot move"]
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A run of the upgrade: the names of its targets with their texts, and how long it took."""

    __pydantic_config__ = STRICT

    targets: tuple[tuple[str, str], ...]
    seconds: float = 0.0
    # An interrupted run is not done.
    is_done: bool = False


@dataclass(frozen=True, kw_only=True)
class UpgradeState:
    __pydantic_config__ = STRICT

    created: datetime
    tool: str
    contract: str
    host: dict[str, str | int | float | None]
    question: UpgradeQuestion
    engine: str | None = None
    # Each end has a name, and a text with the full number of its version.
    ends: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()
    # The key of a run is the name of its folder.
    runs: dict[str, MeasuredRun] = field(default_factory=dict)
    warnings: tuple[CodeWarning, ...] | None = None
    # `asked` is what `why` was asked about, or '' for nothing; `why` is its answer, and `why_s` the time it took.
    asked: str = ""
    why: tuple[str, ...] = ()
    why_s: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The time spent on measuring."""
        return sum(run.seconds for run in self.runs.values()) + self.why_s

    @property
    def more_left_s(self) -> float:
        spent = self.seconds - self.runs[RUN].seconds if RUN in self.runs else 0.0
        return max(self.question.more_s - spent, 0.0)


@cache
def _adapter() -> TypeAdapter[UpgradeState]:
    return TypeAdapter(UpgradeState)


def holds_upgrade(folder: Path) -> bool:
    return (folder / STATE_FILE).is_file()


def require_upgrade_seal(folder: Path, state: UpgradeState) -> None:
    """Raise UsageError unless this user wrote the state, because it names what is executed."""
    seals.require(folder, _dump(state))


def seal_upgrade(folder: Path, state: UpgradeState) -> None:
    seals.write_seal(folder, _dump(state))


def _dump(state: UpgradeState) -> bytes:
    return _adapter().dump_json(replace(state, question=state.question.with_index(None)), indent=1)


def list_upgrade(state: UpgradeState) -> list[str]:
    """Return the settings that decide what an upgrade executes and reads, one per line."""
    question = TypeAdapter(UpgradeQuestion).dump_python(state.question.with_index(None), mode="json")
    run = question.pop("run")
    environments = run.pop("environments")
    lines = [f"{name}: {value}" for name, value in {**question, **run, **environments}.items() if value]
    targets = dict.fromkeys(text for each in state.runs.values() for _, text in each.targets)
    return [*lines, *(f"target: {text}" for text in (*(text for _, text in state.ends), *targets))]


def write_upgrade(folder: Path, state: UpgradeState) -> None:
    seal_upgrade(folder, state)
    with files.writing(folder / STATE_FILE, f"the measurements are kept in {folder}"):
        files.write_atomically(folder / STATE_FILE, UPGRADE.stamp(_dump(state)) + b"\n")


def read_upgrade(folder: Path) -> UpgradeState:
    missing = f"holds no upgrade (it has no {STATE_FILE}); `tfcompare upgrade --output FOLDER` starts one"
    return read_stamped(folder / STATE_FILE, UPGRADE, _adapter(), MOST_BYTES, missing)
