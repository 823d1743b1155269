"""A container of a real engine is tried: it is as workers need it, and each way in which it is not is found."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import docker
import pytest

from orchestrator.engines.docker import container, inside, probe, security
from orchestrator.engines.docker.client import connect_engine
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.errors import EngineUnavailable
from orchestrator.options import EngineOptions

CONFINE = container.build_confined_config
NOT_CONFINED = {
    "privileges": ({"SecurityOpt": []}, "it may gain privileges"),
    "no filter": ({"SecurityOpt": ["no-new-privileges", "seccomp=unconfined"]}, "no seccomp filter applies to it"),
    "a network": ({"NetworkMode": "host"}, "it has a network ("),
    "another limit": ({"Memory": 2**27, "MemorySwap": 2**27}, f"its memory is not limited as asked ({2**27})"),
    "another runtime": ({"Runtime": "no-such-runtime"}, "it could not be started ("),
}


@pytest.fixture
def client(docker_base: str) -> Any:
    with closing(connect_engine()) as found:
        yield found


def change(found: dict[str, Any]) -> Callable[..., Any]:
    def confine(*arguments: Any, **more: Any) -> Any:
        return {**CONFINE(*arguments, **more), **found}

    return confine


def test_this_engine_gives_what_workers_need_and_nothing_is_left(client: docker.DockerClient):
    before = {image.id for image in client.images.list(all=True)}
    assert probe.find_fault(client, client.info()) == ""
    assert {image.id for image in client.images.list(all=True)} == before
    assert client.containers.list(all=True, filters={"label": f"{container.RUN_LABEL}=probe"}) == []


def test_an_engine_that_maps_users_would_be_taken_if_this_works_there(client: docker.DockerClient, monkeypatch):
    monkeypatch.setattr(probe, "_describe", lambda client, info: ("an engine of another kind", ("", "host")))
    probe.find_user_mode(client, client.info())
    assert security.find_mode(client.info()) == ""


@pytest.mark.parametrize(("found", "words"), NOT_CONFINED.values(), ids=NOT_CONFINED)
def test_what_a_container_has_that_none_may_have_is_found(
    client: docker.DockerClient, monkeypatch, found: dict[str, Any], words: str
):
    monkeypatch.setattr(container, "build_confined_config", change(found))
    assert probe.find_fault(client, client.info()).startswith(words)


def test_a_user_that_is_another_one_outside_is_found(client: docker.DockerClient, monkeypatch):
    # As on an engine that maps users: the folders belong to somebody else.
    monkeypatch.setattr(security, "find_user", lambda: (12345, 12345))
    monkeypatch.setattr(container, "hand_over", lambda folder, user: None)
    finding = probe.find_fault(client, client.info())
    assert finding.startswith("user 12345 in it cannot read or write files of user 12345 here (cat: ")
    assert finding.endswith("Permission denied)")
    monkeypatch.setattr(probe, "_describe", lambda client, info: ("an engine that maps users", ("",)))
    with pytest.raises(
        EngineUnavailable, match="this is an engine that maps users, and a test container failed there: user"
    ):
        probe.find_user_mode(client, client.info())


def test_a_runtime_of_the_engine_runs_containers(client: docker.DockerClient, docker_base: str, monkeypatch):
    known = [name for name in client.info()["Runtimes"] if "runc" in name]
    for name in known:
        with closing(DockerEngine(EngineOptions(runtime=name))) as engine:
            assert engine.check().startswith("Docker ")
    made: list[str] = []
    create = container.create

    def remember(client: docker.DockerClient, spec: container.Spec) -> str:
        created = create(client, spec)
        made.append(client.api.inspect_container(created)["HostConfig"]["Runtime"])
        return created

    monkeypatch.setattr(container, "create", remember)
    name = known[-1]
    found = inside.look_inside(client, docker_base.format(python="3.11"), "base", own=True, runtime=name)
    assert isinstance(found, inside.Inside), found
    assert found.python.startswith("3.11")
    assert made == [name]
