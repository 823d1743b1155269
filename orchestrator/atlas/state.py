"""The stored state of an atlas that is being measured.

FOLDER/atlas.json      everything, written as a whole after every unit
FOLDER/units/NN/       the run of each unit, as `tfcompare run` leaves it
FOLDER/units/earlier/  runs of units in which a target was missing that could be installed later
FOLDER/causes/ID/      why a large step occurred, as `tfcompare why` leaves it
FOLDER/site/           the pages, tables and texts
FOLDER/logs/           output of installs
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import files
from orchestrator.atlas.figures import AtlasCause
from orchestrator.atlas.units import AtlasUnit
from orchestrator.catalog import seals
from orchestrator.formats import ATLAS_STATE
from orchestrator.model import STRICT
from orchestrator.plan.request import RunOptions
from orchestrator.results.stamped import read_stamped

STATE_FILE = "atlas.json"
UNITS, EARLIER, CAUSES, SITE = "units", "earlier", "causes", "site"
# The state file of an atlas is never larger than this.
MOST_BYTES = 2**24


@dataclass(frozen=True, kw_only=True)
class AtlasQuestion:
    """How did cases move from release to release? `run` says how to measure a unit, without its targets."""

    __pydantic_config__ = STRICT

    title: str
    # Each is a target, the oldest first.
    releases: tuple[str, ...]
    run: RunOptions
    # Levels are against this target; without one, they are against the newest release.
    against: str = ""
    # This many of the largest steps are explained.
    explained: int = 10

    def with_index(self, url: str | None) -> "AtlasQuestion":
        """Return the question with another index URL, which is never stored because it may contain a login."""
        environments = replace(self.run.environments, index_url=url)
        return replace(self, run=replace(self.run, environments=environments))


@dataclass(frozen=True, kw_only=True)
class UnitRun:
    """A unit as far as it was measured; `failure` says why it could not be."""

    __pydantic_config__ = STRICT

    # These are the rounds of all its comparisons together.
    rounds: int = 0
    seconds: float = 0.0
    is_done: bool = False
    failure: str = ""
    # These targets could not be installed; if they can be later, the unit is measured again.
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class InstalledTarget:
    """An environment that the atlas has installed: its engine, and what identifies it there."""

    __pydantic_config__ = STRICT

    engine: str
    identity: str


@dataclass(frozen=True, kw_only=True)
class AtlasState:
    __pydantic_config__ = STRICT

    created: datetime
    tool: str
    contract: str
    host: dict[str, str | int | float | None]
    # These are the digests of the workloads, as in the manifest of a run.
    sources: dict[str, str] = field(default_factory=dict)
    question: AtlasQuestion
    # These were asked for as well and cannot be planned here; the values are the reasons.
    left_out: dict[str, str] = field(default_factory=dict)
    units: tuple[AtlasUnit, ...]
    engine: str | None = None
    # The keys are names of units.
    runs: dict[str, UnitRun] = field(default_factory=dict)
    # The atlas has installed these targets itself, so it may remove them. It was about to install the others.
    installed: dict[str, InstalledTarget] = field(default_factory=dict)
    installing: tuple[str, ...] = ()
    causes: tuple[AtlasCause, ...] = ()

    @property
    def seconds(self) -> float:
        return sum(run.seconds for run in self.runs.values())


@cache
def _adapter() -> TypeAdapter[AtlasState]:
    return TypeAdapter(AtlasState)


def holds_atlas(folder: Path) -> bool:
    return (folder / STATE_FILE).is_file()


def require_atlas_seal(folder: Path, state: AtlasState) -> None:
    """Raise UsageError unless this user wrote the state, because it names what is executed and removed."""
    seals.require(folder, _dump(state))


def seal_atlas(folder: Path, state: AtlasState) -> None:
    seals.write_seal(folder, _dump(state))


def _dump(state: AtlasState) -> bytes:
    return _adapter().dump_json(replace(state, question=state.question.with_index(None)), indent=1)


def list_atlas(state: AtlasState) -> list[str]:
    """Return the settings that decide what an atlas executes, reads and removes, one per line."""
    question = TypeAdapter(AtlasQuestion).dump_python(state.question.with_index(None), mode="json")
    run = question.pop("run")
    environments = run.pop("environments")
    settings = {**question, **run, **environments, "engine": state.engine or state.question.run.engine}
    lines = [f"{name}: {value}" for name, value in settings.items() if value]
    return [*lines, *(f"may remove: {each.identity} ({each.engine})" for each in state.installed.values())]


def write_atlas(folder: Path, state: AtlasState) -> None:
    seal_atlas(folder, state)
    with files.writing(folder / STATE_FILE, f"the measurements are kept in {folder}"):
        files.write_atomically(folder / STATE_FILE, ATLAS_STATE.stamp(_dump(state)) + b"\n")


def read_atlas(folder: Path) -> AtlasState:
    missing = f"holds no atlas (it has no {STATE_FILE}); `tfcompare atlas --output FOLDER` starts one"
    return read_stamped(folder / STATE_FILE, ATLAS_STATE, _adapter(), MOST_BYTES, missing)
