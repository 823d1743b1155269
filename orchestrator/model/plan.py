"""The plan of a run, and the manifest of what it is made with: plan.json and manifest.json."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from orchestrator.model.cases import Arm, Case, Target
from orchestrator.model.claims import Claim
from orchestrator.model.pairs import Cases, Metric, Pair
from orchestrator.model.strict import STRICT

GpuRequest = Literal["runtime", "device", "cdi"]
# A replicate is forked from a resident worker, or has a separate process or container.
Isolation = Literal["fork", "process", "container"]
# The time of a call in a burst is either its wall time or its CPU time.
Judge = Literal["wall", "cpu"]
# Each target is compared with the first one, with the one before it, or with all others.
Pairing = Literal["first", "neighbours", "all"]


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
    """The plan of a run, fixed before its first measurement. With claims, it has only the arms that they name."""

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
    # No dataset is tuned while it is read, unless its own options say so.
    untuned_datasets: bool
    # The code that XLA compiles is kept until the run ends: only the first replicate of a target compiles.
    keeps_xla_code: bool
    timeout_s: float
    isolation: Isolation
    cpus: tuple[int, ...] | None
    memory_mb: int | None
    # This runtime runs containers, if it is not the engine's own.
    runtime: str
    claims: tuple[Claim, ...]
    # GPUs are named by UUID. If device is gpu and none is named, all that the engine gives are used. Exclusive GPUs are
    # held by one process at a time.
    gpus: tuple[str, ...]
    exclusive: bool
    # The clocks of the GPUs are held at this frequency.
    lock_mhz: int | None
    # These files of the user's own workload folder were not copied into the run folder.
    large: tuple[LargeFile, ...]
    # Targets that change a version can be created again from these definitions.
    definitions: tuple[str, ...]
    # A program may be measured instead of workloads. These are the words of its command and the packages that it needs.
    program: tuple[str, ...]
    requirements: tuple[str, ...]
    # These metrics are judged across versions in addition to the pairs, from the rounds that the pairs take.
    metrics: tuple[Metric, ...]
    # Some of the metrics get more rounds while one of their comparisons is open.
    decides: tuple[Metric, ...]
    # If set, the results of calls are also compared.
    outputs: bool
    # The user named these margins of metrics. Each is a share or, for a metric of differences, an amount.
    margins: dict[Metric, float]
    # Verdicts on times rest on this kind of time.
    judge: Judge
    # The pilot may plan up to this many rounds if those of the looks are too few to detect a difference as large as the
    # margin. 0 allows no further rounds.
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
    # `packages` has the version of each installed package, and `variables` the environment variables of this target
    # alone.
    packages: dict[str, str]
    variables: dict[str, str]
    # The environment takes this much disk space.
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
    """The record of how a run was made: tool, machine, sources and environments. Every report shows its `notes`."""

    __pydantic_config__ = STRICT

    tool: str
    contract: str
    command: tuple[str, ...]
    host: dict[str, str | int | float | None]
    sources: dict[str, str]
    environments: dict[Target, EnvironmentFacts]
    workers: dict[Target, dict[str, str | bool | None]]
    notes: tuple[str, ...]
    # These variables of the caller, such as XLA_FLAGS, reached every worker.
    variables: dict[str, str]
    # Only a run that was merged from other runs has hosts.
    hosts: tuple[MergedHost, ...]
