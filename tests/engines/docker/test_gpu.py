"""What --gpu asks of an engine, on machines without a GPU: a shim in place of NVIDIA's runtime tells what it was asked.

The GPU flavour of 1.14.0 is the real one, built in an engine of our own; 2.0.0's is 1.14.0's under another name, for
nothing is measured here.
"""

from contextlib import suppress
from pathlib import Path

import docker
import pytest

from orchestrator.engines import WorkerPlace, container, image
from orchestrator.engines.client import WorkerClient
from orchestrator.engines.container import ContainerChannel, Spec, create
from orchestrator.engines.docker import DockerEnvironment
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.suites import WORKLOADS
from tests.conftest import run_command
from tests.engines.docker.conftest import MakeEngine, PrivateEngine, base_image, version

GPU = ("run", "--engine", "docker", "--gpu", "--versions", "1.14,2.0", "--rounds", "2", "--suite", "smoke")
ASKED = {"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}


@pytest.fixture
def no_gpu(client: docker.DockerClient) -> None:
    if "nvidia" in client.info()["Runtimes"]:
        pytest.skip("this engine has a runtime named nvidia")


@pytest.mark.parametrize(
    ("request_flags", "words"),
    [
        ((), ("no runtime named nvidia", "nvidia-ctk", "--gpu-request device")),
        (("--gpu-request", "device"), ("could not select device driver", "[[gpu]]")),
    ],
)
@pytest.mark.usefixtures("no_gpu")
def test_engine_without_a_gpu_refuses_before_any_work(
    client: docker.DockerClient,
    tfcompare: str,
    docker_base: str,
    tmp_path: Path,
    request_flags: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    # A base that no other test uses: what is built from it would be seen.
    base_image(client, docker_base, "3.6").tag("tfcompare-test-base:gpu")
    try:
        done = run_command(
            tfcompare, *GPU, *request_flags, "--base", "tfcompare-test-base:gpu", "--out", tmp_path / "run"
        )
        full = version("1.14.0")
        recipe = image.recipe(client, full, full.on("gpu")[0], "tfcompare-test-base:gpu")
        assert image.existing(client, recipe) is None
    finally:
        client.api.remove_image("tfcompare-test-base:gpu")
    assert done.returncode == 4
    assert done.stdout == ""
    assert done.stderr.startswith("tfcompare: --gpu: this Docker engine ")
    for word in words:
        assert word in done.stderr
    assert not (tmp_path / "run").exists()


def test_device_probe_leaves_nothing_behind(client: docker.DockerClient, engine: MakeEngine) -> None:
    def dangling() -> set[str]:
        return {found.id for found in client.images.list(filters={"dangling": True}) if not found.history()[0]["Size"]}

    before = dangling()
    with suppress(EngineUnavailable):
        engine(gpu=True, gpu_request="device").check()
    assert dangling() <= before


def test_gpu_flavour_is_what_is_built(gpu_environment: DockerEnvironment) -> None:
    labels = gpu_environment.client.images.get(gpu_environment.facts.identity).labels
    assert labels["tfcompare.flavour"] == "gpu"
    assert labels["tfcompare.python"] == "3.6"
    listed = gpu_environment.client.containers.run(
        gpu_environment.facts.identity, ["python", "-m", "pip", "list"], network_mode="none", remove=True
    ).decode()
    assert "tensorflow-gpu       1.14.0" in listed


def test_runtime_is_asked_for_all_gpus_and_tensorflow_is_asked_what_it_sees(
    on_private: PrivateEngine, gpu_environment: DockerEnvironment, tmp_path: Path
) -> None:
    client = gpu_environment.client
    place = WorkerPlace(run="gpu", results=tmp_path, log=tmp_path / "log", own_workloads=None)
    started = gpu_environment.start(place, tmp_path / "stream.arrow")
    worker = WorkerClient(started.channel, "1.14.0")
    try:
        [entry] = client.api.containers(filters={"label": f"{container.RUN_LABEL}=gpu"})
        assert client.api.inspect_container(entry["Id"])["HostConfig"]["Runtime"] == "nvidia"
        look = client.api.exec_create(entry["Id"], ["env"])["Id"]
        assert set(client.api.exec_start(look).decode().splitlines()) >= ASKED
        log = on_private.shim_log
        assert f"create --bundle {on_private.root}" in log
        assert entry["Id"] in log
        asked_of_runtime = log.partition(entry["Id"])[2]
        for variable in ASKED:
            assert f'"{variable}"' in asked_of_runtime
        worker.hello(
            run="gpu", device="gpu", threads=None, folders=started.folders, results=started.results, timeout_s=60
        )
        assert worker.gpus(60) == []
    finally:
        worker.quit()


def test_gpu_that_tensorflow_does_not_see_ends_the_run(
    tfcompare: str, docker_base: str, on_private: PrivateEngine, gpu_environment: DockerEnvironment, tmp_path: Path
) -> None:
    done = run_command(tfcompare, *GPU, "--base", docker_base, "--out", tmp_path / "run")
    assert done.returncode == 4, done.stderr
    assert "sees no GPU inside its container" in done.stderr
    assert "nvidia-smi" in done.stderr
    assert f"1.14.0: ready ({gpu_environment.facts.details['tag']})" in done.stderr
    assert gpu_environment.client.api.containers(all=True) == []


def test_device_request_is_for_all_gpus_and_its_refusal_names_the_version(
    on_private: PrivateEngine, gpu_environment: DockerEnvironment, tmp_path: Path
) -> None:
    client = gpu_environment.client
    wanted = Spec(
        image=gpu_environment.facts.identity, version="1.14.0", run="device", workloads=WORKLOADS, own_workloads=None,
        results=tmp_path, gpu="device",
    )  # fmt: skip
    made = create(client, wanted)
    told = client.api.inspect_container(made)
    [request] = told["HostConfig"]["DeviceRequests"]
    assert (request["Count"], request["Capabilities"]) == (-1, [["gpu"]])
    assert told["HostConfig"]["Runtime"] == "runc"
    assert set(told["Config"]["Env"]) >= ASKED
    with pytest.raises(EnvironmentFailed, match=r"^1\.14\.0: its container does not start: could not select device"):
        ContainerChannel(client, made, "1.14.0", tmp_path / "log")
    assert client.api.containers(all=True) == []
