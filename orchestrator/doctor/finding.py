"""A finding about this machine: what was seen, how good it is, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["problem", "note", "fine"]
STYLES: dict[Level, str] = {"problem": "bold red", "note": "yellow", "fine": "green"}


@dataclass(frozen=True)
class DoctorFinding:
    subject: str
    level: Level
    seen: str
    advice: str = ""
