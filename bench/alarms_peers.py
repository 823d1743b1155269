"""asv's step detection and apache-otava on series of nights, run again every night, as a team would use them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

from asv import step_detect

from bench.peers.places import HERE, KEPT, call

# What is found on a night of a series: where a step begins, and whether it is slower.
Found = list[tuple[int, bool]]
# A night's place in a series, and what is found then.
ByNight = list[tuple[int, Found]]


@dataclass(frozen=True)
class Nightly:
    """The effects of a series on the log scale, their standard errors, and the first night on which a tool looks."""

    effects: tuple[float, ...]
    errors: tuple[float, ...]
    since: int


def by_asv(series: Nightly, thresholds: Sequence[float]) -> list[ByNight]:
    """Find regressions as `asv publish` does (only slower ones), under each threshold."""
    found: list[ByNight] = [[] for _ in thresholds]
    ratios = [exp(effect) for effect in series.effects]
    # asv weighs a result by the width of its interval.
    weights = [1 / error for error in series.errors]
    for night in range(series.since, len(ratios)):
        steps = step_detect.detect_steps(ratios[: night + 1], weights[: night + 1])
        for place, threshold in enumerate(thresholds):
            _, _, jumps = step_detect.detect_regressions(steps, threshold)
            found[place].append((night, [(after, True) for _, after, _, _ in jumps or ()]))
    return found


def otava() -> Path:
    """Install apache-otava if necessary and return its Python.

    It has a separate virtual environment because it pins numpy and scipy.
    """
    lock = HERE / "otava.txt"
    folder = KEPT / "otava-0.8.0"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists() or (folder / "ready").read_text() != lock.read_text():
        shutil.rmtree(folder, ignore_errors=True)
        call([sys.executable, "-m", "venv", folder])
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        # The lock has all that it needs; pip would want an extra of one of them to be pinned as well.
        call([*install, "--no-deps", "--require-hashes", "-r", lock])
        (folder / "ready").write_text(lock.read_text())
    return python


def by_otava(python: Path, series: Sequence[Nightly], settings: Sequence[dict[str, float]]) -> list[list[ByNight]]:
    """Return what apache-otava finds in each series, under each setting."""
    asked = {
        "series": [{"values": [exp(effect) for effect in one.effects], "since": one.since} for one in series],
        "settings": list(settings),
    }
    done = subprocess.run(
        [python, HERE / "otava_inside.py"], input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True
    )
    said: list[list[list[list[Any]]]] = json.loads(done.stdout)
    return [
        [[(night, [(place, slower) for place, slower in found]) for night, found in nights] for nights in of_one]
        for of_one in said
    ]
