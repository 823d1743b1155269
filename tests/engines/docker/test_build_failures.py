"""Why an image could not be built, made to happen: each says something of its own; none leaves half an image."""

import io
import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from orchestrator import catalog
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.errors import EnvironmentFailed
from orchestrator.options import EngineOptions
from tests.engines.docker.conftest import HERE, MakeEngine, PrivateEngine, base_image, version
from tests.engines.docker.registry import Registry, registry
from tests.support.packages import self_signed

TMPFS_MB = 90


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Registry]:
    with registry(tmp_path) as found:
        yield found


def imported(client: docker.DockerClient, name: str, **files: bytes) -> str:
    """An image of nothing but these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    repository, _, tag = name.rpartition(":")
    client.api.import_image_from_data(buffer.getvalue(), repository, tag)
    return name


@pytest.fixture
def small(client: docker.DockerClient, running: Registry) -> Iterator[tuple[str, str]]:
    """An image in the registry and nowhere else: its repository, and its digest."""
    repository = f"{running.address}/small"
    imported(client, f"{repository}:1", file=b"content")
    pushed = [json.loads(line) for line in client.api.push(f"{repository}:1").splitlines()]
    [digest] = [line["aux"]["Digest"] for line in pushed if "aux" in line]
    client.api.remove_image(f"{repository}:1", force=True)
    yield repository, digest
    for image in client.images.list(repository):
        client.api.remove_image(image.id, force=True)


def failure(own: DockerEngine, folder: Path) -> str:
    with pytest.raises(EnvironmentFailed) as failed:
        own.prepare(version("1.14.0"), BuildLog(folder / "log"))
    told = str(failed.value)
    assert told.startswith("1.14.0: its image could not be built: ")
    return told.removeprefix("1.14.0: its image could not be built: ")


def test_a_tag_that_is_gone_names_the_ways_out(engine: MakeEngine, small: tuple[str, str], tmp_path: Path) -> None:
    told = failure(engine(base=f"{small[0]}:2"), tmp_path)
    assert told.startswith(f"the base image {small[0]}:2 is not in the registry (")
    assert "--base (of a mirror, your own, or from `tfcompare images load`)" in told


def test_a_digest_that_the_registry_lacks_is_told_as_a_digest(
    engine: MakeEngine, small: tuple[str, str], tmp_path: Path
) -> None:
    told = failure(engine(base=f"{small[0]}@sha256:{'4' * 64}"), tmp_path)
    assert told.startswith(f"the registry has no image with the digest of {small[0]}@sha256:4444")
    assert "tfcompare images lock" in told


def test_a_registry_that_serves_something_else_under_a_digest_is_not_believed(
    client: docker.DockerClient, engine: MakeEngine, running: Registry, small: tuple[str, str], tmp_path: Path
) -> None:
    repository, digest = small
    blob = running.blob(digest)
    blob.write_bytes(blob.read_bytes().rstrip(b"\n}") + b"\n }")
    told = failure(engine(base=f"{repository}@{digest}"), tmp_path)
    assert told.startswith(f"the registry serves something else under the digest of the base image {repository}@")
    assert "Do not trust it" in told
    assert not client.images.list(repository)


def test_a_registry_whose_name_cannot_be_resolved_is_no_network(engine: MakeEngine, tmp_path: Path) -> None:
    told = failure(engine(base="registry.invalid/python:{python}"), tmp_path)
    assert told.startswith(
        "the registry of the base image registry.invalid/python:3.7 was not reached: its name cannot be resolved ("
    )
    assert "--engine venv" in told


def test_a_registry_that_does_not_answer_is_not_one_without_the_image(engine: MakeEngine, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    told = failure(engine(base=f"127.0.0.1:{port}/python:{{python}}"), tmp_path)
    assert re.match(rf"the registry of the base image 127.0.0.1:{port}/python:3.7 was not reached \(", told)


def test_a_registry_with_a_certificate_of_its_own_is_the_engines_to_trust(engine: MakeEngine, tmp_path: Path) -> None:
    """Docker trusts whoever is on loopback, so this one is not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("no address but loopback: Docker takes any certificate there")
        host = probe.getsockname()[0]
    tls = self_signed(tmp_path, host)
    with registry(tmp_path, host, tls) as secured:
        told = failure(engine(base=f"{secured.address}/python:{{python}}"), tmp_path)
    assert told.startswith("the Docker engine does not trust the certificate of the registry of the base image")
    assert "/etc/docker/certs.d" in told


def test_a_base_without_a_python_says_which_is_needed(
    client: docker.DockerClient, engine: MakeEngine, docker_base: str, tmp_path: Path
) -> None:
    base_image(client, docker_base, "3.7")
    dockerfile = f"FROM {docker_base.replace('{python}', '3.7')}\nRUN rm $(command -v python3)\n"
    bare = io.BytesIO(dockerfile.encode())
    client.images.build(fileobj=bare, tag="tfcompare-test-base:bare", rm=True, network_mode="host")
    try:
        told = failure(engine(base="tfcompare-test-base:bare"), tmp_path)
        assert told.startswith("the base image tfcompare-test-base:bare has no Python that builds could use")
        assert "Use --base to name an image that has Python 3.7" in told
    finally:
        client.api.remove_image("tfcompare-test-base:bare", force=True)


def test_a_base_without_even_a_shell_says_so(client: docker.DockerClient, engine: MakeEngine, tmp_path: Path) -> None:
    name = imported(client, "tfcompare-test-base:empty", file=b"content")
    try:
        assert failure(engine(base=name), tmp_path).startswith(f"the base image {name} has no shell")
    finally:
        client.api.remove_image(name, force=True)


def shell() -> dict[str, bytes]:
    """A shell, dd and what they link to: an image of a few megabytes."""
    programs = [shutil.which("sh") or "/bin/sh", shutil.which("dd") or "/bin/dd"]
    linked = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    files = {f"bin/{Path(program).name}": program for program in programs}
    files |= {path.lstrip("/"): path for path in re.findall(r"(/\S+) \(0x", linked)}
    return {inside: Path(outside).read_bytes() for inside, outside in files.items()}


@pytest.fixture
def cramped(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateEngine]:
    """An engine whose disk is full soon; it knows one image, of a shell."""
    if os.getuid() != 0 or not shutil.which("dockerd"):
        pytest.skip("no small disk: this takes root and dockerd")
    root = Path(tempfile.mkdtemp(prefix="tfcompare-"))
    (root / "data").mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_MB}m", "tmpfs", str(root / "data")], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no small disk: {mounted.stderr.strip()}")
    engine = PrivateEngine(root)
    shutil.copy(HERE / "nvidia-shim", root)
    monkeypatch.setenv("DOCKER_HOST", engine.env["DOCKER_HOST"])
    try:
        engine.start()
        own = engine.client()
        imported(own, "shell:1", **shell())
        own.close()
        yield engine
    finally:
        engine.stop()


def test_a_disk_that_fills_up_is_told_and_the_next_build_goes_on_where_this_one_stopped(
    cramped: PrivateEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tmp_path / "Dockerfile"
    recipe.write_text(
        "ARG BASE\nFROM ${BASE}\nARG GPUS\nRUN echo first step >/first\n"
        f"RUN dd if=/dev/zero of=/second bs=1M count={TMPFS_MB + 20}\n"
    )
    monkeypatch.setattr(catalog, "DOCKERFILE", recipe)
    own = DockerEngine(EngineOptions(base="shell:1"))
    client = cramped.client()
    try:
        told = failure(own, tmp_path)
        assert told.startswith("the disk is full. Free some space (`tfcompare images prune` ")
        assert "finished parts are kept, and incomplete ones are not used" in told
        assert own.outlook(version("1.14.0")).text.startswith("to be built from ")
        assert not [tag for image in client.images.list() for tag in image.tags if tag.startswith("tfcompare:")]

        subprocess.run(["mount", "-o", f"remount,size={4 * TMPFS_MB}m", str(cramped.root / "data")], check=True)
        log = tmp_path / "again"
        facts = own.prepare(version("1.14.0"), BuildLog(log)).facts
        assert "Using cache" in log.read_text()
        assert client.images.get(facts.identity).tags == [facts.details["tag"]]
    finally:
        own.close()
        client.close()


def test_a_step_that_is_killed_is_said_to_want_memory(
    engine: MakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tmp_path / "Dockerfile"
    recipe.write_text(f"ARG BASE\nFROM ${{BASE}}\nARG GPUS\nRUN : {tmp_path} && exit 137\n")
    monkeypatch.setattr(catalog, "DOCKERFILE", recipe)
    assert failure(engine(), tmp_path).startswith("the build was killed, most likely because memory ran out. ")
