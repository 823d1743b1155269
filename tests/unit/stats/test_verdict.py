"""The verdicts at their edges, and what is said where there is none."""

import math
from dataclasses import dataclass

import pytest

from orchestrator.stats.verdict import (
    MOST_PROMISED,
    Levels,
    describe_noise,
    judge_estimate,
    rounds_for,
    seed_percent,
    smallest_shown,
)
from tests.support.builders import estimate_of

MARGIN, ROUNDS = 0.05, 10
BOUND = math.log1p(MARGIN)
HAIR = 1e-6
LEVELS = Levels(same=0.0125, differ=0.006)


@dataclass(frozen=True)
class Drawn:
    """An estimate with these half widths at the two levels."""

    theta: float
    same: float
    differ: float

    def half_width(self, level: float) -> float:
        return self.same if level == LEVELS.same else self.differ

    def reach(self, level: float) -> float:
        return self.half_width(level)


def verdict(theta: float, same: float, differ: float | None = None) -> tuple[str, str | None]:
    found = judge_estimate(Drawn(theta, same, same if differ is None else differ), MARGIN, LEVELS)
    return found.verdict, found.size


@pytest.mark.parametrize("sign", [1, -1])
def test_same_is_an_interval_inside_the_margin(sign: int):
    """Its edge must stay within, not merely reach the margin."""
    assert verdict(sign * 0.01, BOUND - 0.01 - HAIR) == ("same", None)
    assert verdict(sign * 0.01, BOUND - 0.01 + HAIR) == ("inconclusive", None)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_certain_difference_inside_the_margin_is_slight_and_the_same_for_the_purpose(sign: int):
    assert verdict(sign * 0.02, 0.01) == ("same", "slight")
    assert verdict(sign * 0.02, 0.02 + HAIR) == ("same", None)
    assert verdict(sign * (BOUND - 0.002), 0.001) == ("same", "slight")


@pytest.mark.parametrize(("sign", "word"), [(1, "slower"), (-1, "faster")])
def test_a_difference_excludes_one_and_is_not_all_inside_the_margin(sign: int, word: str):
    assert verdict(sign * 0.10, 0.10 + HAIR) == ("inconclusive", None)
    assert verdict(sign * 0.10, 0.05) == (word, "beyond")
    assert verdict(sign * 0.10, 0.06) == (word, "clear")
    half = BOUND / 2
    assert verdict(sign * (half + HAIR), half) == (word, "clear"), "it is beyond half the margin by itself"
    assert verdict(sign * (half - HAIR), half - 2 * HAIR) == ("same", "slight")


def test_a_difference_needs_more_certainty_than_sameness():
    """Of two equal arms at most 2.5 % may be called different; what the interval of sameness excludes is not enough."""
    assert verdict(0.10, 0.09, 0.11) == ("inconclusive", None)


def test_the_interval_is_the_one_that_the_verdict_rests_on():
    assert judge_estimate(Drawn(0.01, 0.02, 0.03), MARGIN, LEVELS).half_width == 0.02
    assert judge_estimate(Drawn(0.10, 0.02, 0.03), MARGIN, LEVELS).half_width == 0.03
    assert judge_estimate(Drawn(0.10, 0.20, 0.30), MARGIN, LEVELS).half_width == 0.30


def test_the_margin_is_a_ratio_up_and_the_same_ratio_down():
    """1.05 and 1 / 1.05, not 1.05 and 0.95."""
    assert verdict(math.log(1.0501), HAIR)[0] == "slower"
    assert verdict(math.log(1 / 1.0501), HAIR)[0] == "faster"
    assert verdict(math.log(0.9524), HAIR) == ("same", "slight")


def test_without_any_spread_the_estimate_decides():
    alike, apart = (judge_estimate(estimate_of(theta, 0.0, ROUNDS), MARGIN, LEVELS) for theta in (0.0, 1.0))
    assert (alike.verdict, alike.size, apart.verdict, apart.size) == ("same", None, "slower", "beyond")


def test_noise_is_said_to_be_noise_with_the_rounds_that_it_would_take():
    needed = rounds_for(0.05, MARGIN, LEVELS.differ, beyond=ROUNDS)
    assert needed is not None
    visible = smallest_shown(0.05, ROUNDS, LEVELS.differ)
    said = describe_noise(0.05, ROUNDS, MARGIN, LEVELS.differ)
    assert said == f"too noisy: 10 rounds show slowdowns from {visible:.0%} on; about {needed} would show 5%"
    assert smallest_shown(0.05, needed, LEVELS.differ) <= MARGIN
    assert smallest_shown(0.05, needed - 1, LEVELS.differ) > MARGIN


def test_no_number_of_rounds_is_foretold_that_nobody_can_know():
    assert rounds_for(0.5, MARGIN, LEVELS.differ) is None
    assert describe_noise(0.2, 6, MARGIN, LEVELS.differ).endswith("% on")
    assert describe_noise(2.0, 6, MARGIN, LEVELS.differ) == "too noisy: 6 rounds do not even show a factor of two"


def test_more_rounds_and_less_noise_show_smaller_differences():
    shown = [smallest_shown(0.05, rounds, LEVELS.differ) for rounds in (4, 6, 9, 20)]
    assert shown == sorted(shown, reverse=True)
    assert smallest_shown(0.01, 6, LEVELS.differ) < shown[1]


@pytest.mark.parametrize(
    ("ratio", "percent"), [(3.6, -260), (1 / 3.6, 260), (1.0, 0), (2.0, -100), (0.5, 100), (1.05, -5), (1 / 1.05, 5)]
)
def test_the_seeds_percentage_is_minus_where_the_candidate_is_slower(ratio: float, percent: float):
    """3.6x slower reads -260 %: the longer over the shorter, less one."""
    assert seed_percent(math.log(ratio)) == pytest.approx(percent)


def test_the_rounds_that_are_foretold_are_the_fewest_that_show_the_margin():
    level = 0.05
    assert rounds_for(1e-9, MARGIN, level) == 2
    assert rounds_for(1e-9, MARGIN, level, beyond=7) == 8
    just = smallest_shown(0.2, MOST_PROMISED, level)
    assert rounds_for(0.2, just, level) == MOST_PROMISED
    assert rounds_for(0.2, just - 1e-9, level) is None


def test_rounds_that_were_made_are_not_foretold():
    """The margin would have been shown by these rounds in nine of ten runs: this was the tenth."""
    assert "about 11 would show 5%" in describe_noise(1e-3, 10, MARGIN, LEVELS.differ)
