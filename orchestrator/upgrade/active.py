"""The packages of the active environment, as `pip freeze` writes them, read from its files; nothing of it is run."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator import files
from orchestrator.catalog.active import ActiveTensorFlow
from orchestrator.catalog.targets import TENSORFLOWS
from orchestrator.errors import UsageError

FILE = "environment.txt"
INSTALLED = re.compile(r"(?P<name>[A-Za-z0-9][\w.]*)-(?P<number>[^-]+)\.dist-info")
PLACE = re.compile(r"python(3\.\d{1,2})")
# These install packages, or they measure; no program needs them.
TOOLS = frozenset({"pip", "setuptools", "wheel", "tfcompare"})


def freeze_active(active: ActiveTensorFlow, folder: Path) -> str:
    """Write the packages of an environment into a file in this folder, and return the target that is made of it."""
    place = next(iter(sorted(active.prefix.glob("lib*/python3.*/site-packages"))), None)
    python = PLACE.fullmatch(place.parent.name) if place else None
    if place is None or python is None:
        raise UsageError(f"the packages of {active.prefix} are not found; name the version that you have, such as 2.15")
    lines = sorted({*_list_packages(place), f"tensorflow=={active.number}"})
    path = folder / FILE
    with files.writing(path, "choose another --output"):
        folder.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
    return f"freeze={path.absolute()} py={python[1]} as yours"


def _list_packages(place: Path) -> Iterator[str]:
    """Yield a line for each package that comes from an index; one that was installed from a folder has an address."""
    for name in os.listdir(place):
        match = INSTALLED.fullmatch(name)
        if match is None or (place / name / "direct_url.json").exists():
            continue
        package = canonicalize_name(match["name"])
        if package in TOOLS or package in TENSORFLOWS:
            continue
        try:
            yield f"{package}=={Number(match['number'])}"
        except InvalidVersion:
            continue
