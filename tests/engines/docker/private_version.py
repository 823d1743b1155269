"""A version of packages that no public index has."""

from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.catalog.version import Version
from tests.engines.docker.conftest import version
from tests.support.packages import locked, own_pip, wheel


@dataclass(frozen=True)
class Private:
    """A version of two packages that no index of the world has, and the folder that has them."""

    version: Version
    packages: Path


def private(folder: Path) -> Private:
    packages = folder / "packages"
    packages.mkdir()
    pip = own_pip(packages, "3.7")
    both = wheel(packages, "little_one"), wheel(packages, "little_two")
    # The folder's name keeps the builder's cache out of it.
    (folder / "pip.txt").write_text(f"# {folder}\n{locked(pip)}")
    (folder / "lock.txt").write_text(f"# {folder}\n{locked(*both)}")
    full = version("1.14.0")
    [flavour] = [one for one in full.on("cpu") if one.python.number == "3.7"]
    own = replace(flavour, lock=folder / "lock.txt", pip_lock=folder / "pip.txt")
    return Private(replace(full, flavours=(own,)), packages)
