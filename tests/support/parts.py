"""Runs of one case, as hosts of a fleet send them."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.model import Case, Ended, Machine
from orchestrator.results.run_folder import RunFolder
from tests.support.builders import MS, NEW, OLD, finished, plan, rows, run_folder, target, write_rows

ROUNDS = 4


def measured(
    folder: Path, of: Case, name: str, ratio: float = 1.0, rounds: int = ROUNDS, *,
    strays: Sequence[float] = (), how: str = "", **changes: Any,
) -> RunFolder:  # fmt: skip
    """A part as a host leaves it: each round has a worker of each version, and the later one takes `ratio` as long.

    Its log strays from that by round, and `how` says what ended the rounds.
    """
    run = run_folder(folder, plan((of,), run=name, **changes), host={"cpu": "A CPU", "usable_cores": 2, "id": "abc"})
    run.record(Machine(when="begin", readings={}))
    number = 0
    for round in range(1, rounds + 1):
        for version in (OLD, NEW):
            number += 1
            # Rounds differ a little, and the same in both versions.
            times = ratio * math.exp(strays[round - 1] if strays else 0.0) if version == NEW else 1.0
            call_ns = int(10 * MS * times * (1 + round / 100))
            batch = rows(of, version, round=round, replicate=number, run=name, bursts=(call_ns,) * 3)
            write_rows(run.settled / f"{target(version)}-{round}.arrow", [batch])
            run.record(
                Ended(
                    target=target(version), case=of.label, round=round, replicate=number, outcome="measured",
                    part=round, rows=len(batch),
                )
            )  # fmt: skip
    run.record(finished(how=how, seconds=1.0, at_budget=bool(how)))
    return run
