"""Decides whether the nights that show a step prove it, or whether others have to. Pure functions.

One night may stray by itself, and a weekend by what a machine does at weekends.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orchestrator.history.alarms.noise_model import Floats, nights_of
from orchestrator.history.model import Change, Key, Segment, Series
from orchestrator.history.surroundings import is_weekend

# Nights that stray by chance may look like those that show a step at most this often.
RARE = 0.015
# What no night has shown yet counts as this many nights.
UNSEEN = 0.3
# Half a step is nearer to its level after than to that before.
HALF = 0.5
# A larger step than this is believed at once if no night of any case ever strayed by a third of it.
LARGE = 1.1
FAR = 3.0
# The working days before a weekend that say where a series was.
AROUND = 5


@dataclass(frozen=True)
class NightStrays:
    """By how many standard deviations single nights stray from both of their neighbours: of a series, and of all."""

    own: Floats
    all: Floats


def find_strays(series: Series, all_series: Mapping[Key, Series]) -> NightStrays:
    """Return the strays of a series, and those of all on the same machine by the same metric."""
    alike = [other for key, other in all_series.items() if is_alike(key, series.key) and other.segments]
    return NightStrays(_strays(series.segments[-1]), np.concatenate([_strays(other.segments[-1]) for other in alike]))


def is_alike(key: Key, other: Key) -> bool:
    """Return whether two series are of one machine and one metric, and the first is of a version."""
    return (key.host, key.metric, key.judge) == (other.host, other.metric, other.judge) and not key.is_control


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
    before, after = math.log(change.before), math.log(change.after)
    showing = [value.night for value in since if abs(value.effect - after) < abs(value.effect - before)]
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


def _often(strays: Floats, far: float, unseen: float) -> float:
    """Return the share of nights that stray as far, of which some may not have been seen."""
    return (float((strays >= far).sum()) + unseen) / (len(strays) + 1)
