"""Judges the levels of one series: which of its alarms hold, end or shrink, and which step is a new one.

A step is judged against the level right before it. So an improvement and the step that undoes it are two alarms, and an
alarm ends only when its series is back at the level before it. Levels of two segments are never compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from math import copysign, exp, log, sqrt
from pathlib import Path

import numpy as np

from orchestrator.history.alarms import state
from orchestrator.history.alarms.noise_model import nights_of
from orchestrator.history.alarms.opened import open_alarm
from orchestrator.history.alarms.proof import find_strays, is_proven
from orchestrator.history.alarms.steps import MIN_SIZE, changes, find_new_step
from orchestrator.history.model import (
    Alarm,
    AlarmOpened,
    Change,
    Judged,
    Key,
    Segment,
    Series,
    SizeChanged,
    State,
    StateChanged,
)
from orchestrator.history.surroundings import first_after

# Later nights show better where exactly a step began: two steps within this many days are the same.
WOBBLE = timedelta(days=7)
# A step counts as a different one if its size, as a logarithm, has changed by more than this factor.
MOST_RESIZED = 2
# The mean of at least and at most this many last nights has to show a recovery, by this many standard errors.
FEWEST_TO_RECOVER, MOST_TO_RECOVER, SURE_TO_RECOVER = 2, 14, 2.3


def judge_levels(
    series: Series,
    alarms: Sequence[Alarm],
    today: date,
    now: datetime,
    runs: Path,
    all_series: Mapping[Key, Series],
    wander: float,
) -> Iterator[Judged]:
    """Judge a series that has a value tonight; `alarms` are all alarms that it ever had.

    `wander` is the variance by which levels wander on the machine.
    """
    segment = series.segments[-1]
    steps, tonight = changes(segment, wander), find_new_step(segment, wander)
    here = [alarm for alarm in alarms if segment.values[0].night <= alarm.change.last]
    for alarm in filter(state.is_open_alarm, alarms):
        if alarm not in here:
            # The segment of the alarm has ended, so report why the later ones began.
            later = [each for each in series.segments if each.values[0].night > alarm.change.last]
            apart = tuple(dict.fromkeys(because for each in later for because in each.because))
            if apart != alarm.apart:
                yield SizeChanged(at=now, alarm=alarm.id, night=today, apart=apart)
        elif _has_recovered(alarm, segment, steps):
            yield StateChanged(at=now, alarm=alarm.id, state="recovered", night=today)
        else:
            if alarm.state == "new" and alarm.night < today and _is_confirmed(alarm, series, all_series):
                yield StateChanged(at=now, alarm=alarm.id, state="confirmed", night=today)
            if tonight and (left := _find_left(alarm, steps)):
                yield SizeChanged(at=now, alarm=alarm.id, night=today, left=left)
    # Old steps may come and go as more is known about the noise, so only a new step raises an alarm.
    for change in tonight:
        same = [alarm for alarm in here if _is_same(alarm, change, steps)]
        if any(map(state.is_open_alarm, same)) or any(_is_already_reported(alarm, change) for alarm in here):
            continue
        if not same:
            between = first_after(series.points, change.first)
            proven = is_proven(change, segment, find_strays(series, all_series))
            undoes = _describe_undone(change, here)
            alarm = open_alarm(series, change, between, now, runs, proven=proven, undoes=undoes)
            yield AlarmOpened(at=now, alarm=alarm)
        elif _holds(same[0], segment):
            again: State = "known" if state.is_by_machine(same[0]) else "new"
            yield StateChanged(at=now, alarm=same[0].id, state=again, night=today)


def _is_same(alarm: Alarm, change: Change, steps: Sequence[Change]) -> bool:
    """Return whether an alarm is about this step, one of `steps`.

    Seen from a later night, the step may begin on a different night.
    """
    step = alarm.change
    if change.direction != step.direction or _was_closed(alarm, change):
        return False
    if not step.first - WOBBLE <= change.first <= max(step.first, alarm.night) + WOBBLE:
        return False
    # A step that is nearer is the one the alarm is about, or has ended it.
    nearest = min(steps, key=lambda other: abs(other.first - step.first))
    # A step that was believed at once may turn out to be smaller, which is no reason for a second alarm.
    least = 0.0 if state.is_open_alarm(alarm) and not alarm.is_provisional else 1 / MOST_RESIZED
    return nearest == change and least <= log(change.ratio) / log(step.ratio) <= MOST_RESIZED


def _was_closed(alarm: Alarm, change: Change) -> bool:
    """Return whether an alarm was over before a step began."""
    return alarm.closed is not None and alarm.closed < change.first


def _find_own(alarm: Alarm, steps: Sequence[Change]) -> Change | None:
    """Return the step of an alarm as the nights show it now, if they still do."""
    return next((change for change in steps if _is_same(alarm, change, steps)), None)


def _find_later(alarm: Alarm, steps: Sequence[Change]) -> Change | None:
    """Return the last step, if it began after that of an alarm."""
    last = steps[-1] if steps else None
    return last if last and last.first > alarm.change.first and not _is_same(alarm, last, steps) else None


def _measure_rest(alarm: Alarm, before: float, level: float) -> float:
    """Return the log distance of a level from the level before an alarm; it is negative on the other side."""
    return copysign(1.0, log(alarm.change.ratio)) * (log(level) - log(before))


def _margin(alarm: Alarm) -> float:
    """Return how near to the level before an alarm nights have to be to end it."""
    half = abs(log(alarm.change.ratio)) / 2
    # A provisional alarm ends as soon as the nights no longer show it.
    return half if alarm.is_provisional else min(MIN_SIZE, half)


def _has_recovered(alarm: Alarm, segment: Segment, steps: Sequence[Change]) -> bool:
    own = _find_own(alarm, steps)
    if later := _find_later(alarm, steps):
        return _measure_rest(alarm, (own or alarm.change).before, later.after) <= _margin(alarm)
    return own is None and _is_back(alarm, segment)


def _is_back(alarm: Alarm, segment: Segment) -> bool:
    """Return whether nights after an alarm show the level from before it, although no step shows its end.

    One or two nights may stray by half of a small step; the mean of more nights strays less.
    """
    nights = nights_of(segment)
    later = sum(night > alarm.night for night in nights.dates)
    half = abs(log(alarm.change.ratio)) / 2
    for count in range(FEWEST_TO_RECOVER, min(later, MOST_TO_RECOVER) + 1):
        weights = nights.weights[-count:]
        level = float(np.average(nights.effects[-count:], weights=weights))
        rest = _measure_rest(alarm, alarm.change.before, exp(level))
        doubt = SURE_TO_RECOVER / sqrt(float(weights.sum()))
        if rest + doubt < half and rest <= _margin(alarm):
            return True
    return False


def _find_left(alarm: Alarm, steps: Sequence[Change]) -> float | None:
    """Return what remains of an alarm, as a ratio to the level before it, or None if the reported one still holds."""
    own, later = _find_own(alarm, steps), _find_later(alarm, steps)
    if alarm.is_provisional or state.is_by_machine(alarm) or not (own or later):
        return None
    whole, reported = abs(log(alarm.change.ratio)), abs(log(alarm.left or alarm.change.ratio))
    level = later.after if later else own.after if own else alarm.change.after
    # A further change in the same direction is another alarm.
    left = min(whole, max(0.0, _measure_rest(alarm, (own or alarm.change).before, level)))
    # The size of the same step looks a little different every night, so a small change of it does not count.
    differs = abs(left - reported) > MIN_SIZE if later else left < reported / MOST_RESIZED
    return exp(copysign(left, log(alarm.change.ratio))) if differs else None


def _is_already_reported(alarm: Alarm, change: Change) -> bool:
    """Return whether a step needs no alarm, since the end or the remaining size of an earlier alarm already reports it.

    A step back after an established improvement is always news, and so is one after an alarm of the machine: no version
    undoes what a machine did.
    """
    if state.is_by_machine(alarm) or _was_closed(alarm, change):
        return False
    if change.direction == alarm.change.direction or change.first <= alarm.change.first:
        return False
    if alarm.change.direction == "faster" and alarm.is_established:
        return False
    # If the step goes past the level before the alarm, more has changed than the alarm was about.
    return _measure_rest(alarm, alarm.change.before, change.after) >= -MIN_SIZE


def _describe_undone(change: Change, alarms: Sequence[Alarm]) -> str:
    """Return which improvement a step undoes, as a whole or in part, or '' if it undoes none."""
    improvements = [
        alarm
        for alarm in alarms
        if alarm.change.direction == "faster"
        and alarm.is_established
        and alarm.change.first < change.first
        and not _was_closed(alarm, change)
        and not state.is_by_machine(alarm)
    ]
    if change.direction == "faster" or not improvements:
        return ""
    last = max(improvements, key=lambda alarm: alarm.change.first)
    whole = _measure_rest(last, last.change.before, change.after) <= _margin(last)
    return f"undoes {'' if whole else 'a part of '}the improvement of {last.change.first}"


def _holds(alarm: Alarm, segment: Segment, nights: int = 1) -> bool:
    """Return whether the last nights are nearer to the level after the step than to the level before it."""
    last = segment.values[-nights:]
    level = sum(value.effect * value.rounds for value in last) / sum(value.rounds for value in last)
    before, after = log(alarm.change.before), log(alarm.change.after)
    return abs(level - after) < abs(level - before)


def _is_confirmed(alarm: Alarm, series: Series, all_series: Mapping[Key, Series]) -> bool:
    """Return whether later nights confirm an alarm."""
    segment = series.segments[-1]
    if alarm.proven:
        return _holds(alarm, segment)
    nights = sum(value.night >= alarm.change.first for value in segment.values)
    if not nights or not _holds(alarm, segment, nights):
        return False
    return is_proven(alarm.change, segment, find_strays(series, all_series))
