"""Nights of other kinds do what their names say."""

import numpy as np
import pytest

from bench import kinds
from bench.nights import BEGIN, PARTS, SCREEN, Cell
from orchestrator.history.surroundings import is_weekend

NIGHTS = 42


def made(kind: str, **more: object) -> list[Cell]:
    return kinds.cells(kinds.KINDS[kind], np.random.default_rng(1), 4, NIGHTS, **more)


def levels(cell: Cell) -> np.ndarray:
    """What each night is with all of its rounds."""
    return np.array([night.confirmed[-1].effect for night in cell.series])


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_every_kind_has_screens_confirmations_and_a_control_arm(kind: str):
    for cell in made(kind):
        assert len(cell.series) == len(cell.control) == NIGHTS
        for night in (*cell.series, *cell.control):
            assert night.screened.rounds == SCREEN
            assert [each.rounds for each in night.confirmed] == list(np.cumsum(PARTS[1:]))
        assert cell.series[0].screened.night == BEGIN


def test_a_step_moves_the_slowed_cases_from_its_night_on():
    slowed, other = (levels(cell) for cell in made("normal rounds", step=0.5, at=20, slowed=(0,))[:2])
    assert slowed[20:].mean() - slowed[:20].mean() == pytest.approx(np.log(1.5), abs=0.01)
    assert other[20:].mean() == pytest.approx(other[:20].mean(), abs=0.01)


def test_weekends_stray_alike_and_other_days_do_not():
    for cell in made("weekends of up to 6 %"):
        inside = np.array([is_weekend(night.screened.night) for night in cell.series])
        assert levels(cell)[inside].std() < 0.01
        assert abs(levels(cell)[~inside].mean()) < 0.003


def test_a_reboot_moves_a_case_and_nothing_else_does():
    kind = "reboots after 20 nights, levels of 2 %"
    between = [levels(cell)[20:40] for cell in made(kind)]
    assert all(each.std() < 0.01 for each in between)
    assert max(abs(each.mean()) for each in between) > 0.01
    assert kinds.KINDS[kind].boot == 20


def test_levels_that_wander_resemble_those_of_the_night_before():
    rng = np.random.default_rng(1)
    strays = np.array([kinds.wandering(0.007, 0.7)(rng, 200) for _ in range(50)])
    assert strays.std() == pytest.approx(0.007, rel=0.1)
    assert np.corrcoef(strays[:, 1:].ravel(), strays[:, :-1].ravel())[0, 1] == pytest.approx(0.7, abs=0.03)
