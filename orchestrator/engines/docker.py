"""Versions in Docker images, workers in hardened containers; the only engine with GPUs."""

import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException

from orchestrator.catalog import lock_hash
from orchestrator.engines import EngineOptions, Started, WorkerPlace, container, image
from orchestrator.engines.setting import BuildLog
from orchestrator.errors import EngineUnavailable, EnvironmentFailed, TfCompareError, UsageError
from orchestrator.model import EnvironmentFacts, Flavour, FlavourName, Version
from orchestrator.suites import WORKLOADS

# docker-py wraps the errors of plain requests, and lets those of streams through as they are.
UNANSWERED = (DockerException, requests.RequestException, urllib3.exceptions.HTTPError)


def connect(timeout_s: float = 60) -> docker.DockerClient:
    """A client of the engine that DOCKER_HOST or the default socket names; raises EngineUnavailable."""
    try:
        client = docker.from_env(timeout=timeout_s)
        client.ping()
    except (*UNANSWERED, OSError) as error:
        raise EngineUnavailable(
            f"no Docker engine answers ({_root_cause(error)}); start it, set DOCKER_HOST, or take --engine venv"
        ) from error
    return client


@contextmanager
def asking(doing: str, refused: type[TfCompareError]) -> Iterator[None]:
    """Raises `refused` where the engine says no, and EngineUnavailable where it says nothing any more."""
    try:
        yield
    except APIError as error:
        said = str(error.explanation or error)
        if "bind source path does not exist" in said:
            said += "; the engine does not see this machine's folders, so DOCKER_HOST must name one that runs here"
        raise refused(f"{doing}: the Docker engine refuses: {said}") from error
    except UNANSWERED as error:
        raise EngineUnavailable(f"{doing}: the Docker engine stopped answering ({_root_cause(error)})") from error


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
            cpus=self.options.cpus,
            memory_mb=self.options.memory_mb,
        )
        with asking(f"{self.facts.version}: its container could not be made", EnvironmentFailed):
            made = container.create(self.client, spec)
        channel = container.ContainerChannel(self.client, made, self.facts.version, place.log)
        own = (f"{container.ROOT}/own",) if place.own_workloads else ()
        return Started(channel, (f"{container.ROOT}/workloads/suite", *own), f"{container.ROOT}/results/{stream.name}")


class DockerEngine:
    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._flavour: FlavourName = "gpu" if options.gpu else "cpu"
        self._clients: list[docker.DockerClient] = []
        self._ca_bundle = b""
        if options.ca_bundle:
            try:
                self._ca_bundle = options.ca_bundle.read_bytes()
            except OSError as error:
                raise UsageError(f"--ca-bundle {options.ca_bundle}: {error.strerror}") from error

    def check(self) -> str:
        with closing(connect()) as client, asking("looking at the engine", EngineUnavailable):
            info = client.info()
            self._options.check_limits(range(info["NCPU"]), info["MemTotal"] // 2**20)
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
        with closing(connect()) as client, asking(version.number, EnvironmentFailed):
            made = image.recipe(client, version, self._choose(version), self._options.base)
            return f"ready ({made.tag})" if image.existing(client, made) else f"to be built from {made.base}"

    def prepare(self, version: Version, log: BuildLog) -> DockerEnvironment:
        # A client a version: they are prepared side by side, and a client's connections are not shared safely.
        flavour = self._choose(version)
        client = connect()
        self._clients.append(client)
        with asking(f"{version.number}: its image could not be had", EnvironmentFailed):
            if self._options.base:
                image.fetch(client, version.number, image.base_reference(flavour, self._options.base), log)
            made = image.recipe(client, version, flavour, self._options.base)
            identity = image.existing(client, made) or image.build(client, made, self._ca_bundle, log)
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
        for client in self._clients:
            client.close()


def _device_refusal(client: docker.DockerClient) -> str:
    """What the engine says to a GPU request, asked with an image of nothing: with a GPU driver it only misses the
    program, without one it refuses the device first."""
    empty = io.BytesIO()
    with tarfile.open(fileobj=empty, mode="w"):
        pass
    # Without a name: two runs that ask at the same time have an image each.
    imported = client.api.import_image_from_data(empty.getvalue())
    image_id = json.loads(imported.splitlines()[-1])["status"]
    made = ""
    try:
        host_config = client.api.create_host_config(network_mode="none", **container.gpu_options("device"))
        made = client.api.create_container(image_id, ["/none"], host_config=host_config)["Id"]
        client.api.start(made)
    except APIError as error:
        said = str(error.explanation)
        return said if any(word in said for word in ("device driver", "CDI", "nvidia-container-cli")) else ""
    finally:
        if made:
            container.remove(client.api, made)
        client.api.remove_image(image_id, force=True)
    return ""
