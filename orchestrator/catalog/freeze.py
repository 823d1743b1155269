"""A file of an environment's packages, as `pip freeze` prints it: its releases, its TensorFlow, and all else in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from orchestrator import files
from orchestrator.catalog.targets import TENSORFLOWS
from orchestrator.errors import UsageError
from orchestrator.redact import mask_login

# No environment has more packages.
MOST_BYTES = 2**20
# A line that names a file, a folder or an address, or that is an option of pip.
NO_RELEASE = re.compile(r"-|\.{0,2}/|[\w+.-]+:/|[^=<>~!;\s]+\.(whl|zip|tar\.gz)(\s|$)")


@dataclass(frozen=True)
class Freeze:
    """The packages of an environment: each as a requirement, without TensorFlow, whose number is apart."""

    path: Path
    pins: tuple[str, ...]
    # This is the number of TensorFlow, or '' if the file names none exactly.
    number: str
    # These lines are not releases of the index.
    left_out: tuple[str, ...]


def read_freeze(path: Path) -> Freeze:
    """Read a file of packages; raise UsageError, with the line, for anything else."""
    try:
        status = path.stat()
        return _read(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise UsageError(f"freeze={path}: {error.strerror}; name a file that `pip freeze` wrote") from error


@cache
def _read(path: Path, size: int, modified_ns: int) -> Freeze:
    try:
        text = files.read_named(path, MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"freeze={path}: it is no text, and so no file that `pip freeze` wrote") from error
    pins: list[str] = []
    left_out: list[str] = []
    numbers: list[str] = []
    for number, line in _join_lines(text):
        if NO_RELEASE.match(line):
            left_out.append(mask_login(line))
            continue
        requirement = _read_requirement(path, number, line)
        if requirement.url:
            left_out.append(mask_login(line))
        elif canonicalize_name(requirement.name) in TENSORFLOWS:
            numbers += [each.version for each in requirement.specifier if each.operator in ("==", "===")]
        else:
            pins.append(str(requirement))
    if len(set(numbers)) > 1:
        raise UsageError(f"freeze={path}: TensorFlow is pinned twice in it, as {' and '.join(dict.fromkeys(numbers))}")
    if not (pins or numbers):
        what = f": {left_out[0]} and the like are left out" if left_out else ""
        raise UsageError(f"freeze={path}: no release of a package is in it{what}")
    return Freeze(path, tuple(pins), numbers[0] if numbers else "", tuple(left_out))


def _join_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield what the file states, with the number of its first line: without comments, and with continued lines."""
    stated, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        part = re.sub(r"(^|\s)#.*", "", line).strip()
        first = first or number
        stated = f"{stated} {part.removesuffix(chr(92)).strip()}".strip()
        if part.endswith("\\"):
            continue
        if stated:
            yield first, stated
        stated, first = "", 0
    if stated:
        yield first, stated


def _read_requirement(path: Path, number: int, line: str) -> Requirement:
    """Return what a line requires, without its hashes: the target's lock has those of the index."""
    text = re.sub(r"\s--hash[=\s]\S+", "", line)
    try:
        if not text.isprintable():
            raise InvalidRequirement("it has characters that cannot be printed")
        return Requirement(text)
    except InvalidRequirement as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(
            f"freeze={path}, line {number}: {line[:80]!r} is no line that `pip freeze` prints: {reason}"
        ) from error
