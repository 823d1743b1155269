"""Recognises steps that the machine caused in all series at once, which are no news about TensorFlow. Pure functions.

A reboot, another kernel or microcode may move levels by a percent or two, but never by more than 3 %: a version is
measured next to its reference on the same machine. Only unchanged arms can show that the machine moved levels: versions
with the same build, and the reference's second measurement.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise

import numpy as np
from scipy import special

from orchestrator.history.alarms.noise_model import nights_of
from orchestrator.history.alarms.proof import is_alike
from orchestrator.history.alarms.state import BY_MACHINE
from orchestrator.history.model import Alarm, Change, Key, Segment, Series
from orchestrator.history.surroundings import BOOT, is_restarted, machine_changes
from orchestrator.metrics import TIMES
from orchestrator.terminal.counts import name_some

# A larger step is never attributed to the machine.
MOST = math.log(1.03)
# A step is attributed to the machine if it is at most LIKE_OTHERS times the shift of unchanged versions, among which
# USUAL_SHIFT counts as the shift of PRIOR_CASES more.
LIKE_OTHERS, USUAL_SHIFT, PRIOR_CASES = 3.5, 0.01, 4
# Unchanged versions have moved if chance would move them as far with at most this probability.
MOVED = 0.05
# This many nights on each side of a machine change show what it did.
AROUND = 5
# The beginning that is found for a small step may be this many days off.
OFF = 3
# A machine that was started before at least this share of its last nights counts as one that is started every night.
LAST_NIGHTS, USUALLY = 10, 0.5
MOST_NAMED = 10


@dataclass(frozen=True)
class MachineChange:
    """What changed about the machine, and the first night after that."""

    night: date
    what: tuple[str, ...]


def find_explained(opened: Iterable[Alarm], all_series: Mapping[Key, Series]) -> tuple[list[Alarm], list[str]]:
    """Return the new alarms that a change of their machine explains, as known ones, and a notice for each change."""
    begun: dict[tuple[str, tuple[str, ...]], list[Alarm]] = defaultdict(list)
    for alarm in opened:
        if alarm.key.metric not in TIMES or abs(math.log(alarm.change.ratio)) > MOST:
            continue
        of = machine_change_at(all_series[alarm.key], alarm.change)
        if of and is_like_others(alarm.change, of, alarm.key, all_series):
            begun[alarm.key.host, of.what].append(alarm)
    known, notices = [], []
    for (host, what), together in begun.items():
        note = f"{BY_MACHINE}: {'; '.join(what)}"
        known += [replace(alarm, state="known", note=note) for alarm in together]
        named = name_some([f"{alarm.key.case} in {alarm.key.target}" for alarm in together], MOST_NAMED)
        notices.append(f"{len(together)} series of host {host} {note}; suspect the machine before TensorFlow: {named}")
    return known, notices


def machine_change_at(series: Series, change: Change) -> MachineChange | None:
    """Return what changed about the machine where a step begins, or within a few nights of it.

    A start does not count as a change if the machine is started for every night.
    """
    nights = list({point.night: point for point in series.points if point.has_value}.values())
    near = []
    for number, (before, after) in enumerate(pairwise(nights)):
        if abs((after.night - change.first).days) > OFF:
            continue
        last = [is_restarted(*pair) for pair in pairwise(nights[: number + 1][-LAST_NIGHTS - 1 :])]
        usual = (BOOT,) if last and sum(last) >= USUALLY * len(last) else ()
        if what := machine_changes(before, after, usual):
            near.append(MachineChange(after.night, what))
    return min(near, key=lambda found: abs((found.night - change.first).days), default=None)


def is_like_others(change: Change, of: MachineChange, key: Key, all_series: Mapping[Key, Series]) -> bool:
    """Return whether a step is no larger than what a change of the machine did to unchanged versions."""
    shifts = list(_measure_shifts(of.night, key, all_series))
    if not shifts:
        return False
    moved = sum(shift**2 / variance for shift, variance in shifts)
    if special.chdtrc(len(shifts), moved) > MOVED:
        return False
    # Only the part of a shift that exceeds its noise counts.
    squares = sum(max(0.0, shift**2 - variance) for shift, variance in shifts)
    usual = (PRIOR_CASES * USUAL_SHIFT**2 + squares) / (PRIOR_CASES + len(shifts))
    return abs(math.log(change.ratio)) <= LIKE_OTHERS * math.sqrt(usual)


def _measure_shifts(night: date, key: Key, all_series: Mapping[Key, Series]) -> Iterable[tuple[float, float]]:
    """Yield how far each unchanged series moved on a night, and the variance of that shift."""
    controls: set[Key] = set()
    for other, series in all_series.items():
        if not is_alike(other, key) or not series.segments:
            continue
        segment = series.segments[-1]
        timed = [point for point in series.points if point.has_value]
        build = {point.build for point in [point for point in timed if point.night < night][-1:]}
        shifts = []
        if other != key and {point.build for point in timed if point.night >= night} == build:
            shifts.append(_measure_shift(segment, night))
        # Several versions share one control arm.
        if other.control not in controls:
            controls.add(other.control)
            shifts.append(_measure_shift(Segment(values=segment.control, control=()), night))
        yield from (shift for shift in shifts if shift)


def _measure_shift(segment: Segment, night: date) -> tuple[float, float] | None:
    nights = nights_of(segment) if segment.values else None
    if nights is None:
        return None
    later = np.array([date >= night for date in nights.dates])
    before, after = np.flatnonzero(~later)[-AROUND:], np.flatnonzero(later)[:AROUND]
    if not len(before) or not len(after):
        return None
    levels = [float(np.average(nights.effects[part], weights=nights.weights[part])) for part in (before, after)]
    return levels[1] - levels[0], sum(1 / float(nights.weights[part].sum()) for part in (before, after))
