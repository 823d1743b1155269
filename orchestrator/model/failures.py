"""The kinds of failure of an arm or a worker, and whether it is tried again when its run is continued."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FailureKind = Literal[
    "disk", "memory", "signal", "deadline", "gpu", "start", "import", "worker", "workload", "contract"
]
# Kinds whose names say too little have a title.
TITLES: Mapping[FailureKind, str] = {"gpu": "lost GPU"}


@dataclass(frozen=True)
class DeathCause:
    """The cause of death of an arm or a worker.

    It is external if the code did not cause it: a full disk, a machine without memory, a signal from another process, a
    lost GPU, a worker that died with it. `reason` is the one line that people read.
    """

    kind: FailureKind
    reason: str
    external: bool = False


def describe_failure(kind: FailureKind | None, *, external: bool = False) -> str:
    """Return the kind in brackets, after a space; '' if it is not known."""
    if kind is None:
        return ""
    return f" ({TITLES.get(kind, kind)}{', --resume tries it again' if external else ''})"
