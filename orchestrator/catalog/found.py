"""The result of each claim in the last run that was committed: workloads/claims/found.json, written by a tool."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.bundled import WORKLOADS
from orchestrator.model import STRICT

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FOUND = WORKLOADS / "claims" / "found.json"


@dataclass(frozen=True, kw_only=True)
class FoundCheck:
    """One statement of a claim: what was compared, what was expected, and what was seen."""

    __pydantic_config__ = STRICT

    subject: str
    expected: str
    seen: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a claim, and when and on which machine it was found."""

    __pydantic_config__ = STRICT

    answer: str
    reason: str
    date: str
    machine: str
    checks: tuple[FoundCheck, ...]

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.answer}{reason}, {self.date}, {self.machine}"


def write_found(found: Mapping[str, Found], path: Path = FOUND) -> None:
    path.write_bytes(_adapter().dump_json(dict(sorted(found.items())), indent=1) + b"\n")


@cache
def all_found() -> Mapping[str, Found]:
    return _adapter().validate_json(FOUND.read_bytes()) if FOUND.exists() else {}


def _adapter() -> "TypeAdapter[dict[str, Found]]":
    from pydantic import TypeAdapter  # Only commands that show claims need it, and it takes long to import.

    return TypeAdapter(dict[str, Found])
