"""The frozen types that the modules pass to each other; pydantic validates those stored in a run directory."""

import math
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationInfo

# pydantic's configuration of the types below, without an import of pydantic: whatever starts imports this module.
STRICT: dict[str, str] = {"extra": "forbid"}

GpuRequest = Literal["runtime", "device", "cdi"]
# Whether a replicate is forked from a resident worker, or has a process or a container of its own.
Isolation = Literal["fork", "process", "container"]
VerdictName = Literal["faster", "slower", "same", "inconclusive"]
ContrastKind = Literal["version", "case"]
# What of a replicate a contrast compares: its steady calls, unless a claim is about something else.
Metric = Literal["steady", "first", "build", "peak_rss", "traces"]
Effect = Literal["slower", "faster", "more", "less", "same"]

Params = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The declarations of a workload file, read without running it."""

    name: str
    summary: str
    path: Path
    params: dict[str, tuple[str, ...]]
    contrasts: dict[str, str]
    exclude: tuple[dict[str, str], ...]
    builtin: bool


@dataclass(frozen=True, order=True)
class Case:
    """A workload with its parameters fixed."""

    workload: str
    params: Params

    @cached_property
    def label(self) -> str:
        return f"{self.workload}{params_label(self.params)}"

    @property
    def params_text(self) -> str:
        """The parameters with spaces between them, so that they can be wrapped there."""
        return params_text(self.params)


class ArmKey(NamedTuple):
    """The name of an arm in files and mappings: the label of its case, and its version."""

    case: str
    version: str


class Arm(NamedTuple):
    """A case in a version, which is what a run measures."""

    case: Case
    version: str

    @property
    def key(self) -> ArmKey:
        return ArmKey(self.case.label, self.version)


# The control arm is the baseline once more, in a separate worker: what it differs by is this machine's noise. It is a
# version like any other, so its name is a version's with a suffix, in memory as in files.
_CONTROL = "+control"


def control_of(number: str) -> str:
    """Return the name of the control arm of a version."""
    return number + _CONTROL


def is_control(version: str) -> bool:
    return version.endswith(_CONTROL)


def number_of(version: str) -> str:
    """Return the number of the TensorFlow that runs in a version, which may be the control arm."""
    return version.removesuffix(_CONTROL)


def params_label(params: Params) -> str:
    return "[" + ",".join(f"{name}={value}" for name, value in params) + "]" if params else ""


def params_text(params: Params) -> str:
    return " ".join(f"{name}={value}" for name, value in params)


@dataclass(frozen=True, kw_only=True)
class FlatPair:
    """A pair of either kind as files and tables have it: cases by label, and null for what only the other kind has."""

    __pydantic_config__ = STRICT

    kind: ContrastKind
    version: str | None
    baseline: str
    candidate: str
    case: Case | None
    workload: str
    params: Params
    metric: Metric = "steady"
    margin: float | None = None


@dataclass(frozen=True, kw_only=True)
class VersionPair:
    """Two versions of one case whose ratio is requested; its margin is the plan's unless the pair has its own."""

    kind: ClassVar[Literal["version"]] = "version"

    case: Case
    baseline: str
    candidate: str
    metric: Metric = "steady"
    margin: float | None = None

    @property
    def across(self) -> bool:
        """Whether the pair compares the steady times of two versions, the main subject of a comparison."""
        return self.metric == "steady"

    @property
    def cases(self) -> tuple[Case, ...]:
        return (self.case,)

    @property
    def arms(self) -> tuple[ArmKey, ArmKey]:
        """The names of the baseline and of the candidate."""
        return ArmKey(self.case.label, self.baseline), ArmKey(self.case.label, self.candidate)

    @property
    def workload(self) -> str:
        return self.case.workload

    @property
    def params(self) -> Params:
        return self.case.params

    @property
    def flat(self) -> FlatPair:
        return FlatPair(
            kind=self.kind, version=None, baseline=self.baseline, candidate=self.candidate, case=self.case,
            workload=self.workload, params=self.params, metric=self.metric, margin=self.margin,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CasePair:
    """Two cases in one version whose ratio is requested; its margin is the plan's unless the pair has its own."""

    kind: ClassVar[Literal["case"]] = "case"
    across: ClassVar[bool] = False

    version: str
    baseline: Case
    candidate: Case
    metric: Metric = "steady"
    margin: float | None = None

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.baseline, self.candidate

    @property
    def arms(self) -> tuple[ArmKey, ArmKey]:
        """The names of the baseline and of the candidate."""
        return ArmKey(self.baseline.label, self.version), ArmKey(self.candidate.label, self.version)

    @property
    def workload(self) -> str:
        return self.candidate.workload

    @property
    def params(self) -> Params:
        """The parameters that both cases share."""
        return tuple(item for item in self.candidate.params if item in self.baseline.params)

    @property
    def apart(self) -> tuple[Params, Params]:
        """The parameters that only the baseline has, and those that only the candidate has."""
        old, new = self.baseline.params, self.candidate.params
        return tuple(item for item in old if item not in new), tuple(item for item in new if item not in old)

    @property
    def flat(self) -> FlatPair:
        return FlatPair(
            kind=self.kind, version=self.version, baseline=self.baseline.label, candidate=self.candidate.label,
            case=None, workload=self.workload, params=self.params, metric=self.metric, margin=self.margin,
        )  # fmt: skip


@cache
def _flat_pairs() -> "TypeAdapter[FlatPair]":
    from pydantic import TypeAdapter  # Only files need it, and it takes long to import.

    return TypeAdapter(FlatPair)


def _remember_cases(cases: tuple[Case, ...], info: "ValidationInfo") -> tuple[Case, ...]:
    """Keep the cases in the context: a file's pairs of cases, which follow, name their cases by label."""
    if info.context is not None:
        info.context.update((case.label, case) for case in cases)
    return cases


def _read_pair(value: object, info: "ValidationInfo") -> VersionPair | CasePair:
    flat, known = _flat_pairs().validate_python(value), info.context or {}
    if flat.case is not None and flat.version is None:
        return VersionPair(
            case=flat.case, baseline=flat.baseline, candidate=flat.candidate, metric=flat.metric, margin=flat.margin
        )
    if flat.case is None and flat.version is not None:
        # A label may be all that a run of an earlier release has of a case: one that only a claim about another device
        # names, which the run did not measure.
        baseline, candidate = (known.get(label) or Case(label, ()) for label in (flat.baseline, flat.candidate))
        return CasePair(
            version=flat.version, baseline=baseline, candidate=candidate, metric=flat.metric, margin=flat.margin
        )
    raise ValueError("a pair has either a case, for two versions of it, or a version, for two cases in it")


class _CasesOfFile:
    """How pydantic reads cases; it asks when it reads the first file, so nothing else has to import it."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.with_info_after_validator_function(_remember_cases, handler(source))


class _PairOfFile:
    """How pydantic reads and writes pairs: in the form of a FlatPair."""

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        written = core_schema.plain_serializer_function_ser_schema(
            lambda pair: pair.flat, return_schema=handler.generate_schema(FlatPair)
        )
        return core_schema.with_info_plain_validator_function(_read_pair, serialization=written)


Cases = Annotated[tuple[Case, ...], _CasesOfFile]
Pair = Annotated[VersionPair | CasePair, _PairOfFile]


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One statement of a claim: the result that it expects of a pair.

    `published` is the ratio given by the source, as slower or faster. The pair's margin says how much of it must be
    observed.
    """

    __pydantic_config__ = STRICT

    pair: Pair
    effect: Effect
    published: float | None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published statement and what tests it: expectations, the headline first, and arms that check themselves."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    source: str
    statement: str
    suite: str
    devices: tuple[str, ...]
    withdrawn: bool
    # Every case that it names; runs of earlier releases have only their labels.
    cases: Cases = ()
    expectations: tuple[Expectation, ...]
    holds: tuple[ArmKey, ...]

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        """The names of everything that must be measured."""
        named = [arm for one in self.expectations for arm in one.pair.arms]
        return tuple(dict.fromkeys((*named, *self.holds)))

    @property
    def versions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(version for _, version in self.arms))


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
    versions: tuple[str, ...]
    cases: Cases
    pairs: tuple[Pair, ...]
    looks: tuple[int, ...]
    alpha: float
    margin: float
    budget_s: float | None
    seed: int
    threads: tuple[int, int] | None
    timeout_s: float
    isolation: Isolation = "fork"
    cpus: tuple[int, ...] | None = None
    memory_mb: int | None = None
    claims: tuple[Claim, ...] = ()
    # By UUID; with device gpu and none named, all that the engine gives. Exclusive: one process at a time holds them.
    gpus: tuple[str, ...] = ()
    exclusive: bool = False
    # Of the user's own workload folder, what was not copied into the run directory.
    large: tuple[LargeFile, ...] = ()

    def arms(self) -> tuple[Arm, ...]:
        """Return the arms to measure.

        These are all cases in all versions or, with claims, the arms of those that this device can test.
        """
        named = {arm for claim in self.claims if self.device in claim.devices for arm in claim.arms}
        every = (Arm(case, version) for case in self.cases for version in self.versions)
        return tuple(arm for arm in every if not self.claims or arm.key in named)


@dataclass(frozen=True, kw_only=True)
class EnvironmentFacts:
    """The environment in which a version was measured."""

    __pydantic_config__ = STRICT

    version: str
    kind: str
    identity: str
    lock: str
    python: str
    details: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a run was made with: tool, machine, sources and environments. `notes` are shown in every report."""

    __pydantic_config__ = STRICT

    tool: str
    contract: str
    command: tuple[str, ...]
    host: dict[str, str | int | float | None]
    sources: dict[str, str]
    environments: dict[str, EnvironmentFacts]
    workers: dict[str, dict[str, str | bool | None]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """The amount of work in each replicate of a case, equal for all arms."""

    __pydantic_config__ = STRICT

    kind: Literal["calibrated"] = "calibrated"
    case: str
    warmup: int
    bursts: int
    calls: int


# How a replicate ends whose worker died in the hands of another one.
BESIDE = "beside"
# How a replicate ends whose workload found a statement to be false; older journals have RAISED and the exception.
ASSERTED, RAISED = "asserted", "raised"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of one replicate."""

    __pydantic_config__ = STRICT

    kind: Literal["ended"] = "ended"
    version: str
    case: str
    round: int
    replicate: int
    outcome: Literal["measured", "refused", "died"]
    how: str = ""
    reason: str = ""
    log: str = ""
    # Which worker of its version closed it, and how many rows that worker then announced; older runs say neither.
    part: int | None = None
    rows: int | None = None
    # Inter-op and intra-op threads as TensorFlow states them, 0 where it chooses; None where it did not say.
    threads: tuple[int, ...] | None = None

    @property
    def arm(self) -> ArmKey:
        return ArmKey(self.case, self.version)

    @property
    def closes_arm(self) -> bool:
        """Whether the replicate's arm is not measured any further."""
        return self.outcome != "measured" and self.how != BESIDE

    @property
    def refutes(self) -> bool:
        """Whether the workload found a statement to be false."""
        return self.how == ASSERTED or (self.how == RAISED and self.reason.startswith("AssertionError"))


@dataclass(frozen=True, kw_only=True)
class Discarded:
    """Something in a worker's results folder that is not the stream of its results; it was not kept.

    `stream` means that it was in the place of the stream.
    """

    __pydantic_config__ = STRICT

    kind: Literal["discarded"] = "discarded"
    version: str
    part: int
    what: str
    stream: bool


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
class CardSpan:
    """A GPU over several readings.

    Holds its slowest and fastest clock, its highest temperature and power, and every reason why its clock was held
    back.
    """

    __pydantic_config__ = STRICT

    index: int
    sm_mhz_min: int | None
    sm_mhz_max: int | None
    temperature_c: int | None
    power_w: int | None
    throttled: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Watched:
    """The readings of the GPUs during one visit of some cases, taken after each burst."""

    __pydantic_config__ = STRICT

    kind: Literal["watched"] = "watched"
    cases: tuple[str, ...]
    round: int
    cards: tuple[CardSpan, ...]


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A version that drops out of the run, with all its unfinished arms."""

    __pydantic_config__ = STRICT

    kind: Literal["lost"] = "lost"
    version: str
    stage: str
    reason: str


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


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine's changing readings, taken when a measurement begins and when it ends."""

    __pydantic_config__ = STRICT

    kind: Literal["machine"] = "machine"
    when: Literal["begin", "end"]
    readings: dict[str, str | int | float | None]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The end of a run, and how long it measured once the workers were up; a run without one was cut short."""

    __pydantic_config__ = STRICT

    kind: Literal["finished"] = "finished"
    how: str
    seconds: float
    # Whether it may have ended in the middle of a replicate.
    cut: bool = False


Entry = Calibrated | Ended | Discarded | Disturbed | Watched | Lost | Extended | Machine | Finished


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The trend of calls that do not settle.

    `rise` is how the later half of a replicate's calls differs from the earlier half, as a log ratio of medians.
    """

    rise: float

    def __str__(self) -> str:
        return f"no steady state: later calls take {math.expm1(self.rise):+.1%} against earlier ones"


@dataclass(frozen=True, kw_only=True)
class ArmResult:
    """A case in a version, and its result."""

    case: Case
    version: str
    outcome: Literal["measured", "refused", "died"]
    reason: str = ""
    # Whether it died because its workload found a statement to be false.
    refuted: bool = False
    rounds: int = 0
    median_ms: float | None = None
    first_ms: float | None = None
    second_ms: float | None = None
    build_s: float | None = None
    train_s: float | None = None
    import_s: float | None = None
    peak_rss_mb: float | None = None
    traces: int | None = None
    checksum: str | None = None
    drift: Drift | None = None

    @property
    def key(self) -> ArmKey:
        return ArmKey(self.case.label, self.version)


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """The ratio between two arms, paired by round, and whether to believe it."""

    pair: Pair
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    rounds: int
    verdict: VerdictName
    reason: str
    mde: float | None
    seed_percent: float | None
    second_ratio: float | None = None
    sign_flip_p: float | None = None
    exploratory: bool = False


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A judged run, from which every report is drawn."""

    plan: Plan
    manifest: Manifest
    arms: tuple[ArmResult, ...]
    contrasts: tuple[Contrast, ...]
    warnings: tuple[str, ...]
    broken: tuple[str, ...] = ()
    # Each version against the one before it, where there are three or more.
    neighbours: tuple[Contrast, ...] = ()
    # Of a case whose baseline has no time, each version against the oldest that has one.
    references: tuple[Contrast, ...] = ()

    @property
    def died(self) -> tuple[ArmResult, ...]:
        return tuple(arm for arm in self.arms if arm.outcome == "died")

    @property
    def slower(self) -> tuple[Contrast, ...]:
        return tuple(contrast for contrast in self.contrasts if contrast.verdict == "slower")
