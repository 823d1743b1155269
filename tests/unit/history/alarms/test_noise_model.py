"""How far nights are trusted: what the control arm and nights of many rounds tell of it."""

import numpy as np
import pytest

from orchestrator.history.alarms.noise_model import nights_of
from orchestrator.history.model import Segment
from tests.support.segments import NOISE, SCREEN, SURE, value


def test_the_control_arm_makes_a_series_quieter_that_shares_its_reference() -> None:
    rng = np.random.default_rng(3)
    version, reference, again = 0.02 * rng.normal(size=(3, 200))
    told = Segment(
        values=tuple(value(night, one, noise=0.02 * 2**0.5) for night, one in enumerate(version - reference)),
        control=tuple(value(night, one, noise=0.02 * 2**0.5) for night, one in enumerate(again - reference)),
    )
    adjusted = nights_of(told).effects
    assert adjusted.var() / (version - reference).var() == pytest.approx(0.75, abs=0.08)


def test_nights_of_many_rounds_tell_what_share_is_the_nights_own() -> None:
    """Rounds whose neighbours are alike stray more than they let expect, in screens and confirmations alike; what more
    rounds do not make smaller is the night's."""
    rng = np.random.default_rng(4)
    count, often = 200, range(0, 200, 4)
    rounds = np.array([SURE if night in often else SCREEN for night in range(count)])

    def told(of_rounds: float, of_night: float) -> float:
        strays = [NOISE * np.sqrt(of_rounds * SCREEN / rounds + of_night) * rng.normal(size=count) for _ in range(2)]
        columns = [
            tuple(value(night, float(one), int(rounds[night])) for night, one in enumerate(arm)) for arm in strays
        ]
        return float((1 / nights_of(Segment(values=columns[0], control=columns[1])).weights)[rounds == SURE].mean())

    assert told(of_rounds=1.5, of_night=0.0) < 0.7 * told(of_rounds=1.0, of_night=0.5)
