"""The types of a worker's profile of an arm."""

import statistics
from dataclasses import dataclass
from typing import Literal, NamedTuple

from orchestrator.model.cases import Case, Target
from orchestrator.model.strict import STRICT


@dataclass(frozen=True, kw_only=True)
class CallTimes:
    """The calls of a function and their time: its own, and with everything that it called."""

    __pydantic_config__ = STRICT

    calls: int
    own_ns: int
    cumulative_ns: int


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function of a profile.

    `start` is the time until the third call, and `later` the calls after it. A function written in C has no file.
    """

    __pydantic_config__ = STRICT

    file: str
    line: int
    name: str
    start: CallTimes
    later: CallTimes


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
                raise ValueError(f"node {position} is not a valid node of a tree: {node}")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The profile of a case in one version.

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

    def share(self, name: str) -> float:
        """Return the share of the later calls' time that a function of this name takes, with all that it calls.

        A method also counts under its own name, because newer Pythons put its class before it.
        """
        whole_ns = sum(function.later.own_ns for function in self.functions)
        named = [function for function in self.functions if name in (function.name, function.name.rpartition(".")[2])]
        spent_ns = [function.later.cumulative_ns for function in named]
        return max(spent_ns, default=0) / whole_ns if whole_ns else 0.0


@dataclass(frozen=True, kw_only=True)
class LayerOutput:
    """The output of a layer and its weights, as sketches."""

    __pydantic_config__ = STRICT

    name: str
    type: str
    output: str
    weights: str | None = None


@dataclass(frozen=True, kw_only=True)
class ProfiledArm:
    """A case in a version, and its profile or the reason why there is none."""

    __pydantic_config__ = STRICT

    case: Case
    target: Target
    outcome: Literal["profiled", "refused", "died"]
    reason: str = ""
    log: str = ""
    profile: Profile | None = None
    # The outputs of Keras layers are only set if they were requested instead of a profile.
    layers: tuple[LayerOutput, ...] | None = None
