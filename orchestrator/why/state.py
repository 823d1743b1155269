"""The stored state of a question: what is asked, the ladders that were measured, and what else was found.

FOLDER/why.json      everything, written as a whole after every step
FOLDER/steps/NN/     the run of each step, as `tfcompare run` leaves it
FOLDER/search/       the search for the release that made the change, as `tfcompare bisect` leaves it
FOLDER/profile/      the profile of the two targets of the rung that matters most
FOLDER/logs/         output of the installs of single targets
"""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import files
from orchestrator.catalog import seals
from orchestrator.formats import WHY
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS, TIME, Followed
from orchestrator.model import STRICT, Case
from orchestrator.plan.request import RunOptions
from orchestrator.results.stamped import read_stamped
from orchestrator.why.ladder import Ladder

STATE_FILE = "why.json"
STEPS, SEARCH, PROFILE = "steps", "search", "profile"
# The state file of a question is never larger than this.
MOST_BYTES = 2**24


@dataclass(frozen=True, kw_only=True)
class WhyQuestion:
    """Why does a case differ between two targets? `run` says how to measure each ladder, without its targets."""

    __pydantic_config__ = STRICT

    old: str
    new: str
    run: RunOptions
    # All ladders together measure at most this long.
    budget_s: float
    metric: Followed = TIME
    # If set, the release that brought the largest change is searched for.
    search: bool = True

    @property
    def margin(self) -> float:
        """The margin on the scale of the metric."""
        spec, run = METRICS[TIME if self.metric == RESULTS else self.metric], self.run
        margin = run.margins.get(spec.name, run.margin if spec.margin is None else spec.margin)
        return spec.scale.to_scale(margin)

    def with_index(self, url: str | None) -> "WhyQuestion":
        """Return the question with another index URL, which is never stored because it may contain a login."""
        environments = replace(self.run.environments, index_url=url)
        return replace(self, run=replace(self.run, environments=environments))


@dataclass(frozen=True, kw_only=True)
class LadderStep:
    """A ladder and the run that measures it, as its folder below that of the question."""

    __pydantic_config__ = STRICT

    ladder: Ladder
    run: str
    seconds: float = 0.0
    # An interrupted run is not done.
    is_done: bool = False


@dataclass(frozen=True, kw_only=True)
class RemedyStep:
    """Targets that may bring back what was lost, measured between the two ends. A claim may name one of them."""

    __pydantic_config__ = STRICT

    # Each has its name, its text, and the claim that names it or ''.
    tried: tuple[tuple[str, str, str], ...]
    run: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class WhyState:
    __pydantic_config__ = STRICT

    created: datetime
    tool: str
    contract: str
    host: dict[str, str | int | float | None]
    sources: dict[str, str]
    question: WhyQuestion
    case: Case
    engine: str | None = None
    ladders: tuple[LadderStep, ...] = ()
    remedies: RemedyStep | None = None
    # These say what could not be undone, and why.
    notes: tuple[str, ...] = ()
    searched: bool = False
    # This is the folder of the profile, below that of the question.
    profile: str = ""
    # The search took this many seconds.
    search_s: float = 0.0

    @property
    def seconds(self) -> float:
        """The time that was spent on measuring."""
        spent = sum(step.seconds for step in self.ladders) + self.search_s
        return spent + (self.remedies.seconds if self.remedies else 0.0)

    @property
    def left_s(self) -> float:
        return max(self.question.budget_s - self.seconds, 0.0)


@cache
def _adapter() -> TypeAdapter[WhyState]:
    return TypeAdapter(WhyState)


def holds_question(folder: Path) -> bool:
    return (folder / STATE_FILE).is_file()


def require_question_seal(folder: Path, state: WhyState) -> None:
    """Raise UsageError unless this user wrote the state, because its question and its ladders name what is executed."""
    seals.require(folder, _dump(state))


def seal_question(folder: Path, state: WhyState) -> None:
    seals.write_seal(folder, _dump(state))


def _dump(state: WhyState) -> bytes:
    return _adapter().dump_json(replace(state, question=state.question.with_index(None)), indent=1)


def list_settings(state: WhyState) -> list[str]:
    """Return the settings that decide what a question executes and reads, one per line."""
    question = TypeAdapter(WhyQuestion).dump_python(state.question, mode="json")
    run = question.pop("run")
    environments = run.pop("environments")
    lines = [f"{name}: {value}" for name, value in {**question, **run, **environments}.items() if value]
    tried = [text for _, text, _ in state.remedies.tried] if state.remedies else []
    targets = dict.fromkeys((*(text for step in state.ladders for text in step.ladder.texts), *tried))
    return [*lines, *(f"target: {text}" for text in targets)]


def write_question(folder: Path, state: WhyState) -> None:
    seal_question(folder, state)
    with files.writing(folder / STATE_FILE, f"the measured steps are in {folder / STEPS}"):
        files.write_atomically(folder / STATE_FILE, WHY.stamp(_dump(state)) + b"\n")


def read_question(folder: Path) -> WhyState:
    missing = f"holds no question (it has no {STATE_FILE}); `tfcompare why --output FOLDER` starts one"
    return read_stamped(folder / STATE_FILE, WHY, _adapter(), MOST_BYTES, missing)
