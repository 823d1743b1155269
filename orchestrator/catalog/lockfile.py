"""A lock as written in its file: what is installed, in which version, and which files are allowed."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from orchestrator import files
from orchestrator.errors import UsageError

# No lock is larger. The longest has a few hundred kilobytes.
MOST_BYTES = 2**24

# A target that shares less with an environment or image is made from nothing instead.
LEAST_SHARED = 0.5

# This matches the name of a package.
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
PIN = re.compile(rf"(?P<name>{NAME})(?:\[[\w, .-]*\])?==(?P<number>[^\s;]+)(?:\s*;.*)?")
HASH = re.compile(r"--hash=sha256:(?P<digest>[0-9a-f]{64})")


@dataclass(frozen=True)
class Pin:
    name: str
    number: str
    # These are the SHA-256 digests of all files of it that may be installed, in hexadecimal.
    hashes: tuple[str, ...]


def content(path: Path) -> bytes:
    try:
        return files.read_named(path, MOST_BYTES)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: there is no such lock; `python tools/lock.py` writes those of the table") from error
    except OSError as error:
        raise UsageError(f"{path}: this lock cannot be read: {error.strerror}") from error


def read_lock(path: Path) -> tuple[Pin, ...]:
    """Read a lock.

    Raises UsageError, with the line, if the file is not a lock with a hash for everything that it names.
    """
    pins: list[Pin] = []
    pin: Pin | None = None
    first_line = 0
    for number, line in enumerate([*content(path).decode(errors="replace").splitlines(), ""], 1):
        stated = line.strip()
        part, continues = (stated[:-1].strip(), True) if stated.endswith("\\") else (stated, False)
        if pin is None:
            if not part or part.startswith("#"):
                continue
            what, dashes, hashes = part.partition("--hash=")
            if (match := PIN.fullmatch(what.strip())) is None:
                raise UsageError(
                    f"{path}, line {number}: {part!r} is no locked requirement, like name==1.0 --hash=sha256:..."
                )
            pin = Pin(match["name"], match["number"], _hashes(path, number, dashes + hashes) if dashes else ())
            first_line = number
        elif part:
            pin = Pin(pin.name, pin.number, pin.hashes + _hashes(path, number, part))
        if continues:
            continue
        if not pin.hashes:
            raise UsageError(f"{path}, line {first_line}: {pin.name} has no hash, so any file would do; lock it again")
        pins.append(pin)
        pin = None
    return tuple(pins)


def remove_pin(text: str, name: str) -> str:
    """Return the text of a lock without what it has of a package."""
    return re.sub(rf"^{re.escape(name)}(\[[^\]]*\])?==(?:.*\\\n)*.*\n?", "", text, flags=re.MULTILINE)


def locate_wheel(text: bytes, wheel: Path) -> bytes:
    """Return a lock whose last line, the pin of a wheel that no index has, says where the wheel is.

    If the pin had a number, pip would take the file of an index and find that its hash is different.
    """
    before, _, pin = text.decode().rstrip().rpartition("\n")
    name, _, digest = pin.partition(" ")
    return f"{before}\n{name.partition('==')[0]} @ {wheel.as_uri()} {digest}\n".encode()


def describe_wheel(flavour_lock: Path, wheel: Path | None) -> dict[str, str]:
    """Return what a run records of a wheel: its name, and the beginning of its hash."""
    return {"wheel": f"{wheel.name} {read_lock(flavour_lock)[-1].hashes[0][:12]}"} if wheel else {}


def normalize(name: str) -> str:
    """Return a package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write_pin(pin: Pin) -> str:
    return " ".join([f"{pin.name}=={pin.number}", *(f"--hash=sha256:{digest}" for digest in pin.hashes)])


def list_packages(*paths: Path) -> dict[str, str]:
    """Return the name and number of everything that is installed from these locks; later locks take precedence."""
    return {normalize(pin.name): pin.number for path in paths for pin in read_lock(path)}


def describe_pins(pins: Iterable[Pin]) -> dict[str, str]:
    """Return what identifies the files of each package, by its name; later pins take precedence."""
    return {
        normalize(pin.name): f"{pin.number} {hashlib.sha256(' '.join(sorted(pin.hashes)).encode()).hexdigest()}"
        for pin in pins
    }


@dataclass(frozen=True)
class LockDifference:
    """What a lock has and another one has not, or has in another version or file; and what only the other one has."""

    changed: tuple[Pin, ...]
    gone: tuple[str, ...]
    # This is the number of packages that both have alike.
    alike: int


def compare_locks(one: Path, other: Path) -> LockDifference:
    """Return how the other lock differs from the first one."""
    pins = read_lock(other)
    before, after = describe_pins(read_lock(one)), describe_pins(pins)
    changed = tuple(pin for pin in pins if before.get(normalize(pin.name)) != after[normalize(pin.name)])
    return LockDifference(changed, tuple(sorted(before.keys() - after.keys())), len(after) - len(changed))


def check_locks(*paths: Path) -> None:
    """Raise UsageError unless all of these files are locks, before anything is built from them."""
    for path in paths:
        read_lock(path)


def _hashes(path: Path, number: int, part: str) -> tuple[str, ...]:
    matches = [(word, HASH.fullmatch(word)) for word in part.split()]
    if wrong := [word for word, match in matches if match is None]:
        raise UsageError(f"{path}, line {number}: {wrong[0]!r} is no hash: --hash=sha256: and 64 hexadecimal digits")
    return tuple(match["digest"] for _, match in matches if match)
