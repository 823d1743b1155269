"""What asv's defaults cost over some cases in three versions, and what the other tools do in the same wall time."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import arena
from bench.peers import pyperf
from bench.peers.asv import BEFORE, Asv
from bench.peers.places import Places, Suite, call
from bench.peers.pyperf import DEFAULT_PROCESSES, Pyperf
from orchestrator.model import Case


@dataclass(frozen=True)
class Cell:
    """A tool's result for a case in a version."""

    seconds: float
    processes: int


Cells = Mapping[tuple[str, str], Cell]


@dataclass(frozen=True)
class Cost:
    tool: str
    setting: str
    wall_s: float
    cells: Cells

    @property
    def fewest(self) -> int:
        return min(cell.processes for cell in self.cells.values())

    @property
    def processes(self) -> int:
        return sum(cell.processes for cell in self.cells.values())


def by_asv(asv: Asv, places: Places, suite: Suite) -> Cost:
    wall = asv.run(list(places.inside.values()), BEFORE, suite)
    found = {version: asv.results(python) for version, python in places.inside.items()}
    cells = {
        (case, version): Cell(found[version][case].seconds, asv.rounds(case)) for case in suite for version in found
    }
    return Cost("asv", "its defaults", wall, cells)


def by_pyperf(places: Places, suite: Suite, wall_s: float, scratch: Path) -> Cost:
    """Measure with pyperf, with one number of processes for all: the largest that fits.

    A rehearsal with one process shows which number that is; its results are kept if no more processes fit.
    """
    cells: dict[tuple[str, str], Cell] = {}

    def run(processes: int) -> tuple[float, float]:
        """Return the wall time, and how much of it one more process of each case and version would add."""
        took = more = 0.0
        for version, python in places.inside.items():
            for case in suite:
                output = scratch / f"pyperf-{processes}-{version}-{case}.json"
                one = Pyperf(scratch).run(python, case, suite, processes, output)
                result = pyperf.result(output)
                took += one
                more += result.another(one)
                cells[case, version] = Cell(result.seconds, result.processes)
        return took, more

    processes = 1
    took, more = run(processes)
    default_s = took + more * (DEFAULT_PROCESSES - 1)
    if took + more <= wall_s:
        processes += int((wall_s - took) / more)
        took, _ = run(processes)
    least = ", its least" if processes == 1 else ""
    setting = f"`--processes {processes}`{least}; its default of {DEFAULT_PROCESSES} would take about {default_s:.0f} s"
    return Cost("pyperf", setting, took, cells)


def by_tfcompare(versions: Sequence[str], cases: Mapping[str, Case], wall_s: float, scratch: Path) -> Cost:
    """Measure with the real command.

    A run of an empty case whose budget ends after its pilot shows how much time it takes in addition to measuring. The
    budget leaves that out, so that the whole command stays within the wall time.
    """
    beside, _ = _run(versions, ["empty"], scratch / "empty", "--budget", "1s")
    budget = f"{max(1, wall_s - beside):.1f}s"
    selected = [f"{case.workload}[{_listed(case.params)}]" for case in cases.values()]
    wall, arms = _run(versions, selected, scratch / "tfcompare", "--budget", budget)
    cells = {
        (name, version): Cell(arm["figures"]["time"], arm["rounds"])
        for name, case in cases.items()
        for version in versions
        for arm in arms
        if arm["params"] == dict(case.params) and arm["target"].startswith(f"{version}.")
    }
    return Cost("tfcompare", f"`--budget {budget}`, for the measuring alone", wall, cells)


def _listed(params: Sequence[tuple[str, str]]) -> str:
    return ",".join(f"{name}={value}" for name, value in params)


def _run(
    versions: Sequence[str], selected: Sequence[str], out: Path, *options: str
) -> tuple[float, list[dict[str, Any]]]:
    begun = time.monotonic()
    tool = Path(sys.executable).parent / "tfcompare"
    command = [tool, "run", "--engine", "venv", "--quiet", "--format", "json", "--versions", ",".join(versions)]
    cases = [part for case in selected for part in ("--case", case)]
    said = call([*command, "--workload-folder", arena.WORKLOADS, "--output", out, *cases, *options])
    return time.monotonic() - begun, json.loads(said)["arms"]


def table(costs: Sequence[Cost], versions: Sequence[str], cases: Sequence[str]) -> list[str]:
    lines = ["| tool | setting | wall time | a case | fewest fresh processes of a case in a version |"]
    lines.append("|---|---|---|---|---|")
    for cost in costs:
        each = cost.wall_s / len(cases)
        lines.append(f"| {cost.tool} | {cost.setting} | {cost.wall_s:.1f} s | {each:.1f} s | {cost.fewest} |")
    lines += ["", "| case | version | " + " | ".join(f"{cost.tool}: processes, time" for cost in costs) + " |"]
    lines.append("|---|---|" + "---|" * len(costs))
    for case in cases:
        for version in versions:
            cells = [cost.cells[case, version] for cost in costs]
            told = (f"{cell.processes}, {cell.seconds * 1e3:.3g} ms" for cell in cells)
            lines.append(f"| {case} | {version} | " + " | ".join(told) + " |")
    return lines
