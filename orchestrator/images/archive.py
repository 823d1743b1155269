"""Images in one file, for machines without access to a registry: written by one engine and read by another."""

import gzip
import io
import json
import posixpath
import shutil
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
# Of a manifest or a configuration, which are parsed; and of an archive: an image has some ten members a layer at most.
MOST_JSON_BYTES, MOST_MEMBERS, MOST_IMAGES = 2**20, 10_000, 500
GZIP = b"\x1f\x8b"
UNTAGGED = "<none>:<none>"
# What reading JSON of another shape raises.
MISSHAPEN = (AttributeError, KeyError, TypeError, ValueError)
LABELS = (SPEC_LABEL, "tfcompare.version", "tfcompare.flavour", "tfcompare.python", "tfcompare.lock", BASE_NAME)
# What is around the layers in an archive: configurations, and a tar's own blocks.
OVERHEAD = 1.02

Tell = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Packed:
    """An image in an archive: its name, its configuration as it was checked, and where its layers are."""

    tag: str
    labels: dict[str, str]
    config: bytes = b""
    layers: tuple[str, ...] = ()

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
        with _open(path) as tar:
            packed = _read_images(path, Members(tar))
        # An engine writes them in any order.
        order = in_order(Target(image.labels["tfcompare.version"]) for image in packed)
        packed.sort(key=lambda image: order.index(Target(image.labels["tfcompare.version"])))
    except (*MISSHAPEN, RecursionError) as error:
        raise _no_archive(path, error) from error
    if not packed:
        raise UsageError(f"{path}: there is no image in it")
    return tuple(packed)


@contextmanager
def _open(path: Path) -> Iterator[tarfile.TarFile]:
    """Open an archive, which may be packed by gzip; raise UsageError for whatever is wrong with it."""
    try:
        with path.open("rb") as file:
            packed = file.peek(len(GZIP))[: len(GZIP)] == GZIP
            plain: Any = gzip.GzipFile(fileobj=file) if packed else file
            with tarfile.TarFile(fileobj=SmallReads(plain)) as tar:
                yield tar
    except requests.RequestException:
        # An OSError too, but of the engine.
        raise
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise _no_archive(path, error) from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


def _no_archive(path: Path, error: Exception) -> UsageError:
    return UsageError(f"{path}: no archive of images, or half of one ({error}). Nothing was loaded; save it again")


class SmallReads(io.RawIOBase):
    """A file of which no large part is read at once: a header may state that a name has gigabytes."""

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


class Members:
    """The members of an archive by their names, each of which is a file or a folder that lies in it only once."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._files: dict[str, tarfile.TarInfo] = {}
        # `docker save` writes a layer that is there twice once, and a link to it.
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

    def find(self, name: object) -> str:
        """Return the name of the file that an archive's manifest names, of which a link is followed once."""
        if not isinstance(name, str):
            raise TypeError("a name that is no text")
        normal = _normalise(name)
        normal = self._links.get(normal, normal)
        if normal not in self._files:
            raise KeyError(f"there is no file {normal}")
        return normal

    def size(self, name: str) -> int:
        return self._files[name].size

    def place(self, name: str) -> int:
        return self._files[name].offset_data

    def read(self, name: object) -> bytes:
        """Return the content of a small file."""
        found = self.find(name)
        if self.size(found) > MOST_JSON_BYTES:
            raise tarfile.ReadError(f"{found!r} has more than {MOST_JSON_BYTES / 2**20:.0f} MiB")
        return b"".join(self.chunks(found))

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file, which is as long as its header says."""
        member = self._files[name]
        left = member.size
        content = self._tar.extractfile(member)
        assert content is not None
        while left:
            chunk = content.read(min(CHUNK_BYTES, left))
            if not chunk:
                raise tarfile.ReadError(f"{name!r} is cut short")
            left -= len(chunk)
            yield chunk


def _normalise(name: str) -> str:
    """Return a member's name without `.` and doubled slashes; raise ReadError if it is no plain path inside."""
    if name.startswith("/") or ".." in name.split("/"):
        raise tarfile.ReadError(f"the name {name!r} may lead out of it")
    return posixpath.normpath(name)


def _follow(name: str, target: str) -> str:
    """Return the name that a link leads to; raise ReadError if that is outside of the archive."""
    normal = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    if normal.startswith(("/", "../")) or normal == "..":
        raise tarfile.ReadError(f"the link {name!r} leads out of it")
    return normal


def _read_images(path: Path, members: Members) -> list[Packed]:
    packed: list[Packed] = []
    entries = json.loads(members.read(MANIFEST))
    if len(entries) > MOST_IMAGES:
        raise tarfile.ReadError(f"it has more than {MOST_IMAGES} images")
    for entry in entries:
        config = members.read(entry["Config"])
        layers = tuple(map(members.find, entry["Layers"]))
        tag, labels = _describe_image(path, entry.get("RepoTags") or [], json.loads(config))
        if any(tag == image.tag for image in packed):
            raise UsageError(f"{path}: {tag} is in it twice. Nothing was loaded")
        packed.append(Packed(tag=tag, labels=labels, config=config, layers=layers))
    return packed


def _describe_image(path: Path, tags: list[str], config: Any) -> tuple[str, dict[str, str]]:
    """Return the tag and the labels of an image, which must belong together."""
    labels = _labels(config)
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
    return tag, labels


def _labels(config: Any) -> dict[str, str]:
    labels: dict[str, str] = (config.get("config") or {}).get("Labels") or {}
    if not all(isinstance(text, str) for text in labels.values()):
        raise TypeError("a label that is no text")
    return labels


def load(client: docker.DockerClient, path: Path, packed: Sequence[Packed], tell: Tell) -> None:
    """Pass the images to the engine in a new archive; call `tell` with the number of bytes it has taken each time.

    The engine gets what `read` has checked and nothing else. If it then has more images or names than that, the error
    lists them.
    """
    before = _list_images(client)
    error = ""
    try:
        with _open(path) as tar:
            members = Members(tar)
            _require_room(client, path, sum(members.size(name) for name in set(_layers(packed))))
            for step in client.api.load_image(_with_progress(_write(members, packed), tell)):
                error = step.get("error", error)
    except APIError as refused:
        error = str(refused.explanation or refused)
    if error:
        cause = build_errors.of_image(error, "", base="", python="")
        why = f": {cause}" if cause and cause.kind == "disk" else ""
        raise EnvironmentFailed(f"{path}: the engine could not load it{why} ({error.strip()})")
    if odd := find_unannounced(before, _list_images(client), {image.tag for image in packed}):
        raise EnvironmentFailed(
            f"{path}: since it was loaded, the engine has images or names that were not in it: {', '.join(odd)}. "
            "If no other program has made them meanwhile, remove each with `docker image rm`"
        )


def _require_room(client: docker.DockerClient, path: Path, needed: int) -> None:
    """Raise UsageError if the layers are larger than the free space of the engine's disk, if that is seen from here."""
    root = Path(str(client.info().get("DockerRootDir", "")))
    # An engine that is reached through a socket runs here, unless its folders are another container's.
    if not client.api.base_url.startswith("http+docker:") or not root.is_absolute() or not root.is_dir():
        return
    free = shutil.disk_usage(root).free
    if free < needed:
        raise UsageError(
            f"{path}: its layers have {sizes.format_size(needed)}, and the engine's disk has "
            f"{sizes.format_size(free)} free; `tfcompare images prune` frees some"
        )


# The names of each image.
Listed = dict[str, frozenset[str]]


def _list_images(client: docker.DockerClient) -> Listed:
    entries = client.api.images()
    return {entry["Id"]: frozenset(tag for tag in entry["RepoTags"] or () if tag != UNTAGGED) for entry in entries}


def find_unannounced(before: Listed, after: Listed, tags: Collection[str]) -> list[str]:
    """Return the names that are new or mean another image, and the images without a name that are new."""
    odd = []
    for identity, names in after.items():
        changed = names - before.get(identity, frozenset())
        odd += sorted(changed.difference(tags))
        if not names and identity not in before:
            odd.append(identity)
    return odd


def _write(members: Members, packed: Sequence[Packed]) -> Iterator[bytes]:
    """Yield an archive of these images, in which every name is one of ours."""
    # In the order of the archive, which may have to be unpacked from its start to find an earlier one.
    layers = {name: f"layer-{number}" for number, name in enumerate(sorted(set(_layers(packed)), key=members.place))}
    manifest = []
    for number, image in enumerate(packed):
        config = f"config-{number}.json"
        manifest.append({"Config": config, "RepoTags": [image.tag], "Layers": [layers[name] for name in image.layers]})
        yield from _write_member(config, len(image.config), [image.config])
    for name, ours in layers.items():
        yield from _write_member(ours, members.size(name), members.chunks(name))
    text = json.dumps(manifest).encode()
    yield from _write_member(MANIFEST, len(text), [text])
    yield bytes(2 * tarfile.BLOCKSIZE)


def _layers(packed: Sequence[Packed]) -> Iterator[str]:
    for image in packed:
        yield from image.layers


def _write_member(name: str, size: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    member = tarfile.TarInfo(name)
    member.size = size
    yield member.tobuf(tarfile.GNU_FORMAT)
    yield from chunks
    yield bytes(-size % tarfile.BLOCKSIZE)


def _with_progress(chunks: Iterable[bytes], tell: Tell) -> Iterator[bytes]:
    for chunk in chunks:
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
