"""An image of the user's own that holds TensorFlow: used as it is, with the one package that it may lack mounted.

What is inside is looked at once: it takes a while, and an image never changes.
"""

import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import docker
from pydantic import ValidationError

from orchestrator import catalog, files
from orchestrator.catalog import lockfile
from orchestrator.catalog.lock_on_demand import PLATFORM, find_uv
from orchestrator.engines import Outlook
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import image
from orchestrator.engines.docker.inside import Inside, look
from orchestrator.engines.environment import cache
from orchestrator.errors import EnvironmentFailed

ARCHITECTURE = "amd64"
# It reads and writes the results of a worker.
NEEDED = "pyarrow"
INSTALL_TIMEOUT_S = 600
MOST_BYTES = 2**24


@dataclass(frozen=True)
class OwnImage:
    """An image by its id, its digest in a registry if it has one, and what the worker needs in addition."""

    identity: str
    digest: str
    inside: Inside
    library: Path | None


def outlook(client: docker.DockerClient, reference: str) -> Outlook:
    if missing := image.base_missing(client, reference):
        return Outlook("impossible", missing.replace("its base", "its image", 1))
    here = bool(image.local_id(client, reference))
    return Outlook("ready", f"ready ({reference})") if here else Outlook("to build", f"to be pulled: {reference}")


def find(client: docker.DockerClient, version: str, reference: str, log: BuildLog) -> OwnImage:
    """Return the image with this name, pulled unless it is here; raise EnvironmentFailed if it cannot be used."""
    if not image.local_id(client, reference) and (message := image.pull(client, reference, log)):
        raise EnvironmentFailed(
            f"{reference} is neither here nor could it be pulled: {message.strip()}", version=version
        )
    found = client.images.get(reference)
    built_for = found.attrs.get("Architecture", "")
    if built_for != ARCHITECTURE:
        raise EnvironmentFailed(
            f"{reference} is an image for {built_for}, and this needs {ARCHITECTURE}", version=version
        )
    identity = str(found.id)
    inside = _look_once(client, identity, version, reference, log)
    if inside.imported.error or not inside.imported.tensorflow:
        why = inside.imported.error or "its Python has no package of that name"
        raise EnvironmentFailed(f"{reference} holds no TensorFlow that can be imported: {why}", version=version)
    digests = found.attrs.get("RepoDigests") or [""]
    return OwnImage(identity, str(digests[0]).partition("@")[2], inside, _find_library(inside, version, reference))


def _look_once(client: docker.DockerClient, identity: str, version: str, reference: str, log: BuildLog) -> Inside:
    path = cache() / "images" / f"{identity.partition(':')[2]}.json"
    with suppress(OSError, ValidationError):
        return Inside.model_validate_json(files.read_named(path, MOST_BYTES))
    log.line(f"looking into {reference}")
    inside = look(client, identity, version, own=True)
    if isinstance(inside, str):
        raise EnvironmentFailed(f"{reference}: nothing could be learned from inside: {inside}", version=version)
    # Without a cache it is looked at again.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, inside.model_dump_json().encode())
    return inside


def _find_library(inside: Inside, version: str, reference: str) -> Path | None:
    """Return a folder with what the worker needs and the image lacks, made if it is not there yet."""
    if NEEDED in inside.distributions:
        return None
    python = catalog.minor(inside.python)
    known = catalog.builtin_catalogue().python
    if python not in known:
        raise EnvironmentFailed(
            f"{reference} has Python {inside.python} and no {NEEDED}; tfcompare brings it for {', '.join(known)}",
            version=version,
        )
    folder = cache() / "library" / f"{NEEDED}-{known[python].pyarrow}-py{python}"
    if not folder.is_dir():
        try:
            _install(python, folder)
        except (OSError, subprocess.SubprocessError) as error:
            said = str(getattr(error, "stderr", None) or error).strip()
            raise EnvironmentFailed(
                f"{NEEDED} for {reference} could not be installed: {said}", version=version
            ) from error
    return folder


def _install(python: str, folder: Path) -> None:
    """Install the package from a lock, into a new folder that gets its name when it is complete."""
    uv = find_uv()
    if uv is None:
        raise OSError("uv is not on PATH: pip install uv")
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        lock = made / "lock.txt"
        lock.write_text(_find_lock_line(python))
        into = ["--target", str(made / "packages"), "--python-version", python, "--python-platform", PLATFORM]
        how = ["--no-config", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
        command = [uv, "pip", "install", *how, *into, "-r", str(lock)]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
        with suppress(FileExistsError):
            (made / "packages").rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _find_lock_line(python: str) -> str:
    """Return the line of the table's locks for this Python."""
    number = catalog.builtin_catalogue().python[python].pyarrow
    for path in sorted(catalog.LOCKS.glob(f"*-cpu-py{python}.txt")):
        for pin in lockfile.read(path):
            if (pin.name, pin.number) == (NEEDED, number):
                return f"{lockfile.write_pin(pin)}\n"
    raise OSError(f"no lock of the table has {NEEDED} {number} for Python {python}")
