"""The two targets of a question as they were installed, and what they differ in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from orchestrator.catalog.targets import Changed, name_pinned


@dataclass(frozen=True, kw_only=True)
class End:
    """One of the two targets of a question, and what is installed in it."""

    changed: Changed
    name: str
    # These are facts about its environment; those of an image may be unknown.
    python: str
    packages: Mapping[str, str]
    # An image is used as it is, so only its variables can be changed.
    is_image: bool = False

    @property
    def tensorflow(self) -> str:
        """The TensorFlow that is installed, in words that can be compared."""
        changed = self.changed
        return str(changed.wheel or changed.image or changed.backend or changed.version)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One thing in which the new target differs from the old one, and the change to a target that undoes it."""

    title: str
    undo: Callable[[Changed], Changed]
    # A package has releases, which can be searched from the first number to the second one.
    package: str = ""
    numbers: tuple[str, str] = ("", "")


def pin_package(changed: Changed, package: str, number: str) -> Changed:
    """Return a target with one release of a package, whatever it pinned before."""
    others = tuple(each for each in changed.pins if name_pinned(each) != package)
    return replace(changed, pins=(*others, f"{package}=={number}"))


def unpin_package(changed: Changed, package: str) -> Changed:
    return replace(changed, pins=tuple(each for each in changed.pins if name_pinned(each) != package))
