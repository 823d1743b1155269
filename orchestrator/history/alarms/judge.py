"""Judges a nightly run: which alarms begin, continue or end, and what appeared or vanished. Pure functions."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from math import log, sqrt
from pathlib import Path

import numpy as np

from orchestrator.history.alarms import results, state
from orchestrator.history.alarms.noise_model import nights_of
from orchestrator.history.alarms.opened import open_alarm
from orchestrator.history.alarms.proof import find_strays, is_like_others, is_proven, machine_change_at
from orchestrator.history.alarms.steps import changes, news
from orchestrator.history.model import (
    OF_REFERENCE,
    Alarm,
    AlarmOpened,
    Change,
    Key,
    Moved,
    NightReport,
    Segment,
    Series,
    State,
)
from orchestrator.history.surroundings import first_after
from orchestrator.metrics import TIMES
from orchestrator.metrics.followed import RESULTS, TIME

# Later nights show better where exactly a step began: within this many days it is the same step.
WOBBLE = timedelta(days=7)
# A step whose size, as a logarithm, is now this many times what it was is another step.
MOST_RESIZED = 2
# At least and at most this many of the last nights show that a level is not what it was, by this many standard errors.
FEWEST_TO_RECOVER, MOST_TO_RECOVER, SURE_TO_RECOVER = 2, 14, 2.3


@dataclass(frozen=True, kw_only=True)
class NightVerdict:
    """The events of a nightly run, and what to report in addition to its alarms."""

    events: tuple[AlarmOpened | Moved, ...]
    appeared: tuple[str, ...]
    vanished: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def judge(
    all_series: Mapping[Key, Series],
    alarms: Sequence[Alarm],
    today: date,
    now: datetime,
    measured: Iterable[Key],
    runs: Path,
    alike: Collection[str] = (),
) -> NightVerdict:
    """Judge tonight's results.

    `measured` are the series that tonight's suite was meant to measure, whatever their outcome, and `alike` the runs
    of earlier nights that were asked for the same.
    """
    own = set(measured)
    events: list[AlarmOpened | Moved] = []
    for key in sorted(own):
        series = all_series[key]
        mine = [alarm for alarm in alarms if alarm.key == key]
        if key.is_control:
            continue
        if key.metric == RESULTS:
            events += results.judge(series, mine, today, now, runs)
        elif series.segments and series.segments[-1].values[-1].night == today:
            events += _of_series(series, mine, today, now, runs, all_series)
    appeared, vanished = _came_and_went(all_series, own, today, alike)
    events, notices = _of_machines(_without_repetitions(events, alarms), all_series)
    return NightVerdict(
        events=tuple(events),
        appeared=appeared,
        vanished=vanished,
        warnings=(*notices, *_describe_ended(all_series, own, today)),
        notes=_describe_new_segments(all_series, own, today),
    )


def _of_machines(
    events: Iterable[AlarmOpened | Moved], all_series: Mapping[Key, Series]
) -> tuple[list[AlarmOpened | Moved], list[str]]:
    """Make one notice of the new alarms that began when their machine changed and moved no more than other cases did.

    A reboot moves levels by a percent or two, and is no news about TensorFlow. These alarms are known from the start.
    """
    judged = list(events)
    begun: dict[tuple[str, tuple[str, ...]], list[Alarm]] = defaultdict(list)
    for alarm in _list_opened(judged):
        of = machine_change_at(all_series[alarm.key], alarm.change) if alarm.key.metric in TIMES else None
        if of and is_like_others(alarm.change, of, alarm.key, all_series):
            begun[alarm.key.host, of.what].append(alarm)
    notices = []
    for (host, what), together in begun.items():
        note = f"{state.BY_MACHINE}: {'; '.join(what)}"
        known = {alarm.id: replace(alarm, state="known", note=note) for alarm in together}
        judged = [
            replace(event, alarm=known.get(event.alarm.id, event.alarm)) if isinstance(event, AlarmOpened) else event
            for event in judged
        ]
        notices.append(f"{len(together)} series of host {host} {note}; suspect the machine before TensorFlow")
    return judged, notices


def _without_repetitions(
    events: Sequence[AlarmOpened | Moved], alarms: Iterable[Alarm]
) -> tuple[AlarmOpened | Moved, ...]:
    """Leave out new alarms about first calls and the like where the calls themselves went the same way.

    The cause of slower calls is also what made the first one slower.
    """
    known = [*(alarm for alarm in alarms if state.is_open(alarm)), *(_list_opened(events))]
    of_calls = {(alarm.key, alarm.change.direction) for alarm in known if alarm.key.metric == TIME}

    def repeats(alarm: Alarm) -> bool:
        key = alarm.key
        return (
            key.metric in TIMES
            and key.metric != TIME
            and (replace(key, metric=TIME), alarm.change.direction) in of_calls
        )

    repetitions = [alarm for alarm in _list_opened(events) if repeats(alarm)]
    return tuple(event for event in events if not (isinstance(event, AlarmOpened) and event.alarm in repetitions))


def _list_opened(events: Iterable[AlarmOpened | Moved]) -> list[Alarm]:
    return [event.alarm for event in events if isinstance(event, AlarmOpened)]


def _of_series(
    series: Series,
    alarms: Sequence[Alarm],
    today: date,
    now: datetime,
    runs: Path,
    all_series: Mapping[Key, Series],
) -> Iterator[AlarmOpened | Moved]:
    segment = series.segments[-1]
    steps = changes(segment)
    for alarm in alarms:
        if not state.is_open(alarm):
            continue
        if _has_recovered(alarm, segment, steps):
            yield Moved(at=now, alarm=alarm.id, state="recovered", night=today)
        elif alarm.state == "new" and alarm.raised < today and _is_borne_out(alarm, series, all_series):
            yield Moved(at=now, alarm=alarm.id, state="confirmed", night=today)
    # What the series shows of long ago may come and go with what is known of its noise: only what is new is an alarm.
    for change in news(segment):
        same = [alarm for alarm in alarms if _is_same(alarm, change, steps)]
        # What a machine did is not undone by a version.
        undone = any(_undoes(change, alarm) for alarm in alarms if not state.is_by_machine(alarm))
        if undone or any(map(state.is_open, same)):
            continue
        if not same:
            between = first_after(series.points, change.first)
            proven = is_proven(change, segment, find_strays(series, all_series))
            yield AlarmOpened(at=now, alarm=open_alarm(series, change, between, now, runs, proven=proven))
        elif _holds(same[0], segment):
            again: State = "known" if state.is_by_machine(same[0]) else "new"
            yield Moved(at=now, alarm=same[0].id, state=again, night=today)


def _is_same(alarm: Alarm, change: Change, steps: Sequence[Change]) -> bool:
    """Return whether an alarm is about this step, one of `found`.

    Seen from a later night, the step may begin on a different night.
    """
    step = alarm.change
    if change.direction != step.direction or _was_closed(alarm, change):
        return False
    if not step.first - WOBBLE <= change.first <= max(step.first, alarm.raised) + WOBBLE:
        return False
    # Another step that is nearer is the alarm's, or has ended what it was about.
    nearest = min(steps, key=lambda other: abs(other.first - step.first))
    return nearest == change and 1 / MOST_RESIZED <= log(change.ratio) / log(step.ratio) <= MOST_RESIZED


def _was_closed(alarm: Alarm, change: Change) -> bool:
    """Return whether an alarm was over before a step began."""
    return alarm.closed is not None and alarm.closed < change.first


def _undoes(change: Change, alarm: Alarm) -> bool:
    """Return whether a step brings the level back to about where it was before the alarm."""
    if _was_closed(alarm, change) or not _takes_back(change, alarm):
        return False
    return abs(log(change.after / alarm.change.before)) < abs(log(alarm.change.ratio)) / 2


def _takes_back(change: Change, alarm: Alarm) -> bool:
    """Return whether a step reverses most of an alarm's change, or more than all of it."""
    step = alarm.change
    if change.direction == step.direction or change.first <= step.first:
        return False
    return log(change.after / step.before) / log(step.ratio) < 1 / 2


def _has_recovered(alarm: Alarm, segment: Segment, steps: Sequence[Change]) -> bool:
    if any(_takes_back(change, alarm) for change in steps):
        return True
    if any(_is_same(alarm, change, steps) for change in steps):
        return False
    return _is_back(alarm, segment)


def _is_back(alarm: Alarm, segment: Segment) -> bool:
    """Return whether nights after an alarm show that the level is nearer to the old one.

    One or two nights may stray by half of a small step, and the more nights there are, the less.
    """
    nights = nights_of(segment)
    later = sum(night > alarm.raised for night in nights.dates)
    before, after = log(alarm.change.before), log(alarm.change.after)
    for count in range(FEWEST_TO_RECOVER, min(later, MOST_TO_RECOVER) + 1):
        weights = nights.weights[-count:]
        level = float(np.average(nights.effects[-count:], weights=weights))
        doubt = SURE_TO_RECOVER / sqrt(float(weights.sum()))
        if (level - (before + after) / 2) * (after - before) < -doubt * abs(after - before):
            return True
    return False


def _holds(alarm: Alarm, segment: Segment, nights: int = 1) -> bool:
    """Return whether the last nights are nearer to the level after the step than to the level before it."""
    last = segment.values[-nights:]
    level = sum(value.effect * value.rounds for value in last) / sum(value.rounds for value in last)
    before, after = log(alarm.change.before), log(alarm.change.after)
    return abs(level - after) < abs(level - before)


def _is_borne_out(alarm: Alarm, series: Series, all_series: Mapping[Key, Series]) -> bool:
    """Return whether later nights confirm an alarm."""
    segment = series.segments[-1]
    if not alarm.needs_second_night:
        return _holds(alarm, segment)
    nights = sum(value.night >= alarm.change.first for value in segment.values)
    if not nights or not _holds(alarm, segment, nights):
        return False
    return is_proven(alarm.change, segment, find_strays(series, all_series))


def _came_and_went(
    all_series: Mapping[Key, Series], own: set[Key], today: date, alike: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of series that appeared in the suite and of those that vanished from it.

    Tonight is compared with the last run of an earlier night that was asked for the same: a history may have several
    schedules, whose versions and cases overlap. Another engine that was chosen since has other series.
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
    return tuple(f"{key.case} in {key.version}" for key in sorted(keys) if _is_of_times(key))


def _is_of_times(key: Key) -> bool:
    """Return whether a key stands for a version in a case, and not for another metric of the same."""
    return key.metric == TIME and not key.is_control


def _describe_ended(all_series: Mapping[Key, Series], own: set[Key], today: date) -> tuple[str, ...]:
    """Describe versions that had a time on the night before but have none tonight, one line per reason.

    Where the reference has none, that is the reason for all versions.
    """
    lost: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for key in sorted(own):
        nights = [point for point in all_series[key].points if point.stage == "screen"]
        if not _is_of_times(key) or len(nights) < 2 or nights[-1].night != today:
            continue
        before, now = nights[-2:]
        if before.outcome == "measured" != now.outcome:
            what = "nothing to compare" if now.reason.startswith(OF_REFERENCE) else f"{key.version} {now.outcome}"
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
    moved = [event for event in judged.events if isinstance(event, Moved)]
    opened = [alarm.id for alarm in _list_opened(judged.events) if alarm.state == "new"]
    opened += [event.alarm for event in moved if event.state == "new"]
    recovered = [event.alarm for event in moved if event.state == "recovered"]
    # What the machine did was no news when it began.
    recovered = [alarm_id for alarm_id in recovered if not state.is_by_machine(by_id[alarm_id])]
    confirmed = [by_id[event.alarm] for event in moved if event.state == "confirmed"]
    still = [alarm for alarm in after if state.is_listed(alarm, today) and alarm.id not in opened]
    return NightReport(
        night=report.night,
        opened=tuple(by_id[alarm_id] for alarm_id in opened),
        recovered=tuple(by_id[alarm_id] for alarm_id in recovered),
        still=tuple(still),
        confirmed=tuple(alarm for alarm in confirmed if alarm.needs_second_night),
        appeared=judged.appeared,
        vanished=judged.vanished,
        warnings=(*report.warnings, *judged.warnings),
        page=report.page,
    )
