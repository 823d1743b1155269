"""Systems on which nothing can be measured, and what to do there instead.

This module also has to work on such a system, so it imports nothing that exists only on Linux.
"""

import os
import platform
from dataclasses import dataclass

ELSEWHERE = {
    "Darwin": ("macOS", "use it in a Linux virtual machine, or on a Linux machine over ssh"),
    "Windows": ("Windows", "install WSL 2 (`wsl --install`), and use it in there"),
}
# The wheels for both architectures need this C library, or a newer one.
OLDEST_GLIBC = (2, 28)


@dataclass(frozen=True)
class Architecture:
    """A kind of machine that TensorFlow has wheels for: its name in wheels, and in images."""

    name: str
    image: str
    # This is the first release with wheels for Linux on it.
    first: tuple[int, int] = (0, 0)

    @property
    def is_usual(self) -> bool:
        """Whether the table of versions and its locks are for it."""
        return self is USUAL


USUAL = Architecture("x86_64", "amd64")
ARM = Architecture("aarch64", "arm64", (2, 10))
NAMES = {"x86_64": USUAL, "amd64": USUAL, "aarch64": ARM, "arm64": ARM}


def find_architecture() -> Architecture:
    """Return the architecture of this machine; `find_system_obstacle` reports machines of any other architecture."""
    return NAMES.get(platform.machine().lower(), USUAL)


def find_system_obstacle() -> str:
    """Return in one line why nothing can be measured on this system, and what to do instead, or ''."""
    system, machine = platform.system(), platform.machine()
    if system != "Linux":
        name, advice = ELSEWHERE.get(system.partition("_")[0], (system, "use it on a Linux machine"))
        return f"tfcompare works on Linux only, and this is {name}: {advice}"
    if machine.lower() not in NAMES:
        return f"TensorFlow has no wheel for Linux on {machine}: use a machine with x86-64 or 64-bit ARM"
    return ""


def find_libc_obstacle() -> str:
    """Return why no wheel of TensorFlow runs on this system's C library, or ''."""
    try:
        _, _, number = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition("glibc ")
    except (OSError, ValueError):
        number = ""
    if not number:
        return "TensorFlow's wheels need glibc, and this system has another C library, such as musl"
    if tuple(map(int, number.split(".")[:2])) < OLDEST_GLIBC:
        return f"the wheels need glibc {'.'.join(map(str, OLDEST_GLIBC))} or newer, and this system has {number}"
    return ""
