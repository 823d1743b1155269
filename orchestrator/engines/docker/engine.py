"""Versions in Docker images and workers in hardened containers."""

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import docker
from docker.errors import ImageNotFound

from orchestrator.bundled import WORKLOADS
from orchestrator.catalog import architectures, lock_hash, lockfile
from orchestrator.catalog.version import Flavour, FlavourName, Version
from orchestrator.engines import BUILD_TIME, SOURCE, WHEELS, Outlook, StartedWorker, WorkerPaths
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.cuda_libraries import find_variables, keep_xla_code
from orchestrator.engines.docker import container, image, limits, nvidia, own_image, probe, uv_container
from orchestrator.engines.docker.client import Clients, asking, connect_engine, find_root_cause
from orchestrator.engines.docker.uv_container import UvInContainer
from orchestrator.engines.environment import WHEEL
from orchestrator.errors import EngineUnavailable, EnvironmentFailed, UsageError
from orchestrator.model import EnvironmentFacts
from orchestrator.options import EngineOptions
from orchestrator.terminal.counts import format_count

# A registry may take this long to report whether it has an image.
REGISTRY_S = 15


@dataclass(frozen=True)
class DockerEnvironment:
    clients: Clients
    facts: EnvironmentFacts
    options: EngineOptions
    devices: tuple[str, ...] = ()
    # This folder holds the packages that a user's own image lacks.
    library: Path | None = None
    own_image: bool = False
    tensorflow: str = ""

    @property
    def uv(self) -> UvInContainer:
        # A user's own image may contain anything, so uv runs in a base image instead.
        inside = own_image.find_base(self.facts, self.options) if self.own_image else self.facts.identity
        return UvInContainer(self.clients.of_thread, inside, self.options)

    @property
    def client(self) -> docker.DockerClient:
        return self.clients.of_thread()

    def start(self, paths: WorkerPaths, stream: Path) -> StartedWorker:
        try:
            client = self.client
        except EngineUnavailable as gone:
            # The engine answered when the run began, so the message says that it stopped.
            cause = find_root_cause(gone.__cause__ or gone)
            raise EngineUnavailable(
                f"the Docker engine stopped answering while {self.facts.target} was started ({cause})"
            ) from gone
        asked = {**dict(self.options.variables), **self.facts.variables}
        packaged = self.options.gpu and not self.own_image
        libraries = find_variables(self.facts, image.PREFIX, asked) if packaged else {}
        kept = keep_xla_code(self.facts, f"{container.ROOT}/{container.XLA_CODE}", asked) if paths.xla_code else {}
        spec = container.Spec(
            image=self.facts.identity,
            version=self.facts.target,
            run=paths.run,
            workloads=WORKLOADS,
            own_workloads=paths.own_workloads,
            large=paths.large,
            results=paths.results,
            gpu=self.options.gpu_request if self.options.gpu else None,
            devices=self.devices,
            xla_code=paths.xla_code,
            jit=nvidia.jit_folder(self.facts.identity, self.options.chosen_gpus) if self.options.gpu else None,
            cpus=self.options.cpus,
            memory_mb=self.options.memory_mb,
            runtime=self.options.runtime,
            seed=paths.seed,
            workers=paths.workers,
            variables={**asked, **libraries, **kept},
            own_image=self.own_image,
            library=self.library,
            layers=paths.layers,
        )
        with asking("its container could not be made", EnvironmentFailed, self.facts.target):
            try:
                container_id = container.create(client, spec)
            except ImageNotFound as error:
                raise EnvironmentFailed(
                    "its image was removed", "start a new run, which makes it again", target=self.facts.target
                ) from error
        written = (paths.log, paths.results, paths.xla_code)
        channel = container.ContainerChannel(client, container_id, self.facts.target, *written)
        own = (f"{container.ROOT}/own",) if paths.own_workloads else ()
        folders = (f"{container.ROOT}/workloads/suite", *own)
        name = self.facts.details.get("tag") or self.facts.details.get("image", "")
        remedy = f"`docker image rm {name}` removes it; run again for a new one"
        return StartedWorker(channel, folders, f"{container.ROOT}/results/{stream.name}", self.tensorflow, remedy)

    def build(self, folder: Path, log: BuildLog) -> None:
        work = uv_container.WORK
        argv = [f"{image.PREFIX}/bin/python", "-I", "-m", *WHEEL]
        argv += ["--wheel-dir", f"{work}/{WHEELS}", f"{work}/{SOURCE}"]
        variables = {"HOME": container.SCRATCH, "PIP_CONFIG_FILE": "/dev/null", **BUILD_TIME}
        with asking("its wheel could not be built", EnvironmentFailed, self.facts.target):
            code, output = uv_container.run_once(
                self.client, self.facts.identity, argv, folder, variables, runtime=self.options.runtime
            )
        for line in output.splitlines():
            log.line(line)
        if code:
            raise EnvironmentFailed(f"pip ended with {code}", target=self.facts.target, detail=log.tail())


class DockerEngine:
    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._flavour: FlavourName = options.device
        self._clients = Clients()
        # The outlook of a base is kept, because many versions share one and its registry may take seconds to answer.
        self._missing: dict[str, Outlook | None] = {}
        self._ca_bundle = b""
        if options.ca_bundle:
            try:
                self._ca_bundle = options.ca_bundle.read_bytes()
            except OSError as error:
                raise UsageError(f"--ca-bundle {options.ca_bundle}: {error.strerror}") from error
        # This import is slow, and reports import this module without needing an index.
        from orchestrator.engines.index.proxy import Index

        self._index = Index(options.index_url, options.wheelhouse, options.ca_bundle)

    def check(self) -> str:
        with closing(connect_engine()) as client, asking("looking at the engine", EngineUnavailable):
            info = client.info()
            runtime, known = self._options.runtime, info.get("Runtimes") or {}
            if runtime and runtime not in known:
                raise EngineUnavailable(
                    f"--runtime {runtime}: this Docker engine has none of that name; it has {', '.join(sorted(known))}",
                    "register it in the engine's daemon.json, and restart the engine",
                )
            name = probe.find_user_mode(client, info)
            self._options.check_limits(limits.find_cpus(info["NCPU"]), info["MemTotal"] // 2**20)
            if self._options.gpu:
                nvidia.check_gpu_request(client, self._options.gpu_request, self._options.chosen_gpus, info)
        return f"{name} {info['ServerVersion']} on {info['OperatingSystem']}"

    def sweep(self) -> list[str]:
        with closing(connect_engine()) as client, asking("looking for containers of killed runs", EngineUnavailable):
            count = container.reap_containers(client)
        return [format_count(count, "container")] if count else []

    def outlook(self, version: Version) -> Outlook:
        try:
            with (
                closing(connect_engine(timeout_s=REGISTRY_S)) as client,
                asking("looking for its image", EnvironmentFailed, version.name),
            ):
                if obstacle := architectures.find_lacking_architecture(version, self._flavour):
                    return Outlook("impossible", obstacle[0], advice=obstacle[1])
                if version.image:
                    return own_image.outlook(client, version.image)
                recipe = image.recipe(client, version, self._choose(version), self._options.base)
                if image.existing(client, recipe):
                    return Outlook("ready", f"ready ({recipe.tag})")
                lowest = recipe.below or recipe
                is_above = recipe.below and image.existing(client, recipe.below)
                if not is_above and lowest.base not in self._missing:
                    self._missing[lowest.base] = image.find_missing(client, lowest.base)
        except EnvironmentFailed as error:
            return Outlook("impossible", str(error))
        if not is_above and (missing := self._missing[lowest.base]):
            return missing
        return Outlook("to build", f"to be built from {recipe.base}")

    def prepare(self, version: Version, log: BuildLog) -> DockerEnvironment:
        if version.image:
            return self._prepare_own(version, log)
        if obstacle := architectures.find_lacking_architecture(version, self._flavour):
            raise EnvironmentFailed(*obstacle, target=version.name)
        flavour = self._choose(version)
        client = self._clients.of_thread()
        with asking("its image is not available", EnvironmentFailed, version.name):
            recipe = image.recipe(client, version, flavour, self._options.base)
            identity = image.existing(client, recipe)
            lowest = recipe.below or recipe
            if identity is None and self._options.base and not (recipe.below and image.existing(client, recipe.below)):
                image.fetch(client, version.name, lowest.base, flavour.python.number, log)
                # The recipe contains the id of the base, so it may change now that the base is here.
                recipe = image.recipe(client, version, flavour, self._options.base)
                identity = image.existing(client, recipe)
            if identity is None:
                lockfile.check_locks(flavour.pip_lock, flavour.lock)
                identity = image.build_once(client, recipe, lambda: self._source(log), log)
            size = image.size(client, identity)
            devices, details = self._devices(client)
            details |= lockfile.describe_wheel(flavour.lock, flavour.wheel)
        facts = EnvironmentFacts(
            target=version.name,
            kind="docker",
            identity=identity,
            lock=lock_hash(flavour),
            python=flavour.python.number,
            details={
                "tag": recipe.tag,
                "base": (recipe.below or recipe).base,
                "spec": recipe.spec,
                "flavour": flavour.name,
                **details,
            },
            packages=lockfile.list_packages(flavour.pip_lock, flavour.lock),
            variables=version.variables,
            size_bytes=size,
        )
        return DockerEnvironment(self._clients, facts, self._options, devices, tensorflow=version.number)

    def _prepare_own(self, version: Version, log: BuildLog) -> DockerEnvironment:
        """Prepare a user's own image, pinned to what its name refers to now."""
        client = self._clients.of_thread()
        with asking("its image is not available", EnvironmentFailed, version.name):
            found = own_image.find_own_image(client, version.name, version.image, log, self._options.runtime)
            size = image.size(client, found.identity)
            devices, details = self._devices(client)
        details |= own_image.judge_build(found.inside, self._options, version.name)
        facts = EnvironmentFacts(
            target=version.name,
            kind="docker",
            identity=found.identity,
            lock="",
            python=found.inside.python,
            details={"image": version.image, "digest": found.digest, **details},
            packages=dict(found.inside.distributions),
            variables=version.variables,
            size_bytes=size,
        )
        environment = DockerEnvironment(
            self._clients, facts, self._options, devices, own_image=True, tensorflow=found.inside.imported.tensorflow
        )
        return replace(environment, library=own_image.find_library(facts, self._options, environment.uv))

    def _devices(self, client: docker.DockerClient) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the devices that the engine is asked to put into each container, and how the run records them."""
        options = self._options
        if not options.gpu:
            return (), {}
        devices = nvidia.name_devices(options.gpu_request, options.chosen_gpus, client.info())
        asked = {"gpu_request": options.gpu_request, "gpus": ", ".join(devices) or "all"}
        return devices, {**asked, **nvidia.describe_toolkit()}

    def _source(self, log: BuildLog) -> image.Source:
        variables = self._index.variables(log)
        # Our own index server checks the certificates, so a build that uses it needs none.
        return image.Source(variables, b"" if variables else self._ca_bundle, self._index.wheelhouse)

    def _choose(self, version: Version) -> Flavour:
        flavours = version.on(self._flavour)
        if not flavours:
            raise EnvironmentFailed(f"the table of versions has no {self._flavour} flavour of it", target=version.name)
        return flavours[0]

    def storage(self) -> tuple[str, Path] | None:
        with closing(connect_engine()) as client, asking("looking for its folder", EngineUnavailable):
            root = Path(str(client.info().get("DockerRootDir", "")))
        return ("images", root) if root.is_absolute() and root.exists() else None

    def close(self) -> None:
        self._index.close()
        self._clients.close()
