"""Images and recipes that the tests of tfcompare's images share."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import catalog
from orchestrator.catalog.version import Flavour, Version
from orchestrator.engines.docker.image import BASE_DIGEST, BASE_ID, BASE_NAME, BUILDER, SPEC_LABEL, Recipe, builder
from orchestrator.images.inventory import ImageStatus, KeptImage, State

MOMENT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
BASE = "python:3.7-slim"


def version(number: str) -> Version:
    [found] = catalog.resolve_versions([number], fewest=1)
    return found


def flavour(number: str = "1.14.0", name: str = "cpu", python: str | None = None) -> Flavour:
    return next(one for one in version(number).flavours if one.name == name and python in (None, one.python.number))


def recipe(number: str = "1.14.0", spec: str = "a" * 64, base: str = BASE, lock: str = "lock", **labels: str) -> Recipe:
    given = {
        SPEC_LABEL: spec,
        "tfcompare.version": number,
        "tfcompare.flavour": "cpu",
        "tfcompare.python": "3.7",
        "tfcompare.lock": lock,
        BASE_NAME: base,
        BASE_DIGEST: "",
        BASE_ID: "",
        **labels,
    }
    return Recipe(number, base, {}, spec, given)


def kept(made: Recipe, *tags: str, id: str = "sha256:1", size: int = 10**9) -> KeptImage:
    """An image that this user built from a recipe; without tags, under the name that a run looks for."""
    labels = {**made.labels, BUILDER: builder()}
    return KeptImage(id=id, tags=tags or (made.tag,), labels=labels, size=size, created=MOMENT)


def judged(state: State, made: Recipe | None = None, *tags: str, id: str = "sha256:1") -> ImageStatus:
    made = made or recipe()
    return ImageStatus(image=kept(made, *tags, id=id), state=state, recipe=made)


def with_locks(flavour: Flavour, folder: Path, lock: str, pip: str = "") -> Flavour:
    (folder / "lock.txt").write_text(lock)
    (folder / "pip.txt").write_text(pip)
    return replace(flavour, lock=folder / "lock.txt", pip_lock=folder / "pip.txt")
