"""An archive is read before the engine sees it: nothing is loaded but images of tfcompare's under their names."""

import bz2
import gzip
import io
import json
import lzma
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest
import requests
from docker.models.images import Image, ImageCollection

from orchestrator.engines.docker.image import BASE_NAME, SPEC_LABEL
from orchestrator.errors import EnvironmentFailed, UsageError
from orchestrator.images import archive as archives
from orchestrator.images.archive import ArchivedLayer, measure_layer, read_archive, save
from tests.unit.images.scenes import judged, recipe

MADE = recipe()
DIGEST = "sha256:" + "1" * 64


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """Writes the skeleton of an archive: its manifest and the images' configurations."""

    def write(*images: tuple[list[str] | None, dict[str, str] | None]) -> Path:
        path = tmp_path / "images.tar"
        manifest = [
            {"Config": f"{number}.json", "RepoTags": tags, "Layers": []} for number, (tags, _) in enumerate(images)
        ]
        files: dict[str, Any] = {"manifest.json": manifest}
        for number, (_, labels) in enumerate(images):
            files[f"{number}.json"] = {"config": {"Labels": labels}, "rootfs": {"diff_ids": []}}
        with tarfile.open(path, "w") as tar:
            for name, content in files.items():
                text = json.dumps(content).encode()
                entry = tarfile.TarInfo(name)
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text))
        return path

    return write


def test_it_tells_its_images_by_their_labels(archive):
    [first, second] = read_archive(archive(([MADE.tag], MADE.labels), ([recipe("2.0.0").tag], recipe("2.0.0").labels)))
    assert (first.tag, first.base) == (MADE.tag, ("python:3.7-slim", ""))
    assert second.labels["tfcompare.version"] == "2.0.0"


def test_its_images_come_by_version_whatever_order_the_engine_wrote_them_in(archive):
    recipes = [recipe(number) for number in ("2.13.0", "2.0.0", "1.14.0")]
    packed = read_archive(archive(*(([one.tag], one.labels) for one in recipes)))
    assert [one.tag for one in packed] == [one.tag for one in reversed(recipes)]


def test_a_tag_and_labels_that_do_not_belong_together_are_refused(archive):
    with pytest.raises(UsageError, match=r"python:3\.7-slim in it is labelled as tfcompare:1\.14\.0-cpu-a{12}"):
        read_archive(archive((["python:3.7-slim"], MADE.labels)))
    with pytest.raises(UsageError, match="Nothing was loaded"):
        read_archive(archive(([MADE.tag, "python:3.7-slim"], MADE.labels)))
    with pytest.raises(UsageError, match="an image without a name in it is labelled as"):
        read_archive(archive((None, MADE.labels)))


@pytest.mark.parametrize("missing", [SPEC_LABEL, "tfcompare.lock", BASE_NAME])
def test_an_image_that_is_not_tfcompares_is_refused_among_others(archive, missing: str):
    labels = {name: value for name, value in MADE.labels.items() if name != missing}
    with pytest.raises(UsageError, match=rf"mine:1 in it is not a tfcompare image \(it has no label {missing}\)"):
        read_archive(archive(([MADE.tag], MADE.labels), (["mine:1"], labels)))
    with pytest.raises(UsageError, match="mine:1 in it is not a tfcompare image"):
        read_archive(archive((["mine:1"], None)))


def test_what_is_no_archive_says_so(archive, tmp_path: Path):
    whole = archive(([MADE.tag], MADE.labels))
    half = tmp_path / "half.tar"
    half.write_bytes(whole.read_bytes()[:700])
    other = tmp_path / "other.tar"
    with tarfile.open(other, "w") as tar:
        tar.add(__file__, "test.py")
    text = tmp_path / "text"
    text.write_text("hello")
    for path in (half, other, text):
        with pytest.raises(UsageError, match="not a complete archive of images"):
            read_archive(path)
    with pytest.raises(UsageError, match="there is no image in it"):
        read_archive(archive())
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_archive(tmp_path / "nowhere.tar")


def test_an_archive_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "images.tar"
    path.write_text("the one of yesterday")
    written: list[int] = []

    def broken(client: Any, names: list[str]):
        assert names == [MADE.tag]
        yield b"half of it"
        raise ConnectionError("the engine is gone")

    monkeypatch.setattr(archives, "_stream", broken)
    with pytest.raises(UsageError):
        save(None, path, [judged("current")], 0, written.append)
    assert [entry.name for entry in tmp_path.iterdir()] == ["images.tar"]
    assert path.read_text() == "the one of yesterday"
    monkeypatch.setattr(archives, "_stream", lambda client, names: [b"all", b"of it"])
    save(None, path, [judged("current")], 0, written.append)
    assert path.read_bytes() == b"allof it"
    assert written == [10, 3, 5]


def test_an_engine_that_is_gone_is_not_told_as_a_file_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def gone(client: Any, names: list[str]):
        raise requests.ConnectionError("gone")

    monkeypatch.setattr(archives, "_stream", gone)
    with pytest.raises(requests.ConnectionError):
        save(None, tmp_path / "images.tar", [judged("current")], 0, lambda count: None)
    assert list(tmp_path.iterdir()) == []


class Engine:
    """What docker's API does with an archive, as far as loading needs it."""

    def __init__(self, *steps: dict[str, Any], folder: Path = Path("/nowhere"), adds: str = "") -> None:
        self.steps = (*steps, {"stream": "Loaded image ID: sha256:1\n"})
        self.folder = folder
        self.adds = adds
        self.listed: dict[str, list[str]] = {"sha256:0": []}
        self.taken: list[tuple[tarfile.TarInfo, bytes]] = []
        self.api = SimpleNamespace(
            base_url="http+docker://localhost",
            images=lambda: [{"Id": identity, "RepoTags": list(tags)} for identity, tags in self.listed.items()],
            inspect_image=lambda identity: {"Id": identity, "RepoTags": self.listed[identity]},
            load_image=self.load_image,
            remove_image=lambda identity: self.listed.pop(identity),
        )
        self.images = ImageCollection(client=self)

    def info(self) -> dict[str, str]:
        return {"DockerRootDir": str(self.folder)}

    def load_image(self, data: Any) -> Sequence[dict[str, Any]]:
        with tarfile.open(fileobj=io.BytesIO(b"".join(data))) as tar:
            for member in tar:
                content = tar.extractfile(member)
                self.taken.append((member, content.read() if content else b""))
        self.listed["sha256:1"] = [self.adds] if self.adds else []
        return self.steps


def load(engine: Any, path: Path, names: Sequence[str] = ()) -> list[int]:
    """Loads an archive of one image, which gets these names; returns how many bytes were told."""
    counts: list[int] = []
    packed = read_archive(path)
    archives.require_room(engine, path, packed)
    with archives.load_without_name(engine, path, packed[0], counts.append) as identity:
        engine.listed[identity] += names
    return counts


def test_a_full_disk_of_the_engine_is_told_with_what_to_do(archive):
    message = "write /layer: no space left on device"
    full = Engine({"status": "Loading layer"}, {"error": message, "errorDetail": {"message": message}})
    with pytest.raises(EnvironmentFailed, match=r"could not load it: the disk is full.*images prune"):
        load(full, archive(([MADE.tag], MADE.labels)))


CONFIG = json.dumps({"config": {"Labels": MADE.labels}, "rootfs": {"diff_ids": ["sha256:2"] * 2}}).encode()
ENTRY = {"Config": "c.json", "RepoTags": [MADE.tag], "Layers": ["one/layer.tar", "two/layer.tar"]}


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[Any, bytes]:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type, entry.linkname = len(content), kind, link
    return entry, content


def listing(*entries: dict[str, Any]) -> bytes:
    return json.dumps(entries).encode()


def layer_of(**files: bytes) -> bytes:
    """A layer with these files, as an engine writes it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as layer:
        for name, content in files.items():
            entry, _ = member(name, content)
            layer.addfile(entry, io.BytesIO(content))
    return out.getvalue()


LAYER = layer_of(file=b"L" * 3_000_000)


def usual(**changes: tuple[Any, bytes] | None) -> list[tuple[Any, bytes]]:
    """As `docker save` of Docker 20.10 writes it, where two layers are the same; with other members in their places."""
    members = {
        "config": member("c.json", CONFIG),
        "folder": member("one", kind=tarfile.DIRTYPE),
        "version": member("one/VERSION", b"1.0"),
        "one": member("one/layer.tar", LAYER),
        "two": member("two/layer.tar", kind=tarfile.SYMTYPE, link="../one/layer.tar"),
        "manifest": member("manifest.json", listing(ENTRY)),
        "repositories": member("repositories", b'{"python":{"3.7-slim":"x"}}'),
        **changes,
    }
    return [found for found in members.values() if found]


@pytest.fixture
def tar(tmp_path: Path) -> Callable[..., Path]:
    def write(members: Sequence[tuple[Any, bytes]], format: int = tarfile.GNU_FORMAT) -> Path:
        path = tmp_path / "made.tar"
        with tarfile.open(path, "w", format=format) as out:
            for entry, content in members:
                out.addfile(entry, io.BytesIO(content))
        return path

    return write


@pytest.mark.parametrize("compressed", [False, True])
def test_the_engine_gets_what_was_checked_and_nothing_else(tar, compressed: bool):
    """No name of the archive reaches it, and what lies there once is sent once."""
    path, engine = tar(usual()), Engine()
    if compressed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    told = load(engine, path)
    assert [entry.name for entry, _ in engine.taken] == ["config.json", "layer-0", "manifest.json"]
    assert {entry.type for entry, _ in engine.taken} == {tarfile.REGTYPE}
    config, layer, manifest = (content for _, content in engine.taken)
    assert (config, layer) == (CONFIG, LAYER)
    assert json.loads(manifest) == [{"Config": "config.json", "RepoTags": None, "Layers": ["layer-0", "layer-0"]}]
    assert sum(told) > 3_000_000


OTHER = member("./manifest.json", listing(ENTRY, {**ENTRY, "RepoTags": ["python:3.7-slim"]}))
ODD = {
    "a second manifest under another spelling": (usual(other=OTHER), "'manifest.json' is in it twice"),
    "a second manifest": (usual(other=member("manifest.json", b"[]")), "'manifest.json' is in it twice"),
    "a folder that is a file too": (usual(other=member("one", b"x")), "'one' is in it twice"),
    "an absolute name": (
        usual(other=member("/etc/passwd", b"x")),
        "the name '/etc/passwd' may point outside the archive",
    ),
    "a name that goes up": (usual(other=member("one/../../x", b"x")), "may point outside the archive"),
    "a name that goes up and back": (usual(other=member("one/../c.json", b"x")), "may point outside the archive"),
    "a link that leads out": (
        usual(two=member("two/layer.tar", kind=tarfile.SYMTYPE, link="../../etc/passwd")),
        "the link 'two/layer.tar' points outside the archive",
    ),
    "a link that is absolute": (
        usual(two=member("two/layer.tar", kind=tarfile.SYMTYPE, link="/etc/passwd")),
        "the link 'two/layer.tar' points outside the archive",
    ),
    "a link to a link": (
        usual(one=member("one/layer.tar", kind=tarfile.SYMTYPE, link="../two/layer.tar")),
        "there is no file two/layer.tar",
    ),
    "a hard link": (
        usual(two=member("two/layer.tar", kind=tarfile.LNKTYPE, link="one/layer.tar")),
        "'two/layer.tar' is neither a file nor a folder",
    ),
    "a device": (usual(other=member("null", kind=tarfile.CHRTYPE)), "'null' is neither a file nor a folder"),
    "a pipe": (usual(other=member("pipe", kind=tarfile.FIFOTYPE)), "'pipe' is neither a file nor a folder"),
    "a layer that is not there": (usual(one=None), "there is no file one/layer.tar"),
    "a layer that is a folder": (
        usual(two=member("two/layer.tar", kind=tarfile.DIRTYPE)),
        "there is no file two/layer.tar",
    ),
    "a manifest that is too long": (
        usual(manifest=member("manifest.json", b"[" + b" " * 2**20 + b"]")),
        "'manifest.json' is larger than 1 MiB",
    ),
    "a configuration that is too long": (usual(config=member("c.json", CONFIG + b" " * 2**20)), "is larger than 1 MiB"),
    "a manifest of another shape": (
        usual(manifest=member("manifest.json", b'{"a": 1}')),
        "not a complete archive of images",
    ),
    "a manifest that is nested too deep": (
        usual(manifest=member("manifest.json", b"[" * 2**19)),
        "not a complete archive of images",
    ),
    "names that are no texts": (
        usual(manifest=member("manifest.json", listing({**ENTRY, "Layers": [1]}))),
        "a name is not a string",
    ),
    "labels that are no texts": (
        usual(config=member("c.json", json.dumps({"config": {"Labels": dict.fromkeys(MADE.labels, 1)}}).encode())),
        "a label is not a string",
    ),
    "a version that is none": (
        usual(
            config=member("c.json", CONFIG.replace(b'"1.14.0"', b'""')),
            manifest=member("manifest.json", listing({**ENTRY, "RepoTags": [MADE.tag.replace("1.14.0", "")]})),
        ),
        "'' is not a valid name of a target",
    ),
    "an image twice": (usual(manifest=member("manifest.json", listing(ENTRY, ENTRY))), f"{MADE.tag} is in it twice"),
    "too many layers": (
        usual(manifest=member("manifest.json", listing({**ENTRY, "Layers": ["one/layer.tar"] * 128}))),
        "an image in it has more than 127 layers",
    ),
    "too many images": (usual(manifest=member("manifest.json", listing(*[ENTRY] * 501))), "more than 500 images"),
}


@pytest.mark.parametrize(("members", "words"), ODD.values(), ids=ODD)
def test_an_archive_with_anything_odd_in_it_is_refused(tar, members: list[tuple[Any, bytes]], words: str):
    path = tar(members)
    with pytest.raises(UsageError, match=re.escape(words)) as refusal:
        read_archive(path)
    assert str(refusal.value).startswith(f"{path}: ")


def test_a_member_that_is_a_hole_is_refused(tmp_path: Path):
    """A few bytes that unpack to any number of zeros."""
    hole = tmp_path / "layer.tar"
    with hole.open("wb") as file:
        file.truncate(2**30)
    subprocess.run(["tar", "--sparse", "-cf", "made.tar", "layer.tar"], cwd=tmp_path, check=True)
    assert (tmp_path / "made.tar").stat().st_size < 2**20
    with pytest.raises(UsageError, match=r"'layer\.tar' is neither a file nor a folder"):
        read_archive(tmp_path / "made.tar")


def test_a_name_of_megabytes_is_not_read(tar):
    long = tarfile.TarInfo("x" * 2 * 2**20)
    with pytest.raises(UsageError, match="a header of more than 1 MiB"):
        read_archive(tar([(long, b"")]))
    with pytest.raises(UsageError, match="a header of more than 1 MiB"):
        read_archive(tar([(long, b"")], tarfile.PAX_FORMAT))


def test_an_archive_with_too_many_members_is_refused(tar, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 6)
    with pytest.raises(UsageError, match="it has more than 6 members"):
        read_archive(tar(usual()))


def test_an_image_stays_if_it_got_a_name_or_was_here_and_is_removed_otherwise(tar):
    path, engine = tar(usual()), Engine()
    load(engine, path)
    assert list(engine.listed) == ["sha256:0"]
    load(engine, path, [MADE.tag])
    assert engine.listed == {"sha256:0": [], "sha256:1": [MADE.tag]}
    engine.listed["sha256:1"].clear()
    load(engine, path)
    assert list(engine.listed) == ["sha256:0", "sha256:1"], "it was here before, without a name"


def test_what_the_engine_has_beyond_the_archive_is_an_error_that_names_it(tar):
    path = tar(usual())
    with pytest.raises(EnvironmentFailed, match=r"or names that were not in it: python:3\.7-slim\. Unless another"):
        load(Engine(adds="python:3.7-slim"), path)


def test_names_that_move_and_images_without_a_name_are_found():
    before = {"1": frozenset({"a:1", "b:1"}), "2": frozenset({"c:1"}), "3": frozenset[str]()}
    after = {"1": frozenset({"b:1"}), "2": frozenset({"c:1", "a:1"}), "3": frozenset[str](), "4": frozenset[str]()}
    assert archives.find_unexpected_images(before, after, "2") == ["a:1", "4"]
    assert archives.find_unexpected_images(before, after, "4") == ["a:1"]
    assert archives.find_unexpected_images(before, before, "1") == []


def test_an_image_is_the_same_by_its_layers_and_its_settings(tar):
    [packed] = read_archive(tar(usual()))
    attrs = {
        "RootFS": {"Type": "layers", "Layers": ["sha256:2"] * 2},
        "Config": {"Labels": MADE.labels, "Env": None, "Cmd": [], "Hostname": ""},
    }
    assert packed.is_same(Image(attrs))
    assert not packed.is_same(Image({**attrs, "RootFS": {"Type": "layers"}}))
    assert not packed.is_same(Image({**attrs, "Config": {"Labels": MADE.labels, "Env": ["A=1"]}}))
    assert not packed.is_same(Image({**attrs, "Config": {"Labels": {}}}))


def with_room(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda root: SimpleNamespace(free=free))


@pytest.mark.parametrize("packed", [False, True])
def test_an_archive_that_does_not_fit_on_the_engines_disk_is_not_loaded(
    tar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
):
    """Counted is what layers unpack to, each of the two, and the copy that an engine keeps while it unpacks them."""
    stored = gzip.compress(LAYER) if packed else LAYER
    path, engine = tar(usual(one=member("one/layer.tar", stored))), Engine(folder=tmp_path)
    enough = len(stored) + 2 * (len(LAYER) + archives.BLOCK_BYTES)
    with_room(monkeypatch, enough - 20_000)
    with pytest.raises(UsageError, match=r"need more than .*MB, and the engine's disk has no more free; .*prune"):
        load(engine, path)
    assert engine.taken == []
    with_room(monkeypatch, enough)
    load(engine, path)
    assert [content for _, content in engine.taken][1] == stored
    with_room(monkeypatch, 3_000_000)
    engine.api.base_url = "http://elsewhere:2375"
    load(engine, path)
    monkeypatch.setattr(archives, "MOST_BYTES", 3_000_000)
    with pytest.raises(UsageError, match=r"need more than 3.*MB, more than any tfcompare images"):
        load(engine, path)


def test_layers_that_images_share_from_the_bottom_count_once(tar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = CONFIG.replace(b'"1.14.0"', b'"2.0.0"')
    second = {**ENTRY, "Config": "d.json", "RepoTags": [MADE.tag.replace("1.14.0", "2.0.0")]}
    path = tar(usual(other=member("d.json", config), manifest=member("manifest.json", listing(ENTRY, second))))
    with_room(monkeypatch, len(LAYER) + 2 * (len(LAYER) + archives.BLOCK_BYTES))
    archives.require_room(cast("docker.DockerClient", Engine(folder=tmp_path)), path, read_archive(path))


def test_a_layer_is_unpacked_no_further_than_there_is_room(tar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb") as out:
        for number in range(64):
            entry, _ = member(f"zeros{number}", bytes(2**20))
            out.write(entry.tobuf())
            out.write(bytes(2**20))
    path = tar(usual(one=member("one/layer.tar", bomb.getvalue())))
    assert path.stat().st_size < 2**20
    with_room(monkeypatch, 3 * 2**20)
    unpacked: list[int] = []
    original = gzip.GzipFile.seek

    def seek(self: gzip.GzipFile, offset: int, whence: int = 0) -> int:
        unpacked.append(offset)
        return original(self, offset, whence)

    monkeypatch.setattr(gzip.GzipFile, "seek", seek)
    with pytest.raises(UsageError, match="Nothing was loaded"):
        load(Engine(folder=tmp_path), path)
    assert max(unpacked) < 4 * 2**20


def sparse_layer(folder: Path, format: str) -> bytes:
    with (folder / "hole").open("wb") as file:
        file.truncate(2**30)
    argv = ["tar", "--sparse", f"--format={format}", "-cf", "-", "hole"]
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True).stdout


def negative_layer() -> bytes:
    entry, _ = member("file")
    header = bytearray(entry.tobuf())
    header[124:136] = b"\xff" * 12
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    return bytes(header) + bytes(1024)


UNCOUNTABLE: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "bzip2": (
        lambda folder: bz2.compress(LAYER),
        "a layer is compressed with bzip2, and its unpacked size can be determined only for gzip",
    ),
    "xz": (lambda folder: lzma.compress(LAYER), "a layer is compressed with xz"),
    "zstd": (lambda folder: b"\x28\xb5\x2f\xfd" + bytes(1020), "a layer is compressed with zstd"),
    "a zstd frame that is skipped": (lambda folder: b"\x5e*M\x18" + bytes(1020), "a layer is compressed with zstd"),
    "gzip in gzip": (lambda folder: gzip.compress(gzip.compress(LAYER)), "not a complete archive of images"),
    "half of gzip": (lambda folder: gzip.compress(LAYER)[:-100], "not a complete archive of images"),
    "anything else": (lambda folder: b"hello" * 1000, "not a complete archive of images"),
    "a hole of GNU's": (lambda folder: sparse_layer(folder, "gnu"), "the file 'hole' in a layer has holes"),
    "a hole of POSIX's": (lambda folder: sparse_layer(folder, "pax"), "the file 'hole' in a layer has holes"),
    "a packed hole": (lambda folder: gzip.compress(sparse_layer(folder, "pax")), "'hole' in a layer has holes"),
    "something after its end": (lambda folder: LAYER + LAYER, "a layer has data after its end"),
    "a header that is wrong": (
        lambda folder: LAYER.rstrip(b"\0") + bytes(512 - len(LAYER.rstrip(b"\0")) % 512) + b"x" * 512,
        "a layer has data after its end",
    ),
    "a negative size": (lambda folder: negative_layer(), "a layer"),
}


@pytest.mark.parametrize(("make", "words"), UNCOUNTABLE.values(), ids=UNCOUNTABLE)
def test_a_layer_whose_space_cannot_be_counted_is_refused(
    tar, tmp_path: Path, make: Callable[[Path], bytes], words: str
):
    path, engine = tar(usual(one=member("one/layer.tar", make(tmp_path)))), Engine()
    with pytest.raises(UsageError, match=re.escape(words)) as refusal:
        load(engine, path)
    assert "Nothing was loaded" in str(refusal.value)
    assert engine.taken == []


def test_every_file_of_a_layer_counts_with_its_block(tmp_path: Path):
    for layer in (layer_of(), layer_of(a=b"", b=b"x" * 5000, c=b""), LAYER + bytes(10240)):
        [*_, needed] = [0, *measure_layer(io.BytesIO(layer), ArchivedLayer(0, len(layer)))]
        with tarfile.open(fileobj=io.BytesIO(layer)) as members:
            files = members.getmembers()
        assert len(layer) - 10240 <= needed - len(files) * archives.BLOCK_BYTES <= len(layer)
