"""An archive is read before the engine sees it: nothing is loaded but images of tfcompare's under their names."""

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
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
        manifest = [{"Config": f"{number}.json", "RepoTags": tags} for number, (tags, _) in enumerate(images)]
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


def test_a_full_disk_of_the_engine_is_told_with_what_to_do(tmp_path: Path):
    class Full:
        """What docker's API does with a file, as far as loading needs it."""

        api = property(lambda self: self)

        def load_image(self, data: Any) -> list[dict[str, str]]:
            assert b"".join(data) == b"images"
            return [{"status": "Loading layer"}, {"error": "write /layer: no space left on device"}]

    path = tmp_path / "images.tar"
    path.write_bytes(b"images")
    with pytest.raises(EnvironmentFailed, match=r"could not load it: the disk is full.*images prune"):
        archives.load(Full(), path, lambda count: None)
