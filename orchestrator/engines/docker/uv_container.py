"""uv and builds in a hardened container.

There, uv resolves and unpacks what a stranger's workload requires, and pip builds a wheel of a commit.

Like the build of an image, the container of uv has the network of this machine, because the index may be reachable
only from there; that of a wheel has none. It gets only what the index needs, copied into the one folder that it sees,
and the wheelhouse, which it cannot write.
"""

import netrc
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import docker
import requests
from docker.types import LogConfig, Mount

from orchestrator.catalog import uv
from orchestrator.child_environment import pass_variables
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import container, host_paths, image, limits, security
from orchestrator.engines.docker.client import asking
from orchestrator.errors import EnvironmentFailed, UsageError
from orchestrator.options import EngineOptions

RUN = "requirements"
WORK, WHEELHOUSE = f"{container.ROOT}/work", f"{container.ROOT}/wheelhouse"
CERTIFICATES, LOGINS = "ca.pem", "netrc"
# The engine keeps this much of what uv prints; a lock has hundreds of kilobytes.
MOST_OUTPUT = "16m"
# A package that takes longer to build is none of pure Python.
BUILD_TIMEOUT_S = 1800.0


def run_once(
    client: docker.DockerClient,
    image_id: str,
    argv: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    *,
    runtime: str,
    network: str = "none",
    also: Mapping[str, Path] = MappingProxyType({}),
    timeout_s: float = BUILD_TIMEOUT_S,
) -> tuple[int, str]:
    """Run a program in a confined container, which sees one folder and, to read, those of `also`.

    Returns its exit code and what it printed: to stdout if it succeeded, else to stderr.
    """
    user = security.find_user()
    container.hand_over(folder, user)
    mounted = host_paths.mounts(client)
    mounts = [Mount(WORK, str(host_paths.source(folder, mounted, read_only=False)), type="bind")]
    for place, path in also.items():
        mounts.append(Mount(place, str(host_paths.source(path, mounted, read_only=True)), type="bind", read_only=True))
    info = client.info()
    host_config = container.build_confined_config(
        client,
        image_id,
        info,
        mounts,
        limits.share_memory(info["MemTotal"], 1),
        processes=limits.share_processes(1),
        network=network,
        runtime=runtime,
        log_config=LogConfig(type="json-file", config={"max-size": MOST_OUTPUT}),
    )
    created = client.api.create_container(
        image=image_id,
        command=list(argv),
        entrypoint=[""],
        user=f"{user[0]}:{user[1]}",
        working_dir=WORK,
        environment=dict(variables),
        labels={container.RUN_LABEL: RUN, container.OWNER_LABEL: container.owner()},
        host_config=host_config,
    )
    try:
        client.api.start(created["Id"])
        code = client.api.wait(created["Id"], timeout=timeout_s)["StatusCode"]
        output = client.api.logs(created["Id"], stdout=code == 0, stderr=code != 0)
    finally:
        container.remove_container(client.api, created["Id"])
    return code, output.decode(errors="replace")


@dataclass(frozen=True)
class UvInContainer:
    find_client: Callable[[], docker.DockerClient]
    # The image has a Python, and must not contain anything from a stranger.
    image: str
    options: EngineOptions

    @property
    def place(self) -> str:
        return f"docker {self.image}"

    def run(self, arguments: Sequence[str], folder: Path, timeout_s: float) -> str:
        with asking("what a workload requires could not be looked at", EnvironmentFailed):
            return self._run(arguments, folder, timeout_s)

    def _run(self, arguments: Sequence[str], folder: Path, timeout_s: float) -> str:
        client = self.find_client()
        wheelhouse = self.options.wheelhouse
        if not image.local_id(client, self.image):
            message = image.pull(client, self.image, BuildLog(Path(os.devnull)))
            if message:
                raise uv.Unresolved(f"{self.image}, in which uv would run, could not be pulled: {message}")
        argv = [f"{WORK}/uv", *arguments, *uv.choose_index(self.options), "--python", "python3"]
        try:
            code, text = run_once(
                client,
                self.image,
                argv,
                folder,
                self._prepare(folder),
                runtime=self.options.runtime,
                network="host",
                also={WHEELHOUSE: wheelhouse} if wheelhouse else {},
                timeout_s=timeout_s,
            )
        except requests.exceptions.Timeout as error:
            raise uv.Unresolved(uv.NO_ANSWER.format(seconds=timeout_s)) from error
        if code != 0:
            raise uv.Unresolved(text.strip() or f"uv ended with {code}")
        return text

    def _prepare(self, folder: Path) -> dict[str, str]:
        """Copy uv and what the index needs into the folder, and return the variables of the container."""
        binary = uv.find_uv()
        if binary is None:
            raise UsageError("uv, which installs what workloads require, is not on PATH: pip install uv")
        shutil.copy(binary, folder / "uv")
        variables = {
            name: value
            for name, value in pass_variables().items()
            # Other variables name paths of this machine, which the container does not see.
            if name.upper().endswith("_PROXY")
            or (name.startswith("UV_") and not name.endswith("_DIR") and not value.startswith(("/", ".", "~", "file:")))
        }
        variables |= uv.name_index(self.options, WHEELHOUSE, f"{WORK}/{CERTIFICATES}")
        certificates = self.options.ca_bundle or os.environ.get("SSL_CERT_FILE")
        if certificates:
            with suppress(FileNotFoundError):
                shutil.copyfile(certificates, folder / CERTIFICATES)
                variables["SSL_CERT_FILE"] = f"{WORK}/{CERTIFICATES}"
        if logins := "".join(_find_logins(variables)):
            (folder / LOGINS).write_text(logins)
            variables["NETRC"] = f"{WORK}/{LOGINS}"
        own = {"HOME": container.SCRATCH, "UV_CACHE_DIR": f"{WORK}/cache", "UV_LINK_MODE": "copy"}
        return {**variables, **own, "UV_PYTHON_DOWNLOADS": "never"}


def _find_logins(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the entries of the user's .netrc for the hosts of the index, and for no other."""
    hosts = {urlsplit(word).hostname for value in variables.values() for word in value.replace("=", " ").split()}
    with suppress(OSError, netrc.NetrcParseError):
        known = netrc.netrc(os.environ.get("NETRC") or Path.home() / ".netrc").hosts
        for host, (login, _, password) in known.items():
            if host in hosts:
                yield f"machine {host} login {login} password {password}\n"
