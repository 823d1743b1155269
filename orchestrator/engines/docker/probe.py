"""A trial of a container on an engine that maps users or is not Docker's, to find out whether workers can run there.

The container is confined like a worker's. It contains only the programs of this machine, which it cannot change.
"""

import io
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException
from docker.types import LogConfig, Mount

from orchestrator import files
from orchestrator.catalog.user_data import cache
from orchestrator.engines.docker import container, host_paths, security
from orchestrator.errors import EngineUnavailable, EnvironmentFailed

PODMAN = "Podman"
INSIDE = f"{container.ROOT}/probe"
PRIVATE = "only its owner can read this"
# A shell needs these folders; those that are links on this machine are also links in the image.
PROGRAMS = ("usr", "bin", "lib", "lib64", "nix")
SCRIPT = (
    f"cat {INSIDE}/in/secret && cat /proc/self/status >{INSIDE}/out/status && cat /proc/net/dev >{INSIDE}/out/network; "
    # Only one of these files exists, depending on the version of cgroups.
    "code=$?; { cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes "
    f">{INSIDE}/out/memory; }} 2>/dev/null; exit $code"
)
MEMORY, PROCESSES = 64 * 2**20, 32
TIMEOUT_S = 60
MOST_BYTES = 2**16


def find_user_mode(client: docker.DockerClient, info: Mapping[str, Any]) -> str:
    """Choose how containers of this engine map users, and return the name of the engine.

    Raises EngineUnavailable if no worker could do its work there.
    """
    kind, modes = _describe(client, info)
    first = ""
    for mode in modes:
        finding = find_fault(client, info, mode)
        if not finding:
            security.use_mode(info, mode)
            break
        first = first or finding
    else:
        if first:
            raise EngineUnavailable(
                f"this is {kind}, and a test container failed there: {first}",
                "use another Docker engine, or --engine venv",
            )
    return PODMAN if kind == PODMAN else "Docker"


def _describe(client: docker.DockerClient, info: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return an engine's kind and the ways of mapping users to try; both are empty for an ordinary engine."""
    listed = security.read_option_names(info)
    if any(PODMAN in str(part.get("Name")) for part in client.version().get("Components") or ()):
        return PODMAN, ("", "keep-id")
    if "rootless" in listed:
        return "a rootless Docker engine", ("",)
    if "userns" in listed:
        # A worker never runs as root, so it is as safe without a map of users as on an engine that has none.
        return "a Docker engine that maps users (userns-remap)", ("", "host")
    return "", ()


def find_fault(client: docker.DockerClient, info: Mapping[str, Any], mode: str = "") -> str:
    """Return what is wrong with the containers of an engine, or '' if workers can run in them."""
    for name, what in (("MemoryLimit", "memory"), ("PidsLimit", "number of processes")):
        if info.get(name) is False:
            return f"the engine does not limit the {what} of a container"
    try:
        with _make_folder() as folder, _make_image(client) as image:
            return _try(client, info, image, folder, mode)
    except (APIError, EnvironmentFailed) as error:
        return f"it could not be started ({str(getattr(error, 'explanation', '') or error).strip()})"
    except requests.exceptions.Timeout:
        return f"it did not end within {TIMEOUT_S} s"
    except OSError as error:
        return f"{error.filename or cache()}: {error.strerror}"


@contextmanager
def _make_folder() -> Iterator[Path]:
    """Yield a folder with what a container reads and a place for what it writes, both for the workers' user alone."""
    cache().mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="probe-", dir=cache()))
    try:
        for name in ("in", "out"):
            (folder / name).mkdir(0o700)
        (folder / "in" / "secret").write_text(PRIVATE)
        (folder / "in" / "secret").chmod(0o600)
        for name in ("in", "out"):
            container.hand_over(folder / name, security.find_user())
        yield folder
    finally:
        files.remove_tree(folder)


@contextmanager
def _make_image(client: docker.DockerClient) -> Iterator[str]:
    """Yield an image that holds the links at the root of this machine's file system, and is removed afterwards."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in filter(lambda name: Path("/", name).is_symlink(), PROGRAMS):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, os.readlink(Path("/", name))
            tar.addfile(link)
    imported = client.api.import_image_from_data(packed.getvalue())
    image = json.loads(imported.splitlines()[-1])["status"]
    try:
        yield image
    finally:
        with suppress(DockerException, requests.RequestException):
            client.api.remove_image(image, force=True)


def _try(client: docker.DockerClient, info: Mapping[str, Any], image: str, folder: Path, mode: str) -> str:
    mounted = host_paths.mounts(client)
    user = security.find_user()
    programs = [Path("/", name) for name in PROGRAMS if Path("/", name).is_dir() and not Path("/", name).is_symlink()]
    # If tfcompare runs in a container, these are folders of the host, which also has programs there.
    mounts = [Mount(str(path), str(path), type="bind", read_only=True) for path in programs]
    for name, read_only in (("in", True), ("out", False)):
        # A read-only source might be copied for root so that all users can read it, which would defeat the trial.
        seen = host_paths.source(folder / name, mounted, read_only=False)
        mounts.append(Mount(f"{INSIDE}/{name}", str(seen), type="bind", read_only=read_only))
    log = LogConfig(type="json-file", config={"max-size": "64k"})
    host_config = container.build_confined_config(
        client, image, info, mounts, MEMORY, processes=PROCESSES, mode=mode, log_config=log
    )
    created = client.api.create_container(
        image=image,
        command=["/bin/sh", "-c", SCRIPT],
        user=f"{user[0]}:{user[1]}",
        environment={"PATH": "/usr/bin:/bin"},
        labels={container.RUN_LABEL: "probe", container.OWNER_LABEL: container.owner()},
        host_config=host_config,
    )
    try:
        if discarded := [text for text in created.get("Warnings") or () if "imitation discarded" in text]:
            return str(discarded[0])
        client.api.start(created["Id"])
        code = client.api.wait(created["Id"], timeout=TIMEOUT_S)["StatusCode"]
        output = client.api.logs(created["Id"], stdout=True, stderr=True).decode(errors="replace")
    finally:
        container.remove_container(client.api, created["Id"])
    if code != 0 or PRIVATE not in output:
        last = (output.replace(PRIVATE, "").strip().splitlines() or [f"it ended with {code}"])[-1]
        return f"user {user[0]} in it cannot read or write files of user {user[0]} here ({last[:200]})"
    return _judge(folder, user[0])


def _judge(folder: Path, uid: int) -> str:
    """Return what is wrong with a container that could read and write, or ''."""

    def read(name: str) -> str:
        return files.read(folder, folder / "out" / name, MOST_BYTES).decode(errors="replace")

    values = dict(re.findall(r"^(\w+):\s*(.*)", read("status"), re.MULTILINE))
    owner = (folder / "out" / "status").lstat().st_uid
    if owner != uid:
        return f"files that user {uid} writes in it belong to user {owner} on this machine"
    if set(values.get("Uid", "").split()) != {str(uid)}:
        return f"it was asked for user {uid} and runs as {values.get('Uid')}"
    if int(values.get("CapEff", "f"), 16) or int(values.get("CapPrm", "f"), 16):
        return f"it keeps capabilities ({values.get('CapEff')})"
    if values.get("NoNewPrivs") != "1":
        return "it may gain privileges (no-new-privileges is ignored)"
    if values.get("Seccomp") != "2":
        return "no seccomp filter applies to it"
    if networks := [name for name in re.findall(r"^\s*([^\s:]+):", read("network"), re.MULTILINE) if name != "lo"]:
        return f"it has a network ({', '.join(networks)})"
    with suppress(OSError):
        limit = read("memory").strip()
        if limit and limit != str(MEMORY):
            return f"its memory is not limited as asked ({limit})"
    return ""
