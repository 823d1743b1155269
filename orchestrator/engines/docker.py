"""Versions in Docker images, workers in hardened containers; the only engine with GPUs."""

import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

import docker
import requests
from docker.errors import APIError, DockerException

from orchestrator.catalog import lock_hash
from orchestrator.engines import EngineOptions, Started, WorkerPlace, container, image
from orchestrator.engines.setting import BuildLog
from orchestrator.errors import EngineUnavailable, EnvironmentFailed, UsageError
from orchestrator.model import EnvironmentFacts, Flavour, FlavourName, Version
from orchestrator.suites import WORKLOADS

PROBE_IMAGE = "tfcompare-probe:empty"


def connect(timeout_s: float = 60) -> docker.DockerClient:
    """A client of the engine that DOCKER_HOST or the default socket names; raises EngineUnavailable."""
    try:
        client = docker.from_env(timeout=timeout_s)
        client.ping()
    except (DockerException, requests.RequestException, OSError) as error:
        raise EngineUnavailable(
            f"no Docker engine answers ({_root_cause(error)}); start it, set DOCKER_HOST, or take --engine venv"
        ) from error
    return client


def _root_cause(error: BaseException) -> str:
    text = str(error)
    if "Permission denied" in text:
        return "permission denied on its socket: is this user in the docker group?"
    if "No such file" in text:
        return "its socket is not there"
    if "Connection refused" in text:
        return "its socket is there, but nobody listens"
    return text.splitlines()[0] if text else type(error).__name__


@dataclass(frozen=True)
class DockerEnvironment:
    client: docker.DockerClient
    facts: EnvironmentFacts
    options: EngineOptions

    def start(self, place: WorkerPlace, stream: Path) -> Started:
        spec = container.Spec(
            image=self.facts.identity,
            version=self.facts.version,
            run=place.run,
            workloads=WORKLOADS,
            own_workloads=place.own_workloads,
            results=place.results,
            gpu=self.options.gpu_request if self.options.gpu else None,
        )
        try:
            made = container.create(self.client, spec)
        except APIError as error:
            raise EnvironmentFailed(
                f"{self.facts.version}: its container could not be made: {error.explanation}"
            ) from error
        except (DockerException, requests.RequestException) as error:
            raise EngineUnavailable(f"the Docker engine stopped answering: {_root_cause(error)}") from error
        channel = container.ContainerChannel(self.client, made, self.facts.version, place.log)
        own = (f"{container.ROOT}/own",) if place.own_workloads else ()
        return Started(channel, (f"{container.ROOT}/workloads/suite", *own), f"{container.ROOT}/results/{stream.name}")


class DockerEngine:
    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._flavour: FlavourName = "gpu" if options.gpu else "cpu"
        self._ca_bundle = b""
        if options.ca_bundle:
            try:
                self._ca_bundle = options.ca_bundle.read_bytes()
            except OSError as error:
                raise UsageError(f"--ca-bundle {options.ca_bundle}: {error.strerror}") from error

    def check(self) -> str:
        client = connect()
        info = client.info()
        container.reap(client)
        if self._options.gpu:
            self._check_gpu(client, info)
        return f"Docker {info['ServerVersion']} on {info['OperatingSystem']}"

    def _check_gpu(self, client: docker.DockerClient, info: dict[str, object]) -> None:
        request = self._options.gpu_request
        runtimes = info.get("Runtimes")
        if request == "runtime" and not (isinstance(runtimes, dict) and "nvidia" in runtimes):
            raise EngineUnavailable(
                "--gpu: this Docker engine has no runtime named nvidia. Install the NVIDIA Container Toolkit and run "
                "`nvidia-ctk runtime configure --runtime=docker`, or ask for a device with --gpu-request device"
            )
        if request == "device" and (refusal := _device_refusal(client)):
            raise EngineUnavailable(
                f"--gpu: this Docker engine cannot hand out a GPU device ({refusal}). "
                "Install the NVIDIA Container Toolkit and restart Docker"
            )

    def outlook(self, version: Version) -> str:
        client = connect()
        made = image.recipe(client, version, self._choose(version), self._options.base)
        return f"ready ({made.tag})" if image.existing(client, made) else f"to be built from {made.base}"

    def prepare(self, version: Version, log: BuildLog) -> DockerEnvironment:
        # A client a version: they are prepared side by side, and a client's connections are not shared safely.
        client = connect()
        flavour = self._choose(version)
        made = image.recipe(client, version, flavour, self._options.base)
        try:
            identity = image.existing(client, made) or image.build(client, made, self._ca_bundle, log)
        except (DockerException, requests.RequestException) as error:
            raise EngineUnavailable(
                f"the Docker engine stopped answering while {version.number} was built: {_root_cause(error)}"
            ) from error
        facts = EnvironmentFacts(
            version=version.number,
            kind="docker",
            identity=identity,
            lock=lock_hash(flavour),
            python=flavour.python.number,
            details={"tag": made.tag, "base": made.base, "spec": made.spec, "flavour": flavour.name},
        )
        return DockerEnvironment(client, facts, self._options)

    def _choose(self, version: Version) -> Flavour:
        flavours = version.on(self._flavour)
        if not flavours:
            raise EnvironmentFailed(f"{version.number}: the table of versions has no {self._flavour} flavour of it")
        return flavours[0]

    def close(self) -> None:
        pass


def _device_refusal(client: docker.DockerClient) -> str:
    """What the engine says to a GPU request, asked with an image of nothing: with a GPU driver it only misses the
    program, without one it refuses the device first."""
    empty = io.BytesIO()
    with tarfile.open(fileobj=empty, mode="w"):
        pass
    client.api.import_image_from_data(empty.getvalue(), repository="tfcompare-probe", tag="empty")
    host_config = client.api.create_host_config(network_mode="none", **container.gpu_options("device"))
    made = client.api.create_container(PROBE_IMAGE, ["/none"], host_config=host_config)["Id"]
    try:
        client.api.start(made)
    except APIError as error:
        said = str(error.explanation)
        return said if "device driver" in said or "CDI" in said else ""
    finally:
        container.remove(client.api, made)
        client.images.remove(PROBE_IMAGE, force=True)
    return ""
