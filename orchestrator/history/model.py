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
# How the reason begins if it is the reference that has no result.
OF_REFERENCE = "the reference "
# What a night measures of everything, and what it measures again of what looked changed.
Stage = Literal["screen", "confirm"]
Direction = Literal["slower", "faster"]
# By this night alone, twice measured; or by many nights together.
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
    # When the machine was started, and a name for that start, which no clock changes.
    boot: str
    microcode: str
    governor: str


@dataclass(frozen=True, kw_only=True)
class Point:
    """The result of a version against the reference in one case on one night, in the rounds that both shared.

    If a version is followed under a name such as `nightly`, `build` says which version that was on this night. The
    control arm also counts as a version. A point is a row of the history's files, so it holds names; its key has the
    targets. A point of results has no effect, but a verdict, and the share by which they differ as its figure.
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
    # On the log scale; the standard error is over rounds.
    effect: float | None
    error: float | None
    rounds: int
    verdict: str
    metric: Followed
    # In the unit of the metric.
    reference_figure: float | None
    target_figure: float | None
    surroundings: Surroundings
    # Of TensorFlow's repository, as the build itself names it; nothing if it does not.
    commit: str
    # Which time is judged; anything but time is known by one alone.
    judge: Judge

    @property
    def key(self) -> "Key":
        place = self.device, self.engine, self.host
        return Key.parse(self.case, self.target, self.reference, *place, self.metric, self.judge)

    @property
    def has_value(self) -> bool:
        """Whether the point has a ratio; a single round has no spread, and thus none."""
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
        """What its ratios are of, or '' for wall times."""
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
        """The host and the metric: series that share both stray for the same reasons."""
        return self.host, self.metric

    @cached_property
    def id(self) -> str:
        parts = [self.case, str(self.target), str(self.reference), self.device, self.engine, self.host]
        parts += [self.metric, self.judge]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


@dataclass(frozen=True, kw_only=True)
class Value:
    """One night of a series on the log scale: its screens pooled or, if it had any, its confirmations."""

    night: date
    effect: float
    error: float
    rounds: int


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Nights of a series that can be compared, since nothing known to matter changed between them."""

    values: tuple[Value, ...]
    # Of the control arm, in the same nights as far as it was measured.
    control: tuple[Value, ...]
    # What changed when it began, in words; nothing for the first.
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

    Of results, `said` is what differs, and the ratio of the change is 1 plus the share by which they do, at most 2.
    """

    __pydantic_config__ = STRICT

    id: str
    key: Key
    found_by: FoundBy
    change: Change
    # What else was different that night, in words.
    surroundings: tuple[str, ...]
    run: str
    reproduce: str
    bisect: str
    opened: datetime
    state: State = "new"
    note: str = ""
    until: date | None = None
    since: datetime | None = None
    # The nights that raised it and that saw it recover.
    night: date
    closed: date | None = None
    said: str = ""
    # The command that shows where the time goes, or which layer returns something else; '' where none does.
    profile: str = ""
    # Whether the nights that raised it are proof enough.
    proven: bool
    # The builds between which it began and the page of their commits, if each night had another build.
    good: str = ""
    bad: str = ""
    commits: str = ""
    # What a profile of both shows, or which layer returns something else.
    findings: tuple[str, ...] = ()
    # Whether every build between those that were measured by night has been looked at.
    searched: bool = False
    # What it takes back, in words, if it follows an improvement.
    undoes: str = ""
    # Whether a later night has confirmed it.
    borne_out: bool = False
    # The ratio to the level before it that is left of it, if another step has made it smaller.
    left: float | None = None
    # What changed since, so that the level before it says nothing of later nights.
    apart: tuple[str, ...] = ()

    @property
    def is_provisional(self) -> bool:
        return self.state == "new" and not self.proven

    @property
    def is_established(self) -> bool:
        """Whether nights, or a user, have said that this is a level and no stray."""
        return self.borne_out or self.proven or self.state in ("confirmed", "known", "muted")


@dataclass(frozen=True, kw_only=True)
class AlarmOpened:
    """The beginning of an alarm."""

    __pydantic_config__ = STRICT

    kind: Literal["opened"] = "opened"
    at: datetime
    alarm: Alarm


@dataclass(frozen=True, kw_only=True)
class Moved:
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
class Resized:
    """What a later night has shown of an alarm that stays open; what is empty leaves the alarm as it is."""

    __pydantic_config__ = STRICT

    kind: Literal["resized"] = "resized"
    at: datetime
    alarm: str
    night: date
    left: float | None = None
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What measurements after an alarm have shown of its cause; what is empty leaves the alarm as it is."""

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
    # The machine that started it, if another one measured.
    starter: str = ""
    # What else was asked for.
    device: str
    engine: str
    selected: tuple[str, ...]
    flags: tuple[str, ...]


# What a nightly run finds of alarms when it judges.
Judged = AlarmOpened | Moved | Resized
Event = Judged | Explained | Night


@dataclass(frozen=True, kw_only=True)
class NightReport:
    """The report of a nightly run: alarms that began, ended or are still open, and what joined or left the suite."""

    night: Night
    opened: tuple[Alarm, ...] = ()
    recovered: tuple[Alarm, ...] = ()
    still: tuple[Alarm, ...] = ()
    # Those that waited for a second night, and that tonight was it.
    confirmed: tuple[Alarm, ...] = ()
    # Those of which tonight shows that another part is left than before.
    resized: tuple[Alarm, ...] = ()
    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    # The page that shows what was measured; nothing if there is none.
    page: str = ""
    # The flag that names the history in commands; nothing if it is the user's own.
    history: str = ""
    # What ended it before its time.
    failure: BaseException | None = None

    @property
    def happened(self) -> bool:
        """Whether this nightly run has something that people need to know tonight."""
        quiet = self.night.outcome in ("measured", "skipped")
        moved = self.opened or self.confirmed or self.recovered or self.resized
        return bool(moved or self.vanished or self.warnings) or not quiet

    @property
    def certain(self) -> tuple[Alarm, ...]:
        """The alarms that people have to act on since tonight."""
        return (*(alarm for alarm in self.opened if not alarm.is_provisional), *self.confirmed)
