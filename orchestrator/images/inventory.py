"""The engine's images of tfcompare, and how they compare with the current table of versions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import docker

from orchestrator.catalog import user_data
from orchestrator.catalog.version import Flavour, FlavourName, Version
from orchestrator.engines.docker import image
from orchestrator.engines.docker.image import BASE_NAME, SPEC_LABEL, Recipe

State = Literal["current", "of a target", "stale", "unknown version"]
# A run may use an image in these states.
WANTED: Collection[State] = ("current", "of a target")
# A recipe has a version, a flavour and a Python.
Key = tuple[str, str, str]
FLAVOURS: tuple[FlavourName, ...] = ("cpu", "gpu")


@dataclass(frozen=True, kw_only=True)
class KeptImage:
    """An image with the labels of tfcompare."""

    id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str]
    size: int
    created: datetime

    @property
    def version(self) -> str:
        return self.labels.get("tfcompare.version", "")

    @property
    def key(self) -> Key:
        return self.version, self.labels.get("tfcompare.flavour", ""), self.labels.get("tfcompare.python", "")

    @property
    def spec(self) -> str:
        return self.labels[SPEC_LABEL]

    @property
    def base(self) -> str:
        return self.labels.get(BASE_NAME, "")

    @property
    def target(self) -> str:
        """The name of the lock of a target with other packages, or ''."""
        return self.labels.get(image.TARGET, "")

    @property
    def above(self) -> str:
        """The recipe of the image that this one is a layer above, or ''."""
        return self.labels.get(image.ABOVE, "")

    @property
    def is_own(self) -> bool:
        """Whether this user built it."""
        return self.labels.get(image.BUILDER) == image.builder()

    @property
    def name(self) -> str:
        """The usual name of the image: its tag or, if it has none, what docker shows."""
        own = [tag for tag in self.tags if tag.startswith("tfcompare:")]
        return (*own, *self.tags, self.id.removeprefix("sha256:")[:12])[0]


@dataclass(frozen=True, kw_only=True)
class ImageStatus:
    """An image and the current recipe of its version; an unknown version has no recipe."""

    image: KeptImage
    state: State
    why: str = ""
    recipe: Recipe | None = None

    @property
    def tag(self) -> str:
        """The tag that a run looks for, as far as it is known."""
        return self.recipe.tag if self.recipe else self.image.name

    @property
    def other_base(self) -> str | None:
        """The base of the image in the form of --base, or None if it is the requested one."""
        if self.recipe is None or self.image.base in ("", self.recipe.labels[BASE_NAME]):
            return None
        return self.image.base.replace(f":{self.image.key[2]}", ":{python}")


@dataclass(frozen=True, kw_only=True)
class Inventory:
    images: tuple[ImageStatus, ...]
    # These flavours of the table have no current image.
    missing: tuple[tuple[Version, Flavour], ...]

    def current(self, versions: Collection[Version] = ()) -> tuple[ImageStatus, ...]:
        numbers = {version.number for version in versions}
        return tuple(
            status
            for status in self.images
            if status.state == "current" and (not numbers or status.image.version in numbers)
        )

    def only(self, tags: set[str]) -> "Inventory":
        images = tuple(status for status in self.images if not tags.isdisjoint(status.image.tags))
        return Inventory(images=images, missing=self.missing)

    @property
    def other_base(self) -> str | None:
        return next((base for status in self.images if (base := status.other_base)), None)


def list_kept_images(client: docker.DockerClient) -> list[KeptImage]:
    entries = client.api.images(filters={"label": SPEC_LABEL})
    return [
        KeptImage(
            id=entry["Id"],
            tags=tuple(tag for tag in entry["RepoTags"] or () if tag != "<none>:<none>"),
            labels=entry["Labels"],
            size=entry["Size"],
            created=datetime.fromtimestamp(entry["Created"], UTC),
        )
        for entry in entries
    ]


def recipes(client: docker.DockerClient, versions: Iterable[Version], base: str | None) -> dict[Key, Recipe]:
    """Return the current recipe for an image of each flavour."""
    return {
        (version.number, flavour.name, flavour.python.number): image.recipe(client, version, flavour, base)
        for version in versions
        for flavour in version.flavours
    }


def take(client: docker.DockerClient, versions: Collection[Version], base: str | None) -> Inventory:
    """Return the inventory of an engine."""
    images = list_kept_images(client)
    present = {image.version for image in images}
    wanted = recipes(client, [version for version in versions if version.number in present], base)
    return judge_images(images, wanted, versions)


def judge_images(images: Iterable[KeptImage], wanted: Mapping[Key, Recipe], versions: Collection[Version]) -> Inventory:
    """Compare images with the current recipes and return the inventory.

    `wanted` must hold the recipes of at least those versions that have images.
    """
    order = {version.number: index for index, version in enumerate(versions)}
    judged = [judge_image(image, wanted, order) for image in images]
    judged.sort(
        key=lambda status: (order.get(status.image.version, len(order)), status.image.key, status.image.created)
    )
    current = {status.image.key for status in judged if status.state == "current"}
    first = [(version, option) for version in versions for name in FLAVOURS for option in version.on(name)[:1]]
    missing = [
        (version, option)
        for version, option in first
        if not any((version.number, option.name, each.python.number) in current for each in version.on(option.name))
    ]
    return Inventory(images=tuple(judged), missing=tuple(missing))


def judge_image(image: KeptImage, wanted: Mapping[Key, Recipe], numbers: Collection[str]) -> ImageStatus:
    if image.target:
        recipe = wanted.get(image.key)
        why = _find_change(image, recipe)
        state: State = "stale" if why else "of a target"
        return ImageStatus(image=image, state=state, why=why or f"lock {image.target}", recipe=recipe)
    if image.version not in numbers:
        return ImageStatus(
            image=image, state="unknown version", why=f"the table of versions has no {image.version or 'such version'}"
        )
    recipe = wanted.get(image.key)
    if recipe is None:
        _, flavour, python = image.key
        return ImageStatus(
            image=image, state="stale", why=f"the table has no {flavour} flavour of it for Python {python}"
        )
    if why := _difference(image, recipe):
        return ImageStatus(image=image, state="stale", why=why, recipe=recipe)
    return ImageStatus(image=image, state="current", recipe=recipe)


def _find_change(existing: KeptImage, recipe: Recipe | None) -> str:
    """Return why no run would use the image of a target any more, or ''; the recipe is that of its version."""
    if not user_data.has_lock(existing.target):
        return f"the lock {existing.target} of its target is gone"
    if other := _find_other_base(existing, recipe):
        return other
    if existing.above and (recipe is None or recipe.spec != existing.above):
        return "the image of its version has changed"
    return ""


def _find_other_base(existing: KeptImage, recipe: Recipe | None) -> str:
    base = recipe.labels[BASE_NAME] if recipe else existing.base
    return f"built on {existing.base}; the requested base is {base}" if existing.base != base else ""


def _difference(existing: KeptImage, recipe: Recipe) -> str:
    """Return which part of an image's recipe has changed, or '' if none has."""
    if existing.spec == recipe.spec:
        # A run finds an image by its name.
        return "" if recipe.tag in existing.tags else f"it is no longer named {recipe.tag}"
    if other := _find_other_base(existing, recipe):
        return other
    for label, what in (
        (image.BASE_DIGEST, "base"), (image.BASE_ID, "base"), ("tfcompare.lock", "lock"),
    ):  # fmt: skip
        if existing.labels.get(label, "") != recipe.labels.get(label, ""):
            return f"its {what} has changed"
    return "its recipe has changed"


def find_entry(status: ImageStatus, versions: Iterable[Version]) -> tuple[Version, Flavour]:
    """Return the version and the flavour that an image with a recipe was built from."""
    number, name, python = status.image.key
    return next(
        (version, flavour)
        for version in versions
        for flavour in version.flavours
        if (version.number, flavour.name, flavour.python.number) == (number, name, python)
    )
