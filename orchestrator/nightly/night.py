"""The course of a nightly run, from top to bottom: measure, measure again what looks changed, judge and report.

The measurement is a separate process, `tfcompare run`: if it hangs it can be ended, and what it had measured is read
from its run directory like that of any other run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from time import monotonic
from typing import Any

from orchestrator import catalog, files
from orchestrator.catalog.version import FlavourName
from orchestrator.errors import ArmsDied, EnvironmentFailed, InternalError, Interrupted, TfCompareError, UsageError
from orchestrator.history.alarms import judge, state, steps
from orchestrator.history.model import Event, Key, Night, NightReport, Point, Segment, Stage
from orchestrator.history.points import of_run
from orchestrator.history.series import all_arrays, all_series
from orchestrator.history.store import Read, Store
from orchestrator.machine.host import host_facts
from orchestrator.metrics.followed import TIME
from orchestrator.nightly import cleanup, versions
from orchestrator.nightly.lock import hold
from orchestrator.nightly.schedule import units
from orchestrator.nightly.subprocess_run import Child, ChildEnd
from orchestrator.options import NIGHT_ROUNDS
from orchestrator.plan.request import suite_name
from orchestrator.redact import mask_login
from orchestrator.results.run import Run, load_run
from orchestrator.terminal.counts import format_count

MOST_NAMED = 3
# Flags that change what is measured or in what, next to device and engine.
DECISIVE = frozenset(
    ("--workload-dir", "--gpus", "--gpu-exclusive", "--lock-clocks", "--base", "--threads", "--cpuset", "--memory")
)
NOTHING = versions.ResolvedVersions(versions=(), names={})


@dataclass(frozen=True, kw_only=True)
class NightOptions:
    """The options given on the command line.

    `tfcompare run` receives `flags` as arguments and `variables` as environment variables.
    """

    history: Path
    names: tuple[str, ...]
    suite: str | None = None
    selected: tuple[str, ...] = ()
    own_workloads: Path | None = None
    flags: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    rounds: int = NIGHT_ROUNDS
    limit_s: float = 6 * 3600.0
    again: bool = False
    due: time | None = None
    keep_nightlies: int = 3

    @property
    def suite_name(self) -> str:
        return suite_name(self.suite, self.own_workloads)

    @property
    def device(self) -> FlavourName:
        flags = dict(_flags(self.flags))
        return "gpu" if flags.keys() & {"--gpu", "--gpus", "--gpu-exclusive"} else "cpu"

    @property
    def identity(self) -> dict[str, Any]:
        """The options that make two nightly runs the same, as a Night records them."""
        flags = dict(_flags(self.flags))
        return {
            "suite": self.suite_name,
            "versions": self.names,
            "device": self.device,
            "engine": flags.get("--engine", "auto"),
            "selected": self.selected,
            "flags": tuple(sorted(f"{flag} {value}".strip() for flag, value in flags.items() if flag in DECISIVE)),
        }


@dataclass(frozen=True, kw_only=True)
class NightContext:
    """The facts that are fixed when a nightly run begins."""

    store: Store
    host: str
    date: date
    started: datetime
    warnings: tuple[str, ...] = ()
    resolved: versions.ResolvedVersions = NOTHING


def run_night(options: NightOptions, say: Callable[[str], None]) -> NightReport:
    """Measure, judge and record a night.

    The outcome is recorded and returned, however the night ends.
    """
    begun, now = monotonic(), datetime.now(UTC).replace(microsecond=0)
    night = NightContext(
        store=Store(options.history, quarantine=True),
        host=str(host_facts()["id"]),
        date=_date(options, now),
        started=now,
    )
    try:
        with hold(about=f"{options.suite_name} of {', '.join(options.names)}", wait_s=options.limit_s, say=say):
            rest = replace(options, limit_s=max(0.0, options.limit_s - (monotonic() - begun)))
            return _alone(rest, replace(night, started=datetime.now(UTC).replace(microsecond=0)), say)
    except (Exception, KeyboardInterrupt) as error:
        return _record_break(options, night, error)


def _alone(options: NightOptions, night: NightContext, say: Callable[[str], None]) -> NightReport:
    try:
        events, warnings = night.store.events()
        if (done := earlier_measurement(events, options, night.host, night.date)) and not options.again:
            say(f"{done.night} was measured already (run {done.run}); --again repeats it")
            return NightReport(night=replace(done, outcome="skipped"))
        read = night.store.read()
        warnings = (*warnings, *read.warnings, *_later_than_now(read.points(), night))
        night = replace(night, warnings=warnings)
        past = read.until(night.started, night.host)
        resolved = versions.resolve(options.names, say, versions.last_builds(past.points()), device=options.device)
        return _measure_night(options, replace(night, resolved=resolved), say)
    except (Exception, KeyboardInterrupt) as error:
        return _record_break(options, night, error)


def _record_break(options: NightOptions, night: NightContext, error: BaseException) -> NightReport:
    """Record a nightly run that was ended by an error or an interrupt.

    The caller raises the error after it has been reported.
    """
    if isinstance(error, KeyboardInterrupt):
        error = Interrupted(
            "the nightly run was interrupted; if it had measured something, that is in "
            f"{_stage_path(night, 'screen')}: `tfcompare history import` adds it"
        )
    is_ours = isinstance(error, TfCompareError)
    message = str(error) if is_ours else f"{type(error).__name__}: {error}"
    exit_code = error.exit_code if isinstance(error, TfCompareError) else InternalError.exit_code
    report = _without(options, night, ChildEnd(exit_code, hung=False, last_lines=mask_login(message)))
    return replace(report, failure=error)


def _date(options: NightOptions, now: datetime) -> date:
    """Return the day on which the nightly run was due.

    A run that is caught up after midnight belongs to the day before.
    """
    local = now.astimezone()
    return units.due(local, options.due) if options.due else local.date()


def earlier_measurement(events: Sequence[Event], options: NightOptions, host: str, today: date) -> Night | None:
    wanted = {"night": today, "host": host, "outcome": "measured", **options.identity}
    nights = (event for event in events if isinstance(event, Night))
    return next(
        (night for night in nights if all(getattr(night, name) == value for name, value in wanted.items())), None
    )


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each flag with its value, or with '' if it has none."""
    for index, word in enumerate(words):
        if word.startswith("--"):
            value = words[index + 1] if index + 1 < len(words) else ""
            yield word, "" if value.startswith("--") else value


def _measure_night(options: NightOptions, night: NightContext, say: Callable[[str], None]) -> NightReport:
    store = night.store
    log = store.path / "log" / f"{night.started:%Y%m%d-%H%M%S}.log"
    child = Child(log, options.limit_s, say, options.variables)
    screened, ended = _stage(options, night, "screen", child, options.selected, options.rounds)
    if screened is None:
        return _without(options, night, ended)
    points = [*of_run(screened, "screen", night.date, night.resolved.names), *_unavailable(screened, night)]
    # At once: whatever comes next, nothing that was measured is lost.
    store.append(points)
    warnings = [*night.warnings, *_of_ending(ended, "the night")]
    again: list[Point] = []
    if not ended.hung:
        again, more = _settle(options, night, points, child, say)
        warnings += more
    judged = _judge_points(night, points)
    if night.resolved.names:
        cleanup.retire(options.keep_nightlies, say)
    end = Night(
        at=datetime.now(UTC),
        night=night.date,
        started=night.started,
        host=night.host,
        **options.identity,
        run=screened.plan.run,
        outcome="hung" if ended.hung else "measured",
        said=(*night.resolved.notes, *judged.notes),
        cells=_count(points),
        screened=_count(points),
        confirmed=_count(again),
        exit_code=ended.exit_code,
    )
    store.record(end)
    report = NightReport(night=end, warnings=tuple(warnings), page=_write_page(screened))
    return judge.report_events(report, judged, state.current(store.events()[0]), night.date)


def _stage(
    options: NightOptions, night: NightContext, stage: Stage, child: Child, cases: Iterable[str], rounds: int
) -> tuple[Run | None, ChildEnd]:
    """Run `tfcompare run` once and read whatever it measured, however it ended."""
    path = _stage_path(night, stage)
    joined = ",".join(night.resolved.versions)
    words = ["run", "--versions", joined, "--control", "--rounds", str(rounds)]
    words += ["--suite", options.suite] if options.suite else []
    words += [word for case in cases for word in ("--case", case)]
    ended = child.run([*words, "--output", str(path), "--format", "json", *options.flags])
    if not (path / "manifest.json").is_file():
        return None, ended
    run = load_run(path)
    settled = night.store.runs / run.plan.run
    path.rename(settled)
    return replace(run, path=settled), ended


def _stage_path(night: NightContext, stage: Stage) -> Path:
    return night.store.runs / f"{night.started:%Y%m%d-%H%M%S}-{stage}"


def _settle(
    options: NightOptions, night: NightContext, points: Sequence[Point], child: Child, say: Callable[[str], None]
) -> tuple[list[Point], list[str]]:
    """Repeat the measurement of series that look changed, little by little, until they are reported or cleared."""
    screened = {point.key for point in points if point.has_value}
    flagged = steps.suspects(_cells(_past(night), screened))
    if not flagged:
        return [], []
    chosen = steps.affordable(flagged, _count(points))
    suspicious, repeated = (len(steps.cells_of(keys)) for keys in (flagged, chosen))
    which = "which" if repeated == suspicious else f"{repeated} of which, the most suspicious,"
    say(f"{suspicious} of {_count(points)} look changed, {which} are measured again: {_format_cases(chosen)}")
    again: list[Point] = []
    for number, times in enumerate(steps.CONFIRM_TIMES):
        if number:
            still = len(steps.cells_of(chosen))
            say(f"{still} of them may still have changed, so more rounds follow: {_format_cases(chosen)}")
        points, warnings = _confirm(options, night, chosen, child, times)
        again += points
        if warnings or not points:
            return again, warnings
        if not (chosen := steps.find_unsettled(_cells(_past(night), chosen))):
            break
    return again, []


def _confirm(
    options: NightOptions, night: NightContext, flagged: Sequence[Key], child: Child, times: int
) -> tuple[list[Point], list[str]]:
    """Measure the flagged series again in the same night, with new rounds.

    Other results that come with them are also kept.
    """
    names = dict.fromkeys(str(key.version) for key in flagged)
    resolved = night.resolved
    builds = [build for build in resolved.versions if resolved.names.get(build, _number(build)) in names]
    only = replace(night, resolved=replace(resolved, versions=(resolved.versions[0], *builds)))
    cases = dict.fromkeys(key.case for key in flagged)
    run, ended = _stage(options, only, "confirm", child, cases, options.rounds * times)
    warnings = _of_ending(ended, "a second measuring")
    if run is None:
        return [], warnings
    points = of_run(run, "confirm", night.date, resolved.names)
    night.store.append(points)
    return points, warnings


def _number(name: str) -> str:
    version = catalog.find(name)
    return version.number if version else name


def _judge_points(night: NightContext, points: Sequence[Point]) -> judge.NightVerdict:
    """Judge tonight's points, and record the events before notifications are sent."""
    store = night.store
    verdict = judge.judge(
        all_series(_past(night).table),
        state.current(store.events()[0]),
        night.date,
        datetime.now(UTC),
        {point.key for point in points},
        store.runs,
    )
    for event in verdict.events:
        store.record(event)
    return verdict


def _cells(read: Read, keys: Iterable[Key]) -> dict[Key, Segment]:
    """Return the last segment of each of these series, all of which have a value in it."""
    by_key = all_arrays(read.table)
    own = [key for key in sorted(keys) if not key.is_control]
    control = {key: by_key[key].nightly.objects() for key in {key.control for key in own} & by_key.keys()}
    return {key: by_key[key].segments(control.get(key.control, ()))[-1] for key in own}


def _unavailable(run: Run, night: NightContext) -> list[Point]:
    """Return a point in every case for each version that could not even be locked.

    This is also a result of the night.
    """
    points = of_run(run, "screen", night.date, night.resolved.names)
    any_version = {point.case: point for point in points if point.metric == TIME}
    return [
        replace(
            point,
            version=missing.name,
            build=missing.name,
            outcome="died",
            reason=missing.reason,
            effect=None,
            error=None,
            rounds=0,
            verdict="inconclusive",
            version_ms=None,
            version_figure=None,
            surroundings=replace(point.surroundings, image="", python=""),
        )
        for missing in night.resolved.unavailable
        for point in any_version.values()
    ]


def _later_than_now(points: Sequence[Point], night: NightContext) -> tuple[str, ...]:
    """Warn of runs that started in this machine's future: its clock was ahead then, or is behind now."""
    own = {point.run: point.started for point in points if point.host == night.host}
    later = {run: started for run, started in own.items() if started > night.started}
    if not later:
        return ()
    runs = format_count(len(later), "run")
    return (
        f"this machine's clock says {night.started:%Y-%m-%d %H:%M} UTC, but {runs} started later here, up to "
        f"{max(later.values()):%Y-%m-%d %H:%M}; results from the future are ignored. Check the clock",
    )


def _past(night: NightContext) -> Read:
    """Read the history without what this machine measured in its future."""
    return night.store.read().until(datetime.now(UTC), night.host)


def _without(options: NightOptions, night: NightContext, ended: ChildEnd) -> NightReport:
    """Record a nightly run that has no result.

    It is also reported, but raises no alarm.
    """
    end = Night(
        at=datetime.now(UTC),
        night=night.date,
        started=night.started,
        host=night.host,
        **options.identity,
        run="",
        outcome="hung" if ended.hung else "failed",
        said=(ended.last_lines,),
        cells=0,
        screened=0,
        confirmed=0,
        exit_code=ended.exit_code or EnvironmentFailed.exit_code,
    )
    # If this folder cannot be written, the night is still reported.
    with suppress(UsageError):
        night.store.record(end)
    return NightReport(night=end, warnings=night.warnings)


def _of_ending(ended: ChildEnd, what: str) -> list[str]:
    if ended.hung:
        return [f"{what} took too long and was ended; what it had measured is kept"]
    if ended.exit_code in (0, ArmsDied.exit_code, EnvironmentFailed.exit_code):
        # The arms and versions themselves are reported with their reasons.
        return []
    return [f"{what} ended with exit code {ended.exit_code}: {ended.last_lines}"]


def _write_page(run: Run) -> str:
    """Write the run's page and return its path, or '' if it cannot be written.

    A report never makes a nightly run fail.
    """
    # What draws plots takes a second to import.
    from orchestrator.reports import html

    path = run.path / "report.html"
    try:
        files.write_atomically(path, html.page(run.path)[0].encode())
    except OSError:
        return ""
    return str(path)


def _count(points: Sequence[Point]) -> int:
    return len(steps.cells_of(point.key for point in points if not point.key.is_control))


def _format_cases(keys: Sequence[Key]) -> str:
    named = [f"{case} in {version}" for case, version in steps.cells_of(keys)]
    return ", ".join(named[:MOST_NAMED]) + (f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else "")
