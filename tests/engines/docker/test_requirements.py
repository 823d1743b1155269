"""What workloads of a stranger require is looked at and unpacked in a container, which has nothing of the caller."""

import os
import re
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from orchestrator.catalog import uv
from orchestrator.engines import layers
from orchestrator.engines.docker import security, uv_container
from orchestrator.engines.docker.client import Clients
from orchestrator.engines.docker.container import OWNER_LABEL
from orchestrator.engines.docker.engine import DockerEnvironment
from orchestrator.engines.docker.uv_container import RUN, UvInContainer
from orchestrator.model import EnvironmentFacts
from orchestrator.options import EngineOptions
from tests.support.builders import environment_facts
from tests.support.end_to_end import compare
from tests.support.packages import source, wheel

NEEDY = "REQUIREMENTS = ({!r},)\n\n\ndef build(tf, params):\n    import plots\n    return lambda: len(plots.NUMBER)\n"
PLANTED = ("MY_SECRET", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "LD_LIBRARY_PATH", "PYTHONPATH",
           "UV_CONFIG_FILE", "UV_CREDENTIALS_DIR", "XDG_CONFIG_HOME", "TFCOMPARE_INDEX_URL")  # fmt: skip
# Prints what the container has, in place of uv.
LOOK = """#!/bin/sh
env
echo "user $(id -u)"
grep -E 'CapEff|NoNewPrivs' /proc/self/status
echo "mounts $(grep -c . /proc/self/mountinfo)"
sed 's/^\\([^ ]* \\)\\{4\\}/mount /' /proc/self/mountinfo
touch /tfcompare/wheelhouse/x 2>&1
touch /x 2>&1
cat netrc
"""


@pytest.fixture
def wheelhouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel(folder, "plots", "2.0")
    return folder


@pytest.fixture
def base(docker_base: str) -> str:
    return docker_base.replace("{python}", "3.7")


def facts(**packages: str) -> EnvironmentFacts:
    return environment_facts(version="2.0.0", kind="docker", identity="x", lock="y", python="3.7.16", packages=packages)


def make(client: docker.DockerClient, base: str, options: EngineOptions, *requirements: str) -> layers.Layer:
    return layers.make_layer(requirements, facts(), options, UvInContainer(lambda: client, base, options))


def test_a_layer_is_made_in_a_container_and_belongs_to_the_caller(
    client: docker.DockerClient, base: str, wheelhouse: Path
) -> None:
    layer = make(client, base, EngineOptions(wheelhouse=wheelhouse), "plots")
    assert layer.folder, layer.refusal
    names = {path.relative_to(layer.folder).as_posix() for path in layer.folder.rglob("*") if path.is_file()}
    assert {"plots.py", layers.LOCK} <= names
    assert {path.stat().st_uid for path in layer.folder.rglob("*")} == {os.getuid()}
    assert sorted(path.name for path in layer.folder.parent.iterdir() if path.is_dir()) == [layer.folder.name]
    here = layers.make_layer(
        ("plots",), facts(), EngineOptions(wheelhouse=wheelhouse), layers.LocalUv(EngineOptions(wheelhouse=wheelhouse))
    )
    assert here.folder != layer.folder, "what a container made is not taken for what was made here"
    left = client.api.containers(all=True, filters={"label": f"tfcompare.run={RUN}"})
    assert not [entry for entry in left if entry["Labels"][OWNER_LABEL].endswith(f":{os.getpid()}")]


def test_a_source_package_is_refused_and_runs_neither_here_nor_there(
    client: docker.DockerClient, base: str, wheelhouse: Path, tmp_path: Path
) -> None:
    source(wheelhouse, "evilpkg", "1.0", tmp_path / "marker")
    layer = make(client, base, EngineOptions(wheelhouse=wheelhouse), "evilpkg")
    assert "evilpkg" in layer.refusal
    assert not (tmp_path / "marker").exists()


@pytest.fixture
def looked(
    client: docker.DockerClient, base: str, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """What a program in place of uv sees in the container."""
    program, work = tmp_path / "uv", tmp_path / "cache" / "work"
    program.write_text(LOOK)
    program.chmod(0o755)
    work.mkdir(parents=True)
    monkeypatch.setattr(uv, "find_uv", lambda: str(program))
    for name in PLANTED:
        monkeypatch.setenv(name, f"planted-{name}")
    logins = "machine index.invalid login me password mine\nmachine other.invalid login me password other-secret\n"
    (tmp_path / "netrc").write_text(logins)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:1")
    options = EngineOptions(wheelhouse=wheelhouse, index_url="https://index.invalid/simple")
    return UvInContainer(lambda: client, base, options).run((), work, 60)


def test_the_container_of_a_resolver_has_the_index_and_nothing_else_of_the_caller(looked: str) -> None:
    variables = dict(line.partition("=")[::2] for line in looked.splitlines() if re.match(r"[A-Z_]+=", line))
    assert not variables.keys() & {*PLANTED}
    assert "planted-" not in looked
    assert variables["UV_DEFAULT_INDEX"] == "https://index.invalid/simple"
    assert variables["UV_FIND_LINKS"] == uv_container.WHEELHOUSE
    assert variables["HTTPS_PROXY"] == "http://proxy.invalid:1"
    assert "machine index.invalid login me password mine" in looked
    assert "other-secret" not in looked
    assert f"user {security.find_user()[0]}" in looked.splitlines()
    assert "CapEff:\t0000000000000000" in looked
    assert "NoNewPrivs:\t1" in looked
    assert looked.count("Read-only file system") == 2
    places = re.findall(r"^mount (\S+) (\S+)", looked, re.MULTILINE)
    own = {
        place: options.split(",")[0] for place, options in places if place.startswith(("/tfcompare", "/root", "/home"))
    }
    assert own == {uv_container.WORK: "rw", uv_container.WHEELHOUSE: "ro"}
    assert not [place for place, _ in places if place.endswith(".sock")]


def test_workloads_with_requirements_run_in_containers_and_a_source_package_is_one_refused_row(
    tfcompare: str, stub_base: str, stubs: object, wheelhouse: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    source(wheelhouse, "evilpkg", "1.0", tmp_path / "marker")
    (own / "needy.py").write_text(NEEDY.format("plots"))
    (own / "evil.py").write_text(NEEDY.format("evilpkg"))
    flags = ("--engine", "docker", "--rounds", "2", "--workload-folder", own, "--wheelhouse", wheelhouse)
    code, answer, stderr = compare(
        tfcompare, "--versions", "1.14,2.0", *flags, "--output", tmp_path / "run", env={"TFCOMPARE_BASE": stub_base}
    )
    assert code == 0, stderr
    outcomes = {(arm["workload"], arm["target"]): (arm["outcome"], arm["reason"] or "") for arm in answer["arms"]}
    for version in ("1.14.0", "2.0.0"):
        assert outcomes["needy", version] == ("measured", "")
        assert outcomes["evil", version][0] == "refused"
        assert "evilpkg" in outcomes["evil", version][1]
    assert not (tmp_path / "marker").exists()


def test_an_image_of_the_users_own_never_runs_the_resolver(docker_base: str, base: str) -> None:
    own = replace(facts(), details={"image": "evil"}, identity="sha256:evil")
    options = EngineOptions(base=docker_base)
    assert DockerEnvironment(Clients(), own, options, own_image=True).uv.image == base
    assert DockerEnvironment(Clients(), own, options).uv.image == "sha256:evil"
