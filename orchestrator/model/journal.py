"""The lines of a run's journal.jsonl."""

from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Literal

from orchestrator.model.cases import ArmKey, Target
from orchestrator.model.failures import FailureKind
from orchestrator.model.strict import STRICT

# The level of each look has to be computed, and a run has about ten.
MOST_LOOKS, MOST_ROUNDS = 100, 1_000_000


def check_looks(looks: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of rounds after which a run is judged; raise ValueError if no run would plan them."""
    ascend = all(earlier < later for earlier, later in pairwise((0, *looks)))
    if not ascend or not 1 <= len(looks) <= MOST_LOOKS or looks[-1] > MOST_ROUNDS:
        raise ValueError("looks: not ascending numbers of rounds, or too many")
    return looks


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """The amount of work in each replicate of an arm.

    If `counts` is set, the pilot did the same work and was not disturbed, so it is the first round of its case.
    """

    __pydantic_config__ = STRICT

    kind: Literal["calibrated"] = "calibrated"
    case: str
    target: Target
    warmup: int
    bursts: int
    calls: int
    once: int
    counts: bool


# A replicate ends like this if its worker died with another replicate.
BESIDE = "beside"
# A replicate ends like this if its workload found a statement to be false.
ASSERTED = "asserted"


# A long run has tens of thousands of these, so fields that most of them lack have a default and are not written.
@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The end of one replicate."""

    __pydantic_config__ = STRICT

    kind: Literal["ended"] = "ended"
    target: Target
    case: str
    round: int
    replicate: int
    outcome: Literal["measured", "refused", "died"]
    how: str = ""
    reason: str = ""
    log: str = ""
    # If it was measured, `part` is the worker of its version that closed it, and `rows` how many rows it then
    # announced.
    part: int | None = None
    rows: int | None = None
    # TensorFlow reports these inter-op and intra-op threads: 0 if it chooses, and None if it did not report any.
    threads: tuple[int, ...] | None = None
    # If set, it was to make only its first call.
    once: bool = False
    # `failure` is what it died of, which is external if its own code did not cause it.
    failure: FailureKind | None = None
    external: bool = False

    def __post_init__(self) -> None:
        if self.outcome == "measured" and (self.part is None or self.rows is None):
            raise ValueError("measured, but no worker is given")
        if self.outcome == "died" and self.failure is None and self.how != BESIDE:
            raise ValueError("died, but no failure is given")

    @property
    def arm(self) -> ArmKey:
        return ArmKey(self.case, self.target)

    @property
    def closes_arm(self) -> bool:
        """Whether the arm is no longer measured; a resumed run may measure it again after an external failure."""
        return self.outcome != "measured" and self.how != BESIDE

    @property
    def refutes(self) -> bool:
        """Whether the workload found a statement to be false."""
        return self.how == ASSERTED


@dataclass(frozen=True, kw_only=True)
class Discarded:
    """Something in a worker's results folder that is not the stream of its results; it was not kept.

    `stream` means that it was in the place of the stream.
    """

    __pydantic_config__ = STRICT

    kind: Literal["discarded"] = "discarded"
    target: Target
    part: int
    what: str
    stream: bool


@dataclass(frozen=True, kw_only=True)
class Strays:
    """Processes that workloads had left running, and that were ended together with their replicate or worker."""

    __pydantic_config__ = STRICT

    kind: Literal["strays"] = "strays"
    target: Target
    part: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Disturbed:
    """A round of a case during which other processes, the machine or a GPU's clock disturbed the measurement.

    Its replicates count unless the round was repeated.
    """

    __pydantic_config__ = STRICT

    kind: Literal["disturbed"] = "disturbed"
    case: str
    round: int
    replicates: tuple[int, ...]
    cause: str
    redone: bool


@dataclass(frozen=True, kw_only=True)
class GpuSpan:
    """A GPU over several readings.

    This holds its slowest and fastest clock, its highest temperature and power, and every reason why its clock was held
    back.
    """

    __pydantic_config__ = STRICT

    index: int
    sm_mhz_min: int | None
    sm_mhz_max: int | None
    temperature_c: int | None
    power_w: int | None
    throttled: tuple[str, ...]


# All cores are shared if less than LEAST_IDLE of the CPU time is idle and other work takes more than MOST_TAKEN, and if
# tasks wait for more than LONGEST_QUEUE of the time or less than LEAST_LEFT of one core is left.
LEAST_IDLE, MOST_TAKEN, LONGEST_QUEUE, LEAST_LEFT = 0.05, 0.15, 0.5, 0.75


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load on the machine from other processes and a hypervisor during the bursts of a visit.

    `foreign` is how many of the `cpus` other processes kept busy, `steal` the share of CPU time that a hypervisor took,
    `idle` the share that was left, and `waiting` the share of the time in which some task waited for a CPU, if the
    kernel reports it.
    """

    __pydantic_config__ = STRICT

    kind: Literal["load"] = "load"
    cases: tuple[str, ...]
    round: int
    foreign: float
    steal: float
    cpus: int
    idle: float
    waiting: float | None

    @property
    def is_crowded(self) -> bool:
        """Whether the run had to share all cores with other work.

        Threads of the run also wait for each other, and leave no core idle, so both count only if there is other work.
        """
        taken = self.foreign + self.steal * self.cpus
        waited = self.waiting is not None and self.waiting > LONGEST_QUEUE
        return self.idle < LEAST_IDLE and taken > MOST_TAKEN * self.cpus and (waited or self.cpus - taken < LEAST_LEFT)


@dataclass(frozen=True, kw_only=True)
class Postponed:
    """Cases for which the budget had too few rounds; they are measured if the run gets more rounds."""

    __pydantic_config__ = STRICT

    kind: Literal["postponed"] = "postponed"
    cases: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Shares:
    """The shares of an arm's time that functions take in a profile, as far as claims ask for them.

    If there is no profile, `reason` says why.
    """

    __pydantic_config__ = STRICT

    kind: Literal["shares"] = "shares"
    case: str
    target: Target
    shares: dict[str, float] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """The readings of the GPUs during one visit of some cases, taken after each burst."""

    __pydantic_config__ = STRICT

    kind: Literal["watched"] = "watched"
    cases: tuple[str, ...]
    round: int
    gpus: tuple[GpuSpan, ...]


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A version that drops out of the run, with all its unfinished arms."""

    __pydantic_config__ = STRICT

    kind: Literal["lost"] = "lost"
    target: Target
    stage: str
    reason: str
    failure: FailureKind
    external: bool


@dataclass(frozen=True, kw_only=True)
class Synced:
    """All lines before this one, and all rows that they announce, are on the disk."""

    __pydantic_config__ = STRICT

    kind: Literal["synced"] = "synced"


@dataclass(frozen=True, kw_only=True)
class Extended:
    """More rounds for a run that had ended, with a separate seed for their order.

    Looks are counted from the run's first round. Exploratory rounds are those after the error was spent.
    """

    __pydantic_config__ = STRICT

    kind: Literal["extended"] = "extended"
    created: datetime
    command: tuple[str, ...]
    seed: int
    first_round: int
    looks: tuple[int, ...]
    budget_s: float | None
    exploratory: bool

    def __post_init__(self) -> None:
        check_looks(self.looks)


@dataclass(frozen=True, kw_only=True)
class Prolonged:
    """Looks beyond the planned ones, because the pilot saw that those would not show the margin.

    They are decided before the second round, so that all looks share the error from the first one on.
    """

    __pydantic_config__ = STRICT

    kind: Literal["prolonged"] = "prolonged"
    looks: tuple[int, ...]

    def __post_init__(self) -> None:
        check_looks(self.looks)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine's changing readings, taken when a measurement begins and when it ends."""

    __pydantic_config__ = STRICT

    kind: Literal["machine"] = "machine"
    when: Literal["begin", "end"]
    readings: dict[str, str | int | float | None]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The end of a run, and how long it measured once the workers were up; a run without this entry was cut short."""

    __pydantic_config__ = STRICT

    kind: Literal["finished"] = "finished"
    how: str
    seconds: float
    # The last start of its workers took this long. Their first start is not part of `seconds`.
    start_s: float
    # If set, it may have ended in the middle of a replicate.
    cut: bool
    # If set, `how` says that a budget ended the run, as the user requested.
    at_budget: bool


Entry = (
    Calibrated
    | Ended
    | Discarded
    | Strays
    | Disturbed
    | Load
    | Postponed
    | Shares
    | Watched
    | Lost
    | Synced
    | Extended
    | Prolonged
    | Machine
    | Finished
)
