"""Images in one file, for machines without access to a registry: written by one engine and read by another."""

import gzip
import io
import json
import posixpath
import re
import shutil
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, ImageLoadError
from docker.models.images import Image

from orchestrator import files
from orchestrator.engines import build_errors
from orchestrator.engines.docker.image import BASE_DIGEST, BASE_NAME, SPEC_LABEL
from orchestrator.errors import EnvironmentFailed, UsageError
from orchestrator.images import sizes
from orchestrator.images.inventory import ImageStatus
from orchestrator.model import Target
from orchestrator.plan.pairs import in_order

CHUNK_BYTES = 1 << 20
MANIFEST = "manifest.json"
# These are limits of an archive. Manifests and configurations are limited in size because they are parsed as a whole.
# An image has at most about ten members per layer.
MOST_JSON_BYTES, MOST_MEMBERS, MOST_IMAGES = 2**20, 10_000, 500
# An engine accepts at most 127 layers in an image, and the largest image takes about 20 GB.
MOST_LAYERS, MOST_BYTES = 127, 2**36
GZIP = b"\x1f\x8b"
# Engines also unpack these formats. None of them writes the first two, and the standard library cannot read zstd.
OTHER_COMPRESSION = re.compile(rb"(?P<bzip2>BZh)|(?P<xz>\xfd7zXZ)|(?P<zstd>\x28\xb5\x2f\xfd|[\x50-\x5f]\*M\x18)")
# A file takes at most this much of a disk in addition to its content, for its last block and its entry.
BLOCK_BYTES = 4096
UNTAGGED = "<none>:<none>"
# Reading JSON of an unexpected shape raises one of these.
PARSE_ERRORS = (AttributeError, KeyError, TypeError, ValueError)
LABELS = (SPEC_LABEL, "tfcompare.version", "tfcompare.flavour", "tfcompare.python", "tfcompare.lock", BASE_NAME)
# Containers get these settings from the configuration of their image.
SETTINGS = ("Cmd", "Entrypoint", "Env", "Labels", "User", "Volumes", "WorkingDir")
# An archive is larger than its layers by this factor, since it also has configurations and the blocks of a tar file.
OVERHEAD = 1.02

ReportProgress = Callable[[int], None]


@dataclass(frozen=True, order=True)
class ArchivedLayer:
    """The offset of a layer in an archive, and its size there."""

    offset: int
    size: int


@dataclass(frozen=True, kw_only=True)
class ArchivedImage:
    """An image in an archive: its name, its configuration as it was checked, and where its layers are."""

    tag: str
    labels: dict[str, str]
    config: bytes
    content: object
    layers: tuple[ArchivedLayer, ...]

    @property
    def base(self) -> tuple[str, str]:
        """The name and digest of the base; without a digest, the base was a local image of that machine."""
        return self.labels[BASE_NAME], self.labels.get(BASE_DIGEST, "")

    @property
    def size(self) -> int:
        """The number of bytes that its layers take in the archive."""
        return sum(layer.size for layer in set(self.layers))

    def is_same(self, image: Image) -> bool:
        """Return whether an image of the engine has the same layers and settings; ids differ between engines."""
        return bool(self.content == describe_content(image.attrs["RootFS"].get("Layers"), image.attrs["Config"]))


def describe_content(diff_ids: object, settings: Mapping[str, object]) -> object:
    """Return what distinguishes an image from other images: the hashes of its layers, and its settings."""
    return diff_ids or [], {name: settings.get(name) or None for name in SETTINGS}


def estimate_archive_size(client: docker.DockerClient, images: Collection[ImageStatus]) -> int:
    """Return the approximate size of an archive of these images in bytes."""
    return int(sizes.add_up(sizes.steps(client, [status.image.id for status in images])) * OVERHEAD)


def save(
    client: docker.DockerClient, path: Path, images: Collection[ImageStatus], needed: int, report_bytes: ReportProgress
) -> None:
    """Write an archive, completely or not at all; call `report_bytes` with the size of each chunk that is written."""
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
                report_bytes(len(chunk))
    except requests.RequestException:
        # This is also an OSError, but it comes from the engine.
        raise
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _stream(client: docker.DockerClient, names: list[str]) -> Iterator[bytes]:
    # The docker package can save only one image; an archive of several images contains shared layers only once.
    api = client.api
    answer = api.get(
        f"{api.base_url}/v{api.api_version}/images/get", params={"names": names}, stream=True, timeout=None
    )
    try:
        if answer.status_code != 200:
            raise EnvironmentFailed(f"the engine cannot export its images: {answer.text.strip()}")
        yield from answer.iter_content(CHUNK_BYTES)
    finally:
        answer.close()


def read_archive(path: Path) -> tuple[ArchivedImage, ...]:
    """Return the contents of an archive.

    They are checked before any of them reaches the engine, which would accept every name that it is given.
    """
    try:
        with _open(path) as file, tarfile.TarFile(fileobj=LimitedReader(file)) as tar:
            packed = _read_images(path, Members(tar, file))
        # An engine writes images in any order.
        order = in_order(Target(image.labels["tfcompare.version"]) for image in packed)
        packed.sort(key=lambda image: order.index(Target(image.labels["tfcompare.version"])))
    except (*PARSE_ERRORS, RecursionError) as error:
        raise _make_archive_error(path, error) from error
    if not packed:
        raise UsageError(f"{path}: there is no image in it")
    return tuple(packed)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open an archive, which may be compressed with gzip; raise UsageError if it cannot be read."""
    try:
        with path.open("rb") as file:
            yield _unpack(file)
    except requests.RequestException:
        # This is also an OSError, but it comes from the engine.
        raise
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise _make_archive_error(path, error) from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


def _unpack(file: "io.BufferedReader[Any]") -> Any:
    return gzip.GzipFile(fileobj=file) if file.peek(len(GZIP)).startswith(GZIP) else file


def _make_archive_error(path: Path, error: Exception) -> UsageError:
    return UsageError(f"{path}: not a complete archive of images ({error}). Nothing was loaded; save it again")


class UnknownLayerSize(Exception):
    """A layer whose unpacked size cannot be determined; the message gives the reason."""


class LimitedReader(io.RawIOBase):
    """A file that refuses large reads, because a header may claim that a name is gigabytes long."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= CHUNK_BYTES:
            raise tarfile.ReadError(f"a header of more than {CHUNK_BYTES / 2**20:.0f} MiB")
        data: bytes = self._file.read(size)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())


class LayerContent(io.RawIOBase):
    """The bytes of a layer. Reading them raises ReadError if the archive ends first."""

    def __init__(self, file: Any, layer: ArchivedLayer) -> None:
        self._file, self._layer, self._position = file, layer, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        assert whence == io.SEEK_SET
        self._position = offset
        return offset

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._layer.offset + self._position)
        wanted = max(0, min(len(buffer), self._layer.size - self._position))
        chunk = self._file.read(wanted)
        if wanted and not chunk:
            raise tarfile.ReadError("a file is cut short")
        buffer[: len(chunk)] = chunk
        self._position += len(chunk)
        return len(chunk)


class Members:
    """The members of an archive by name: files, folders and links, each of which may occur only once."""

    def __init__(self, tar: tarfile.TarFile, file: Any) -> None:
        self._file = file
        self._files: dict[str, tarfile.TarInfo] = {}
        # If a layer occurs twice, `docker save` writes it once, with a link to it.
        self._links: dict[str, str] = {}
        names: set[str] = set()
        for number, member in enumerate(tar, 1):
            if number > MOST_MEMBERS:
                raise tarfile.ReadError(f"it has more than {MOST_MEMBERS} members")
            name = _normalise(member.name)
            if name in names:
                raise tarfile.ReadError(f"{name!r} is in it twice")
            names.add(name)
            if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse():
                self._files[name] = member
            elif member.issym():
                self._links[name] = _follow(name, member.linkname)
            elif not member.isdir():
                raise tarfile.ReadError(f"{name!r} is neither a file nor a folder")

    def find(self, name: object) -> ArchivedLayer:
        """Return the offset and size of a file that the manifest names; if the name is a link, follow it once."""
        if not isinstance(name, str):
            raise TypeError("a name is not a string")
        normal = _normalise(name)
        normal = self._links.get(normal, normal)
        if normal not in self._files:
            raise KeyError(f"there is no file {normal}")
        return ArchivedLayer(self._files[normal].offset_data, self._files[normal].size)

    def read(self, name: object) -> bytes:
        """Return the content of a small file."""
        layer = self.find(name)
        if layer.size > MOST_JSON_BYTES:
            raise tarfile.ReadError(f"{name!r} is larger than {MOST_JSON_BYTES / 2**20:.0f} MiB")
        return LayerContent(self._file, layer).readall()


def _normalise(name: str) -> str:
    """Return a member's name without `.` and doubled slashes; raise ReadError if it may leave the archive."""
    if name.startswith("/") or ".." in name.split("/"):
        raise tarfile.ReadError(f"the name {name!r} may point outside the archive")
    return posixpath.normpath(name)


def _follow(name: str, target: str) -> str:
    """Return the name that a link leads to; raise ReadError if that is outside of the archive."""
    normal = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    if normal.startswith(("/", "../")) or normal == "..":
        raise tarfile.ReadError(f"the link {name!r} points outside the archive")
    return normal


def _read_images(path: Path, members: Members) -> list[ArchivedImage]:
    packed: list[ArchivedImage] = []
    entries = json.loads(members.read(MANIFEST))
    if len(entries) > MOST_IMAGES:
        raise tarfile.ReadError(f"it has more than {MOST_IMAGES} images")
    for entry in entries:
        config = members.read(entry["Config"])
        layers = tuple(map(members.find, entry["Layers"]))
        if len(layers) > MOST_LAYERS:
            raise tarfile.ReadError(f"an image in it has more than {MOST_LAYERS} layers")
        parsed = json.loads(config)
        tag, labels = _describe_image(path, entry.get("RepoTags") or [], parsed)
        if any(tag == image.tag for image in packed):
            raise UsageError(f"{path}: {tag} is in it twice. Nothing was loaded")
        content = describe_content(parsed["rootfs"]["diff_ids"], parsed["config"])
        packed.append(ArchivedImage(tag=tag, labels=labels, config=config, content=content, layers=layers))
    return packed


def _describe_image(path: Path, tags: list[str], config: Any) -> tuple[str, dict[str, str]]:
    """Return the tag and the labels of an image, which must belong together."""
    labels: dict[str, str] = (config.get("config") or {}).get("Labels") or {}
    if not all(isinstance(text, str) for text in labels.values()):
        raise TypeError("a label is not a string")
    name = ", ".join(tags) or "an image without a name"
    if absent := [label for label in LABELS if label not in labels]:
        raise UsageError(
            f"{path}: {name} in it is not a tfcompare image (it has no label {absent[0]}). Nothing was loaded; "
            "`docker load` takes any archive"
        )
    tag = f"tfcompare:{labels['tfcompare.version']}-{labels['tfcompare.flavour']}-{labels[SPEC_LABEL][:12]}"
    if tags != [tag]:
        raise UsageError(f"{path}: {name} in it is labelled as {tag}: name and labels do not match. Nothing was loaded")
    return tag, labels


def require_room(client: docker.DockerClient, path: Path, packed: Collection[ArchivedImage]) -> None:
    """Raise UsageError if the engine's disk has no room for the unpacked images, or if their size cannot be counted.

    The engine unpacks whatever it gets. So the layers are unpacked here first, in steps and without keeping anything,
    and only as far as there is room.
    """
    room, problem = _find_room(client, len(packed))
    # The engine keeps a copy of an image while it unpacks it.
    needed = max((image.size for image in packed), default=0)
    # Images share a layer only if all layers below it are also the same; otherwise it is unpacked again.
    stacks = {image.layers[:height] for image in packed for height in range(1, len(image.layers) + 1)}
    times = Counter(stack[-1] for stack in stacks)
    try:
        with _open(path) as file:
            for layer in sorted(times):
                taken = 0
                for taken in measure_layer(file, layer):
                    taken *= times[layer]
                    if needed + taken > room:
                        raise UsageError(
                            f"{path}: its layers need more than {sizes.format_size(room)}, {problem}. "
                            "Nothing was loaded"
                        )
                needed += taken
    except UnknownLayerSize as error:
        raise UsageError(f"{path}: {error}. Nothing was loaded") from error
    except (*PARSE_ERRORS, RecursionError) as error:
        raise _make_archive_error(path, error) from error


def _find_room(client: docker.DockerClient, count: int) -> tuple[int, str]:
    """Return how much this number of images may take, and what to report if they need more."""
    most = MOST_BYTES * count, "more than any tfcompare images"
    root = Path(str(client.info().get("DockerRootDir", "")))
    # An engine behind a socket runs on this machine, but its folders may be those of another container.
    if not client.api.base_url.startswith("http+docker:") or not root.is_absolute() or not root.is_dir():
        return most
    free = shutil.disk_usage(root).free
    return min(most, (free, "and the engine's disk has no more free; `tfcompare images prune` frees some"))


def measure_layer(file: Any, layer: ArchivedLayer) -> Iterator[int]:
    """Yield, after each file, the disk space of a layer so far; raise UnknownLayerSize if an engine may need more."""
    part = io.BufferedReader(LayerContent(file, layer))
    if match := OTHER_COMPRESSION.match(part.peek(8)):
        raise UnknownLayerSize(
            f"a layer is compressed with {match.lastgroup}, and its unpacked size can be determined only for gzip; "
            "save the image on an engine that compresses its layers with gzip or not at all"
        )
    plain, number = LimitedReader(_unpack(part)), 0
    with tarfile.TarFile(fileobj=plain) as tar:
        for number, member in enumerate(tar, 1):
            if member.issparse() or any(key.startswith("GNU.sparse") for key in member.pax_headers):
                raise UnknownLayerSize(f"the file {member.name!r} in a layer has holes, which an engine fills")
            if member.size < 0:
                raise UnknownLayerSize(f"the file {member.name!r} in a layer has a negative size")
            # A list of all members of a large layer would take much memory.
            tar.members = []  # type: ignore[attr-defined]
            yield member.offset_data + member.size + number * BLOCK_BYTES
        # An engine might find more members after the point where this library stops.
        plain.seek(tar.offset)
        while rest := plain.read(CHUNK_BYTES):
            if rest.count(0) < len(rest):
                raise UnknownLayerSize("a layer has data after its end")
            yield plain.tell() + number * BLOCK_BYTES


@contextmanager
def load_without_name(
    client: docker.DockerClient, path: Path, image: ArchivedImage, report_bytes: ReportProgress
) -> Iterator[str]:
    """Pass an image to the engine without a name and yield its id; remove it again unless it has a name at the end.

    The engine gets only what `read_archive` has checked, in a new archive. If the engine then has any other new images
    or names, the error lists them. `report_bytes` is called with the size of each chunk that the engine has taken.
    """
    before = _list_images(client)
    identity = _load(client, path, image, report_bytes)
    try:
        if odd := find_unexpected_images(before, _list_images(client), identity):
            raise EnvironmentFailed(
                f"{path}: since it was loaded, the engine has images or names that were not in it: {', '.join(odd)}. "
                "Unless another program created them in the meantime, remove each with `docker image rm`"
            )
        yield identity
    finally:
        with suppress(APIError):
            if identity not in before and not client.images.get(identity).tags:
                client.api.remove_image(identity)


def _load(client: docker.DockerClient, path: Path, image: ArchivedImage, report_bytes: ReportProgress) -> str:
    try:
        with _open(path) as file:
            found = client.images.load(_with_progress(_write(file, image), report_bytes))
        if len(found) == 1:
            return str(found[0].id)
        error = "it did not report which image it loaded"
    except APIError as refused:
        error = str(refused.explanation or refused)
    except ImageLoadError as refused:
        error = str(refused)
    cause = build_errors.of_image(error, "", base="", python="")
    why = f": {cause}" if cause and cause.kind == "disk" else ""
    raise EnvironmentFailed(f"{image.tag}: the engine could not load it{why} ({error.strip()})")


# The keys are ids of images, and the values are their names.
ImageNames = dict[str, frozenset[str]]


def _list_images(client: docker.DockerClient) -> ImageNames:
    entries = client.api.images()
    return {entry["Id"]: frozenset(tag for tag in entry["RepoTags"] or () if tag != UNTAGGED) for entry in entries}


def find_unexpected_images(before: ImageNames, after: ImageNames, loaded: str) -> list[str]:
    """Return the names that are new or refer to a different image, and the new images without a name."""
    odd = []
    for identity, names in after.items():
        odd += sorted(names - before.get(identity, frozenset()))
        if not names and identity not in before and identity != loaded:
            odd.append(identity)
    return odd


def _write(file: Any, image: ArchivedImage) -> Iterator[bytes]:
    """Yield an archive of an image, in which every name is one of ours."""
    # The layers keep the archive's order: going back to an earlier one may mean unpacking it from the start.
    layers = {layer: f"layer-{number}" for number, layer in enumerate(sorted(set(image.layers)))}
    yield from _write_member("config.json", len(image.config), [image.config])
    for layer, name in layers.items():
        chunks = iter(partial(LayerContent(file, layer).read, CHUNK_BYTES), b"")
        yield from _write_member(name, layer.size, chunks)
    manifest = {"Config": "config.json", "RepoTags": None, "Layers": [layers[layer] for layer in image.layers]}
    text = json.dumps([manifest]).encode()
    yield from _write_member(MANIFEST, len(text), [text])
    yield bytes(2 * tarfile.BLOCKSIZE)


def _write_member(name: str, size: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    member = tarfile.TarInfo(name)
    member.size = size
    yield member.tobuf(tarfile.GNU_FORMAT)
    yield from chunks
    yield bytes(-size % tarfile.BLOCKSIZE)


def _with_progress(chunks: Iterable[bytes], report_bytes: ReportProgress) -> Iterator[bytes]:
    for chunk in chunks:
        report_bytes(len(chunk))
        yield chunk
