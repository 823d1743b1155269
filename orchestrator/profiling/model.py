"""The profiles of several versions, and where they are kept. This module has no side effects."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from orchestrator.errors import TfCompareError
from orchestrator.model import STRICT, Case, Target
from orchestrator.model.profile import ProfiledArm

LONGEST_NAME = 150
FILE_LABEL = re.compile(r"[\w.-]+(\[[\w.=,-]*\])?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Heading:
    """The facts about a profile: what was profiled, and where."""

    __pydantic_config__ = STRICT

    run: str
    created: datetime
    engine: str
    device: str
    host: dict[str, str | int | float | None]
    targets: tuple[Target, ...]
    cases: tuple[Case, ...]
    calls: int
    seed: int
    top: int
    pythons: dict[Target, str]


@dataclass(frozen=True, kw_only=True)
class ProfileResult:
    """The result of `tfcompare profile`: its arms by case, and where its files are.

    `error` is what cut it short, if anything.
    """

    heading: Heading
    arms: tuple[ProfiledArm, ...]
    path: Path
    error: TfCompareError | None = None


def stem(case: Case, target: Target) -> str:
    """Return a file name for an arm.

    If labels cannot be used as file names, a digest keeps them apart.
    """
    name = case.label.removesuffix("]").replace("[", ",")
    if len(name) > LONGEST_NAME or not FILE_LABEL.fullmatch(case.label):
        digest = hashlib.sha256(case.label.encode()).hexdigest()[:8]
        name = re.sub(r"[^\w.=,-]+", "-", name)[:LONGEST_NAME] + f"-{digest}"
    return f"{name}-{target}"
