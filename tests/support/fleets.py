"""A real Ray cluster whose nodes are simulated hosts: they share this machine, and each has its name and its lock."""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.support.processes import PATIENCE_S

RAY = Path(sys.executable).parent / "ray"
STORE_BYTES = 80_000_000
STARTED = "Ray runtime started"
ATTEMPTS = 3
# Of a cluster that ends while Ray still starts a process, as children of children; they end by themselves.
GONE = (ProcessLookupError, FileNotFoundError)


def free_port() -> int:
    """Return a port that nothing listens on, outside of those that Ray gives to its workers."""
    for port in range(20_000 + secrets.randbelow(9_000), 32_000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Nodes:
    """Nodes by name, and the variables with which a command finds them."""

    def __init__(self, variables: dict[str, str]) -> None:
        # Sockets have short paths.
        self.folder = Path(tempfile.mkdtemp(prefix="fleet-", dir="/tmp"))
        self.token = self.folder / "token"
        self.token.write_text(secrets.token_hex(32))
        self.port, self.client_port = free_port(), free_port()
        self.variables = variables
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._start(
            "head", {}, "--head", f"--port={self.port}", f"--ray-client-server-port={self.client_port}",
            "--num-cpus=0", "--include-dashboard=false", f"--temp-dir={self.folder}",
        )  # fmt: skip
        self.wait_for(f"127.0.0.1:{self.client_port}", self.client_port)

    @property
    def env(self) -> dict[str, str]:
        return {
            "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token), "RAY_ADDRESS": f"127.0.0.1:{self.port}",
            **self.variables,
        }  # fmt: skip

    @property
    def address(self) -> str:
        return f"ray://127.0.0.1:{self.client_port}"

    def add(self, name: str, host: str | None = None, **labels: str) -> None:
        listed = ",".join(f"{key}={value}" for key, value in {"host": name, **labels}.items())
        flags = (
            f"--address=127.0.0.1:{self.port}", "--num-cpus=1", '--resources={"bench_slot": 1}', f"--labels={listed}",
        )  # fmt: skip
        # On a busy machine, Ray may give a node up that does not answer within 30 s.
        for _ in range(ATTEMPTS):
            self._start(name, {"TFCOMPARE_HOST": host or name}, *flags)
            if self._has_joined(name):
                return
        raise AssertionError((self.folder / f"{name}.log").read_text())

    def _has_joined(self, name: str) -> bool:
        """Wait until a node has joined or ended: two that begin at once on one machine get into each other's way."""
        until = time.monotonic() + PATIENCE_S
        log = self.folder / f"{name}.log"
        while STARTED not in log.read_text():
            if self.processes[name].poll() is not None:
                return False
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        return True

    def _start(self, name: str, variables: dict[str, str], *flags: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [
                    RAY, "start", "--block", "--num-gpus=0", "--disable-usage-stats", "--dashboard-agent-listen-port=0",
                    f"--object-store-memory={STORE_BYTES}", *flags,
                ],
                env={**os.environ, **self.env, **variables}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def wait_for(self, what: str, port: int) -> None:
        until = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            assert time.monotonic() < until, f"{what} does not answer: {(self.folder / 'head.log').read_text()}"
            time.sleep(0.1)

    def kill(self, name: str, process: str = "raylet") -> None:
        """Kill a process of a node, as if its machine had died."""
        for pid in below(self.processes[name].pid):
            with suppress(*GONE):
                if re.search(process, Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()):
                    os.kill(pid, signal.SIGKILL)

    def end(self, name: str) -> None:
        process = self.processes.pop(name)
        for pid in (*below(process.pid), process.pid):
            with suppress(*GONE):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for name in tuple(self.processes):
            self.end(name)
        shutil.rmtree(self.folder, ignore_errors=True)


def below(pid: int) -> list[int]:
    """Return all processes that a process has started, and those that these have."""
    found = []
    with suppress(*GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *below(child)]
    return found
