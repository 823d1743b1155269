"""Finds and removes images that no longer belong to any recipe, and leftovers of ended runs."""

import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound

from orchestrator.engines.docker import container, nvidia
from orchestrator.images import sizes
from orchestrator.images.inventory import WANTED, ImageStatus, Inventory, KeptImage, judge_images, list_kept_images


@dataclass(frozen=True, kw_only=True)
class KeptItem:
    """Something that was not removed, and why."""

    name: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Garbage:
    images: tuple[ImageStatus, ...]
    # No image that stays needs these bytes.
    images_bytes: int
    containers: tuple[str, ...]
    spared: tuple[KeptItem, ...]
    # A driver compiled this code from the PTX of images that are gone.
    driver_code: tuple[tuple[Path, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.images or self.containers or self.driver_code)

    @property
    def frees(self) -> int:
        return self.images_bytes + sum(size for _, size in self.driver_code)


def find_garbage(client: docker.DockerClient, inventory: Inventory, base: str | None, *, all: bool = False) -> Garbage:
    """Find what can be removed; `all` also selects what is current, and images that other users built."""
    return _garbage(client, inventory.images, base, all=all, others=all)


def of_versions(client: docker.DockerClient, numbers: Collection[str]) -> Garbage:
    """Find all images of these versions, whatever the tables say about them, except those that other users built."""
    images = judge_images([image for image in list_kept_images(client) if image.version in numbers], {}, ()).images
    return _garbage(client, images, None, all=True, others=False)


def _garbage(
    client: docker.DockerClient,
    candidates: Iterable[ImageStatus],
    base: str | None,
    *,
    all: bool,
    others: bool,
) -> Garbage:
    abandoned = container.find_orphans(client)
    users = [entry for entry in client.api.containers(all=True) if entry["Id"] not in abandoned]
    images, spared = part(candidates, users, base, all=all, others=others)
    mine = {status.image.id for status in images}
    rest = [entry["Id"] for entry in client.api.images() if entry["Id"] not in mine]
    freed = sizes.steps(client, mine) - sizes.steps(client, rest) if mine else set()
    return Garbage(
        images=images,
        images_bytes=sizes.add_up(freed),
        containers=tuple(abandoned),
        spared=spared,
        driver_code=find_orphaned_code(nvidia.jit_kept(), {entry["Id"] for entry in client.api.images()} - mine),
    )


def find_orphaned_code(
    compiled: Iterable[nvidia.CompiledCode], staying: Collection[str]
) -> tuple[tuple[Path, int], ...]:
    """Return the folders of code that a driver compiled for images that do not stay."""
    digests = {identity.removeprefix("sha256:") for identity in staying}
    return tuple(
        (entry.path, entry.bytes)
        for entry in compiled
        if not any(identity.startswith(entry.image) for identity in digests)
    )


def part(
    images: Iterable[ImageStatus],
    users: Iterable[Mapping[str, object]],
    base: str | None,
    *,
    all: bool,
    others: bool | None = None,
) -> tuple[tuple[ImageStatus, ...], tuple[KeptItem, ...]]:
    """Return the images to remove, and those that might still be wanted, with the reason.

    `others` also selects images that other users built, whose tables may contain versions that are unknown here.
    """
    others = all if others is None else others
    by_image = {str(user["ImageID"]): user for user in users}
    taken, spared = [], []
    for status in images:
        if status.state in WANTED and not all:
            continue
        foreign = [tag for tag in status.image.tags if not tag.startswith("tfcompare:")]
        if user := by_image.get(status.image.id):
            names = user.get("Names") or ()
            name = str(names[0]).lstrip("/") if isinstance(names, list) and names else str(user["Id"])[:12]
            state = "running" if user.get("State") == "running" else "stopped"
            spared.append(KeptItem(name=status.image.name, why=f"the {state} container {name} uses it"))
        elif foreign:
            spared.append(KeptItem(name=status.image.name, why=f"it is named {foreign[0]} too"))
        elif not others and not status.image.is_own:
            spared.append(KeptItem(name=status.image.name, why="another user or installation built it; take --all"))
        elif status.other_base and base is None and not all:
            # A user who builds on another base may only have forgotten to name it.
            why = f"it was built with --base '{status.other_base}': name that, or take --all"
            spared.append(KeptItem(name=status.image.name, why=why))
        else:
            taken.append(status)
    return tuple(taken), tuple(spared)


def remove_garbage(client: docker.DockerClient, garbage: Garbage) -> tuple[KeptItem, ...]:
    """Remove the garbage, and return what the engine refused to remove."""
    for identity in garbage.containers:
        container.remove_container(client.api, identity)
    spared = [refused for status in garbage.images if (refused := _remove(client, status.image))]
    for path, _ in garbage.driver_code:
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            spared.append(KeptItem(name=f"driver's code {path.name}", why="it is not yours to remove"))
    return tuple(spared)


def _remove(client: docker.DockerClient, image: KeptImage) -> KeptItem | None:
    try:
        # The names are removed one after another and never by force, which would remove an image that a container uses.
        for name in image.tags or (image.id,):
            with suppress(ImageNotFound):
                client.api.remove_image(name)
    except APIError as error:
        if not error.is_client_error():
            raise
        return KeptItem(name=image.name, why=str(error.explanation))
    return None
