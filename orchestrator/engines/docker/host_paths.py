"""Translate folders for a tfcompare that runs in a container of the same Docker engine.

A folder that such a container mounts has a different path outside it, and any other folder does not exist outside.
there.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import docker
from docker.errors import NotFound

from orchestrator import files
from orchestrator.catalog.user_data import cache
from orchestrator.errors import EnvironmentFailed

MOUNTS = Path("/proc/self/mountinfo")
# The engine puts these files into every container, even into one with its own host name or with the host's network.
OWN_ID = re.compile(r"/containers/([0-9a-f]{64})/(?:hostname|hosts|resolv\.conf) ")


def mounts(client: docker.DockerClient) -> dict[Path, Path] | None:
    """Return the outside paths of this container's mounts, or None if it is not a container of this engine."""
    try:
        match = OWN_ID.search(MOUNTS.read_text(errors="replace"))
    except OSError:
        return None
    if match is None:
        return None
    try:
        container = client.api.inspect_container(match[1])
    except NotFound:
        # The container belongs to another engine; this one runs in here, or elsewhere.
        return None
    return {Path(mount["Destination"]): Path(mount["Source"]) for mount in container["Mounts"] if mount.get("Source")}


def find_engine_path(path: Path, mounted: Mapping[Path, Path] | None) -> Path | None:
    """Return where the engine sees a path, or None."""
    path = path.resolve()
    if mounted is None:
        return path
    for folder in (path, *path.parents):
        if folder in mounted:
            return mounted[folder] / path.relative_to(folder)
    return None


def source(path: Path, mounted: Mapping[Path, Path] | None, *, read_only: bool) -> Path:
    """Return the path to mount for a folder or a file.

    If it is only read, this may be a copy that the engine sees and that the worker's user may read.
    """
    engine_path = find_engine_path(path, mounted)
    if path.is_file() and not _readable(path):
        raise EnvironmentFailed(f"{path}: root's workers run as another user, who cannot read it; run chmod o+r {path}")
    if engine_path and (not read_only or path.is_file() or _readable(path)):
        return engine_path
    if read_only and (engine_path := find_engine_path(_copy(path), mounted)):
        return engine_path
    raise EnvironmentFailed(
        f"the Docker engine does not see {path if not read_only else cache()}: tfcompare runs in a container, and that "
        "folder is in none of its volumes. Mount one there, as docker-compose.yml does"
    )


def _readable(path: Path) -> bool:
    """Return whether root's workers, which do not run as root, can read a path."""
    if os.getuid():
        return True
    within = [inner for inner in (path, *path.rglob("*")) if inner.exists() and "__pycache__" not in inner.parts]
    needed = {inner: 0o005 if inner.is_dir() else 0o004 for inner in within}
    return all(inner.stat().st_mode & bits == bits for inner, bits in needed.items())


def _copy(folder: Path) -> Path:
    """Return a copy of a folder, named after its contents so that it is made only once."""
    originals = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    digest = hashlib.sha256()
    for path in originals:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(content)}\n".encode() + content)
    copy = cache() / "seen" / digest.hexdigest()[:16]
    if copy.is_dir():
        return copy
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        with files.make_folder_atomically(copy) as partial:
            for path in originals:
                duplicate = partial / path.relative_to(folder)
                duplicate.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, duplicate)
                duplicate.chmod(0o644)
            for inner in (partial, *(path for path in partial.rglob("*") if path.is_dir())):
                inner.chmod(0o755)
    except OSError as error:
        # Another process may already have made the same copy.
        if not copy.is_dir():
            raise EnvironmentFailed(
                f"cannot write {copy}: {error.strerror}; set TFCOMPARE_CACHE to another folder"
            ) from error
    return copy
