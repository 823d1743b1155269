"""What this machine can run, and how noisy it is: findings, each with advice."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["problem", "note", "fine"]
STYLES: dict[Level, str] = {"problem": "bold red", "note": "yellow", "fine": "green"}


@dataclass(frozen=True)
class DoctorFinding:
    """What was seen on this machine, how good it is, and what to do about it."""

    subject: str
    level: Level
    seen: str
    advice: str = ""
