"""A run folder that is written in milliseconds and has a verdict of each kind that commands tell apart."""

from collections.abc import Sequence
from pathlib import Path

from orchestrator.model import Case
from tests.support.builders import MS, NEW, OLD, RUN, case, plan, rows, run_folder, write_stream

SLOWER, SAME = case("power", style="eager"), case("predict", model="tiny")


def write_run(path: Path, memory_kb: int = 1000, run: str = RUN, cases: Sequence[Case] = (SLOWER, SAME)) -> Path:
    """Two cases in two versions: one three times slower, one the same; the later version needs this much memory."""
    made = run_folder(path, plan(cases, metrics=("memory",), run=run))
    for place, version in enumerate((OLD, NEW)):
        batches = [
            rows(
                one, version, run=run, round=number, replicate=(number * 2 + which) * 2 + place,
                resident_kb=memory_kb if place else 1000,
                bursts=(int((1 + 2 * place * (one == SLOWER)) * MS * (10 + number / 100)),) * 3,
            )
            for number in range(1, 7)
            for which, one in enumerate(cases)
        ]  # fmt: skip
        write_stream(made.settled / f"{version}-0.arrow", batches)
    return made.path
