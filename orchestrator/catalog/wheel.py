"""A user's own wheel: its content, the Pythons that it is for, and its requirements."""

import hashlib
import re
import zipfile
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from functools import cache
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from orchestrator.catalog.workloads import check_requirements
from orchestrator.errors import UsageError
from orchestrator.machine.supported import find_architecture

# No package has larger metadata.
MOST_METADATA = 2**20


@dataclass(frozen=True)
class Wheel:
    path: Path
    # This is the name of the distribution that it installs.
    name: str
    number: str
    # The wheel is for these Pythons, e.g. 3.11. An empty list means any.
    pythons: tuple[str, ...]
    requirements: tuple[str, ...]
    digest: str
    is_tensorflow: bool

    @property
    def pin(self) -> str:
        """The line of a lock that allows this file alone."""
        return f"{self.name}=={self.number} --hash=sha256:{self.digest}\n"


def read_wheel(path: Path) -> Wheel:
    """Read a wheel of TensorFlow; raise UsageError for any other file."""
    wheel = _read_file(path)
    if not wheel.is_tensorflow:
        raise UsageError(
            f"wheel={path}: it contains no package `tensorflow`; put a wheel of another package after a version, as in "
            f"`2.20 wheel={path.name}`"
        )
    return wheel


def read_package(path: Path) -> Wheel:
    """Read a wheel of another package than TensorFlow; raise UsageError for any other file."""
    wheel = _read_file(path)
    if wheel.is_tensorflow:
        raise UsageError(f"wheel={path}: it contains TensorFlow itself; remove the version in front of it")
    return wheel


def _read_file(path: Path) -> Wheel:
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(f"wheel={path}: {error.strerror}; give the path of a wheel file") from error
    return _read(path, status.st_size, status.st_mtime_ns)


@cache
def _read(path: Path, size: int, modified_ns: int) -> Wheel:
    try:
        name, number, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise UsageError(f"wheel={path}: {error}; a wheel must keep the file name that it was built with") from error
    here = find_architecture().name
    known = ("manylinux", f"linux_{here}")
    fitting = [
        tag for tag in tags if tag.platform == "any" or (tag.platform.startswith(known) and tag.platform.endswith(here))
    ]
    if not fitting:
        platforms = ", ".join(sorted({tag.platform for tag in tags}))
        raise UsageError(f"wheel={path}: it is for {platforms}, but targets run on Linux on {here}")
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        with zipfile.ZipFile(path) as archive:
            requirements = _requirements(archive)
            is_tensorflow = any(entry.startswith("tensorflow/") for entry in archive.namelist())
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"wheel={path}: it cannot be read as a wheel: {error}") from error
    check_requirements(f"wheel={path}: its metadata", requirements)
    # A tag such as cp311 is for one Python; other tags allow any Python.
    matches = (re.fullmatch(r"cp3(\d+)", tag.interpreter) for tag in fitting)
    pythons = sorted({f"3.{match[1]}" for match in matches if match})
    return Wheel(path, name, str(number), tuple(pythons), requirements, digest, is_tensorflow)


def _requirements(archive: zipfile.ZipFile) -> tuple[str, ...]:
    """Return what the wheel needs without any of its extras."""
    for entry in archive.infolist():
        folder, _, file = entry.filename.partition("/")
        if folder.endswith(".dist-info") and file == "METADATA" and entry.file_size <= MOST_METADATA:
            headers = BytesHeaderParser().parsebytes(archive.read(entry))
            needed = map(str, headers.get_all("Requires-Dist") or ())
            return tuple(filter(None, map(_without_extra, needed)))
    raise zipfile.BadZipFile("it has no metadata")


def _without_extra(text: str) -> str:
    """Return a requirement, or '' if only an extra needs it."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise zipfile.BadZipFile(f"{text!r} in its metadata is not a valid requirement") from error
    return "" if requirement.marker and "extra" in str(requirement.marker) else str(requirement)
