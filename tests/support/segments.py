"""Segments of series that were never measured: nights with noise, and steps."""

import math
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from orchestrator.history.alarms.steps import CONFIRM_TIMES
from orchestrator.history.model import Key, Segment, Value

BEGIN = date(2026, 1, 1)


SCREEN = 12


SURE = SCREEN * sum(CONFIRM_TIMES[:4])


NOISE = 0.01


def key(case: str, version: str = "nightly") -> Key:
    return Key.parse(case, version, "2.13", "cpu", "venv", "host")


def value(night: int, effect: float, rounds: int = SCREEN, noise: float = NOISE) -> Value:
    error = noise * math.sqrt(SCREEN / rounds)
    return Value(night=BEGIN + timedelta(night), effect=effect, error=error, rounds=rounds)


def segment(effects: Sequence[float], seed: int = 1, sure: Sequence[int] = (), noise: float = NOISE) -> Segment:
    """These effects, and a control arm of the same noise; the nights in `sure` have the rounds of a confirmation."""
    rng = np.random.default_rng(seed)
    rounds = [SURE if night in sure else SCREEN for night in range(len(effects))]
    strays = [noise * math.sqrt(SCREEN / count) * rng.normal() for count in rounds]
    return Segment(
        values=tuple(value(night, effect, rounds[night], noise) for night, effect in enumerate(effects)),
        control=tuple(value(night, stray, rounds[night], noise) for night, stray in enumerate(strays)),
    )


def noisy(count: int, seed: int = 2, noise: float = NOISE) -> list[float]:
    return list(noise * np.random.default_rng(seed).normal(size=count))


def stepped(before: int, after: int, size: float, seed: int = 2) -> list[float]:
    return [effect + (size if night >= before else 0.0) for night, effect in enumerate(noisy(before + after, seed))]
