"""How an engine confines its containers: engines on which no worker can write its results, the user that workers run
as, and SELinux.
"""

import os
from collections.abc import Mapping
from typing import Any

import docker

from orchestrator.engines import outside
from orchestrator.errors import EngineUnavailable

# Who root's workers are: nobody who owns a file. Root in a container could leave files that make others root outside.
UNPRIVILEGED = 65532


def check(client: docker.DockerClient, info: Mapping[str, Any]) -> None:
    """Raise EngineUnavailable for an engine on which no worker could run."""
    listed = _listed(info)
    if any("Podman" in str(part.get("Name")) for part in client.version().get("Components") or ()):
        reason = "the engine is Podman, which tfcompare does not support; set DOCKER_HOST to a Docker engine"
    elif "userns" in listed:
        reason = "this Docker engine remaps users (userns-remap), so workers cannot write results; use one without it"
    # In a container of a rootless engine, root is the user of that engine.
    elif "rootless" in listed and os.getuid() == 0 and outside.mounts(client) is None:
        reason = "this Docker engine is rootless and not root's; run tfcompare as the user who started it"
    else:
        return
    raise EngineUnavailable(f"{reason}, or take --engine venv")


def find_user(info: Mapping[str, Any]) -> tuple[int, int]:
    """Return the user and group of workers, as the engine counts them."""
    if "rootless" in _listed(info):
        # The engine's user outside, without any privilege there.
        return 0, 0
    return (os.getuid(), os.getgid()) if os.getuid() else (UNPRIVILEGED, UNPRIVILEGED)


def find_options(info: Mapping[str, Any]) -> list[str]:
    """Return a container's security options."""
    # SELinux lets no container read folders that are not labelled for it, and labels of the user's stay as they are.
    return ["no-new-privileges", *(["label=disable"] if "selinux" in _listed(info) else [])]


def _listed(info: Mapping[str, Any]) -> list[str]:
    """Return the names of an engine's security options: "name=seccomp,profile=default" is seccomp."""
    return [option.partition(",")[0].removeprefix("name=") for option in info.get("SecurityOptions") or ()]
