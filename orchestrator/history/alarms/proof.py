"""Decides whether the nights that show a step prove it, or whether more nights are needed. Pure functions.

A single night may deviate by chance, and a weekend because of other work that a machine has at weekends.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orchestrator.history.alarms.noise_model import Floats, nights_of
from orchestrator.history.model import Change, Key, Segment, Series
from orchestrator.history.surroundings import is_weekend

# A step is proven if chance makes as many nights deviate as far with at most this probability.
RARE = 0.015
# Deviations that no night has shown yet count as this many nights.
UNSEEN = 0.3
# A night that deviates by more than half a step is nearer to the level after it than to the level before it.
HALF = 0.5
# A larger step than LARGE is believed at once if no night of any case ever deviated by more than 1 / FAR of it.
LARGE = 1.1
FAR = 3.0
# This many working days before a weekend show the level of a series.
AROUND = 5


@dataclass(frozen=True)
class NightStrays:
    """How many standard deviations single nights stray from both of their neighbours, in one series and in all."""

    own: Floats
    all: Floats


def find_strays(series: Series, all_series: Mapping[Key, Series]) -> NightStrays:
    """Return the strays of a series, and those of all series with the same machine and metric."""
    alike = [other for key, other in all_series.items() if is_alike(key, series.key) and other.segments]
    return NightStrays(_strays(series.segments[-1]), np.concatenate([_strays(other.segments[-1]) for other in alike]))


def is_alike(key: Key, other: Key) -> bool:
    """Return whether two series share their machine and metric, and the first is not a control arm."""
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
    """Return whether the nights since a step began show that it is more than their usual variation."""
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
    often = max(_share_beyond(strays.own, HALF * far, 0.0), _share_beyond(strays.all, HALF * far, UNSEEN))
    return often ** (len(showing) - 1) <= RARE


def _ends_a_weekend(change: Change, segment: Segment) -> bool:
    """Return whether a step only returns a series from a weekend to its level on the working days before."""
    before = [value for value in segment.values if value.night <= change.last]
    working = [value.effect for value in before if not is_weekend(value.night)][-AROUND:]
    if not is_weekend(change.last) or not working:
        return False
    level = float(np.median(working))
    return abs(level - math.log(change.after)) < abs(level - math.log(change.before))


def _share_beyond(strays: Floats, far: float, unseen: float) -> float:
    """Return the share of nights that stray at least this far, counting `unseen` additional nights among them."""
    return (float((strays >= far).sum()) + unseen) / (len(strays) + 1)
