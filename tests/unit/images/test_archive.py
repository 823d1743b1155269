"""An archive is read before the engine sees it: nothing is loaded but images of tfcompare's under their names."""

import gzip
import io
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from orchestrator.catalog import user_data
from orchestrator.engines.docker.image import BASE_DIGEST, BASE_NAME, SPEC_LABEL
from orchestrator.errors import EnvironmentFailed, UsageError
from orchestrator.images import archive as archives
from orchestrator.images.archive import adopt, read, save
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
            files[f"{number}.json"] = {"config": {"Labels": labels}}
        with tarfile.open(path, "w") as tar:
            for name, content in files.items():
                text = json.dumps(content).encode()
                entry = tarfile.TarInfo(name)
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text))
        return path

    return write


def test_it_tells_its_images_by_their_labels(archive):
    [first, second] = read(archive(([MADE.tag], MADE.labels), ([recipe("2.0.0").tag], recipe("2.0.0").labels)))
    assert (first.tag, first.base) == (MADE.tag, ("python:3.7-slim", ""))
    assert second.labels["tfcompare.version"] == "2.0.0"


def test_its_images_come_by_version_whatever_order_the_engine_wrote_them_in(archive):
    recipes = [recipe(number) for number in ("2.13.0", "2.0.0", "1.14.0")]
    packed = read(archive(*(([one.tag], one.labels) for one in recipes)))
    assert [one.tag for one in packed] == [one.tag for one in reversed(recipes)]


def test_a_tag_and_labels_that_do_not_belong_together_are_refused(archive):
    with pytest.raises(UsageError, match=r"python:3\.7-slim in it is labelled as tfcompare:1\.14\.0-cpu-a{12}"):
        read(archive((["python:3.7-slim"], MADE.labels)))
    with pytest.raises(UsageError, match="Nothing was loaded"):
        read(archive(([MADE.tag, "python:3.7-slim"], MADE.labels)))
    with pytest.raises(UsageError, match="an image without a name in it is labelled as"):
        read(archive((None, MADE.labels)))


@pytest.mark.parametrize("missing", [SPEC_LABEL, "tfcompare.lock", BASE_NAME])
def test_an_image_that_is_not_tfcompares_is_refused_among_others(archive, missing: str):
    labels = {name: value for name, value in MADE.labels.items() if name != missing}
    with pytest.raises(UsageError, match=rf"mine:1 in it is no image of tfcompare's \(it has no label {missing}\)"):
        read(archive(([MADE.tag], MADE.labels), (["mine:1"], labels)))
    with pytest.raises(UsageError, match="mine:1 in it is no image of tfcompare's"):
        read(archive((["mine:1"], None)))


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
        with pytest.raises(UsageError, match="no archive of images, or half of one"):
            read(path)
    with pytest.raises(UsageError, match="there is no image in it"):
        read(archive())
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read(tmp_path / "nowhere.tar")


def test_a_base_known_by_digest_there_is_known_by_it_here(archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    labels = recipe(base="python:3.9-slim", **{BASE_DIGEST: DIGEST}).labels
    packed = read(archive(([MADE.tag], labels)))
    assert adopt(packed, {f"python:3.9-slim@{DIGEST.replace('1', '2')}"}) == {}
    assert user_data.digests() == {}, "a digest that is known here stays"
    assert adopt(packed, {"python:3.9-slim", "python:3.7-slim"}) == {"python:3.9-slim": DIGEST}
    assert user_data.digests() == {"python:3.9-slim": DIGEST}
    assert adopt(read(archive(([MADE.tag], MADE.labels))), {"python:3.7-slim"}) == {}


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

    base_url = "http+docker://localhost"

    def __init__(self, *steps: dict[str, str], folder: Path = Path("/nowhere"), adds: str = "") -> None:
        self.steps = steps
        self.folder = folder
        self.adds = adds
        self.images_: list[dict[str, Any]] = [{"Id": "sha256:0", "RepoTags": None}]
        self.taken: list[tuple[tarfile.TarInfo, bytes]] = []

    @property
    def api(self) -> "Engine":
        return self

    def info(self) -> dict[str, str]:
        return {"DockerRootDir": str(self.folder)}

    def images(self) -> list[dict[str, Any]]:
        return list(self.images_)

    def load_image(self, data: Any) -> Sequence[dict[str, str]]:
        with tarfile.open(fileobj=io.BytesIO(b"".join(data))) as tar:
            for member in tar:
                content = tar.extractfile(member)
                self.taken.append((member, content.read() if content else b""))
        tags = [tag for entry in json.loads(self.taken[-1][1]) for tag in entry["RepoTags"]]
        self.images_.append({"Id": "sha256:1", "RepoTags": [*tags, *([self.adds] if self.adds else [])]})
        return self.steps


def load(engine: Any, path: Path) -> list[int]:
    """Loads an archive; returns how many bytes were told."""
    counts: list[int] = []
    archives.load(engine, path, read(path), counts.append)
    return counts


def test_a_full_disk_of_the_engine_is_told_with_what_to_do(archive):
    full = Engine({"status": "Loading layer"}, {"error": "write /layer: no space left on device"})
    with pytest.raises(EnvironmentFailed, match=r"could not load it: the disk is full.*images prune"):
        load(full, archive(([MADE.tag], MADE.labels)))


CONFIG = json.dumps({"config": {"Labels": MADE.labels}}).encode()
ENTRY = {"Config": "c.json", "RepoTags": [MADE.tag], "Layers": ["one/layer.tar", "two/layer.tar"]}


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple[Any, bytes]:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type, entry.linkname = len(content), kind, link
    return entry, content


def listing(*entries: dict[str, Any]) -> bytes:
    return json.dumps(entries).encode()


def usual(**changes: tuple[Any, bytes] | None) -> list[tuple[Any, bytes]]:
    """As `docker save` of Docker 20.10 writes it, where two layers are the same; with other members in their places."""
    members = {
        "config": member("c.json", CONFIG),
        "folder": member("one", kind=tarfile.DIRTYPE),
        "version": member("one/VERSION", b"1.0"),
        "one": member("one/layer.tar", b"L" * 3_000_000),
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
    assert [entry.name for entry, _ in engine.taken] == ["config-0.json", "layer-0", "manifest.json"]
    assert {entry.type for entry, _ in engine.taken} == {tarfile.REGTYPE}
    config, layer, manifest = (content for _, content in engine.taken)
    assert (config, layer) == (CONFIG, b"L" * 3_000_000)
    assert json.loads(manifest) == [
        {"Config": "config-0.json", "RepoTags": [MADE.tag], "Layers": ["layer-0", "layer-0"]}
    ]
    assert sum(told) > 3_000_000


OTHER = member("./manifest.json", listing(ENTRY, {**ENTRY, "RepoTags": ["python:3.7-slim"]}))
ODD = {
    "a second manifest under another spelling": (usual(other=OTHER), "'manifest.json' is in it twice"),
    "a second manifest": (usual(other=member("manifest.json", b"[]")), "'manifest.json' is in it twice"),
    "a folder that is a file too": (usual(other=member("one", b"x")), "'one' is in it twice"),
    "an absolute name": (usual(other=member("/etc/passwd", b"x")), "the name '/etc/passwd' may lead out of it"),
    "a name that goes up": (usual(other=member("one/../../x", b"x")), "may lead out of it"),
    "a name that goes up and back": (usual(other=member("one/../c.json", b"x")), "may lead out of it"),
    "a link that leads out": (
        usual(two=member("two/layer.tar", kind=tarfile.SYMTYPE, link="../../etc/passwd")),
        "the link 'two/layer.tar' leads out of it",
    ),
    "a link that is absolute": (
        usual(two=member("two/layer.tar", kind=tarfile.SYMTYPE, link="/etc/passwd")),
        "the link 'two/layer.tar' leads out of it",
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
        "'manifest.json' has more than 1 MiB",
    ),
    "a configuration that is too long": (usual(config=member("c.json", CONFIG + b" " * 2**20)), "has more than 1 MiB"),
    "a manifest of another shape": (usual(manifest=member("manifest.json", b'{"a": 1}')), "no archive of images"),
    "a manifest that is nested too deep": (
        usual(manifest=member("manifest.json", b"[" * 2**19)),
        "no archive of images",
    ),
    "names that are no texts": (
        usual(manifest=member("manifest.json", listing({**ENTRY, "Layers": [1]}))),
        "a name that is no text",
    ),
    "labels that are no texts": (
        usual(config=member("c.json", json.dumps({"config": {"Labels": dict.fromkeys(MADE.labels, 1)}}).encode())),
        "a label that is no text",
    ),
    "a version that is none": (
        usual(
            config=member("c.json", CONFIG.replace(b'"1.14.0"', b'""')),
            manifest=member("manifest.json", listing({**ENTRY, "RepoTags": [MADE.tag.replace("1.14.0", "")]})),
        ),
        "'' is no name of a target",
    ),
    "an image twice": (usual(manifest=member("manifest.json", listing(ENTRY, ENTRY))), f"{MADE.tag} is in it twice"),
    "too many images": (usual(manifest=member("manifest.json", listing(*[ENTRY] * 501))), "more than 500 images"),
}


@pytest.mark.parametrize(("members", "words"), ODD.values(), ids=ODD)
def test_an_archive_with_anything_odd_in_it_is_refused(tar, members: list[tuple[Any, bytes]], words: str):
    path = tar(members)
    with pytest.raises(UsageError, match=re.escape(words)) as refusal:
        read(path)
    assert str(refusal.value).startswith(f"{path}: ")


def test_a_member_that_is_a_hole_is_refused(tmp_path: Path):
    """A few bytes that unpack to any number of zeros."""
    hole = tmp_path / "layer.tar"
    with hole.open("wb") as file:
        file.truncate(2**30)
    subprocess.run(["tar", "--sparse", "-cf", "made.tar", "layer.tar"], cwd=tmp_path, check=True)
    assert (tmp_path / "made.tar").stat().st_size < 2**20
    with pytest.raises(UsageError, match=r"'layer\.tar' is neither a file nor a folder"):
        read(tmp_path / "made.tar")


def test_a_name_of_megabytes_is_not_read(tar):
    long = tarfile.TarInfo("x" * 2 * 2**20)
    with pytest.raises(UsageError, match="a header of more than 1 MiB"):
        read(tar([(long, b"")]))
    with pytest.raises(UsageError, match="a header of more than 1 MiB"):
        read(tar([(long, b"")], tarfile.PAX_FORMAT))


def test_an_archive_with_too_many_members_is_refused(tar, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 6)
    with pytest.raises(UsageError, match="it has more than 6 members"):
        read(tar(usual()))


def test_what_the_engine_has_beyond_the_archive_is_an_error_that_names_it(tar):
    path = tar(usual())
    with pytest.raises(EnvironmentFailed, match=r"images or names that were not in it: python:3\.7-slim\. If no other"):
        load(Engine(adds="python:3.7-slim"), path)


def test_names_that_move_and_images_without_a_name_are_found():
    before = {"1": frozenset({"a:1", "b:1"}), "2": frozenset({"c:1"}), "3": frozenset[str]()}
    after = {"1": frozenset({"b:1"}), "2": frozenset({"c:1", "a:1"}), "3": frozenset[str](), "4": frozenset[str]()}
    assert archives.find_unannounced(before, after, {"c:1"}) == ["a:1", "4"]
    assert archives.find_unannounced(before, after, {"a:1"}) == ["4"]
    assert archives.find_unannounced(before, before, set()) == []


def test_an_archive_that_does_not_fit_on_the_engines_disk_is_not_loaded(
    tar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, engine = tar(usual()), Engine(folder=tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda root: SimpleNamespace(free=2_999_999))
    with pytest.raises(UsageError, match=r"its layers have 3.*MB, and the engine's disk has 3.*MB free; .*prune"):
        load(engine, path)
    assert engine.taken == []
    engine.base_url = "http://elsewhere:2375"
    load(engine, path)
    assert engine.taken
