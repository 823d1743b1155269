"""A step is believed when what nights do by themselves does not explain it: freak nights and weekends."""

import math
from collections.abc import Sequence
from datetime import timedelta

import pytest

from orchestrator.history.alarms.noise_model import nights_of
from orchestrator.history.alarms.proof import find_strays, is_proven
from orchestrator.history.model import Change, Segment, Series
from orchestrator.history.surroundings import is_weekend
from tests.support.segments import BEGIN, key, noisy, segment

# A Monday and the Saturday after it, long after the first night.
MONDAY, SATURDAY = 60, 65
QUIET = 0.01


def test_the_nights_are_what_the_tests_say():
    assert (BEGIN + timedelta(MONDAY)).weekday() == 0
    assert [is_weekend(BEGIN + timedelta(SATURDAY + number)) for number in (-1, 0, 1, 2)] == [False, True, True, False]


def change(first: int, size: float, before: float = 0.0) -> Change:
    return Change(
        first=BEGIN + timedelta(first), last=BEGIN + timedelta(first - 1), before=math.exp(before),
        after=math.exp(before + size), ratio=math.exp(size), ci_low=1.0, ci_high=2.0, p=1e-7,
    )  # fmt: skip


def proven(
    effects: Sequence[float], first: int, size: float, others: Sequence[Segment] = (), before: float = 0.0
) -> bool:
    """Whether these nights prove a step of this size; the nights of the step were confirmed."""
    own = segment(effects, sure=range(first, len(effects)))
    by_key = {key(f"case{number}"): of for number, of in enumerate([own, *others])}
    series = {name: Series(key=name, segments=(of,), points=()) for name, of in by_key.items()}
    return is_proven(change(first, size, before), own, find_strays(series[key("case0")], series))


def nights(count: int, *more: float) -> list[float]:
    return [*noisy(count, noise=QUIET), *more]


def test_a_small_step_is_proven_by_its_second_night():
    assert not proven(nights(MONDAY, 0.06), MONDAY, 0.06)
    assert proven(nights(MONDAY, 0.06, 0.06), MONDAY, 0.06)


def test_a_large_step_is_proven_at_once():
    assert proven(nights(MONDAY, 0.2), MONDAY, 0.2)


def test_nights_that_go_back_prove_nothing():
    assert not proven(nights(MONDAY, 0.2, 0.0), MONDAY, 0.2)
    assert not proven(nights(MONDAY, 0.06, 0.0, 0.06, 0.0), MONDAY, 0.06)


def test_where_single_nights_stray_as_far_more_nights_have_to_show_a_step():
    effects = nights(MONDAY)
    for freak in range(5, MONDAY, 12):
        effects[freak] = 0.08
    assert not proven([*effects, 0.06, 0.06], MONDAY, 0.06)
    assert proven([*effects, 0.06, 0.06, 0.06], MONDAY, 0.06)


def test_a_large_step_is_not_believed_at_once_where_a_night_of_any_case_strayed_so_far():
    stray = nights(MONDAY + 1)
    stray[20] = 0.3
    others = [segment(stray), *(segment(nights(MONDAY + 1), seed=seed) for seed in range(2, 6))]
    assert not proven(nights(MONDAY, 0.2), MONDAY, 0.2, others)
    assert proven(nights(MONDAY, 0.2, 0.2), MONDAY, 0.2, others)


def test_a_weekend_alone_proves_no_small_step():
    assert not proven(nights(SATURDAY, 0.06, 0.06), SATURDAY, 0.06)
    assert proven(nights(SATURDAY, 0.06, 0.06, 0.06), SATURDAY, 0.06)


def test_the_end_of_a_weekend_is_no_step():
    monday = SATURDAY + 2
    assert not proven(nights(SATURDAY, -0.06, -0.06, 0.0, 0.0), monday, 0.06, before=-0.06)
    assert proven(nights(SATURDAY, 0.0, 0.0, 0.06, 0.06), monday, 0.06)


def test_what_all_weekends_do_is_taken_away_and_what_one_does_is_not():
    effects = nights(SATURDAY + 2)
    inside = [number for number in range(len(effects)) if is_weekend(BEGIN + timedelta(number))]
    usual = [effect + (0.05 if number in inside else 0.0) for number, effect in enumerate(effects)]
    once = [effect + (0.05 if number >= SATURDAY else 0.0) for number, effect in enumerate(effects)]
    before, cleared, kept = (nights_of(segment(each)).effects for each in (effects, usual, once))
    assert cleared[inside] == pytest.approx(before[inside], abs=0.012)
    assert kept[SATURDAY:] == pytest.approx(before[SATURDAY:] + 0.05, abs=0.012)
