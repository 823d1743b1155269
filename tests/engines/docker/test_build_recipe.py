"""The recipe itself: fine for both of Docker's builders, and what changes seldom lies below what changes often."""

import json
import os
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path

import docker
import pytest

from orchestrator.catalog.version import Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import image
from tests.engines.docker.conftest import MakeEngine, base_image
from tests.engines.docker.private_version import private


@pytest.fixture
def made(tmp_path: Path) -> tuple[Version, Path]:
    found = private(tmp_path)
    return found.version, found.packages


def buildkit() -> str:
    """A docker command that speaks to BuildKit: an old one, or one with its plug-in."""
    env = {**os.environ, "DOCKER_BUILDKIT": "1"}
    for folder in os.get_exec_path():
        if command := shutil.which("docker", path=folder):
            asked = subprocess.run([command, "build", "--help"], env=env, capture_output=True, text=True)
            if "--progress" in asked.stdout:
                return command
    pytest.skip("no BuildKit: no docker command here speaks to it; install docker-buildx")


def test_buildkit_makes_the_same_image_of_it(
    client: docker.DockerClient, docker_base: str, engine: MakeEngine, made: tuple[Version, Path], tmp_path: Path
) -> None:
    docker_command = buildkit()
    version, packages = made
    base_image(client, docker_base, "3.7")
    recipe = image.recipe(client, version, version.flavours[0], docker_base)
    context = tmp_path / "context"
    context.mkdir()
    for name, content in {**recipe.files, "ca.pem": b""}.items():
        (context / name).write_bytes(content)
    own = engine(wheelhouse=packages)
    given = {"BASE": recipe.base, **own._index.variables(BuildLog(tmp_path / "index.log"))}
    tag = "tfcompare-test:buildkit"
    arguments = [word for name, value in given.items() for word in ("--build-arg", f"{name}={value}")]
    done = subprocess.run(
        [docker_command, "build", "--network", "host", "--progress", "plain", "--tag", tag, *arguments, str(context)],
        env={**os.environ, "DOCKER_BUILDKIT": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    try:
        assert "exporting" in done.stderr, "it was BuildKit"
        command = ["python", "-m", "pip", "list", "--format", "json"]
        listed = client.containers.run(tag, command, network_mode="none", remove=True)
        assert {package["name"] for package in json.loads(listed)} == {"little-one", "little-two", "pip"}
        config = client.images.get(tag).attrs["Config"]
        assert (config["User"], config["WorkingDir"], config["Cmd"]) == ("65534", "/tmp", ["python"])
        assert "HTTP_PROXY" not in json.dumps(client.api.history(tag))
    finally:
        client.api.remove_image(tag, force=True)


def test_another_lock_keeps_the_environment_below_it(
    client: docker.DockerClient, engine: MakeEngine, made: tuple[Version, Path], tmp_path: Path
) -> None:
    version, packages = made
    own = engine(wheelhouse=packages)
    first = own.prepare(version, BuildLog(tmp_path / "first")).facts
    lock = version.flavours[0].lock
    lock.write_text(lock.read_text() + "# changed\n")
    second = own.prepare(version, BuildLog(tmp_path / "second")).facts
    try:
        layers = [client.images.get(one.identity).attrs["RootFS"]["Layers"] for one in (first, second)]
        assert first.identity != second.identity
        # The base's own layers, the two locks of the installer, and the environment with it.
        # Layers above the first one that differs do not count: two installations in one second are equal to the byte.
        shared = list(takewhile(lambda pair: pair[0] == pair[1], zip(*layers, strict=True)))
        base = client.images.get(first.details["base"]).attrs["RootFS"]["Layers"]
        assert len(shared) == len(base) + 2
        steps = (tmp_path / "second").read_text().partition("COPY lock.txt")
        assert "Using cache" in steps[0]
        assert "Collecting pip" not in steps[0]
    finally:
        for one in (first, second):
            client.api.remove_image(one.identity, force=True)


def test_an_image_has_no_time_in_it_that_would_make_two_of_one(
    client: docker.DockerClient, docker_base: str, made: tuple[Version, Path]
) -> None:
    base_image(client, docker_base, "3.7")
    one, two = (image.recipe(client, made[0], made[0].flavours[0], docker_base) for _ in range(2))
    assert one == two
    assert one.labels["org.opencontainers.image.revision"] == one.spec
    assert not [label for label in one.labels if "created" in label]
