"""What a profile is, and how the profiles of several versions compare. Pure."""

import hashlib
import re
import statistics
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from orchestrator.errors import TfCompareError
from orchestrator.model import STRICT, Case, Target

Outcome = Literal["profiled", "refused", "died"]
LONGEST_NAME = 150
FILE_LABEL = re.compile(r"[\w.-]+(\[[\w.=,-]*\])?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """The calls of a function and their time: its own, and with everything that it called."""

    __pydantic_config__ = STRICT

    calls: int
    own_ns: int
    cumulative_ns: int


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function of a profile.

    `start` is the time until the third call, and `steady` the calls after it. A function written in C has no file.
    """

    __pydantic_config__ = STRICT

    file: str
    line: int
    name: str
    start: Spent
    steady: Spent


class Frame(NamedTuple):
    file: str
    line: int
    name: str


class Node(NamedTuple):
    """A frame reached by one stack.

    The node of its caller comes before it; a parent of -1 means that it has no caller.
    """

    parent: int
    frame: int
    own_ns: int


@dataclass(frozen=True, kw_only=True)
class Stacks:
    """Own time by stack, from a few calls under a tracer.

    A branch below a given share of the total is folded into its caller.
    """

    __pydantic_config__ = STRICT

    calls: int
    fold_below: float
    frames: tuple[Frame, ...]
    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        for position, node in enumerate(self.nodes):
            if not (-1 <= node.parent < position and 0 <= node.frame < len(self.frames)):
                raise ValueError(f"node {position} is no node of a tree: {node}")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Where the time of a case went in one version.

    The times were taken under a profiler, so none of them is a measurement.
    """

    __pydantic_config__ = STRICT

    profiler: Literal["cProfile", "tracer"]
    calls: int
    steps: int
    plain_ns: tuple[int, ...]
    profiled_ns: tuple[int, ...]
    functions: tuple[Function, ...]
    stacks: Stacks

    @property
    def iterations(self) -> int:
        """The number of steps under the profiler."""
        return self.calls * self.steps

    @property
    def longer(self) -> float:
        """The factor by which the profiler made a call longer."""
        return statistics.median(self.profiled_ns) / max(1.0, statistics.median(self.plain_ns))


@dataclass(frozen=True, kw_only=True)
class ProfiledArm:
    """A case in a version, and its profile or the reason why there is none."""

    __pydantic_config__ = STRICT

    case: Case
    version: Target
    outcome: Outcome
    reason: str = ""
    log: str = ""
    profile: Profile | None = None


@dataclass(frozen=True, kw_only=True)
class Heading:
    """What was profiled, and where."""

    __pydantic_config__ = STRICT

    run: str
    created: datetime
    engine: str
    device: str
    host: dict[str, str | int | float | None]
    versions: tuple[Target, ...]
    cases: tuple[Case, ...]
    calls: int
    seed: int
    top: int
    pythons: dict[Target, str]


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """The result of `tfcompare profile`: its arms by case, and where its files are.

    `error` is what cut it short, if anything.
    """

    heading: Heading
    arms: tuple[ProfiledArm, ...]
    path: Path
    error: TfCompareError | None = None


def stem(case: Case, version: Target) -> str:
    """Return a file name for an arm.

    If labels cannot be used as file names, a digest keeps them apart.
    """
    name = case.label.removesuffix("]").replace("[", ",")
    if len(name) > LONGEST_NAME or not FILE_LABEL.fullmatch(case.label):
        digest = hashlib.sha256(case.label.encode()).hexdigest()[:8]
        name = re.sub(r"[^\w.=,-]+", "-", name)[:LONGEST_NAME] + f"-{digest}"
    return f"{name}-{version}"
