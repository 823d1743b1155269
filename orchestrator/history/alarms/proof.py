"""Decides whether the nights that show a step prove it, or whether others have to. Pure functions.

One night may stray by itself, a weekend by what a machine does at weekends, and what follows a reboot by the reboot.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

import numpy as np

from orchestrator.history.alarms.noise_model import Floats, nights_of
from orchestrator.history.model import LARGE, Change, Key, Segment, Series, Value
from orchestrator.history.surroundings import is_weekend, machine_changes

# Nights that stray by chance may look like those that show a step at most this often.
RARE = 0.015
# What no night has shown yet counts as this many nights.
UNSEEN = 0.3
# Half a step is nearer to its level after than to that before.
HALF = 0.5
# A large step is believed at once if no night of any case ever strayed by a third of it.
FAR = 3.0
# A step is the machine's if it is at most this many times what the change of the machine did to the other cases. What
# such changes do usually counts as some cases.
LIKE_OTHERS, USUAL_SHIFT, PRIOR_CASES = 3.5, 0.01, 4
# The nights on each side of a machine change that say what it did.
AROUND = 5
# A small step may be found to begin this many nights off.
OFF = 3


@dataclass(frozen=True)
class NightStrays:
    """By how many standard deviations single nights stray from both of their neighbours: of a series, and of all."""

    own: Floats
    all: Floats


def find_strays(series: Series, all_series: Mapping[Key, Series]) -> NightStrays:
    """Return the strays of a series, and those of all on the same machine by the same metric."""
    alike = [other for key, other in all_series.items() if _is_alike(key, series.key) and other.segments]
    return NightStrays(_strays(series.segments[-1]), np.concatenate([_strays(other.segments[-1]) for other in alike]))


def _is_alike(key: Key, other: Key) -> bool:
    return (key.host, key.metric) == (other.host, other.metric) and not key.is_control


def _strays(segment: Segment) -> Floats:
    """Return how far each night strays from both of its neighbours, in standard deviations."""
    effects = np.array([value.effect for value in segment.values])
    if len(effects) < 3:
        return np.zeros(0)
    there, back = effects[1:-1] - effects[:-2], effects[1:-1] - effects[2:]
    apart = np.where(there * back > 0, np.minimum(np.abs(there), np.abs(back)), 0.0)
    return apart * np.sqrt(nights_of(segment).weights[1:-1])


def is_proven(change: Change, segment: Segment, strays: NightStrays) -> bool:
    """Return whether the nights since a step began show that it is more than what nights do by themselves."""
    since = [value for value in segment.values if value.night >= change.first]
    showing = [value.night for value in since if _shows(value, change)]
    if len(showing) <= len(since) / 2:
        return False
    size = abs(math.log(change.ratio))
    far = size * math.sqrt(float(np.median(nights_of(segment).weights[-len(since) :])))
    if size > math.log(LARGE) and far >= FAR * max(strays.all, default=0.0):
        return True
    if all(map(is_weekend, showing)) or _ends_a_weekend(change, segment):
        return False
    often = max(_often(strays.own, HALF * far, 0.0), _often(strays.all, HALF * far, UNSEEN))
    return often ** (len(showing) - 1) <= RARE


def _ends_a_weekend(change: Change, segment: Segment) -> bool:
    """Return whether a step only takes a series back from a weekend to where it was on the working days before."""
    before = [value for value in segment.values if value.night <= change.last]
    working = [value.effect for value in before if not is_weekend(value.night)][-AROUND:]
    if not is_weekend(change.last) or not working:
        return False
    level = float(np.median(working))
    return abs(level - math.log(change.after)) < abs(level - math.log(change.before))


def _shows(value: Value, change: Change) -> bool:
    """Return whether a night is nearer to the level after a step than to the level before it."""
    return abs(value.effect - math.log(change.after)) < abs(value.effect - math.log(change.before))


def _often(strays: Floats, far: float, unseen: float) -> float:
    """Return the share of nights that stray as far, of which some may not have been seen."""
    return (float((strays >= far).sum()) + unseen) / (len(strays) + 1)


@dataclass(frozen=True)
class MachineChange:
    """What changed about a machine, and the first night after that."""

    night: date
    what: tuple[str, ...]


def machine_change_at(series: Series, change: Change) -> MachineChange | None:
    """Return what changed about the machine where a step begins, or within a few nights of it."""
    timed = [point for point in series.points if point.has_value]
    near = [
        MachineChange(after.night, what)
        for before, after in pairwise(timed)
        if abs((after.night - change.first).days) <= OFF and (what := machine_changes(before, after))
    ]
    return min(near, key=lambda found: abs((found.night - change.first).days), default=None)


def is_like_others(change: Change, of: MachineChange, key: Key, all_series: Mapping[Key, Series]) -> bool:
    """Return whether a step that begins with a machine change is no larger than what that does to other cases."""
    others = [
        shift
        for other, series in all_series.items()
        if _is_alike(other, key)
        and other != key
        and series.segments
        and (shift := _shift(series.segments[-1], of.night)) is not None
    ]
    variance = (PRIOR_CASES * USUAL_SHIFT**2 + sum(shift**2 for shift in others)) / (PRIOR_CASES + len(others))
    return abs(math.log(change.ratio)) <= LIKE_OTHERS * math.sqrt(variance)


def _shift(segment: Segment, night: date) -> float | None:
    """Return by how much a series moved on a night."""
    before = [value.effect for value in segment.values if value.night < night][-AROUND:]
    after = [value.effect for value in segment.values if value.night >= night][:AROUND]
    return float(np.median(after) - np.median(before)) if before and after else None
