"""Images in one file, for machines without access to a registry: written by one engine and read by another."""

import json
import shutil
import tarfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import docker
import requests
from docker.errors import APIError

from orchestrator import files
from orchestrator.catalog import user_data
from orchestrator.engines import build_errors
from orchestrator.engines.docker.image import BASE_DIGEST, BASE_NAME, SPEC_LABEL
from orchestrator.errors import EnvironmentFailed, UsageError
from orchestrator.images import sizes
from orchestrator.images.inventory import ImageStatus
from orchestrator.model import Target
from orchestrator.plan.pairs import in_order

CHUNK_BYTES = 1 << 20
MANIFEST = "manifest.json"
LABELS = (SPEC_LABEL, "tfcompare.version", "tfcompare.flavour", "tfcompare.python", "tfcompare.lock", BASE_NAME)
# What is around the layers in an archive: configurations, and a tar's own blocks.
OVERHEAD = 1.02

Tell = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Packed:
    """An image in an archive."""

    tag: str
    labels: dict[str, str]

    @property
    def base(self) -> tuple[str, str]:
        """The name and digest of the base; without a digest, the base was a local image of that machine."""
        return self.labels[BASE_NAME], self.labels.get(BASE_DIGEST, "")


def weight(client: docker.DockerClient, images: Collection[ImageStatus]) -> int:
    """Return about how many bytes an archive of these images has."""
    return int(sizes.together(sizes.steps(client, [status.image.id for status in images])) * OVERHEAD)


def save(client: docker.DockerClient, path: Path, images: Collection[ImageStatus], needed: int, tell: Tell) -> None:
    """Write an archive, completely or not at all; call `tell` with the number of bytes written each time."""
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder: name a file")
        free = shutil.disk_usage(path.parent).free
        if free < needed:
            raise UsageError(
                f"{path}: the images need about {sizes.format_size(needed)}, "
                f"and its disk has {sizes.format_size(free)} free; "
                "free some space, name another place, or save fewer versions"
            )
        with files.open_atomically(path) as file:
            for chunk in _stream(client, [status.tag for status in images]):
                file.write(chunk)
                tell(len(chunk))
    except requests.RequestException:
        # An OSError too, but of the engine.
        raise
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _stream(client: docker.DockerClient, names: list[str]) -> Iterator[bytes]:
    # The docker package saves one image; of several in one archive, shared layers are there once.
    api = client.api
    answer = api.get(
        f"{api.base_url}/v{api.api_version}/images/get", params={"names": names}, stream=True, timeout=None
    )
    try:
        if answer.status_code != 200:
            raise EnvironmentFailed(f"the engine does not hand out its images: {answer.text.strip()}")
        yield from answer.iter_content(CHUNK_BYTES)
    finally:
        answer.close()


def read(path: Path) -> tuple[Packed, ...]:
    """Return the contents of an archive.

    They are checked before any of them reaches the engine, which would accept every name that it is given.
    """
    try:
        with tarfile.open(path) as tar:
            manifest = _json(tar, MANIFEST)
            entries = [(entry, _json(tar, entry["Config"])) for entry in manifest]
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: no archive of images, or half of one ({error}); save it again") from error
    packed = [_describe_image(path, entry.get("RepoTags") or [], config) for entry, config in entries]
    if not packed:
        raise UsageError(f"{path}: there is no image in it")
    # An engine writes them in any order.
    order = in_order(Target(image.labels["tfcompare.version"]) for image in packed)
    return tuple(sorted(packed, key=lambda image: order.index(Target(image.labels["tfcompare.version"]))))


def _json(tar: tarfile.TarFile, name: str) -> Any:
    member = tar.extractfile(name)
    if member is None:
        raise KeyError(f"{name} is no file")
    return json.load(member)


def _describe_image(path: Path, tags: list[str], config: dict[str, Any]) -> Packed:
    labels = (config.get("config") or {}).get("Labels") or {}
    name = ", ".join(tags) or "an image without a name"
    if absent := [label for label in LABELS if label not in labels]:
        raise UsageError(
            f"{path}: {name} in it is no image of tfcompare's (it has no label {absent[0]}). Nothing was loaded; "
            "`docker load` takes any archive"
        )
    tag = f"tfcompare:{labels['tfcompare.version']}-{labels['tfcompare.flavour']}-{labels[SPEC_LABEL][:12]}"
    if tags != [tag]:
        raise UsageError(
            f"{path}: {name} in it is labelled as {tag}: name and labels do not belong together. Nothing was loaded"
        )
    return Packed(tag=tag, labels=labels)


def load(client: docker.DockerClient, path: Path, tell: Tell) -> None:
    """Pass the whole file to the engine; call `tell` with the number of bytes it has taken each time."""
    error = ""
    try:
        with path.open("rb") as file:
            for step in client.api.load_image(_read_with_progress(file, tell)):
                error = step.get("error", error)
    except APIError as refused:
        error = str(refused.explanation or refused)
    except requests.RequestException:
        raise
    except OSError as unread:
        raise UsageError(f"{path}: cannot be read: {unread.strerror}") from unread
    if error:
        cause = build_errors.of_image(error, "", base="", python="")
        why = f": {cause}" if cause and cause.kind == "disk" else ""
        raise EnvironmentFailed(f"{path}: the engine could not load it{why} ({error.strip()})")


def _read_with_progress(file: IO[bytes], tell: Tell) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        tell(len(chunk))
        yield chunk


def adopt(packed: Collection[Packed], references: Collection[str]) -> dict[str, str]:
    """Adopt and return digests of bases that were known where the images were built and are not known here.

    With these digests, the same recipes lead to the same images. `references` are the bases of this machine's table. A
    base that has a digest keeps it.
    """
    adopted = {name: digest for name, digest in (image.base for image in packed) if digest and name in references}
    if adopted:
        user_data.write_digests(adopted)
    return adopted
