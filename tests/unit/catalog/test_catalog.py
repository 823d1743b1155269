"""Versions are found by number and alias, and every one of them can be installed from what lies in images/."""

import re
from pathlib import Path

import pytest
from packaging.version import Version as Number

from orchestrator import catalog
from orchestrator.catalog.version import Flavour
from orchestrator.errors import UsageError

FLAVOURS = [
    pytest.param(flavour, id=f"{version.number}-{flavour.name}-py{flavour.python.number}")
    for version in catalog.all_versions()
    for flavour in version.flavours
]
LOCKS = sorted(catalog.LOCKS.glob("*.txt"))


def requirements(lock: Path) -> list[str]:
    """The lines of a lock, each with its continuations."""
    text = lock.read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def numbers(*names: str) -> list[str]:
    return [version.number for version in catalog.resolve_versions(names)]


def test_versions_are_found_by_number_and_by_alias_in_the_order_named():
    assert numbers("2.0", "1.14.0", "2.13") == ["2.0.0", "1.14.0", "2.13.0"]


def test_the_pairs_of_the_seed_study_are_pinned_to_it():
    assert [version.keras for version in catalog.resolve_versions(["1.14", "2.0"])] == ["2.2.5", "2.3.1"]


def test_all_versions_come_oldest_first_as_numbers_not_as_text():
    found = [version.number for version in catalog.all_versions()]
    assert found.index("2.0.0") < found.index("2.13.0")
    assert found == sorted(found, key=Number)


def test_every_release_since_1_13_has_one_version_that_goes_by_its_name():
    expected = [*(f"1.{minor}" for minor in range(13, 16)), *(f"2.{minor}" for minor in range(22))]
    assert [catalog.minor(version.number) for version in catalog.releases()] == expected
    assert catalog.resolve_versions(["all"]) == catalog.releases()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2.8..2.11", ["2.8.4", "2.9.3", "2.10.1", "2.11.0"]),
        ("1.14..2.1", ["1.14.0", "1.15.5", "2.0.0", "2.1.4"]),
        ("2.0.4..2.1", ["2.0.4", "2.1.4"]),
        ("2.13..2.13", ["2.13.0"]),
    ],
)
def test_a_name_may_stand_for_several_releases_oldest_first(name: str, expected: list[str]):
    assert numbers(name, "1.13", "2.21")[: len(expected)] == expected


def test_the_newest_and_a_series_have_names():
    assert numbers("1.*") == ["1.13.2", "1.14.0", "1.15.5"]
    assert numbers("2.13", "2.*")[:3] == ["2.13.0", "2.0.0", "2.1.4"]
    assert numbers("1.14", "latest") == ["1.14.0", catalog.releases()[-1].number]


def test_what_is_named_first_stays_first_and_a_range_repeats_nobody():
    assert numbers("2.9", "2.8..2.10") == ["2.9.3", "2.8.4", "2.10.1"]
    assert numbers("2.13", "all")[:2] == ["2.13.0", "1.13.2"]
    assert len(numbers("2.13", "all")) == len(catalog.releases())


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["1.14", "2.1.3"], r"unknown version '2.1.3' \(did you mean 2.13\?\); `tfcompare list versions`"),
        (["1.14", "banana"], r"unknown version 'banana'; `tfcompare list versions`"),
        (["1.14..2.99"], r"unknown version '2.99': the newest known is 2.21; "),
        (["1.0"], r"unknown version '1.0': the oldest known is 1.13; "),
        (["2.130"], r"unknown version '2.130' \(did you mean 2.13.0\?\); "),
        (["2.11..2.8"], r"2.11..2.8 runs backwards: write 2.8..2.11; to measure against the newest"),
        (["3.*"], r"3.\*: no release matches"),
        (["2.8..2.9", "2.9"], r"version 2.9.3 is named twice"),
        (["2.0", "2.0.0"], r"version 2.0.0 is named twice \(as '2.0.0'\)"),
        (["2.0"], "at least two versions"),
        ([], "at least two versions"),
    ],
)
def test_it_refuses(names: list[str], words: str):
    with pytest.raises(UsageError, match=words):
        catalog.resolve_versions(names)


def test_no_name_means_two_versions():
    names = [name for version in catalog.all_versions() for name in (version.number, *version.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_its_lock_and_its_pips_lock_lie_on_disk(flavour: Flavour):
    assert flavour.lock.is_file()
    assert flavour.pip_lock.is_file()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_its_image_has_a_name_and_its_digest_is_one_or_said_to_be_missing(flavour: Flavour):
    assert flavour.image
    assert re.fullmatch(r"(sha256:[0-9a-f]{64})?", flavour.digest)


def test_each_lock_belongs_to_a_flavour():
    used = {lock for version in catalog.all_versions() for flavour in version.flavours for lock in locks_of(flavour)}
    assert set(LOCKS) == used


def locks_of(flavour: Flavour) -> tuple[Path, Path]:
    return flavour.lock, flavour.pip_lock


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_names_no_address_and_pins_every_requirement_with_hashes(lock: Path):
    assert "://" not in lock.read_text()
    assert requirements(lock)
    for requirement in requirements(lock):
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+", requirement), requirement
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", requirement), requirement


def test_a_changed_installer_or_a_changed_lock_is_another_environment(tmp_path: Path):
    flavour = catalog.all_versions()[0].flavours[0]
    before = catalog.lock_hash(flavour)
    for changed in ("lock", "pip_lock"):
        copy = tmp_path / changed
        copy.write_bytes(getattr(flavour, changed).read_bytes() + b"\n")
        object.__setattr__(other := Flavour(**vars(flavour)), changed, copy)
        assert catalog.lock_hash(other) != before
