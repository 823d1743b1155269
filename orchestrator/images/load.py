"""Loads images from an archive: an image gets its name after its labels and its contents have been checked.

Anyone may have written an archive, and the labels of an image are whatever its author wrote.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import docker
from docker.errors import ImageNotFound

from orchestrator.catalog.version import Version
from orchestrator.engines.docker.image import BASE_ID, Recipe, local_id, recipe
from orchestrator.errors import EnvironmentFailed
from orchestrator.images import archive
from orchestrator.images.archive import ArchivedImage, ReportProgress
from orchestrator.images.inventory import ImageStatus, KeptImage, Key, find_entry, judge_image
from orchestrator.images.verify import verify


@dataclass(frozen=True, kw_only=True)
class LoadableImage:
    """An image of an archive that a run here would use, with its recipe in `status`."""

    packed: ArchivedImage
    status: ImageStatus
    # If the image was built on another base than the requested one, this is that base in the form of --base.
    other_base: str | None
    lacks_digest: bool
    # This is the id of the local image with the same name, or ''.
    here: str
    is_here: bool


def examine_archive(
    client: docker.DockerClient,
    packed: Iterable[ArchivedImage],
    versions: Collection[Version],
    base: str | None,
    *,
    replace: bool,
    lock_bases: bool,
) -> tuple[list[LoadableImage], list[str]]:
    """Return the images that may be loaded, and why the others are not."""
    candidates, problems = [], []
    # Two digests or ids of one base would lead to two recipes, of which a run can only use one.
    bases: dict[str, tuple[str, str]] = {}
    for image in packed:
        candidate = _describe(client, image, versions, base)
        problem = _find_problem(candidate, replace=replace, lock_bases=lock_bases)
        name, digest = image.base
        identity = digest, image.labels.get(BASE_ID, "")
        if not problem and bases.setdefault(name, identity) != identity:
            problem = f"it is built on another {name} than an image before it in the archive"
        if problem:
            problems.append(f"{image.tag}: not loaded: {problem}")
        else:
            candidates.append(candidate)
    return candidates, problems


def _describe(
    client: docker.DockerClient, packed: ArchivedImage, versions: Collection[Version], base: str | None
) -> LoadableImage:
    name, digest = packed.base
    status = _judge(client, packed, versions, base)
    other = status.other_base if base is None else None
    if other:
        status = _judge(client, packed, versions, other)
    lacks_digest = bool(digest and status.recipe and status.recipe.base == name)
    if lacks_digest:
        status = _judge(client, packed, versions, f"{name}@{digest}")
    try:
        here = client.images.get(packed.tag)
    except ImageNotFound:
        here = None
    return LoadableImage(
        packed=packed,
        status=status,
        other_base=other,
        lacks_digest=lacks_digest,
        here=str(here.id) if here else "",
        is_here=here is not None and packed.is_same(here),
    )


def _judge(
    client: docker.DockerClient, packed: ArchivedImage, versions: Collection[Version], base: str | None
) -> ImageStatus:
    """Compare an image that is not here yet with the recipe of its version."""
    image = KeptImage(id="", tags=(packed.tag,), labels=packed.labels, size=0, created=datetime.now(UTC))
    wanted: dict[Key, Recipe] = {
        (version.number, flavour.name, flavour.python.number): recipe(
            client, version, flavour, base, packed.labels.get(BASE_ID, "")
        )
        for version in versions
        if version.number == image.version
        for flavour in version.flavours
    }
    return judge_image(image, wanted, {version.number for version in versions})


def _find_problem(candidate: LoadableImage, *, replace: bool, lock_bases: bool) -> str:
    """Return why an image is not to be loaded, or ''."""
    status, labels = candidate.status, candidate.packed.labels
    if status.image.target:
        return "an image of a target is built where it is used"
    if status.state != "current" or status.recipe is None:
        return f"no run here would use it: {status.why}"
    if odd := [label for label, text in status.recipe.labels.items() if labels.get(label) != text]:
        return f"its label {odd[0]} is not that of its recipe"
    if candidate.lacks_digest and not lock_bases:
        name, digest = candidate.packed.base
        return (
            f"it is built on {name} with the digest {digest}, and here that base has none; "
            "if you trust the author of the file, --lock-bases locks the base to that digest"
        )
    if candidate.here and not candidate.is_here and not replace:
        return "an image with this name and other content is here; --replace replaces it"
    return ""


def load_image(
    client: docker.DockerClient,
    path: Path,
    candidate: LoadableImage,
    versions: Collection[Version],
    report_bytes: ReportProgress,
) -> None:
    """Load an image, and give it its name if it holds what its recipe says; raise EnvironmentFailed if it does not."""
    tag, recipe = candidate.packed.tag, candidate.status.recipe
    assert recipe is not None
    with archive.load_without_name(client, path, candidate.packed, report_bytes) as identity:
        found = verify(client, identity, tag, *find_entry(candidate.status, versions), recipe)
        if wrong := [check for check in found.checks if not check.ok]:
            check, more = wrong[0], f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            text = f"{check.subject}: {check.found or 'nothing'}; expected: {check.expected}{more}"
            raise EnvironmentFailed(
                f"{tag}: not loaded: it does not hold what its labels say: {' '.join(text.split())}"
            )
        if local_id(client, tag) != candidate.here:
            raise EnvironmentFailed(f"{tag}: not loaded: another program has just made an image with this name")
        client.api.tag(identity, *tag.split(":"))
