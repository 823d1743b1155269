"""Packages made on the spot, locks of them, and an index that serves them only to who knows its password."""

import base64
import hashlib
import io
import shutil
import ssl
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from orchestrator.engines.venv import interpreters
from tests.support import stub

USER, PASSWORD = "somebody@example", "p%ss w0rd/extremely:secret"
LOGIN = f"{quote(USER, safe='')}:{quote(PASSWORD, safe='')}"


def wheel(folder: Path, name: str, number: str = "1.0", code: str = "", needs: Sequence[str] = ()) -> Path:
    """A package with one module of its own name."""
    path = folder / f"{name}-{number}-py3-none-any.whl"
    info = f"{name}-{number}.dist-info"
    members = {
        f"{name}.py": code or f"NUMBER = {number!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {number}\n"
        + "".join(f"Requires-Dist: {each}\n" for each in needs),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    members[f"{info}/RECORD"] = "".join(f"{member},,\n" for member in [*members, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(zipfile.ZipInfo(member), text)
    return path


BACKEND = """
import os, zipfile
open({marker!r}, "a").write(repr(dict(os.environ)))

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "{name}-{number}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        for member, text in {members!r}.items():
            archive.writestr(member, text)
    return name
"""


def source(folder: Path, name: str, number: str, marker: Path) -> Path:
    """A package that comes as source and that writes down, where it is built, which variables are there."""
    path, info = folder / f"{name}-{number}.tar.gz", f"{name}-{number}.dist-info"
    members = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    files = {
        # An old form, so that resolvers cannot do without building it.
        "PKG-INFO": members[f"{info}/METADATA"].replace("2.1", "1.0"),
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BACKEND.format(marker=str(marker), name=name, number=number, members=members),
    }
    with tarfile.open(path, "w:gz") as archive:
        for member, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{number}/{member}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def own_tensorflow(
    folder: Path,
    *,
    number: str = "2.15.1+mine",
    tags: str = "cp311-cp311-linux_x86_64",
    needs: Sequence[str] = ("numpy",),
    code: str = "",
) -> Path:
    """A wheel that holds the stub of TensorFlow, with some code at its end."""
    path, info = folder / f"tensorflow_cpu-{number}-{tags}.whl", f"tensorflow_cpu-{number}.dist-info"
    needed = "".join(f"Requires-Dist: {each}\n" for each in needs)
    with TemporaryDirectory() as made:
        package = stub.write(Path(made), number)
        members = {file.relative_to(package).as_posix(): file.read_text() for file in sorted(package.rglob("*.py"))}
    members["tensorflow/__init__.py"] += code
    members |= {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tensorflow-cpu\nVersion: {number}\n{needed}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tags}\n",
    }
    members[f"{info}/RECORD"] = "".join(f"{member},,\n" for member in [*members, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(zipfile.ZipInfo(member), text)
    return path


def own_pip(folder: Path, python: str) -> Path:
    """The pip that comes with a Python: what installs the others, without asking anybody for it."""
    found = interpreters.find_interpreter(python)
    assert found is not None, f"these tests need a Python {python} on this machine"
    [bundled] = Path(found.prefix).glob(f"lib/python{python}/ensurepip/_bundled/pip-*.whl")
    return Path(shutil.copy(bundled, folder))


def project(path: Path) -> str:
    return path.name.partition("-")[0].replace("_", "-").lower()


def locked(*packages: Path) -> str:
    """A lock of these files."""
    lines = []
    for path in packages:
        number = path.name.removesuffix(".tar.gz").split("-")[1]
        lines.append(f"{project(path)}=={number} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n")
    return "".join(lines)


@dataclass
class Little:
    """A running index; what it was asked, and whether each asked with the password."""

    port: int
    asked: list[tuple[str, bool]] = field(default_factory=list)
    # How it fails, for tests of that: a status for all that it is asked for, or half of every file.
    status: int = 0
    halves: bool = False

    @property
    def url(self) -> str:
        return f"http://{LOGIN}@127.0.0.1:{self.port}/simple"

    @property
    def without_login(self) -> str:
        return f"http://127.0.0.1:{self.port}/simple"


def self_signed(folder: Path, host: str) -> tuple[Path, Path]:
    """A certificate for an address, which nobody has to trust, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=little",
         "-addext", f"subjectAltName=IP:{host}", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


@contextmanager
def little_index(packages: Path, tls: tuple[Path, Path] | None = None) -> Iterator[Little]:
    """Serves the files of a folder like an index: pages under /simple, files elsewhere, all for the password only."""
    right = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers.get("Authorization") == right
            little.asked.append((self.path, known))
            kind, _, rest = self.path.strip("/").partition("/")
            files = sorted(path for path in packages.iterdir() if project(path) == rest)
            if not known or little.status:
                self.send_response(little.status or 401)
                self.end_headers()
            elif kind == "simple" and files:
                self._send("".join(f'<a href="../../files/{path.name}">{path.name}</a>' for path in files).encode())
            elif kind == "files":
                self._send((packages / rest).read_bytes(), half=little.halves)
            else:
                self.send_error(404)

        def _send(self, body: bytes, half: bool = False) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if self.path.startswith("/simple") else "application/zip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if half else body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if tls:
            secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            secured.load_cert_chain(*tls)
            server.socket = secured.wrap_socket(server.socket, server_side=True)
        little = Little(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield little
        finally:
            server.shutdown()
            thread.join()
