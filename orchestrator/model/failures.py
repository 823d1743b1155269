"""The kinds of failure: what an arm or a worker died of, and whether it is tried again when its run is continued."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

FailureKind = Literal[
    "disk", "memory", "signal", "deadline", "gpu", "start", "import", "worker", "workload", "contract"
]
# A kind whose name says too little.
TITLES: Mapping[FailureKind, str] = {"gpu": "lost GPU"}


@dataclass(frozen=True)
class DeathCause:
    """What an arm or a worker died of.

    External is what its code did not cause: a full disk, a machine without memory, a signal from another process, a
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
