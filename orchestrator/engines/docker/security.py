"""The confinement of containers: the workers' user, how an engine maps it, and SELinux."""

import os
from collections.abc import Mapping
from typing import Any

# Root's workers run as this user, who owns no files. If they ran as root, they could leave files that make other users
# root outside the container.
UNPRIVILEGED = 65532
# The keys are engines, and the values say how their containers map users if not in the engine's own way.
_modes: dict[tuple[str, str], str] = {}


def find_user() -> tuple[int, int]:
    """Return the user and group of workers, which are never root's."""
    return (os.getuid(), os.getgid()) if os.getuid() else (UNPRIVILEGED, UNPRIVILEGED)


def use_mode(info: Mapping[str, Any], mode: str) -> None:
    """Let the containers of this process map users in a way that was tried on an engine."""
    _modes[_identify(info)] = mode


def find_mode(info: Mapping[str, Any]) -> str:
    """Return how an engine's containers map users; '' is the engine's own way."""
    return _modes.get(_identify(info), "")


def _identify(info: Mapping[str, Any]) -> tuple[str, str]:
    """Return a key that identifies an engine; its ID cannot, because Podman reports a new one in each answer."""
    return str(info.get("Name")), str(info.get("DockerRootDir"))


def find_options(info: Mapping[str, Any]) -> list[str]:
    """Return a container's security options."""
    # SELinux lets containers read only folders that are labelled for them, and tfcompare does not change users' labels.
    return ["no-new-privileges", *(["label=disable"] if "selinux" in read_option_names(info) else [])]


def read_option_names(info: Mapping[str, Any]) -> list[str]:
    """Return the names of an engine's security options: "name=seccomp,profile=default" is seccomp."""
    return [option.partition(",")[0].removeprefix("name=") for option in info.get("SecurityOptions") or ()]
