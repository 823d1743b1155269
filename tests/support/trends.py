"""A run folder with many versions, for what is drawn of trends."""

import math
from dataclasses import replace
from pathlib import Path

from orchestrator.model import Case
from tests.support.builders import MS, RUN, case, ended, finished, plan, rows, run_folder, write_stream

RELEASES = (
    "1.13.2", "1.14.0", "1.15.5", "2.0.0", "2.1.4", "2.2.3", "2.3.4", "2.4.4", "2.5.3", "2.6.5", "2.7.4", "2.8.4",
    "2.9.3", "2.10.1", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.1", "2.16.2", "2.17.1", "2.18.1", "2.19.1",
)  # fmt: skip
PREDICT = case("predict", call="predict", state="uncompiled", model="tiny")
POWER = case("power", style="eager")

# What each version comes with, as factors of the time.
STEPS = {PREDICT: {"2.1.4": 20.0, "2.2.3": 1.25, "2.4.4": 0.8, "2.13.0": 1.15}, POWER: {"2.0.0": 0.7}}
REFUSED = (POWER, "1.13.2")
NOISY = (PREDICT, "2.16.2")


def level(of: Case, version: str) -> float:
    factors = (factor for at, factor in STEPS[of].items() if RELEASES.index(at) <= RELEASES.index(version))
    return math.prod(factors)


def written(path: Path, name: str = RUN) -> Path:
    """Two cases, six rounds; one refusal, and one version that scatters."""
    asked = replace(plan((PREDICT, POWER), RELEASES, looks=(6,)), run=name)
    run = run_folder(path, asked)
    number = 0
    for version in RELEASES:
        batches = []
        for of in asked.cases:
            for round_number in range(1, 7):
                number += 1
                if (of, version) == REFUSED:
                    continue
                spread = 0.4 if (of, version) == NOISY else 0.003
                moved = math.exp(spread * math.sin(number * 7.3 + round_number))
                bursts = [int(MS * level(of, version) * moved)] * 5
                batches.append(rows(of, version, round=round_number, replicate=number, bursts=bursts, run=name))
        write_stream(run.settled / f"{version}-1.arrow", batches)
    run.record(
        ended(POWER, REFUSED[1], "refused", replicate=999, reason="not in this one")
    )  # fmt: skip
    run.record(finished(how="", seconds=90.0))
    return run.path
