"""Ask a Docker engine for GPUs by NVIDIA's runtime, a device request or CDI, and check that it can provide them.

One folder per image and set of GPUs keeps the code that the driver compiles from PTX, for later containers and runs.
"""

import io
import json
import re
import stat
import subprocess
import tarfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException
from docker.types import DeviceRequest

from orchestrator import files
from orchestrator.catalog.user_data import cache
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.machine.gpu import Gpu
from orchestrator.model import GpuRequest

KIND = "nvidia.com/gpu="
# Several GPUs use shared memory to communicate; Docker gives 64 MiB by default.
SHARED_BYTES = 2**30
# The toolkit's settings are in this file, and it may take this many seconds to report its version.
CONFIG, TOOLKIT_S = Path("/etc/nvidia-container-runtime/config.toml"), 10
# A trial starts this program in an empty image. Its absence is the last thing that an engine notices.
MISSING = "/tfcompare-is-not-here"

# The keys are parts of an engine's message, and the first that fits counts.
ADVICE = {
    "mode 'cdi'": "The toolkit is set up for CDI: ask for it with --gpu-request cdi",
    "unresolvable CDI": "Write the list of its devices again: `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`",
    "driver/library version mismatch": "The driver was updated: restart the machine",
    "driver not loaded": "The driver does not run: see whether `nvidia-smi` works",
    "unknown device": "The GPU was renumbered or is gone: `nvidia-smi -L` lists those that are there",
}


def options(request: GpuRequest | None, devices: Sequence[str] = (), runtime: str = "") -> dict[str, Any]:
    """Return the GPU part of a container's host config; without devices, all GPUs are requested.

    A runtime that the user names takes precedence over NVIDIA's.
    """
    named = {"runtime": runtime} if runtime else {}
    if request is None:
        return named
    shared = {"shm_size": SHARED_BYTES} if len(devices) > 1 else {}
    return {"group_add": find_groups(), **shared, **_request(request, devices), **named}


def find_groups(folder: Path = Path("/dev")) -> list[int]:
    """Return the groups that may open the driver's device files if not all users may."""
    groups = set()
    for path in folder.glob("nvidia*"):
        with suppress(OSError):
            status = path.stat()
            if stat.S_ISCHR(status.st_mode) and status.st_mode & 0o066 == 0o060:
                groups.add(status.st_gid)
    return sorted(groups)


def _request(request: GpuRequest, devices: Sequence[str]) -> dict[str, Any]:
    if request == "runtime":
        return {"runtime": "nvidia"}
    if request == "device":
        wanted = {"device_ids": list(devices)} if devices else {"count": -1}
        return {"device_requests": [DeviceRequest(capabilities=[["gpu"]], **wanted)]}
    return {"device_requests": [DeviceRequest(driver="cdi", device_ids=list(devices) or [f"{KIND}all"])]}


def variables(request: GpuRequest | None, devices: Sequence[str] = ()) -> dict[str, str]:
    if request is None:
        return {}
    # NVIDIA's runtime reads these variables, and only NVIDIA's images set them. An engine that uses it by
    # default must not add again what CDI has added.
    visible = "void" if request == "cdi" else ",".join(devices) or "all"
    return {
        "NVIDIA_VISIBLE_DEVICES": visible,
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        # Images require a driver that they do not need. The table of versions says whether a driver is new enough.
        "NVIDIA_DISABLE_REQUIRE": "1",
    }


def name_devices(request: GpuRequest, gpus: Sequence[Gpu], info: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the GPUs in such a request; raise EngineUnavailable for one that CDI does not list."""
    if request != "cdi":
        return tuple(gpu.key for gpu in gpus)
    listed = _cdi_devices(info)
    if listed is None:
        # Every CDI specification has names by index; only newer ones also have names by UUID.
        return tuple(f"{KIND}{gpu.index}" for gpu in gpus)
    names = []
    for gpu in gpus:
        known = [name for name in (f"{KIND}{gpu.uuid}", f"{KIND}{gpu.index}") if name in listed]
        if not known:
            there = ", ".join(name for name in listed if name.startswith(KIND)) or "none of NVIDIA's"
            raise EngineUnavailable(
                f"--gpu-request cdi: this Docker engine knows no device {KIND}{gpu.index} for {gpu.title}; it knows "
                f"{there}. Generate the list again with `nvidia-ctk cdi generate`"
            )
        names.append(known[0])
    return tuple(names)


def _cdi_devices(info: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the CDI devices that an engine lists, or None if it is too old to list any."""
    devices = info.get("DiscoveredDevices")
    if devices is None:
        return None
    return tuple(str(device.get("ID")) for device in devices if device.get("Source") == "cdi")


def describe_toolkit(config: Path = CONFIG) -> dict[str, str]:
    """Return the version and the mode of NVIDIA's toolkit on this machine, as far as they can be read."""
    found = {}
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(["nvidia-ctk", "--version"], capture_output=True, text=True, timeout=TOOLKIT_S)
        if version := re.search(r"version (\d[\w.+~-]*)", done.stdout):
            found["toolkit"] = version[1]
    with suppress(OSError, tomllib.TOMLDecodeError):
        mode = tomllib.loads(config.read_text()).get("nvidia-container-runtime", {}).get("mode")
        found |= {"toolkit_mode": mode} if isinstance(mode, str) else {}
    return found


def check_gpu_request(
    client: docker.DockerClient, request: GpuRequest, gpus: Sequence[Gpu], info: dict[str, Any]
) -> None:
    """Raise EngineUnavailable if the engine cannot provide GPUs in the requested way, before anything is built."""
    devices = choose_devices(request, gpus, info)
    if refusal := _find_refusal(client, request, devices):
        raise EngineUnavailable(
            f"--gpu: this Docker engine cannot hand out a GPU with --gpu-request {request} ({refusal}). "
            f"{advise_on_refusal(refusal)}"
        )


def choose_devices(request: GpuRequest, gpus: Sequence[Gpu], info: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the GPUs in such a request; raise EngineUnavailable if the engine reports no such GPU."""
    if request == "runtime" and "nvidia" not in (info.get("Runtimes") or ()):
        raise EngineUnavailable(
            "--gpu: this Docker engine has no runtime named nvidia. Install the NVIDIA Container Toolkit and run "
            "`nvidia-ctk runtime configure --runtime=docker`, or ask for a device with --gpu-request device or cdi"
        )
    if request == "cdi" and (refusal := cdi_refusal(info)):
        raise EngineUnavailable(f"--gpu: this Docker engine cannot hand out a GPU by CDI: {refusal}")
    return name_devices(request, gpus, info)


def advise_on_refusal(refusal: str) -> str:
    """Return what to do about an engine's refusal of a GPU."""
    for words, advice in ADVICE.items():
        if words in refusal:
            return advice
    return "Install the NVIDIA Container Toolkit and restart Docker"


def cdi_refusal(info: dict[str, Any]) -> str:
    """Return why the engine offers no NVIDIA device by CDI, as far as it reports that, or ''."""
    if not info.get("CDISpecDirs"):
        return (
            f"version {info.get('ServerVersion')} has no CDI, or it is switched off. It takes Docker 25 or newer with "
            '{"features": {"cdi": true}} in its daemon.json, from 28.2 on without'
        )
    listed = _cdi_devices(info)
    if listed is not None and not any(name.startswith(KIND) for name in listed):
        folders = ", ".join(info["CDISpecDirs"])
        return (
            f"it finds no {KIND[:-1]} in {folders}. `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` writes one"
        )
    return ""


def _find_refusal(client: docker.DockerClient, request: GpuRequest, devices: Sequence[str]) -> str:
    """Return the engine's refusal of a GPU request, or ''.

    The request uses an empty image: an engine that can provide GPUs then reports only that the program is missing,
    whereas any other engine refuses the GPU first.
    """
    empty = io.BytesIO()
    with tarfile.open(fileobj=empty, mode="w"):
        pass
    # The image has no name, so that two runs that ask at the same time have an image each.
    imported = client.api.import_image_from_data(empty.getvalue())
    image_id = json.loads(imported.splitlines()[-1])["status"]
    container_id = ""
    try:
        host_config = client.api.create_host_config(network_mode="none", **options(request, devices))
        created = client.api.create_container(
            image_id, [MISSING], host_config=host_config, environment=variables(request, devices)
        )
        container_id = created["Id"]
        client.api.start(container_id)
    except APIError as error:
        message = str(error.explanation).strip()
        return "" if MISSING in message else message
    finally:
        if container_id:
            with suppress(DockerException, requests.RequestException):
                client.api.remove_container(container_id, force=True, v=True)
        client.api.remove_image(image_id, force=True)
    return ""


@dataclass(frozen=True)
class CompiledCode:
    """A folder of code that a driver compiled, and the image that it was compiled for."""

    path: Path
    image: str
    bytes: int


def jit_root() -> Path:
    return cache() / "jit"


def jit_folder(image: str, gpus: Sequence[Gpu]) -> Path:
    """Return the folder for what the drivers of these GPUs compile from an image's PTX, and create it if necessary.

    All GPUs of a compute capability share it: the driver itself keeps apart what it compiled for different ones. It
    belongs to this user, like the container's processes. A volume of the engine would belong to root.
    """
    key = "-".join(sorted({f"sm{(gpu.capability or 'any').replace('.', '')}" for gpu in gpus})) or "any"
    folder = jit_root() / f"{image.removeprefix('sha256:')[:12]}-{key}"
    with files.writing(folder, "set TFCOMPARE_CACHE to another folder", EnvironmentFailed):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def jit_kept() -> Iterator[CompiledCode]:
    """Yield all such folders, for freeing disk space; `image` is the beginning of the image's id."""
    root = jit_root()
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        yield CompiledCode(path, path.name.partition("-")[0], size)
