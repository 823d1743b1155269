"""The versions that a search considers: releases between two versions, and nightlies between two neighbours.

A search over another package considers the releases of that package instead.
"""

import re
from collections.abc import Iterable, Sequence

from packaging.version import Version as Number

from orchestrator import catalog
from orchestrator.errors import UsageError

DATED = re.compile(r"\.dev\d{8}$")


def is_nightly_number(number: str) -> bool:
    return DATED.search(number) is not None


def releases_between(good: str, bad: str) -> tuple[str, ...]:
    """Return both versions and one version of each release between them, all as full version numbers."""
    first, last = _order_ends(good, bad)
    inside = [version.number for version in catalog.releases() if first < Number(version.number) < last]
    return good, *inside, bad


def _order_ends(good: str, bad: str, package: str = "") -> tuple[Number, Number]:
    """Return the ends as numbers; raise UsageError unless the first one is older."""
    first, last = Number(good), Number(bad)
    if first == last:
        raise UsageError(f"--good and --bad are both {package}{good}: name two versions")
    if first > last:
        raise UsageError(
            f"--good {package}{good} is newer than --bad {package}{bad}: name the older one as --good; the search "
            "measures which of the two is slower"
        )
    return first, last


def releases_of_package(package: str, good: str, bad: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return both releases of a package and those between them, each with the name of the package."""
    first, last = _order_ends(good, bad, f"{package} ")
    inside = sorted((number for number in known if first < Number(number) < last), key=Number)
    return tuple(f"{package}-{number}" for number in (good, *inside, bad))


def nightlies_between(earlier: str, later: str, numbers: Iterable[str]) -> tuple[str, ...]:
    """Return the nightlies between two versions, sorted by number.

    A nightly of 2.21.0 is older than 2.21.0, and newer than 2.20.0.
    """
    low, high = Number(earlier), Number(later)
    return tuple(
        sorted((number for number in numbers if is_nightly_number(number) and low < Number(number) < high), key=Number)
    )


def add_nightlies(
    candidates: Sequence[str], neighbours: Iterable[tuple[str, str]], numbers: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the candidates and all nightlies between those neighbours, and notes where there are none."""
    numbers = tuple(numbers)
    kept = ": it has none at all for the newest release's Python"
    if dated := sorted(number[-8:] for number in numbers if is_nightly_number(number)):
        first = f"{dated[0][:4]}-{dated[0][4:6]}-{dated[0][6:]}"
        kept = f": it removes old ones, and the oldest one left is of {first}"
    versions, notes = list(candidates), []
    for earlier, later in neighbours:
        inside = nightlies_between(earlier, later, numbers)
        if not inside:
            notes.append(f"the index has no nightly between {earlier} and {later}{kept}")
        versions += inside
    return tuple(sorted(dict.fromkeys(versions), key=Number)), tuple(notes)
