"""Two runs of the same cases, as `compare` reads them."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from orchestrator.model import Plan
from orchestrator.results.compare_runs import Changes, RatioChange
from tests.support.builders import MS, case, finished, plan, rows, run_folder, write_stream

A, B = case("a"), case("b")
ROUNDS = 8


def run(
    path: Path,
    ratios: dict[str, float],
    *,
    of: Plan | None = None,
    base_ms: float = 10.0,
    rounds: int = ROUNDS,
    moves: float = 0.0,
    **changes,
) -> Path:
    """A run in which each case's candidate takes so many times as long as its baseline, give or take 2 %.

    The ratio rises by the share `moves` from the first round to the last.
    """
    of = replace(of or plan([A, B]), run=path.name)
    made = run_folder(path, of, **changes)
    draw = np.random.default_rng(len(path.name))
    for place, version in enumerate(of.targets):
        batches = []
        for which, one in enumerate(of.cases):
            if one.workload not in ratios:
                continue
            for number in range(1, rounds + 1):
                ratio = ratios[one.workload] * (1 + moves * ((number - 1) / (rounds - 1) - 0.5)) if place else 1.0
                wall = base_ms * ratio * (1 + 0.02 * draw.standard_normal())
                replicate = (number * len(of.cases) + which) * 2 + place
                batches.append(
                    rows(one, version, round=number, replicate=replicate, bursts=(int(wall * MS),) * 3, run=of.run)
                )
        write_stream(made.settled / f"{version}-0.arrow", batches)
    made.record(finished(how="", seconds=1.0))
    return path


def by_case(found: Changes) -> dict[str, RatioChange]:
    return {change.pair.arms[0][0]: change for change in found.changes}
