"""A real registry of this machine."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Registry:
    address: str
    storage: Path

    def blob(self, digest: str) -> Path:
        """The file that holds what a digest names."""
        kind, _, name = digest.partition(":")
        return self.storage / "docker/registry/v2/blobs" / kind / name[:2] / name / "data"


@contextmanager
def registry(
    folder: Path, host: str = "127.0.0.1", tls: tuple[Path, Path] | None = None, users: Path | None = None
) -> Iterator[Registry]:
    """With `tls`, a certificate and its key; with `users`, a file of htpasswd whose users alone are let in."""
    if not shutil.which("docker-registry"):
        pytest.skip("no registry: apt-get install docker-registry")
    config = folder / "registry.yml"
    secured = f", tls: {{certificate: '{tls[0]}', key: '{tls[1]}'}}" if tls else ""
    # Port 0: the system chooses, and the registry's log tells.
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder / 'registry'}}}}}\n"
        f"http: {{addr: '{host}:0'{secured}}}\nlog: {{level: info, formatter: json}}\n"
        + (f"auth: {{htpasswd: {{realm: closed, path: '{users}'}}}}\n" if users else "")
    )
    log = folder / "registry.log"
    with log.open("wb") as output:
        process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + 30
        while "listening on" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        port = log.read_text().partition(f"listening on {host}:")[2].split('"')[0].split(",")[0].rstrip("\\")
        yield Registry(f"{host}:{port}", folder / "registry")
    finally:
        process.kill()
        process.wait()
