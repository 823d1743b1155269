"""Which versions lie between two: releases by their numbers, nightlies as far as an index still has them."""

import pytest

from orchestrator.bisect.candidates import add_nightlies, is_nightly_number, nightlies_between, releases_between
from orchestrator.errors import UsageError

INDEX = (
    "2.21.0.dev20260105", "2.21.0.dev20251230", "2.20.0.dev20250101", "2.22.0.dev20260301", "2.22.0.dev20260302",
    "2.21.0rc0", "2.21.0",
)  # fmt: skip


def test_one_version_a_release_lies_between_two_and_the_ends_are_those_named():
    assert releases_between("1.14.0", "2.3.4") == ("1.14.0", "1.15.5", "2.0.0", "2.1.4", "2.2.3", "2.3.4")
    assert releases_between("2.0.4", "2.1.4") == ("2.0.4", "2.1.4")
    assert releases_between("2.11.1", "2.13.0") == ("2.11.1", "2.12.1", "2.13.0")


def test_the_ends_have_to_be_two_and_in_their_order():
    with pytest.raises(UsageError, match=r"newer than --bad 1\.14\.0: name the older one as --good"):
        releases_between("2.0.0", "1.14.0")
    with pytest.raises(UsageError, match="name two versions"):
        releases_between("2.0.0", "2.0.0")


def test_nightlies_of_a_release_lie_before_it_and_after_the_one_before():
    assert nightlies_between("2.20.0", "2.21.0", INDEX) == ("2.21.0.dev20251230", "2.21.0.dev20260105")
    assert nightlies_between("2.21.0", "2.22.0.dev20260302", INDEX) == ("2.22.0.dev20260301",)
    assert nightlies_between("2.21.0.dev20251230", "2.22.0.dev20260302", INDEX) == (
        "2.21.0.dev20260105", "2.22.0.dev20260301",
    )  # fmt: skip
    assert [is_nightly_number(one) for one in INDEX] == [True, True, True, True, True, False, False]


def test_candidates_take_in_the_nightlies_between_neighbours_only():
    found, notes = add_nightlies(("2.19.1", "2.20.0", "2.21.0"), [("2.20.0", "2.21.0")], INDEX)
    assert found == ("2.19.1", "2.20.0", "2.21.0.dev20251230", "2.21.0.dev20260105", "2.21.0")
    assert notes == ()


def test_where_the_index_has_none_any_more_that_is_said():
    found, notes = add_nightlies(("2.0.0", "2.1.4"), [("2.0.0", "2.1.4")], INDEX)
    assert found == ("2.0.0", "2.1.4")
    assert notes == (
        "the index has no nightly between 2.0.0 and 2.1.4: "
        "it removes old ones, and the oldest one left is of 2025-01-01",
    )
    assert "it has none at all" in add_nightlies(("2.0.0", "2.1.4"), [("2.0.0", "2.1.4")], ())[1][0]
