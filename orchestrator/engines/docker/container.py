"""A hardened container, and the channel to the worker inside it."""

import errno
import os
import posixpath
import re
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, NotFound
from docker.types import LogConfig, Mount, Ulimit

from orchestrator import contract
from orchestrator import files as confined
from orchestrator.engines.cuda_libraries import code_variables
from orchestrator.engines.docker import host_paths, limits, nvidia, security
from orchestrator.engines.environment import worker_variables
from orchestrator.engines.layers import Layer, describe_layers
from orchestrator.engines.worker.channel import ChannelClosed, Lines, describe_exit
from orchestrator.engines.worker.limits import WorkerFiles
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.model import GpuRequest, LargeFile
from orchestrator.terminal.text import LogCleaner

ROOT = "/tfcompare"
XLA_CODE = "xla"
# This folder is in memory, and is the only writable one inside apart from the mounts.
SCRATCH = "/tmp"  # noqa: S108
RUN_LABEL = "tfcompare.run"
OWNER_LABEL = "tfcompare.owner"
OWNER_MARK = re.compile(r"(?P<here>.*?):(?P<uid>\d+):(?P<pid>\d+):(?P<started>\w+)")
UNKNOWN = "unknown"
# A worker has this long to exit cleanly before it is killed.
EXIT_S = 2.0
# A container may take this long to end after its output has ended.
END_S = 5.0
POLL_S = 0.1

STDOUT, STDERR = 1, 2


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The specification of one worker's container; `program` is a file in workloads/."""

    image: str
    version: str
    run: str
    workloads: Path
    own_workloads: Path | None
    results: Path
    gpu: GpuRequest | None
    # These are the names of the GPUs to request; without names, all GPUs are requested.
    devices: tuple[str, ...] = ()
    jit: Path | None = None
    xla_code: Path | None = None
    large: tuple[LargeFile, ...] = ()
    cpus: tuple[int, ...] | None = None
    memory_mb: int | None = None
    # The engine uses its default if this is empty.
    runtime: str = ""
    program: str = "worker.py"
    seed: int = 0
    # This many workers of the run exist at once, and share the memory and the processes of the machine.
    workers: int = 1
    # These are set in addition to the variables of all workers.
    variables: Mapping[str, str] = field(default_factory=dict)
    # A user's own image may have an entrypoint, and may lack packages that the worker needs.
    own_image: bool = False
    library: Path | None = None
    layers: Mapping[str, Layer] = field(default_factory=dict)


def owner() -> str:
    """Return a mark of this process, by which a later run can distinguish containers in use from those left behind."""
    pid = os.getpid()
    try:
        started = _read_start(pid)
    except OSError:
        started = UNKNOWN
    return f"{_identify_namespace()}:{os.getuid()}:{pid}:{started}"


def is_abandoned(mark: str, state: str) -> bool:
    """Return whether the owner of a container has ended.

    Owners on another machine or in another boot or process namespace cannot be seen from here. Their containers are
    left alone while they run, and a worker ends by itself when its host has ended.
    """
    match = OWNER_MARK.fullmatch(mark)
    here = _identify_namespace()
    if match is None or here == UNKNOWN or match["here"] != here:
        return state in ("exited", "dead")
    if match["uid"] != str(os.getuid()):
        return False
    try:
        return _read_start(int(match["pid"])) != match["started"]
    except FileNotFoundError:
        return True
    except OSError:
        # The process may still run.
        return False


def _identify_namespace() -> str:
    """Return an identifier of the boot and process namespace in which process numbers are valid."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return UNKNOWN


def _read_start(pid: int) -> str:
    """Return when a process was started, in ticks since the boot, or "gone" if it has ended."""
    state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # A zombie has ended, and only waits for its parent.
    return "gone" if state in "ZX" else fields[18]


def create(client: docker.DockerClient, spec: Spec) -> str:
    """Create a container and return its id.

    It has no network, a read-only file system, no capabilities and one writable folder. There may be two more, for the
    code that the GPU's driver compiles and for that of XLA.
    """
    # An engine refuses to mount a folder that it does not see, whereas a bind would make an empty one.
    mounted = host_paths.mounts(client)

    def mount(name: str, source: Path, *, read_only: bool = True) -> Mount:
        engine_path = host_paths.source(source, mounted, read_only=read_only)
        return Mount(f"{ROOT}/{name}", str(engine_path), type="bind", read_only=read_only)

    info = client.info()
    user = security.find_user()
    mounts = [mount("workloads", spec.workloads)]
    if spec.own_workloads:
        mounts.append(mount("own", spec.own_workloads))
        mounts += [mount(f"own/{file.name}", Path(file.path)) for file in spec.large]
    if spec.library:
        mounts.append(mount(contract.LIBRARY, spec.library))
    layers = list(dict.fromkeys(layer.folder for layer in spec.layers.values() if layer.folder))
    mounts += [mount(f"layers/{place}", folder) for place, folder in enumerate(layers)]
    for name, writable in (("results", spec.results), ("jit", spec.jit), (XLA_CODE, spec.xla_code)):
        if writable:
            hand_over(writable, user)
            mounts.append(mount(name, writable, read_only=False))
    # The engine's memory counts, because Docker may run in a virtual machine with less than this machine has.
    memory = spec.memory_mb * 2**20 if spec.memory_mb else limits.share_memory(info["MemTotal"], spec.workers)
    cpus = spec.cpus or limits.find_granted_cpus(info["NCPU"])
    host_config = build_confined_config(
        client,
        spec.image,
        info,
        mounts,
        memory,
        processes=limits.share_processes(spec.workers),
        cpuset_cpus=",".join(map(str, cpus)) if cpus else None,
        # The worker's output is read here, so the engine need not write it to its disk during a measurement.
        log_config=LogConfig(type="none"),
        **nvidia.options(spec.gpu, spec.devices, spec.runtime),
    )
    created = client.api.create_container(
        image=spec.image,
        command=["python3", f"{ROOT}/workloads/{spec.program}"],
        # This removes the entrypoint of the image.
        entrypoint=[""] if spec.own_image else None,
        user=f"{user[0]}:{user[1]}",
        working_dir=SCRATCH,
        environment={
            **worker_variables(spec.seed, spec.variables),
            **describe_layers(spec.layers, lambda folder: f"{ROOT}/layers/{layers.index(folder)}"),
            "HOME": SCRATCH,
            **nvidia.variables(spec.gpu, spec.devices),
            **(code_variables(f"{ROOT}/jit") if spec.jit else {}),
        },
        stdin_open=True,
        labels={RUN_LABEL: spec.run, OWNER_LABEL: owner(), "tfcompare.version": spec.version},
        host_config=host_config,
    )
    return str(created["Id"])


def build_confined_config(
    client: docker.DockerClient,
    image: str,
    info: Mapping[str, Any],
    mounts: Sequence[Mount],
    memory: int,
    *,
    processes: int,
    network: str = "none",
    mode: str | None = None,
    runtime: str = "",
    **more: Any,
) -> Any:
    """Return the settings of a container that may do nothing but read its mounts and write where it must."""
    # A volume that the image declares would be on the engine's disk, without a limit, so memory takes its place.
    volumes = client.api.inspect_image(image)["Config"].get("Volumes") or {}
    places = {SCRATCH, *map(posixpath.normpath, volumes)} - {mount["Target"] for mount in mounts}
    host_config = client.api.create_host_config(
        mounts=mounts,
        network_mode=network,
        read_only=True,
        cap_drop=["ALL"],
        security_opt=security.find_options(info),
        pids_limit=processes,
        ulimits=[
            Ulimit(name="fsize", soft=contract.LARGEST_FILE, hard=contract.LARGEST_FILE),
            # The engine's machine decides where core files go, which may be its disk.
            Ulimit(name="core", soft=0, hard=0),
        ],
        mem_limit=memory,
        # The same limit forbids swap, because a worker that swaps measures the disk.
        memswap_limit=memory,
        # A workload that fills this memory gets an error before its container runs out of memory.
        tmpfs=dict.fromkeys(places, f"rw,nosuid,nodev,mode=1777,size={memory // 2}"),
        **more,
        **({"runtime": runtime} if runtime else {}),
    )
    # docker-py accepts only Docker's own way to map users.
    if mapped := security.find_mode(info) if mode is None else mode:
        host_config["UsernsMode"] = mapped
    return host_config


def hand_over(folder: Path, user: tuple[int, int]) -> None:
    """Give root's folder, and what earlier workers left in it, to the user that the worker runs as."""
    if os.getuid() or not folder.is_dir():
        return
    try:
        # Descriptors are used, because another container may share the folder of a GPU and put a link in the way.
        for _, folders, files, within in os.fwalk(folder):
            os.chown(within, *user)
            for name in (*folders, *files):
                os.chown(name, *user, dir_fd=within, follow_symlinks=False)
    except (RecursionError, OSError) as error:
        # Newer Pythons run out of descriptors at this depth, and older ones run out of stack.
        if isinstance(error, OSError) and error.errno != errno.EMFILE:
            raise
        raise EnvironmentFailed(f"{folder} has too many nested folders", "remove it") from error


class Log:
    """A worker's log, cleaned as it is written.

    Text that cannot be written is dropped with a single warning, and never ends a worker.
    """

    def __init__(self, files: WorkerFiles) -> None:
        self._files = files
        self._cleaner = LogCleaner()
        self._path = files.log
        self._warned = False

    def write(self, text: bytes, *, final: bool = False) -> None:
        text = self._cleaner.clean(text, final=final)
        if not text:
            return
        try:
            with open(self._path, "ab", buffering=0, opener=confined.append_opener) as log:
                log.write(text)
            self._files.cut_log()
        except OSError as error:
            if not self._warned:
                print(f"warning: {self._path}: {error.strerror}; lines of this log are missing", file=sys.stderr)
            self._warned = True


class ContainerChannel:
    """A channel attached to a container's stdin and stdout; its stderr goes to a log.

    If the engine itself is gone, and not only the worker, EngineUnavailable is raised.
    """

    def __init__(
        self, client: docker.DockerClient, container: str, version: str, log: Path, results: Path | None = None,
        xla_code: Path | None = None,
    ) -> None:  # fmt: skip
        self._api = client.api
        self._container = container
        self._files = WorkerFiles(log, results, xla_code)
        self._log = Log(self._files)
        self._lines = Lines()
        self._reader = threading.Thread(target=self._read, daemon=True)
        try:
            raw = self._api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            # docker-py wraps the socket for reading only; writing needs the inner one. The response also holds it open.
            self._socket: socket.socket = getattr(raw, "_sock", raw)
            self._answer = getattr(raw, "_response", raw)
            self._socket.settimeout(None)
            self._api.start(container)
        except APIError as error:
            self.close()
            raise EnvironmentFailed(f"its container does not start: {error.explanation}", target=version) from error
        except (DockerException, requests.RequestException, OSError) as error:
            self.close()
            raise EngineUnavailable(
                f"the Docker engine stopped answering while {version} was started: {error}"
            ) from error
        self._reader.start()

    def _read(self) -> None:
        try:
            while frame := self._read_frame():
                stream, payload = frame
                if stream == STDOUT:
                    self._lines.feed(payload)
                elif stream == STDERR:
                    self._log.write(payload)
        except (OSError, contract.ContractError):
            pass
        self._log.write(b"", final=True)
        self._lines.end()

    def _read_frame(self) -> tuple[int, bytes] | None:
        """Read one frame of the engine's stream.

        It consists of one byte for the stream, three zero bytes, four bytes for the length, and the payload.
        """
        header = self._read_exactly(8)
        if header is None:
            return None
        stream, length = struct.unpack(">BxxxL", header)
        payload = self._read_exactly(length)
        return None if payload is None else (stream, payload)

    def _read_exactly(self, count: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < count:
            part = self._socket.recv(count - len(parts))
            if not part:
                return None
            parts += part
        return bytes(parts)

    def send(self, line: str, longest: int = contract.LONGEST_LINE) -> None:
        self._lines.longest = longest
        try:
            self._socket.sendall(line.encode())
        except OSError as error:
            raise ChannelClosed(self._describe_end()) from error

    def receive(self, timeout_s: float) -> str:
        self._files.check_if_due()
        line = self._lines.take(timeout_s, self._files.check)
        if line is None:
            raise ChannelClosed(self._describe_end())
        return line

    @cached_property
    def pid(self) -> int | None:
        """The worker's process group as numbered on this machine; None if the engine runs elsewhere."""
        with suppress(DockerException, requests.RequestException, OSError):
            pid = int(self._api.inspect_container(self._container)["State"]["Pid"])
            # A number from another machine or namespace may be that of any process here.
            if self._container in Path(f"/proc/{pid}/cgroup").read_text():
                return pid
        return None

    def _describe_end(self) -> str:
        # An engine that is being stopped ends its containers, but answers on open connections, so these are closed.
        self._api.close()
        until = time.monotonic() + END_S
        try:
            while (state := self._api.inspect_container(self._container)["State"])["Running"]:
                if time.monotonic() >= until:
                    return "closed its output but still runs"
                time.sleep(POLL_S)
        except NotFound:
            return "lost: its container was removed"
        except (DockerException, requests.RequestException) as error:
            raise EngineUnavailable(f"the Docker engine stopped answering during the run: {error}") from error
        # OOMKilled is also set if only a replicate ran out of memory, whatever ends the container later.
        if state["OOMKilled"] and state["ExitCode"] == 128 + signal.SIGKILL:
            return "out of memory: the container's limit was reached; with fewer versions at a time, each gets more"
        return describe_exit(state["ExitCode"])

    def close(self) -> None:
        if self._reader.is_alive():
            # A worker exits cleanly when its stdin ends; a kill could cut off what it writes last.
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            self._reader.join(EXIT_S)
        if hasattr(self, "_socket"):
            # This wakes the reading thread, which a bare close would leave waiting forever.
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            with suppress(OSError, ValueError, urllib3.exceptions.HTTPError):
                self._answer.close()
            self._socket.close()
        remove_container(self._api, self._container)


def remove_container(api: Any, container: str) -> None:
    with suppress(DockerException, requests.RequestException):
        api.remove_container(container, force=True, v=True)


def find_orphans(client: docker.DockerClient) -> list[str]:
    """Return the containers of runs whose process is gone, since a killed host cannot clean up after itself."""
    containers = client.api.containers(all=True, filters={"label": OWNER_LABEL})
    return [entry["Id"] for entry in containers if is_abandoned(entry["Labels"][OWNER_LABEL], entry["State"])]


def reap_containers(client: docker.DockerClient) -> int:
    """Remove containers that were left behind, and return their number."""
    dead = find_orphans(client)
    for container in dead:
        remove_container(client.api, container)
    return len(dead)
