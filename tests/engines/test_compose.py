"""docker-compose.yml: read by docker-compose, and its services really started. Of those for GPUs it is seen what the
engine is asked for, and that it refuses where there are none."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml

from orchestrator import catalog
from orchestrator.cli.images.build import USUAL
from orchestrator.engines.docker.client import connect_engine
from orchestrator.machine.host import host_facts
from tests.conftest import ROOT, run_command
from tests.engines.docker.conftest import until

IMAGES = "tfcompare-test-compose"
PROJECT = "tfcomparetest"
CARDS = [{"driver": "nvidia", "count": "all", "capabilities": ["gpu", "compute", "utility"]}]
TINY = ("--versions", "1.14,2.0", "--case", "power[style=eager]", "--rounds", "2", "--engine", "docker")

Compose = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def client(docker_base: str) -> Iterator[docker.DockerClient]:
    client = connect_engine()
    yield client
    client.close()


@pytest.fixture(scope="module")
def compose(docker_base: str, client: docker.DockerClient) -> Iterator[Compose]:
    """docker-compose in a project of its own, whose containers, volumes and names of images go with it."""
    command = ["docker-compose"] if shutil.which("docker-compose") else []
    if not command:
        pytest.skip("no docker-compose: apt-get install docker-compose")

    def compose(*words: str, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        env = {
            "COMPOSE_PROJECT_NAME": PROJECT,
            "TFCOMPARE_IMAGES": IMAGES,
            "TFCOMPARE_BASE": docker_base,
            "TFCOMPARE_NIGHTLY_BASE": docker_base.replace("{python}", "3.11"),
            **variables,
        }
        done = run_command(*command, "--file", ROOT / "docker-compose.yml", *words, env=env, timeout=1200)
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    yield compose
    compose("--profile", "cpu", "--profile", "gpu", "--profile", "images", "down", "--volumes", check=False)
    for image in client.images.list(name=IMAGES):
        for tag in image.tags:
            if tag.startswith(f"{IMAGES}:") and tag != f"{IMAGES}:nightly":
                client.images.remove(tag)


@pytest.fixture(scope="module")
def built(compose: Compose) -> Compose:
    """With the image of tfcompare itself, which stays for the next time, and those of the versions named."""
    compose("build", "nightly")
    compose("run", "--rm", "images")
    return compose


def services(compose: Compose, **variables: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(compose("config", **variables).stdout)["services"]
    return found


def test_every_usual_version_has_a_service_in_both_profiles(compose: Compose):
    found = services(compose)
    for version in catalog.resolve_versions(USUAL):
        short = catalog.minor(version.number)
        for name, profile in ((f"tf-{short}", "cpu"), (f"tf-{short}-gpu", "gpu")):
            assert found[name]["image"] == f"{IMAGES}:{version.number}-{profile}"
            assert found[name]["profiles"] == [profile]
    assert found["nightly"]["profiles"] == ["cpu"]
    assert found["nightly-gpu"]["profiles"] == ["gpu"]


def test_only_what_is_for_gpus_reserves_them(compose: Compose):
    for name, service in services(compose).items():
        reserved = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices")
        assert reserved == (CARDS if "gpu" in service["profiles"] else None), name


def test_a_version_runs_as_closed_up_as_in_a_run(compose: Compose):
    for name, service in services(compose).items():
        if name.startswith("tf-"):
            assert (service["network_mode"], service["read_only"], service["cap_drop"]) == ("none", True, ["ALL"])
            assert all(volume.endswith(":ro") for volume in service["volumes"])


def test_what_nights_measure_and_when_is_told_by_variables(compose: Compose):
    found = services(
        compose, TFCOMPARE_AT="04:30", TFCOMPARE_NIGHTLY="--versions nightly,2.13 --limit 4h", TZ="Asia/Tokyo"
    )
    assert found["nightly"]["command"] == "nightly serve --at 04:30 --versions nightly,2.13 --limit 4h"
    assert found["nightly-gpu"]["command"] == "nightly serve --at 04:30 --gpu --versions nightly,2.13 --limit 4h"
    assert found["nightly"]["environment"]["TZ"] == "Asia/Tokyo"


def test_every_version_works_in_its_service(built: Compose):
    for version in catalog.resolve_versions(USUAL):
        name = f"tf-{catalog.minor(version.number)}"
        done = built(
            "--profile", "cpu", "up", "--no-color", "--abort-on-container-exit", "--exit-code-from", name, name
        )
        assert f"TensorFlow {version.number} works on the CPU" in done.stdout + done.stderr


def test_code_of_ones_own_runs_in_a_version(built: Compose, tmp_path: Path):
    (tmp_path / "mine.py").write_text("import tensorflow as tf\nprint('mine', tf.__version__)\n")
    tmp_path.chmod(0o755)
    done = built("run", "--rm", "tf-2.0", "python", "mine.py", TFCOMPARE_CODE=str(tmp_path))
    assert "mine 2.0.0" in done.stdout


def test_the_engine_is_asked_for_gpus_and_refuses_where_there_are_none(built: Compose, client: docker.DockerClient):
    # What stands in for the images for GPUs, which are not built here.
    for version in catalog.resolve_versions(USUAL):
        client.images.get(f"{IMAGES}:{version.number}-cpu").tag(f"{IMAGES}:{version.number}-gpu")
    names = [*(f"tf-{catalog.minor(version.number)}-gpu" for version in catalog.resolve_versions(USUAL)), "nightly-gpu"]
    built("--profile", "gpu", "up", "--no-start", *names)
    for name in names:
        [made] = client.containers.list(
            all=True, filters={"label": [label(name), f"com.docker.compose.project={PROJECT}"]}
        )
        [request] = made.attrs["HostConfig"]["DeviceRequests"]
        assert (request["Driver"], request["Count"]) == ("nvidia", -1), name
        assert request["Capabilities"] == [["gpu", "compute", "utility"]], name
    if "nvidia" not in client.info()["Runtimes"]:
        done = built("--profile", "gpu", "up", names[0], check=False)
        assert done.returncode != 0
        assert 'could not select device driver "nvidia"' in done.stdout + done.stderr


def label(service: str) -> str:
    return f"com.docker.compose.service={service}"


@pytest.fixture
def nightly(built: Compose) -> Iterator[Compose]:
    """With nights waited for."""
    built("--profile", "cpu", "up", "--detach", "nightly")
    yield built
    built("--profile", "cpu", "rm", "--stop", "--force", "nightly")


def inside(compose: Compose, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return compose("exec", "-T", "nightly", *words, check=check)


def test_nights_are_waited_for_in_a_container_that_answers_and_ends_politely(
    nightly: Compose, client: docker.DockerClient
):
    def status() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            inside(nightly, "tfcompare", "nightly", "status", "--format", "json").stdout
        )
        return found

    # On a busy machine the service takes some seconds to begin.
    [one] = until(status, "the service to wait for its night")
    assert one["by"].startswith("`tfcompare nightly serve`")
    assert (one["at"], one["flags"], one["history"]) == (
        "02:00", ["--versions", "1.14,2.0,2.13", "--suite", "studies"], "/history"
    )  # fmt: skip
    assert inside(nightly, "tfcompare", "nightly", "status", "--quiet").returncode == 0
    [made] = client.containers.list(filters={"label": [label("nightly"), f"com.docker.compose.project={PROJECT}"]})
    assert made.attrs["Config"]["Healthcheck"]["Test"] == ["CMD", "tfcompare", "nightly", "status", "--quiet"]
    nightly("--profile", "cpu", "stop", "nightly")
    made.reload()
    assert made.attrs["State"]["ExitCode"] == 0
    said = made.logs().decode()
    assert "the next nightly run starts at " in said
    assert "stopped: no further nightly run starts" in said


def test_this_machine_is_the_same_to_the_history_in_a_container(nightly: Compose):
    code = "from orchestrator.machine.host import host_facts; print(host_facts()['id'])"
    assert inside(nightly, "python", "-c", code).stdout.strip() == host_facts()["id"]


@pytest.mark.long
def test_what_runs_in_the_container_measures_in_containers_beside_it(nightly: Compose):
    done = inside(nightly, "tfcompare", "run", *TINY, "--output", "/history/runs/tiny", "--format", "json")
    told = json.loads(done.stdout)
    assert {arm["outcome"] for arm in told["arms"]} == {"measured"}
    assert inside(nightly, "sh", "-c", "ls /history/runs/tiny/streams/*.arrow").returncode == 0


def test_a_folder_that_is_in_no_volume_is_refused(nightly: Compose):
    done = inside(nightly, "tfcompare", "run", *TINY, "--output", "/tmp/tiny", check=False)
    assert done.returncode == 6
    assert "the Docker engine does not see /tmp/tiny/results" in done.stderr


def test_a_night_in_the_container_is_kept_in_its_history(nightly: Compose):
    done = inside(nightly, "tfcompare", "nightly", "run", *TINY, check=False)
    assert done.returncode in (0, 1), done.stderr

    def status() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            inside(nightly, "tfcompare", "nightly", "status", "--format", "json").stdout
        )
        return found

    # On a busy machine the service takes some seconds to begin.
    [one] = until(status, "the service to wait for its night")
    assert (one["last"]["outcome"], one["wrong"]) == ("measured", [])
    again = inside(nightly, "tfcompare", "nightly", "run", *TINY)
    assert "was measured already" in again.stderr
