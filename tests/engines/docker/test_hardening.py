"""What a worker's container may do, told from inside it and by the engine."""

import io
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from orchestrator import contract
from orchestrator.bundled import WORKLOADS
from orchestrator.engines.docker import container, limits, security
from orchestrator.engines.docker.client import asking
from orchestrator.engines.docker.container import ContainerChannel, Spec, create
from orchestrator.engines.docker.engine import DockerEnvironment
from orchestrator.errors import EnvironmentFailed
from tests.conftest import run_command
from tests.engines.docker.conftest import OWN

NOBODY = 65534

# Run inside, beside the worker; old enough for its Python.
LOOK = """
import json, os, resource, socket
def writes(folder):
    path = os.path.join(folder, "look")
    try:
        open(path, "w").close()
    except OSError as error:
        return error.strerror
    return "yes"
def connects(address):
    with socket.socket() as probe:
        probe.settimeout(5)
        try:
            probe.connect(address)
        except OSError as error:
            return error.strerror
    return "yes"
def limit(name):
    for path in ("/sys/fs/cgroup/" + name[0], "/sys/fs/cgroup/" + name[1]):
        if os.path.exists(path):
            return open(path).read().strip()
status = dict(line.split(":", 1) for line in open("/proc/1/status").read().splitlines())
print(json.dumps({
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "connects": connects(("192.0.2.1", 80)),
    "writes": {folder: writes(folder) for folder in FOLDERS},
    "ids": [os.getuid(), os.geteuid(), os.getgid()],
    "status": {key: status[key].strip() for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")},
    "pids": limit(("pids.max", "pids/pids.max")),
    "memory": limit(("memory.max", "memory/memory.limit_in_bytes")),
    "rlimits": {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in ("FSIZE", "CORE")},
    "scratch": os.statvfs("/tmp").f_blocks * os.statvfs("/tmp").f_frsize,
    "own": os.listdir("/tfcompare/own"),
    "files": sorted(os.listdir("/tfcompare")),
}))
"""
FOLDERS = (
    "/", "/etc", "/opt/tfcompare", "/tmp", "/tfcompare", "/tfcompare/results", "/tfcompare/workloads", "/tfcompare/own"
)  # fmt: skip


def spec(environment: DockerEnvironment, results: Path) -> Spec:
    return Spec(
        image=environment.facts.identity, version="1.14.0", run="hardening", workloads=WORKLOADS, own_workloads=OWN,
        results=results, gpu=None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def environment(environments: dict[str, DockerEnvironment]) -> DockerEnvironment:
    return environments["1.14.0"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def worker(environment: DockerEnvironment, results: Path) -> Iterator[str]:
    """The container of a worker that waits for orders."""
    wanted = spec(environment, results)
    made = create(environment.client, wanted)
    channel = ContainerChannel(environment.client, made, "1.14.0", results.with_name("log"))
    yield made
    channel.close()


@pytest.fixture(scope="module")
def seen(client: docker.DockerClient, worker: str) -> dict[str, Any]:
    look = client.api.exec_create(worker, ["python3", "-c", LOOK.replace("FOLDERS", repr(FOLDERS))])["Id"]
    output = client.api.exec_start(look)
    assert client.api.exec_inspect(look)["ExitCode"] == 0, output
    found: dict[str, Any] = json.loads(output)
    return found


@pytest.fixture(scope="module")
def host_config(client: docker.DockerClient, worker: str) -> dict[str, Any]:
    config: dict[str, Any] = client.api.inspect_container(worker)["HostConfig"]
    return config


def test_there_is_no_network(seen: dict[str, Any], host_config: dict[str, Any]) -> None:
    assert seen["interfaces"] == ["lo"]
    assert seen["connects"] == "Network is unreachable"
    assert host_config["NetworkMode"] == "none"


def test_only_results_and_scratch_can_be_written(seen: dict[str, Any], results: Path) -> None:
    read_only = "Read-only file system"
    assert seen["writes"] == {
        **dict.fromkeys(FOLDERS, read_only),
        "/tmp": "yes",
        "/tfcompare/results": "yes",
    }
    assert (results / "look").exists()
    assert not (OWN / "look").exists()


def test_worker_is_who_its_caller_is_and_never_root(seen: dict[str, Any], results: Path) -> None:
    user, group = (os.getuid(), os.getgid()) if os.getuid() else (security.UNPRIVILEGED, security.UNPRIVILEGED)
    assert seen["ids"] == [user, user, group]
    assert (results / "look").stat().st_uid == user


def test_worker_has_no_privilege_and_gains_none(seen: dict[str, Any], host_config: dict[str, Any]) -> None:
    none = "0" * 16
    assert seen["status"] == {
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd"), none), "NoNewPrivs": "1", "Seccomp": "2",
    }  # fmt: skip
    assert host_config["Privileged"] is False


def test_processes_and_memory_are_limited(seen: dict[str, Any], host_config: dict[str, Any], worker: str) -> None:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert seen["pids"] == str(host_config["PidsLimit"]) == str(limits.share_processes(1))
    assert 0 < int(seen["memory"]) < total
    # The kernel counts in pages.
    assert 0 <= host_config["Memory"] - int(seen["memory"]) < os.sysconf("SC_PAGE_SIZE")
    assert host_config["MemorySwap"] == host_config["Memory"]


def test_files_and_scratch_are_limited(seen: dict[str, Any], host_config: dict[str, Any]) -> None:
    assert seen["rlimits"] == {"FSIZE": [contract.LARGEST_FILE] * 2, "CORE": [0, 0]}
    assert abs(host_config["Memory"] // 2 - seen["scratch"]) < os.sysconf("SC_PAGE_SIZE")


def test_workloads_of_the_user_are_there(seen: dict[str, Any]) -> None:
    assert set(seen["own"]) >= {"hungry.py", "naps.py"}
    assert seen["files"] == ["own", "results", "workloads"]


def test_nothing_of_a_gpu_is_asked_for_without_gpu(host_config: dict[str, Any]) -> None:
    assert host_config["Runtime"] == "runc"
    assert not host_config["DeviceRequests"]


def test_engine_writes_no_log_of_what_the_worker_says(host_config: dict[str, Any]) -> None:
    assert host_config["LogConfig"]["Type"] == "none"


def test_folder_that_the_engine_does_not_see_is_an_error_and_not_an_empty_folder(
    environment: DockerEnvironment, tmp_path: Path
) -> None:
    wanted = spec(environment, tmp_path / "elsewhere")
    with pytest.raises(EnvironmentFailed, match="does not see this machine's folders"), asking("", EnvironmentFailed):
        create(environment.client, wanted)
    assert not (tmp_path / "elsewhere").exists()


def test_folder_with_a_colon_in_its_name_can_hold_results(environment: DockerEnvironment, tmp_path: Path) -> None:
    (tmp_path / "run:1").mkdir()
    made = create(environment.client, spec(environment, tmp_path / "run:1"))
    mounts = environment.client.api.inspect_container(made)["Mounts"]
    container.remove_container(environment.client.api, made)
    assert str(tmp_path / "run:1") in [mount["Source"] for mount in mounts]


@pytest.fixture
def others_folder() -> Iterator[Path]:
    """A folder of another user; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="tfcompare-"))
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="it takes root to be somebody else")
def test_caller_without_root_measures_and_owns_the_results(
    tfcompare: str, docker_base: str, environments: dict[str, DockerEnvironment], others_folder: Path
) -> None:
    sock = Path("/var/run/docker.sock")
    if "DOCKER_HOST" in os.environ or not sock.stat().st_mode & stat.S_IWGRP:
        pytest.skip("another user may not use this engine's socket")
    # This interpreter may lie where only root can read: that one right is kept.
    somebody_else = [
        "setpriv", f"--reuid={NOBODY}", f"--regid={sock.stat().st_gid}", "--clear-groups",
        "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
    ]  # fmt: skip
    out = others_folder / "run"
    done = run_command(
        *somebody_else, tfcompare, "run", "--versions", "1.14,2.0", "--engine", "docker", "--base", docker_base,
        "--rounds", "2", "--case", "power[style=function]", "--format", "json", "--quiet", "--output", out,
        env={"HOME": str(others_folder)}, cwd=others_folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {arm["outcome"] for arm in json.loads(done.stdout)["arms"]} == {"measured"}
    streams = list((out / "streams").iterdir())
    parts = {f"{version}-{part}.arrow" for version in ("1.14.0", "2.0.0") for part in (1, 2)}
    assert {stream.name for stream in streams} == parts
    assert {stream.stat().st_uid for stream in streams} == {NOBODY}


def test_a_volume_that_an_image_asks_for_is_memory_and_not_the_engines_disk(
    environment: DockerEnvironment, results: Path, client: docker.DockerClient
) -> None:
    wanted = '["/vol/./one", "/tmp", "/tfcompare/results", "/tfcompare/workloads"]'
    text = f"FROM {environment.facts.identity}\nVOLUME {wanted}\n"
    built, _ = client.images.build(fileobj=io.BytesIO(text.encode()), rm=True)
    made = create(client, replace(spec(environment, results), image=str(built.id)))
    try:
        found = client.api.inspect_container(made)
        assert {mount["Type"] for mount in found["Mounts"]} == {"bind"}
        assert found["HostConfig"]["Tmpfs"].keys() == {"/tmp", "/vol/one"}
        client.api.start(made)
        kinds = client.api.exec_start(
            client.api.exec_create(made, ["sh", "-c", "grep -E ' /vol| /tfcompare/results' /proc/self/mounts"])["Id"]
        )
        assert b"tmpfs /vol/one tmpfs rw,nosuid,nodev" in kinds
        assert b"tmpfs /tfcompare" not in kinds
    finally:
        client.api.remove_container(made, force=True, v=True)
        client.images.remove(str(built.id), force=True)
