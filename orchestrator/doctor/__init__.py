"""Findings about what this machine can run and how noisy it is, each with advice."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["problem", "note", "fine"]
STYLES: dict[Level, str] = {"problem": "bold red", "note": "yellow", "fine": "green"}


@dataclass(frozen=True)
class DoctorFinding:
    """An observation on this machine, how good or bad it is, and what to do about it."""

    subject: str
    level: Level
    seen: str
    advice: str = ""
