"""The frozen types of the history: points (one per comparison and night), the series that they form, and alarms."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from typing import Literal, get_args

from orchestrator.metrics.followed import TIME, Followed, describe_followed, from_name
from orchestrator.model import STRICT, Judge, Outcome, Target

JUDGES: Mapping[str, Judge] = {judge: judge for judge in get_args(Judge)}
# A reason begins with these words if it is the reference that has no result.
REFERENCE_PREFIX = "the reference "
# A nightly run first screens every case, then confirms the changes that it suspects.
Stage = Literal["screen", "confirm"]
Direction = Literal["slower", "faster"]
# A change is found by one night that measured it twice, or by many nights together.
FoundBy = Literal["night", "history"]
State = Literal["new", "confirmed", "known", "recovered", "muted"]


def parse_judge(name: str) -> Judge:
    """Return the judged time with this name in files."""
    if name not in JUDGES:
        raise ValueError(f"it is judged by {name!r}, which this tfcompare does not know")
    return JUDGES[name]


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The environment in which a point was measured.

    A new image, driver, source or worker, or another variable of TensorFlow, begins a new segment of a series.
    """

    image: str
    reference_image: str
    source: str
    driver: str
    kernel: str
    python: str
    machine: str
    tool: str
    worker: str
    variables: str
    reference_variables: str
    # This holds the time of the machine's last start and an id for it, which does not depend on the clock.
    boot: str
    microcode: str
    governor: str
    # These are the packages of the version, such as keras==3.8.0, with blanks between them.
    packages: str = ""
    # What the schedule sets for every version: the threads of TensorFlow, and whether it tunes datasets.
    settings: str = ""


@dataclass(frozen=True, kw_only=True)
class Point:
    """The result of a version against the reference in one case on one night, in the rounds that both shared.

    If a version is followed under a name such as `nightly`, `build` says which version that was on this night. The
    control arm also counts as a version. A point is a row of the history's files, so it holds targets by name; its key
    has the parsed targets. A point about results has no effect: it has a verdict, and its figure is the share by which
    the results differ.
    """

    night: date
    started: datetime
    run: str
    stage: Stage
    suite: str
    host: str
    engine: str
    device: str
    reference: str
    target: str
    build: str
    case: str
    outcome: Outcome
    reason: str
    # Both are on the log scale; the error is the standard error over rounds.
    effect: float | None
    error: float | None
    rounds: int
    verdict: str
    metric: Followed
    # Both figures are in the unit of the metric.
    reference_figure: float | None
    target_figure: float | None
    surroundings: Surroundings
    # This is the commit of TensorFlow's repository that the build itself names, or '' if it names none.
    commit: str
    # This says which time is judged; metrics other than time always have "wall".
    judge: Judge

    @property
    def key(self) -> "Key":
        place = self.device, self.engine, self.host
        return Key.parse(self.case, self.target, self.reference, *place, self.metric, self.judge)

    @property
    def has_value(self) -> bool:
        """Whether the point has a usable ratio; a single round has no spread, so its ratio is not usable."""
        return self.effect is not None and math.isfinite(self.effect) and self.rounds > 1


@dataclass(frozen=True, order=True)
class Key:
    """The properties that identify a series."""

    case: str
    target: Target
    reference: Target
    device: str
    engine: str
    host: str
    metric: Followed
    judge: Judge

    @classmethod
    def parse(
        cls,
        case: str,
        target: str,
        reference: str,
        device: str,
        engine: str,
        host: str,
        metric: str = TIME,
        judge: str = "wall",
    ) -> "Key":
        """Return the key with these names, as the history's files have them."""
        targets = Target.parse(target), Target.parse(reference)
        return cls(case, *targets, device, engine, host, from_name(metric), parse_judge(judge))

    @property
    def about(self) -> str:
        """What the ratios measure, or '' for wall times."""
        return "" if (self.metric, self.judge) == (TIME, "wall") else describe_followed(self.metric, self.judge)

    @property
    def is_control(self) -> bool:
        return self.target.control

    @property
    def control(self) -> "Key":
        """The series of the reference against itself that was measured in the same rounds."""
        return replace(self, target=replace(self.reference, control=True))

    @property
    def alike(self) -> tuple[str, str]:
        """The host and the metric; series that share both deviate for the same reasons."""
        return self.host, self.metric

    @cached_property
    def id(self) -> str:
        parts = [self.case, str(self.target), str(self.reference), self.device, self.engine, self.host]
        parts += [self.metric, self.judge]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


@dataclass(frozen=True, kw_only=True)
class Value:
    """One night of a series on the log scale: its confirmations or, if it had none, its screens, pooled."""

    night: date
    effect: float
    error: float
    rounds: int


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Nights of a series that can be compared, since nothing known to matter changed between them."""

    values: tuple[Value, ...]
    # These are the values of the control arm on the same nights, where it was measured.
    control: tuple[Value, ...]
    # These say what changed when the segment began; the first one has none.
    because: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Series:
    """All nights of a case in a version on a host, oldest first; `points` also includes those without a time."""

    key: Key
    segments: tuple[Segment, ...]
    points: tuple[Point, ...]

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(value for segment in self.segments for value in segment.values)

    @property
    def latest(self) -> Point:
        return self.points[-1]


@dataclass(frozen=True, kw_only=True)
class Change:
    """A step in a segment: the ratio after it relative to the ratio before it, with its interval.

    `first` is the first night after the step, `last` the last night before it.
    """

    first: date
    last: date
    before: float
    after: float
    ratio: float
    ci_low: float
    ci_high: float
    p: float

    @property
    def direction(self) -> Direction:
        return "slower" if self.ratio > 1 else "faster"


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A change that people need to know about, and its current state.

    If results differ, `said` describes how, and the ratio of the change is 1 plus the share that differs, at most 2.
    """

    __pydantic_config__ = STRICT

    id: str
    key: Key
    found_by: FoundBy
    change: Change
    # These describe what else was different that night.
    surroundings: tuple[str, ...]
    run: str
    reproduce: str
    bisect: str
    opened: datetime
    state: State = "new"
    note: str = ""
    until: date | None = None
    since: datetime | None = None
    # The alarm was raised on `night` and recovered on `closed`.
    night: date
    closed: date | None = None
    said: str = ""
    # This command finds out what made the change; it is '' if no command does.
    why: str = ""
    # This is true if the nights that raised the alarm are proof enough.
    proven: bool
    # If the build changed, the change began between `good` and `bad`, and `commits` is the page of their commits.
    good: str = ""
    bad: str = ""
    commits: str = ""
    # These describe what `tfcompare why` found out between both versions.
    findings: tuple[str, ...] = ()
    # This is true once the builds between `good` and `bad` have been searched.
    searched: bool = False
    # This names the earlier improvement that the change undoes, if any.
    undoes: str = ""
    # This is true once a later night has confirmed the alarm.
    borne_out: bool = False
    # If the change has become smaller, this is what is left of it: the ratio to the level before the alarm.
    left: float | None = None
    # These have changed since, so later nights cannot be compared with the level before the alarm.
    apart: tuple[str, ...] = ()

    @property
    def is_provisional(self) -> bool:
        return self.state == "new" and not self.proven

    @property
    def is_established(self) -> bool:
        """Whether nights or a user have established that the change is real and not noise."""
        return self.borne_out or self.proven or self.state in ("confirmed", "known", "muted")


@dataclass(frozen=True, kw_only=True)
class AlarmOpened:
    """The beginning of an alarm."""

    __pydantic_config__ = STRICT

    kind: Literal["opened"] = "opened"
    at: datetime
    alarm: Alarm


@dataclass(frozen=True, kw_only=True)
class StateChanged:
    """The move of an alarm to another state, due to a nightly run's measurement or a user's decision."""

    __pydantic_config__ = STRICT

    kind: Literal["moved"] = "moved"
    at: datetime
    alarm: str
    state: State
    night: date | None = None
    note: str = ""
    until: date | None = None


@dataclass(frozen=True, kw_only=True)
class SizeChanged:
    """Findings of a later night about an alarm that stays open; an empty field leaves the alarm unchanged."""

    __pydantic_config__ = STRICT

    kind: Literal["resized"] = "resized"
    at: datetime
    alarm: str
    night: date
    left: float | None = None
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CauseFound:
    """Findings about the cause of an alarm from later measurements; an empty field leaves the alarm unchanged."""

    __pydantic_config__ = STRICT

    kind: Literal["explained"] = "explained"
    at: datetime
    alarm: str
    good: str = ""
    bad: str = ""
    commits: str = ""
    findings: tuple[str, ...] = ()
    bisect: str = ""
    searched: bool = False


@dataclass(frozen=True, kw_only=True)
class Night:
    """The end of a nightly run: its outcome, and what it did.

    It is recorded even if nothing could be measured.
    """

    __pydantic_config__ = STRICT

    kind: Literal["night"] = "night"
    at: datetime
    night: date
    started: datetime
    host: str
    suite: str
    targets: tuple[str, ...]
    run: str
    outcome: Literal["measured", "failed", "hung", "skipped"]
    said: tuple[str, ...]
    cells: int
    screened: int
    confirmed: int
    exit_code: int
    # This machine started the nightly run, if another one measured.
    starter: str = ""
    # The folder in `runs` that holds the table of saved models, and what is in it; both are '' if there is none.
    models_run: str = ""
    models: str = ""
    # The nightly run was started with these options.
    device: str
    engine: str
    selected: tuple[str, ...]
    flags: tuple[str, ...]


# A nightly run creates these events when it judges.
Judged = AlarmOpened | StateChanged | SizeChanged
Event = Judged | CauseFound | Night


@dataclass(frozen=True, kw_only=True)
class NightReport:
    """The report of a nightly run: alarms that began, ended or are still open, and what joined or left the suite."""

    night: Night
    opened: tuple[Alarm, ...] = ()
    recovered: tuple[Alarm, ...] = ()
    still: tuple[Alarm, ...] = ()
    # These alarms waited for a second night, and tonight confirmed them.
    confirmed: tuple[Alarm, ...] = ()
    # Tonight showed that the remaining size of these alarms has changed.
    resized: tuple[Alarm, ...] = ()
    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # A line for each version says whether one may move to it, by what tonight measured.
    moves: tuple[str, ...] = ()
    # These saved models were ok in the last table and no longer are, or the other way round.
    broken: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    # These pages show what was measured, and the table of saved models; each is '' if there is none.
    page: str = ""
    models_page: str = ""
    # This flag names the history in commands; it is '' for the user's own history.
    history: str = ""
    # This exception ended the nightly run early.
    failure: BaseException | None = None

    @property
    def happened(self) -> bool:
        """Whether this nightly run found something that people need to know tonight."""
        quiet = self.night.outcome in ("measured", "skipped")
        moved = self.opened or self.confirmed or self.recovered or self.resized or self.broken or self.mended
        return bool(moved or self.vanished or self.warnings) or not quiet

    @property
    def certain(self) -> tuple[Alarm, ...]:
        """The alarms that people have to act on as of tonight."""
        return (*(alarm for alarm in self.opened if not alarm.is_provisional), *self.confirmed)
