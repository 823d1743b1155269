"""What --gpu asks of an engine, on machines without a GPU: a shim in place of NVIDIA's runtime tells what it was asked,
and a program named nvidia-smi tells of GPUs.

The images hold a stub of TensorFlow, in an engine of our own; `make soak` builds the real one of 1.14.0.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from orchestrator.bundled import WORKLOADS
from orchestrator.engines import WorkerPaths
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import container, image, security
from orchestrator.engines.docker.container import ContainerChannel, Spec, create
from orchestrator.engines.docker.engine import DockerEngine, DockerEnvironment
from orchestrator.engines.worker.client import WorkerClient
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.machine.gpu import Gpu
from orchestrator.measure.round_range import first_rounds
from orchestrator.measure.run import measure_rounds
from orchestrator.measure.session import Session, make_manifest
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions, check_request
from orchestrator.results.past import Progress
from orchestrator.results.run_folder import RunFolder
from tests.conftest import run_command
from tests.engines.docker.conftest import (
    OWN,
    STUB_BASE,
    STUBS,
    MakeEngine,
    PrivateEngine,
    base_image,
    build_stubs,
    recipe_of,
    version,
)
from tests.support import libcuda
from tests.support.builders import target
from tools import gpu_check

GPU = ("run", "--engine", "docker", "--gpu", "--versions", "1.14,2.0", "--rounds", "2", "--suite", "smoke")
ASKED = {"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}
V100 = Gpu(0, "GPU-4d6a4d6a", "Tesla V100-SXM2-16GB", "7.0", "550.54.15", 16_384, 300, True, None)
SECOND = replace(V100, index=1, uuid="GPU-9f319f31")
T4 = replace(V100, name="Tesla T4", capability="7.5", uuid=f"GPU-{libcuda.UUID}")


@pytest.fixture
def cards(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The variables of a machine whose nvidia-smi tells of these GPUs."""

    def make(*told: Gpu) -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir()
        lines = "".join(
            f"{card.index}, {card.uuid}, {card.name}, {card.capability}, {card.driver}, {card.memory_mb}, "
            f"{card.power_limit_w}, Enabled, [N/A]\n"
            for card in told
        )
        (folder / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<'END'\n{lines}END\n")
        (folder / "nvidia-smi").chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}", "TFCOMPARE_CACHE": str(tmp_path / "cache")}

    return make


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What drivers make of PTX is kept here."""
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tfcompare" / "jit"


@pytest.fixture
def no_gpu(client: docker.DockerClient) -> None:
    if "nvidia" in client.info()["Runtimes"]:
        pytest.skip("this engine has a runtime named nvidia")


@pytest.mark.parametrize(
    ("request_flags", "words"),
    [
        ((), ("no runtime named nvidia", "nvidia-ctk", "--gpu-request device")),
        (("--gpu-request", "device"), ("could not select device driver", "[[gpu]]")),
        (("--gpu-request", "cdi"), ("by CDI", "Docker 25", "daemon.json")),
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
            tfcompare, *GPU, *request_flags, "--base", "tfcompare-test-base:gpu", "--output", tmp_path / "run"
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


@pytest.mark.long
@pytest.mark.timeout(900)
def test_gpu_flavour_is_what_is_built(real_gpu_environment: DockerEnvironment) -> None:
    client, built = real_gpu_environment.client, real_gpu_environment.facts.identity
    labels = client.images.get(built).labels
    assert labels["tfcompare.flavour"] == "gpu"
    assert labels["tfcompare.python"] == "3.6"
    listed = client.containers.run(built, ["python", "-m", "pip", "list"], network_mode="none", remove=True).decode()
    assert re.search(r"^tensorflow-gpu +1\.14\.0$", listed, re.MULTILINE)
    # What XLA calls, which TensorFlow's own images lack.
    assert re.search(r"^nvidia-cuda-nvcc-cu11 +11\.8", listed, re.MULTILINE)


def test_runtime_is_asked_for_all_gpus_and_tensorflow_is_asked_what_it_sees(
    on_private: PrivateEngine, gpu_environment: DockerEnvironment, tmp_path: Path
) -> None:
    client = gpu_environment.client
    paths = WorkerPaths(run="gpu", results=tmp_path, log=tmp_path / "log", own_workloads=None)
    started = gpu_environment.start(paths, tmp_path / "stream.arrow")
    worker = WorkerClient(started.channel, target("1.14.0"))
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
        assert worker.gpus(60).gpus == ()
    finally:
        worker.quit()


def test_gpu_that_tensorflow_does_not_see_ends_the_run(
    tfcompare: str, stub_base: str, on_private: PrivateEngine, gpu_environment: DockerEnvironment, tmp_path: Path
) -> None:
    done = run_command(tfcompare, *GPU, "--base", stub_base, "--output", tmp_path / "run")
    assert done.returncode == 4, done.stderr
    assert "sees no GPU inside its container" in done.stderr
    assert "libcuda.so.1 was not provided" in done.stderr
    assert f"1.14.0: ready ({gpu_environment.facts.details['tag']})" in done.stderr
    assert gpu_environment.client.api.containers(all=True) == []


def test_an_image_that_sees_no_gpu_trains_no_step(
    tfcompare: str, stub_base: str, on_private: PrivateEngine, gpu_environment: DockerEnvironment
) -> None:
    done = run_command(tfcompare, "images", "verify", "1.14", "--gpu", "--base", stub_base)
    assert done.returncode == 4, done.stderr
    assert f"verifying {gpu_environment.facts.details['tag']}" in done.stderr
    assert "sees no GPU inside its container" in done.stderr


@pytest.mark.parametrize(("code", "words"), [(34, "is a stub from the image"), (802, "fabric manager")])
def test_what_the_driver_says_inside_a_container_is_the_reason(
    on_private: PrivateEngine, gpu_environment: DockerEnvironment, tmp_path: Path, code: int, words: str
) -> None:
    """A library in place of the driver's, as the toolkit would have put it in."""
    library = libcuda.build(tmp_path / "cuda")
    variables = f"LD_LIBRARY_PATH=/opt/cuda STUB_CUINIT={code}"
    lines = (f"FROM {gpu_environment.facts.identity}", "COPY libcuda.so.1 /opt/cuda/", f"ENV {variables}")
    (library / "Dockerfile").write_text("\n".join(lines))
    client = gpu_environment.client
    built, _ = client.images.build(path=str(library), rm=True)
    assert built.id
    environment = replace(gpu_environment, facts=replace(gpu_environment.facts, identity=built.id))
    results = tmp_path / "results"
    results.mkdir()
    paths = WorkerPaths(run="blind", results=results, log=tmp_path / "log", own_workloads=None)
    started = environment.start(paths, tmp_path / "stream.arrow")
    worker = WorkerClient(started.channel, target("1.14.0"))
    try:
        worker.hello(
            run="blind", device="gpu", gpus=1, threads=None, folders=started.folders, results=started.results,
            timeout_s=60,
        )  # fmt: skip
        seen = worker.gpus(120)
    finally:
        worker.quit()
        client.api.remove_image(built.id, force=True)
    assert seen.gpus == ()
    assert seen.driver.code == code
    assert words in str(seen.driver)


def test_what_a_toolkit_answers_is_said_before_anything_is_built(
    tfcompare: str, docker_base: str, on_private: PrivateEngine, tmp_path: Path
) -> None:
    """One that is set up for CDI refuses what a hook asks for, in words of its own."""
    refusal = on_private.root / "refusal"
    words = "Using requested mode 'cdi'\ninvoking the NVIDIA Container Runtime Hook directly is not supported"
    refusal.write_text(json.dumps({"level": "error", "msg": words}))
    try:
        done = run_command(tfcompare, *GPU, "--base", docker_base, "--output", tmp_path / "run")
    finally:
        refusal.unlink()
    assert done.returncode == 4, done.stderr
    assert "cannot hand out a GPU with --gpu-request runtime" in done.stderr
    assert "ask for it with --gpu-request cdi" in done.stderr
    assert not (tmp_path / "run").exists()


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


def test_device_request_names_its_gpus_and_cdi_names_them_in_its_own_way(
    on_private: PrivateEngine, gpu_environment: DockerEnvironment, tmp_path: Path
) -> None:
    client = gpu_environment.client
    wanted = Spec(
        image=gpu_environment.facts.identity, version="1.14.0", run="device", workloads=WORKLOADS, own_workloads=None,
        results=tmp_path, gpu="device", devices=("GPU-4d6a4d6a",),
    )  # fmt: skip
    found = {}
    for spec in (wanted, replace(wanted, gpu="cdi", devices=("nvidia.com/gpu=0",))):
        made = create(client, spec)
        told = client.api.inspect_container(made)
        [request] = told["HostConfig"]["DeviceRequests"]
        [visible] = [line for line in told["Config"]["Env"] if line.startswith("NVIDIA_VISIBLE_DEVICES=")]
        found[spec.gpu] = (request["Driver"], request["DeviceIDs"], request["Count"], visible.partition("=")[2])
        client.api.remove_container(made)
    assert found == {
        "device": ("", ["GPU-4d6a4d6a"], 0, "GPU-4d6a4d6a"),
        "cdi": ("cdi", ["nvidia.com/gpu=0"], 0, "void"),
    }


def on_cards(environment: DockerEnvironment, *cards: Gpu) -> DockerEnvironment:
    options = replace(environment.options, chosen_gpus=cards)
    return replace(environment, options=options, devices=tuple(card.key for card in cards))


def test_runtime_is_asked_for_gpus_by_uuid_and_code_that_the_driver_makes_is_kept(
    on_private: PrivateEngine, gpu_environment: DockerEnvironment, own_cache: Path, tmp_path: Path
) -> None:
    """One folder an image and compute capability, writable for who the container runs as, and there after it."""
    client = gpu_environment.client
    paths = WorkerPaths(run="kept", results=tmp_path, log=tmp_path / "log", own_workloads=None)
    started = on_cards(gpu_environment, V100, SECOND).start(paths, tmp_path / "stream.arrow")
    try:
        [entry] = client.api.containers(filters={"label": f"{container.RUN_LABEL}=kept"})
        write = ["sh", "-c", "echo code > $CUDA_CACHE_PATH/made && echo $CUDA_CACHE_PATH $CUDA_CACHE_MAXSIZE"]
        look = client.api.exec_create(entry["Id"], write)["Id"]
        assert client.api.exec_start(look).decode() == "/tfcompare/jit 4294967296\n"
        assert '"NVIDIA_VISIBLE_DEVICES=GPU-4d6a4d6a,GPU-9f319f31"' in on_private.shim_log.partition(entry["Id"])[2]
    finally:
        started.channel.close()
    [folder] = own_cache.iterdir()
    image_id = gpu_environment.facts.identity.removeprefix("sha256:")
    assert folder.name.startswith(f"{image_id[:12]}-")
    assert (folder / "made").read_text() == "code\n"
    assert (folder / "made").stat().st_uid == (os.getuid() or security.UNPRIVILEGED)


def test_a_run_records_its_gpu_and_says_what_was_asked_for_and_not_seen(
    tfcompare: str,
    stub_base: str,
    on_private: PrivateEngine,
    gpu_environment: DockerEnvironment,
    cards: Callable[..., dict[str, str]],
    tmp_path: Path,
) -> None:
    here = cards(V100, SECOND)
    done = run_command(tfcompare, *GPU, "--gpus", "1", "--base", stub_base, "--output", tmp_path / "run", env=here)
    assert done.returncode == 4, done.stderr
    assert "sees no GPU inside its container, where GPU 1 (Tesla V100-SXM2-16GB) GPU-9f319f31" in done.stderr
    assert '"NVIDIA_VISIBLE_DEVICES=GPU-9f319f31"' in on_private.shim_log
    plan = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert (plan["device"], plan["gpus"]) == ("gpu", ["GPU-9f319f31"])
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    details = manifest["environments"]["1.14.0"]["details"]
    assert (details["gpu_request"], details["gpus"]) == ("runtime", "GPU-9f319f31")
    assert "GPU clocks and temperatures were not watched" in "".join(manifest["notes"])
    assert gpu_environment.client.api.containers(all=True) == []


def test_a_card_that_a_version_fails_on_is_refused_before_anything_is_built(
    client: docker.DockerClient,
    tfcompare: str,
    docker_base: str,
    cards: Callable[..., dict[str, str]],
    tmp_path: Path,
) -> None:
    base_image(client, docker_base, "3.6").tag("tfcompare-test-base:cards")
    here = cards(replace(V100, name="NVIDIA A100", capability="8.0"))
    flags = (*GPU, "--base", "tfcompare-test-base:cards", "--output", tmp_path / "run")
    try:
        done = run_command(tfcompare, *flags, env=here)
        full = version("1.14.0")
        recipe = image.recipe(client, full, full.on("gpu")[0], "tfcompare-test-base:cards")
        assert image.existing(client, recipe) is None
    finally:
        client.api.remove_image("tfcompare-test-base:cards")
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    for word in (
        "1.14.0 on GPU 0 (NVIDIA A100)",
        "known to fail",
        "the nearest release that runs on it is 2.4.4",
        "--versions 1.15-nv,2.2-nv",
        "--allow-unsupported-gpu",
    ):
        assert word in done.stderr
    assert not (tmp_path / "run").exists()


def alive(client: docker.DockerClient, run: str, since: float) -> int:
    """How many containers of a run were alive at once, at most."""
    label = f"{container.RUN_LABEL}={run}"
    told = client.api.events(since=since, until=time.time() + 1, filters={"label": label}, decode=True)
    here, most = 0, 0
    for event in told:
        here += {"start": 1, "die": -1}.get(event["Action"], 0)
        most = max(most, here)
    return most


@pytest.mark.parametrize(("exclusive", "most"), [(True, 1), (False, 2)])
def test_versions_hold_the_gpu_in_turn_where_that_is_asked_for(
    private_stubs: PrivateEngine,
    on_private: PrivateEngine,
    stub_base: str,
    tmp_path: Path,
    exclusive: bool,
    most: int,
) -> None:
    """Real containers of the runtime named nvidia; they measure on the CPU, for there is nothing else here."""
    client = on_private.client()
    build_stubs(client, tmp_path / "gpu", "gpu")
    places = EngineOptions(gpu=True, exclusive=exclusive, base=stub_base, chosen_gpus=(V100,))
    options = RunOptions(
        versions=("1.14", "2.0"), own_workloads=OWN, selected=("naps[which=first]",), rounds=2, environments=places
    )
    asked = check_request(options)
    plan = replace(asked.freeze("docker"), device="cpu")
    engine = DockerEngine(places)
    log = BuildLog(tmp_path / "build.log")
    environments = {target(full.number): engine.prepare(full, log) for full in asked.selection.versions}
    folder = RunFolder.create(tmp_path / "run")
    folder.write_plan(plan)
    folder.write_manifest(make_manifest(asked, environments))
    begun = time.time()
    try:
        session = Session(plan, environments, folder, own_workloads=OWN)
        error = measure_rounds(session, first_rounds(plan), Progress()).error
    finally:
        engine.close()
    assert error is None
    assert not any(stream.live for stream in folder.worker_output.streams())
    assert alive(client, plan.run, begun) == most
    client.close()
    assert on_private.shim_log.count('"NVIDIA_VISIBLE_DEVICES=GPU-4d6a4d6a"') >= 2


@pytest.fixture
def stub_card(
    private_stubs: PrivateEngine,
    on_private: PrivateEngine,
    cards: Callable[..., dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """A machine with a GPU that nvidia-smi shows, and that stubs of the driver and of TensorFlow see in containers."""
    client, library = on_private.client(), libcuda.build(tmp_path / "cuda")
    build_stubs(client, tmp_path / "gpu", "gpu")
    tags = [recipe_of(client, number, "gpu", STUB_BASE).tag for number in STUBS]
    for tag in tags:
        variables = "LD_LIBRARY_PATH=/opt/cuda STUB_GPUS=1 STUB_CUDA_DEVICES=1"
        lines = (f"FROM {tag}", "COPY libcuda.so.1 /opt/cuda/", f"ENV {variables}")
        (library / "Dockerfile").write_text("\n".join(lines))
        client.images.build(path=str(library), tag=tag, rm=True)
    for name, value in cards(T4).items():
        monkeypatch.setenv(name, value)
    yield
    for tag in tags:
        client.images.remove(tag, force=True)
    client.close()


@pytest.mark.long
@pytest.mark.usefixtures("stub_card")
def test_the_steps_of_the_gpu_check_that_measure_pass_on_a_card(
    tfcompare: str, stub_base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a run asks of a GPU and records of it, in real containers."""
    few = ("--workload-folder", str(OWN), "--case", "naps[which=first]", "--rounds")
    monkeypatch.setattr(gpu_check, "STEP", (*few, "2"))
    monkeypatch.setattr(gpu_check, "USUAL", (*few, "4"))
    check = gpu_check.Check(tmp_path / "check", tfcompare, base=stub_base, versions=("1.14", "2.0"))
    on_the_card = f"all replicates on Tesla T4 {T4.uuid}"
    told = gpu_check.compare_twins(check)
    assert told.startswith("the control arm against its twin: ")
    assert told.endswith(on_the_card)
    assert gpu_check.draw(check)
    assert gpu_check.kill_worker(check) == on_the_card
    assert gpu_check.take_turns(check) == on_the_card
    plan = json.loads((tmp_path / "check" / "runs" / "exclusive" / "plan.json").read_text())
    assert (plan["gpus"], plan["exclusive"], plan["isolation"]) == ([T4.uuid], True, "container")
