"""Where the engine sees a folder: in the same place, or where a container's mounts lie outside."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import NotFound

from orchestrator.engines.docker import host_paths
from orchestrator.errors import EnvironmentFailed

ID = "c" * 64
LINE = f"91 74 254:0 /var/lib/docker/containers/{ID}/hostname /etc/hostname rw - ext4 /dev/vda rw\n"


def client(*mounts: dict[str, str], known: bool = True) -> Any:
    def inspect(container: str) -> dict[str, Any]:
        if not known:
            raise NotFound("no such container")
        assert container == ID
        return {"Mounts": list(mounts)}

    return SimpleNamespace(api=SimpleNamespace(inspect_container=inspect))


@pytest.fixture
def inside(monkeypatch, tmp_path):
    """As in a container of an engine."""
    (tmp_path / "mountinfo").write_text("22 28 0:21 / /proc rw - proc proc rw\n" + LINE)
    monkeypatch.setattr(host_paths, "MOUNTS", tmp_path / "mountinfo")


def test_in_no_container_a_folder_is_where_it_is(monkeypatch, tmp_path):
    (tmp_path / "mountinfo").write_text("22 28 0:21 / /proc rw - proc proc rw\n")
    for place in (tmp_path / "mountinfo", tmp_path / "nowhere"):
        monkeypatch.setattr(host_paths, "MOUNTS", place)
        assert host_paths.mounts(client()) is None
    assert host_paths.source(tmp_path, None, read_only=False) == tmp_path.resolve()


def test_a_mount_point_whose_name_is_not_utf8_is_no_obstacle(monkeypatch, tmp_path):
    (tmp_path / "mountinfo").write_bytes(b"22 28 0:21 / /mnt/caf\xe9 rw - ext4 /dev/vdb rw\n" + LINE.encode())
    monkeypatch.setattr(host_paths, "MOUNTS", tmp_path / "mountinfo")
    assert host_paths.mounts(client()) == {}


def test_in_a_container_of_another_engine_it_is_so_too(inside):
    assert host_paths.mounts(client(known=False)) is None


def test_a_folder_of_a_volume_is_where_the_volume_is(inside):
    mounted = host_paths.mounts(
        client(
            {"Destination": "/history", "Source": "/volumes/history/_data"},
            {"Destination": "/history/runs/old", "Source": "/elsewhere"},
            {"Destination": "/tmp", "Source": ""},
        )
    )
    assert mounted is not None
    assert host_paths.find_engine_path(Path("/history/runs/a/results"), mounted) == Path(
        "/volumes/history/_data/runs/a/results"
    )
    assert host_paths.find_engine_path(Path("/history/runs/old/results"), mounted) == Path("/elsewhere/results")
    assert host_paths.find_engine_path(Path("/history"), mounted) == Path("/volumes/history/_data")
    for nowhere in (Path("/historyx"), Path("/tmp/x"), Path("/")):
        assert host_paths.find_engine_path(nowhere, mounted) is None


@pytest.fixture
def code(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    code = tmp_path / "code"
    for name in ("worker.py", "suite/power.py", "suite/__pycache__/power.pyc"):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(name)
    return code


def test_what_is_only_read_is_copied_once_to_where_the_engine_sees_it(code, tmp_path):
    mounted = {(tmp_path / "cache").resolve(): Path("/volumes/cache")}
    first = host_paths.source(code, mounted, read_only=True)
    copy = tmp_path / "cache" / first.relative_to("/volumes/cache")
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*.py*")) == ["suite/power.py", "worker.py"]
    before = copy.stat().st_mtime_ns
    assert host_paths.source(code, mounted, read_only=True) == first
    assert copy.stat().st_mtime_ns == before
    (code / "worker.py").write_text("another")
    assert host_paths.source(code, mounted, read_only=True) != first
    assert (copy / "worker.py").read_text() == "worker.py"
    assert len(list(copy.parent.iterdir())) == 2


def test_what_no_volume_holds_is_refused_with_its_name(code, tmp_path):
    with pytest.raises(EnvironmentFailed, match=rf"the Docker engine does not see {code}: .* in none of its volumes"):
        host_paths.source(code, {}, read_only=False)
    with pytest.raises(EnvironmentFailed, match=rf"does not see {tmp_path}/cache/tfcompare: .* in none of its volumes"):
        host_paths.source(code, {}, read_only=True)


def test_a_copy_that_cannot_be_written_is_told(code, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "file"))
    with pytest.raises(EnvironmentFailed, match=r"cannot write .*file.*TFCOMPARE_CACHE"):
        host_paths.source(code, {}, read_only=True)
