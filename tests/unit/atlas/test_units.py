"""What an atlas measures together, and in which order."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from orchestrator.atlas.units import AtlasUnit, make_units, order_units


def test_each_release_is_measured_with_the_one_before_it_and_the_newest():
    units = make_units(["1.14", "2.0", "2.8", "2.13"])
    assert [unit.targets for unit in units] == [
        ("1.14", "2.13"), ("1.14", "2.0", "2.13"), ("2.0", "2.8", "2.13"), ("2.8", "2.13"),
    ]  # fmt: skip
    assert [unit.has_step for unit in units] == [False, True, True, True]
    assert [unit.has_level for unit in units] == [True, True, True, False]


def test_of_two_releases_the_step_is_the_level():
    (unit,) = make_units(["2.8", "2.13"])
    assert (unit.targets, unit.has_step, unit.has_level) == (("2.8", "2.13"), True, True)


def test_levels_can_be_against_a_release_that_is_not_followed():
    units = make_units(["2.0", "2.8", "2.13"], "2.20")
    assert [unit.targets for unit in units] == [("2.0", "2.20"), ("2.0", "2.8", "2.20"), ("2.8", "2.13", "2.20")]
    assert [unit.has_step for unit in units] == [False, True, True]
    assert all(unit.has_level for unit in units)
    assert [unit.targets for unit in make_units(["2.0", "2.8"], "2.20")] == [("2.0", "2.20"), ("2.0", "2.8", "2.20")]


@given(st.integers(2, 40))
def test_every_neighbour_is_a_step_once_and_every_release_has_one_level(count: int):
    releases = [f"2.{number}" for number in range(count)]
    units = make_units(releases)
    assert [unit.targets[:2] for unit in units if unit.has_step] == list(pairwise(releases))
    assert [unit.targets[-2] for unit in units if unit.has_level] == releases[:-1]
    assert all(unit.targets[-1] == releases[-1] for unit in units if unit.has_level)
    assert len({unit.name for unit in units}) == len(units)


def test_what_has_no_round_comes_first():
    units = make_units(["2.8", "2.9", "2.10", "2.11"])
    ordered = order_units(units, {"00": 8, "02": 4}, {"01"})
    assert [unit.name for unit in ordered] == ["03", "02", "00"]


@pytest.mark.parametrize("name", ["../x", "1", "", "01/..", "a1"])
def test_a_unit_of_another_persons_state_is_no_path(name: str):
    with pytest.raises(ValidationError):
        TypeAdapter(AtlasUnit).validate_python(
            {"name": name, "targets": ("2.8", "2.9"), "has_step": True, "has_level": True}
        )
