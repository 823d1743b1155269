"""The course of a nightly run, from top to bottom: measure, measure again what looks changed, judge and report.

The measurement is a separate process, `tfcompare run`: if it hangs it can be ended, and what it had measured is read
from its run folder like that of any other run.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from time import monotonic

import pyarrow as pa
import pyarrow.compute as pc

from orchestrator import files
from orchestrator.errors import EnvironmentFailed, InternalError, Interrupted, TfCompareError, UsageError
from orchestrator.fleet.single import find_single
from orchestrator.history.alarms import judge, state
from orchestrator.history.model import AlarmOpened, Event, Night, NightReport, Point
from orchestrator.history.points import of_run
from orchestrator.history.series import all_series
from orchestrator.history.store import Store
from orchestrator.machine.host import host_facts
from orchestrator.metrics.followed import TIME
from orchestrator.nightly import cleanup, versions
from orchestrator.nightly.causes import add_flags, look_for_causes
from orchestrator.nightly.confirmations import settle
from orchestrator.nightly.lock import hold
from orchestrator.nightly.options import NightContext, NightOptions, list_flags
from orchestrator.nightly.saved import compare_saved_models
from orchestrator.nightly.stages import (
    count_cells,
    describe_ending,
    find_screen,
    make_child,
    read_history,
    run_stage,
    stage_path,
)
from orchestrator.nightly.subprocess_run import ChildEnd
from orchestrator.redact import mask_login
from orchestrator.results.run import Run
from orchestrator.saved_models.report import PAGE as MODELS_PAGE
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.view import View
from orchestrator.upgrade.judgement import OF_WORKLOADS
from orchestrator.upgrade.report import describe_targets

# This is reported if two machines have the same id.
SHARED_ID_WARNING = (
    "two machines write to this history as host {}: its nights alternate between two boots. They are kept, and judging "
    "resumes after two weeks with one machine. Give the other a new id: `rm /etc/machine-id; systemd-machine-id-setup`"
)


def run_night(options: NightOptions, view: View) -> NightReport:
    """Measure, judge and record a nightly run.

    The outcome is recorded and returned, however the night ends.
    """
    begun, now = monotonic(), datetime.now(UTC).replace(microsecond=0)
    facts, starter = host_facts(), ""
    if not options.fleet.is_local:
        starter = str(facts["id"])
        facts = find_single(
            options.fleet, dict(list_flags(options.flags)).get("--engine", "auto"), view, only=True
        ).facts
    night = NightContext(
        store=Store(options.history, quarantine=True),
        host=str(facts["id"]),
        starter=starter,
        boot=str(facts.get("boot") or ""),
        date=options.find_date(now),
        started=now,
    )
    try:
        about = f"{options.suite_name} of {', '.join(options.names)}"
        with hold(about=about, wait_s=options.limit_s, view=view) as lock:
            rest = replace(options, limit_s=max(0.0, options.limit_s - (monotonic() - begun)))
            return _alone(rest, replace(night, lock=lock, started=datetime.now(UTC).replace(microsecond=0)), view)
    except (Exception, KeyboardInterrupt) as error:
        return _record_break(options, night, error)


def _alone(options: NightOptions, night: NightContext, view: View) -> NightReport:
    try:
        events, warnings = night.store.events()
        if (done := earlier_measurement(events, options, night.host, night.date)) and not options.again:
            view.say(f"{done.night} was measured already (run {done.run}); --again repeats it")
            keys = {point.key for point in night.store.read().points() if point.run == done.run}
            for warning in look_for_causes(options, night, keys, options.limit_s, view):
                view.say(warning)
            return NightReport(night=replace(done, outcome="skipped"))
        read = night.store.read()
        warnings = (*warnings, *read.warnings, *_later_than_now(read.points(), night))
        if twins := is_id_shared(read.table, night.host, night.started, night.boot):
            warnings = (*warnings, SHARED_ID_WARNING.format(night.host))
        night = replace(night, warnings=warnings, is_judged=not twins)
        past = read.until(night.started, night.host)
        resolved = versions.resolve_followed(
            options.names, view, versions.last_builds(past.points()), device=options.device
        )
        return _measure_night(options, replace(night, resolved=resolved), view)
    except (Exception, KeyboardInterrupt) as error:
        return _record_break(options, night, error)


def _record_break(options: NightOptions, night: NightContext, error: BaseException) -> NightReport:
    """Record a nightly run that was ended by an error or an interrupt.

    The caller raises the error after it has been reported.
    """
    if isinstance(error, KeyboardInterrupt):
        error = Interrupted(
            "the nightly run was interrupted; if it had measured something, that is in "
            f"{stage_path(night, 'screen')}: `tfcompare history import` adds it"
        )
    is_ours = isinstance(error, TfCompareError)
    message = str(error) if is_ours else f"{type(error).__name__}: {error}"
    exit_code = error.exit_code if isinstance(error, TfCompareError) else InternalError.exit_code
    report = _without(options, night, ChildEnd(exit_code, hung=False, last_lines=mask_login(message)))
    return replace(report, failure=error)


def earlier_measurement(events: Sequence[Event], options: NightOptions, host: str, today: date) -> Night | None:
    nights = _list_comparable(events, options, host)
    return next((night for night in nights if (night.night, night.outcome) == (today, "measured")), None)


def _list_comparable(events: Sequence[Event], options: NightOptions, host: str) -> list[Night]:
    """Return the nightly runs of this host that had the same options."""
    wanted = {"host": host, **options.identity}
    nights = [event for event in events if isinstance(event, Night)]
    return [night for night in nights if all(getattr(night, name) == value for name, value in wanted.items())]


def _measure_night(options: NightOptions, night: NightContext, view: View) -> NightReport:
    store = night.store
    child = make_child(options, night, options.limit_s, view)
    screened, ended = _find_screen(options, night, view) or run_stage(
        options, night, "screen", child, options.selected, options.rounds
    )
    if screened is None:
        return _without(options, night, ended)
    points = [*of_run(screened, "screen", night.date, night.resolved.names), *_unavailable(screened, night)]
    # The points are stored at once, so that whatever comes next cannot lose them.
    store.append(points)
    warnings = [*night.warnings, *describe_ending(ended, "the night")]
    again: list[Point] = []
    if not ended.hung and night.is_judged:
        again, more = settle(options, night, points, child, view)
        warnings += more
    judged = _judge_points(options, night, points)
    if not ended.hung:
        # Causes are looked for before old nightlies are removed, since one of them may be needed.
        warnings += look_for_causes(options, night, {point.key for point in points}, child.left_s, view)
    earlier = [each for each in _list_comparable(store.events()[0], options, night.host) if each.run]
    saved = compare_saved_models(options, night, screened, earlier, child.left_s, view)
    if night.resolved.names:
        cleanup.retire(options.keep_nightlies, view)
    end = Night(
        at=datetime.now(UTC),
        night=night.date,
        started=night.started,
        host=night.host,
        starter=night.starter,
        **options.identity,
        models_run=saved.run,
        models=saved.line,
        run=screened.plan.run,
        outcome="hung" if ended.hung else "measured",
        said=(*night.resolved.notes, *judged.notes),
        cells=count_cells(points),
        screened=count_cells(points),
        confirmed=count_cells(again),
        exit_code=ended.exit_code,
    )
    store.record(end)
    moves = describe_targets(screened.evaluation, OF_WORKLOADS)
    report = NightReport(
        night=end,
        warnings=(*warnings, *saved.warnings),
        moves=moves,
        broken=saved.broken,
        mended=saved.mended,
        page=_write_page(screened),
        models_page=str(store.runs / saved.run / MODELS_PAGE) if saved.run else "",
    )
    return judge.report_events(report, judged, state.current(store.events()[0]), night.date)


def _find_screen(options: NightOptions, night: NightContext, view: View) -> tuple[Run, ChildEnd] | None:
    """Return the whole screen of a nightly run of this day that was ended before its result was recorded, if any."""
    if options.again:
        return None
    counted = {event.run for event in night.store.events()[0] if isinstance(event, Night)}
    if found := find_screen(options, night, counted):
        view.say(
            f"{night.date} was measured already (run {found[0].plan.run}) by a nightly run that was ended before its "
            "result was recorded; --again repeats it"
        )
    return found


def _judge_points(options: NightOptions, night: NightContext, points: Sequence[Point]) -> judge.NightVerdict:
    """Judge tonight's points, and record the events before notifications are sent."""
    store = night.store
    known, _ = store.events()
    verdict = judge.judge_night(
        all_series(read_history(night).table),
        state.current(known),
        night.date,
        datetime.now(UTC),
        {point.key for point in points} if night.is_judged else (),
        store.runs,
        {earlier.run for earlier in _list_comparable(known, options, night.host)},
    )
    events = tuple(
        replace(event, alarm=add_flags(event.alarm, options)) if isinstance(event, AlarmOpened) else event
        for event in verdict.events
    )
    for event in events:
        store.record(event)
    return replace(verdict, events=events)


def _unavailable(run: Run, night: NightContext) -> list[Point]:
    """Return a point in every case for each version that could not even be locked.

    This is also a result of the night.
    """
    points = of_run(run, "screen", night.date, night.resolved.names)
    any_version = {point.case: point for point in points if point.metric == TIME}
    return [
        replace(
            point,
            target=missing.name,
            build=missing.name,
            outcome="died",
            reason=missing.reason,
            effect=None,
            error=None,
            rounds=0,
            verdict="inconclusive",
            target_figure=None,
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


def _without(options: NightOptions, night: NightContext, ended: ChildEnd) -> NightReport:
    """Record a nightly run that has no result.

    It is also reported, but raises no alarm.
    """
    end = Night(
        at=datetime.now(UTC),
        night=night.date,
        started=night.started,
        host=night.host,
        starter=night.starter,
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


def _write_page(run: Run) -> str:
    """Write the run's page and return its path, or '' if it cannot be written.

    A report never makes a nightly run fail.
    """
    # The module draws plots, and takes a second to import.
    from orchestrator.reports import html

    path = run.path / "report.html"
    try:
        files.write_atomically(path, html.make_page(run.path)[0].encode())
    except OSError:
        return ""
    return str(path)


# Two machines that took turns longer ago than this count as one again.
RECENT = timedelta(days=14)


def is_id_shared(table: pa.Table, host: str, now: datetime, boot: str = "") -> bool:
    """Return whether the recent results of a host go back to an earlier boot, as two machines with one id do.

    The rows must be sorted oldest first. A machine that was restarted never returns to an earlier boot; `boot` is the
    present one.
    """
    since = pa.scalar(now - RECENT, table.schema.field("started").type)
    recent = pc.and_(pc.equal(table.column("host"), host), pc.greater_equal(table.column("started"), since))
    starts = [*table.filter(recent).column("boot").to_pylist(), boot]
    left: set[str] = set()
    current = ""
    for start in starts:
        # The time of the boot is cut off, since a clock may later show another one.
        start = start.rpartition(" ")[2]
        if not start or start == current:
            continue
        if start in left:
            return True
        left.add(current)
        current = start
    return False
