"""The confinement of containers: engines on which no worker can write its results, the workers' user, and SELinux."""

import os
from collections.abc import Mapping
from typing import Any

import docker

from orchestrator.errors import EngineUnavailable

# The user of root's workers; it owns no files. Root in a container could leave files that make others root outside.
UNPRIVILEGED = 65532


def check(client: docker.DockerClient, info: Mapping[str, Any]) -> None:
    """Raise EngineUnavailable for an engine on which no worker could run."""
    listed = _read_option_names(info)
    if any("Podman" in str(part.get("Name")) for part in client.version().get("Components") or ()):
        what, advice = "the engine is Podman, which tfcompare does not support", "set DOCKER_HOST to a Docker engine"
    elif "userns" in listed:
        what = "this Docker engine remaps users (userns-remap), so workers cannot write results"
        advice = "use one without it"
    elif "rootless" in listed:
        what = "this Docker engine is rootless, so only root in a container could write results"
        advice = "use another engine"
    else:
        return
    raise EngineUnavailable(what, f"{advice}, or take --engine venv")


def find_user() -> tuple[int, int]:
    """Return the user and group of workers, which are never root's."""
    return (os.getuid(), os.getgid()) if os.getuid() else (UNPRIVILEGED, UNPRIVILEGED)


def find_options(info: Mapping[str, Any]) -> list[str]:
    """Return a container's security options."""
    # SELinux lets no container read directories that are not labelled for it, and the user's labels stay as they are.
    return ["no-new-privileges", *(["label=disable"] if "selinux" in _read_option_names(info) else [])]


def _read_option_names(info: Mapping[str, Any]) -> list[str]:
    """Return the names of an engine's security options: "name=seccomp,profile=default" is seccomp."""
    return [option.partition(",")[0].removeprefix("name=") for option in info.get("SecurityOptions") or ()]
