"""Judges a nightly run: which alarms begin, continue or end, and what appeared or vanished. Pure functions."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from orchestrator.history.alarms import levels, machine, results, state
from orchestrator.history.alarms.steps import find_wander
from orchestrator.history.model import (
    REFERENCE_PREFIX,
    Alarm,
    AlarmOpened,
    Judged,
    Key,
    NightReport,
    Series,
    SizeChanged,
    StateChanged,
)
from orchestrator.metrics.followed import RESULTS, TIME


@dataclass(frozen=True, kw_only=True)
class NightVerdict:
    """The events of a nightly run, and what to report in addition to its alarms."""

    events: tuple[Judged, ...]
    appeared: tuple[str, ...]
    vanished: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def judge_night(
    all_series: Mapping[Key, Series],
    alarms: Sequence[Alarm],
    today: date,
    now: datetime,
    measured: Iterable[Key],
    runs: Path,
    alike: Collection[str] = (),
) -> NightVerdict:
    """Judge tonight's results.

    `measured` are the series that tonight's suite was meant to measure, whatever their outcome. `alike` are the runs of
    earlier nights with the same options.
    """
    own = set(measured)
    wander = find_wander({key: series.segments[-1] for key, series in all_series.items() if series.segments})
    events: list[Judged] = []
    for key in sorted(key for key in own if not key.is_control):
        series = all_series[key]
        # Each metric of a case has separate alarms, so that one that is known hides nothing about another metric.
        mine = [alarm for alarm in alarms if alarm.key == key]
        if key.metric == RESULTS:
            events += results.judge_results(series, mine, today, now, runs)
        elif series.segments and series.segments[-1].values[-1].night == today:
            events += levels.judge_levels(series, mine, today, now, runs, all_series, wander[key.alike])
    appeared, vanished = _came_and_went(all_series, own, today, alike)
    explained, notices = machine.find_explained(_list_opened(events), all_series)
    known = {alarm.id: alarm for alarm in explained}
    return NightVerdict(
        events=tuple(
            replace(event, alarm=known.get(event.alarm.id, event.alarm)) if isinstance(event, AlarmOpened) else event
            for event in events
        ),
        appeared=appeared,
        vanished=vanished,
        warnings=(*notices, *_describe_ended(all_series, own, today)),
        notes=_describe_new_segments(all_series, own, today),
    )


def _list_opened(events: Iterable[Judged]) -> list[Alarm]:
    return [event.alarm for event in events if isinstance(event, AlarmOpened)]


def _came_and_went(
    all_series: Mapping[Key, Series], own: set[Key], today: date, alike: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of series that appeared in the suite and of those that vanished from it.

    Tonight is compared with earlier nights that had the same options, since a history may have several schedules, whose
    versions and cases overlap. Series of engines that tonight did not use are left out.
    """
    engines = {(key.host, key.engine) for key in own}
    before: dict[tuple[datetime, str], set[Key]] = defaultdict(set)
    for key, series in all_series.items():
        if (key.host, key.engine) in engines and not key.is_control:
            for point in series.points:
                if point.run in alike and point.stage == "screen" and point.night < today:
                    before[point.started, point.run].add(key)
    if not before:
        return (), ()
    last = before[max(before)]
    ever = set().union(*before.values())
    return _name_cases(own - ever), _name_cases(last - own)


def _name_cases(keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(f"{key.case} in {key.target}" for key in sorted(keys) if _is_of_times(key))


def _is_of_times(key: Key) -> bool:
    """Return whether a key is about the times of a version, not about another metric or the control arm."""
    return key.metric == TIME and not key.is_control


def _describe_ended(all_series: Mapping[Key, Series], own: set[Key], today: date) -> tuple[str, ...]:
    """Describe versions that had a time on the night before but have none tonight, one line per reason.

    If the reference has none, that is the reason for all versions.
    """
    lost: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for key in sorted(own):
        nights = [point for point in all_series[key].points if point.stage == "screen"]
        if not _is_of_times(key) or len(nights) < 2 or nights[-1].night != today:
            continue
        before, now = nights[-2:]
        if before.outcome == "measured" != now.outcome:
            what = "nothing to compare" if now.reason.startswith(REFERENCE_PREFIX) else f"{key.target} {now.outcome}"
            lost[what, now.reason][key.case] = None
    return tuple(
        f"{what} in {next(iter(cases)) if len(cases) == 1 else f'{len(cases)} cases'}: {reason}"
        for (what, reason), cases in lost.items()
    )


def _describe_new_segments(all_series: Mapping[Key, Series], own: set[Key], today: date) -> tuple[str, ...]:
    """Describe what caused new segments tonight.

    This is reported, but never raises an alarm.
    """
    begun: dict[str, int] = defaultdict(int)
    for key in own:
        segments = all_series[key].segments
        if _is_of_times(key) and len(segments) > 1 and segments[-1].values and segments[-1].values[0].night == today:
            for because in segments[-1].because:
                begun[because] += 1
    return tuple(f"{because}: new segment in {count} series" for because, count in sorted(begun.items()))


def report_events(report: NightReport, judged: NightVerdict, after: Sequence[Alarm], today: date) -> NightReport:
    """Add the events of a nightly run to its report.

    `after` are all alarms in their current state.
    """
    by_id = {alarm.id: alarm for alarm in after}
    moved = [event for event in judged.events if isinstance(event, StateChanged)]
    opened = [alarm.id for alarm in _list_opened(judged.events) if alarm.state == "new"]
    opened += [event.alarm for event in moved if event.state == "new"]
    recovered = [event.alarm for event in moved if event.state == "recovered"]
    # An alarm of the machine was not reported when it began, so its end is not reported either.
    recovered = [alarm_id for alarm_id in recovered if not state.is_by_machine(by_id[alarm_id])]
    confirmed = [by_id[event.alarm] for event in moved if event.state == "confirmed"]
    resized = [by_id[event.alarm] for event in judged.events if isinstance(event, SizeChanged) and event.left]
    still = [alarm for alarm in after if state.is_listed(alarm, today) and alarm.id not in opened]
    return replace(
        report,
        opened=tuple(by_id[alarm_id] for alarm_id in opened),
        recovered=tuple(by_id[alarm_id] for alarm_id in recovered),
        still=tuple(still),
        confirmed=tuple(alarm for alarm in confirmed if not alarm.proven),
        # Alarms that a user has muted are left out.
        resized=tuple(alarm for alarm in resized if state.is_listed(alarm, today)),
        appeared=judged.appeared,
        vanished=judged.vanished,
        warnings=(*report.warnings, *judged.warnings),
    )
