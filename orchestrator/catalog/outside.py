"""The places outside of a workload folder that it uses, by links or by DATA, and those that the user allows."""

import os
from collections.abc import Sequence
from pathlib import Path

from orchestrator import contract
from orchestrator.catalog import pinned, trust
from orchestrator.catalog import workloads as suites
from orchestrator.errors import UsageError


def find_outside_places(folder: Path) -> dict[str, Path]:
    """Return the places outside of a workload folder that it names, each by its place in the copy of the folder."""
    data = {name: place for name, place in _find_data(folder).items() if not suites.is_inside(place, folder)}
    return pinned.find_outside_links(folder) | data


def find_allowed(folder: Path | None, typed: Sequence[str]) -> dict[str, Path]:
    """Return the places outside of a workload folder that it may use: those typed as NAME=PATH, and those trusted."""
    if folder is None:
        if typed:
            raise UsageError("--data names what your own workloads read; it goes with --workload-folder")
        return {}
    if not folder.is_dir():
        return {}
    outside = find_outside_places(folder)
    allowed = {}
    if outside:
        trusted = {} if trust.is_everything_trusted() else trust.find_trust(folder).outside
        allowed = {
            name: place
            for name, place in outside.items()
            if trust.is_everything_trusted() or trusted.get(name) == str(place)
        }
    named = {**outside, **_find_data(folder)} if typed else {}
    # Data also have a name that the workload gives to them.
    of_data = {place: place.rpartition("/")[2] for place in named if place.startswith(f"{contract.DATA}/")}
    for text in typed:
        name, _, written = text.partition("=")
        if not (name and written):
            raise UsageError(
                f"--data {text!r}: it takes NAME=PATH: a name in DATA of a workload, or a link in its folder"
            )
        places = [place for place in named if name in (place, of_data.get(place))]
        if not places:
            raise UsageError(
                f"--data {text!r}: no DATA in {folder} has the name {name!r}, and no link out of it either"
            )
        path = Path(os.path.expanduser(written))
        if not path.exists():
            raise UsageError(f"--data {text!r}: there is no {path}")
        allowed |= dict.fromkeys(places, path.resolve())
    return allowed


def _find_data(folder: Path) -> dict[str, Path]:
    """Return the data of all workloads in a folder; a file that is not a workload has no data."""
    found: dict[str, Path] = {}
    for path in suites.files_in(folder):
        try:
            workload = suites.read_workload(path, builtin=False)
        except UsageError:
            continue
        found |= {suites.find_place(workload.name, name): place for name, place in workload.data.items()}
    return found
