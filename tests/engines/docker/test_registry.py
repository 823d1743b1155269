"""Digests of bases, asked of a real registry on this machine through the engine, and what is built from them then."""

import base64
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from orchestrator import catalog
from orchestrator.catalog import user_data
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import image
from tests.conftest import run_command
from tests.engines.docker.conftest import MakeEngine, version
from tests.engines.docker.registry import registry as running_registry

# bcrypt of "secret", which is all that the registry takes.
USERS = "tester:$2b$05$gaK/341U10K0mI1/Dr8FmeRVl1TT2Imetc28IEMHRVkMSXcAFUYrW\n"


@dataclass
class Registry:
    """Holds images of nothing."""

    client: docker.DockerClient
    host: str
    pushed: list[str]

    @property
    def base(self) -> str:
        return f"{self.host}/base:{{python}}"

    def push(self, python: str, content: str) -> str:
        """Another content, another digest; what the registry says it is. Nothing of it stays in the engine."""
        name = f"{self.host}/base:{python}"
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as tar:
            entry = tarfile.TarInfo("content")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content.encode()))
        self.client.api.import_image_from_data(data.getvalue(), repository=f"{self.host}/base", tag=python)
        self.pushed.append(name)
        lines = [json.loads(line) for line in self.client.api.push(name).splitlines()]
        assert not [line for line in lines if "error" in line], lines
        self.client.api.remove_image(name, force=True)
        [digest] = [line["aux"]["Digest"] for line in lines if "aux" in line]
        return str(digest)


@contextmanager
def serving(client: docker.DockerClient, folder: Path, users: Path | None = None) -> Iterator[Registry]:
    folder.mkdir()
    with running_registry(folder, users=users) as running:
        found = Registry(client, running.address, [])
        yield found
    for name in {*found.pushed}:
        with suppress(docker.errors.ImageNotFound):
            client.api.remove_image(name, force=True)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("TFCOMPARE_BASE", raising=False)
    catalog.reread()
    yield tmp_path / "data" / "tfcompare"
    catalog.reread()


@pytest.fixture
def registry(client: docker.DockerClient, tmp_path: Path) -> Iterator[Registry]:
    with serving(client, tmp_path / "registry") as found:
        yield found


def locked(tfcompare: str, *argv: str, code: int = 0) -> tuple[list[dict[str, Any]], str]:
    done = run_command(tfcompare, "images", "lock", *argv, "--format", "json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_tag_becomes_the_digest_that_the_registry_has_and_a_moved_tag_is_told_aloud(
    registry: Registry, tfcompare: str, data: Path
) -> None:
    first = registry.push("3.7", "one")
    [answer], said = locked(tfcompare, "1.14,2.0", "--base", registry.base)
    name = f"{registry.host}/base:3.7"
    assert (answer["image"], answer["digest"], answer["state"]) == (name, first, "new")
    assert answer["versions"] == ["1.14.0", "2.0.0"]
    assert user_data.digests() == {name: first}
    assert f"written: {data / 'digests.toml'}" in said

    written = (data / "digests.toml").stat().st_mtime_ns
    [answer], said = locked(tfcompare, "1.14", "--base", registry.base)
    assert (answer["state"], said) == ("unchanged", "")
    assert (data / "digests.toml").stat().st_mtime_ns == written

    second = registry.push("3.7", "two")
    done = run_command(tfcompare, "images", "lock", "1.14", "--base", registry.base, env={"COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    assert "CHANGED" in done.stdout
    assert second in done.stdout
    assert f"CHANGED: {name} was {first}" in done.stderr
    assert "1.14.0 will be rebuilt" in done.stderr
    assert user_data.digests() == {name: second}


def test_a_digest_that_the_table_has_and_the_registry_too_is_left_to_the_table(
    registry: Registry, tfcompare: str, data: Path
) -> None:
    digest = registry.push("3.7", "one")
    data.mkdir(parents=True)
    name = f"{registry.host}/base:3.7"
    (data / "versions.toml").write_text(
        '[version."9.9.9"]\nkeras = ""\n[version."9.9.9".cpu]\npythons = ["3.7"]\nrequirements = ["six"]\n'
        f'image = "{name}"\ndigest = "{digest}"\n'
    )
    [answer], said = locked(tfcompare, "9.9.9")
    assert (answer["image"], answer["digest"], answer["state"], said) == (name, digest, "unchanged", "")
    assert not (data / "digests.toml").exists()


def test_what_a_registry_does_not_have_keeps_nothing_else_from_being_locked(registry: Registry, tfcompare: str) -> None:
    digest = registry.push("3.7", "one")
    answers, said = locked(tfcompare, "2.13,1.14", "--base", registry.base, code=5)
    assert [(answer["state"], answer["digest"]) for answer in answers] == [("failed", ""), ("new", digest)]
    assert f"the base image {registry.host}/base:3.11 is not in the registry" in said
    assert user_data.digests() == {f"{registry.host}/base:3.7": digest}


def test_a_registry_that_does_not_answer_is_told_apart_from_one_without_the_image(tfcompare: str) -> None:
    [answer], said = locked(tfcompare, "1.14", "--base", "127.0.0.1:1/base:{python}", code=5)
    assert answer["state"] == "failed"
    assert "the registry of the base image 127.0.0.1:1/base:3.7 was not reached" in said
    assert "Traceback" not in said
    assert user_data.digests() == {}


def test_a_name_that_is_none_is_told_with_the_name(tfcompare: str) -> None:
    [answer], said = locked(tfcompare, "1.14", "--base", "No Image", code=5)
    assert "No Image" in said
    assert "invalid reference format" in answer["wrong"]


def test_a_base_by_digest_is_pinned_already(tfcompare: str) -> None:
    digest = "sha256:" + "1" * 64
    [answer], said = locked(tfcompare, "1.14", "--base", f"127.0.0.1:1/base@{digest}")
    assert (answer["state"], answer["digest"], said) == ("pinned", digest, "")
    assert user_data.digests() == {}


def test_a_registry_with_a_login_is_asked_with_the_engines_own_credentials(
    client: docker.DockerClient, tfcompare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = tmp_path / "users"
    users.write_text(USERS)
    with serving(client, tmp_path / "closed", users) as closed:
        _, said = locked(tfcompare, "1.14", "--base", closed.base, code=5)
        assert "without a login" in said
        assert "docker login" in said
        login = {"auth": base64.b64encode(b"tester:secret").decode()}
        (tmp_path / "docker").mkdir()
        (tmp_path / "docker" / "config.json").write_text(json.dumps({"auths": {closed.host: login}}))
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
        _, said = locked(tfcompare, "1.14", "--base", closed.base, code=5)
        assert "is not in the registry" in said, "it is let in, and nothing was pushed"
        assert "secret" not in said


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Puts a Dockerfile that runs nothing in place of the real one."""

    def write() -> None:
        path = tmp_path / "Dockerfile"
        # The folder's name keeps the builder's cache out of it.
        path.write_text(f"ARG BASE\nFROM ${{BASE}}\nARG GPUS\nENV UNIQUE={tmp_path}\n")
        monkeypatch.setattr(catalog, "DOCKERFILE", path)

    return write


def test_what_was_locked_is_built_from_and_a_moved_tag_is_built_anew(
    registry: Registry, tfcompare: str, engine: MakeEngine, tmp_path: Path, stub: Callable[[], None],
    client: docker.DockerClient,
) -> None:  # fmt: skip
    stub()
    name = f"{registry.host}/base:3.7"
    digest = registry.push("3.7", "one")
    locked(tfcompare, "1.14", "--base", registry.base)
    full = version("1.14.0")
    log = tmp_path / "log"
    facts = engine(base=registry.base).prepare(full, BuildLog(log)).facts
    try:
        assert facts.details["base"] == f"{name}@{digest}"
        assert f"pulling {name}@{digest}" in log.read_text().splitlines()
        labels = client.images.get(facts.identity).labels
        assert (labels[image.BASE_NAME], labels[image.BASE_DIGEST], labels[image.BASE_ID]) == (name, digest, "")

        registry.push("3.7", "two")
        assert engine(base=registry.base).outlook(full).text.startswith("ready "), (
            "the tag has moved, the digest has not"
        )
        locked(tfcompare, "1.14", "--base", registry.base)
        assert engine(base=registry.base).outlook(full).text.startswith(f"to be built from {name}@sha256:")
    finally:
        client.api.remove_image(facts.details["tag"], force=True)
        client.api.remove_image(f"{registry.host}/base@{digest}", force=True)
