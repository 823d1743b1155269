"""What a run will do, and what it is made with: plan.json and manifest.json."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from orchestrator.model.cases import Arm, Case, Target
from orchestrator.model.claims import Claim
from orchestrator.model.pairs import Cases, Metric, Pair
from orchestrator.model.strict import STRICT

GpuRequest = Literal["runtime", "device", "cdi"]
# Whether a replicate is forked from a resident worker, or has a separate process or container.
Isolation = Literal["fork", "process", "container"]
# What the time of a call in a burst is: that which passes meanwhile, or that which CPUs spend on it.
Judge = Literal["wall", "cpu"]


@dataclass(frozen=True, kw_only=True)
class LargeFile:
    """A file of a workload folder, or a folder of data in it, that is too large to copy.

    It is used where it is, and recognised by size and time.
    """

    __pydantic_config__ = STRICT

    name: str
    path: str
    bytes: int
    modified_ns: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run will do, fixed before its first measurement. With claims, only the arms that they name."""

    __pydantic_config__ = STRICT

    run: str
    created: datetime
    suite: str
    engine: str
    device: str
    targets: tuple[Target, ...]
    cases: Cases
    pairs: tuple[Pair, ...]
    looks: tuple[int, ...]
    alpha: float
    margin: float
    budget_s: float | None
    seed: int
    threads: tuple[int, int] | None
    timeout_s: float
    isolation: Isolation
    cpus: tuple[int, ...] | None
    memory_mb: int | None
    # What runs containers, if it is not the engine's own.
    runtime: str
    claims: tuple[Claim, ...]
    # By UUID; with device gpu and none named, all that the engine gives. Exclusive: one process at a time holds them.
    gpus: tuple[str, ...]
    exclusive: bool
    # The frequency at which the clocks of the GPUs are held.
    lock_mhz: int | None
    # Of the user's own workload folder, what was not copied into the run folder.
    large: tuple[LargeFile, ...]
    # Of the targets that change a version: from these they can be made again.
    definitions: tuple[str, ...]
    # The words of the program that is measured instead of workloads, and the packages that it needs.
    program: tuple[str, ...]
    requirements: tuple[str, ...]
    # What is judged across versions in addition to the pairs, from the rounds that these take.
    metrics: tuple[Metric, ...]
    # Of these, those that get more rounds while a comparison of theirs is open.
    decides: tuple[Metric, ...]
    # Whether what calls return is compared as well.
    outputs: bool
    # What counts as a difference of a metric, where the user named it: a share or, of differences, an amount.
    margins: dict[Metric, float]
    # Which time verdicts on times rest on.
    judge: Judge
    # How many rounds the pilot may plan where those of the looks would not show the margin; 0 if no more than these.
    most_rounds: int

    def arms(self) -> tuple[Arm, ...]:
        """Return the arms to measure."""
        return list_arms(self.cases, self.targets, self.claims, self.device)


def list_arms(
    cases: tuple[Case, ...], targets: tuple[Target, ...], claims: tuple[Claim, ...], device: str
) -> tuple[Arm, ...]:
    """Return all cases in all versions or, with claims, the arms of those that this device can test."""
    named = {arm for claim in claims if device in claim.devices for arm in claim.arms}
    every = (Arm(case, target) for case in cases for target in targets)
    return tuple(arm for arm in every if not claims or arm.key in named)


@dataclass(frozen=True, kw_only=True)
class EnvironmentFacts:
    """The environment of a target."""

    __pydantic_config__ = STRICT

    target: str
    kind: str
    identity: str
    lock: str
    python: str
    details: dict[str, str]
    # What is installed, by name with its number; and the variables that this target alone gets.
    packages: dict[str, str]
    variables: dict[str, str]
    # What it takes of the disk.
    size_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class MergedHost:
    """A machine that measured some of the cases of a run, and the run that it measured them in."""

    __pydantic_config__ = STRICT

    run: str
    host: dict[str, str | int | float | None]
    cases: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a run was made with: tool, machine, sources and environments. `notes` are shown in every report."""

    __pydantic_config__ = STRICT

    tool: str
    contract: str
    command: tuple[str, ...]
    host: dict[str, str | int | float | None]
    sources: dict[str, str]
    environments: dict[Target, EnvironmentFacts]
    workers: dict[Target, dict[str, str | bool | None]]
    notes: tuple[str, ...]
    # Those of the caller that reached every worker, such as XLA_FLAGS.
    variables: dict[str, str]
    # Of a run that was put together from others.
    hosts: tuple[MergedHost, ...]
