"""What it costs to share cases out: a real Ray cluster on this machine, whose hosts are simulated and only sleep.

Each unit answers with the files of a real run of one case, under another case's name. All that comes after is the
product's: the answer is checked, renumbered and written, and the run is judged.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import TypeAdapter

from orchestrator.fleet.conduct import measure_on_fleet
from orchestrator.fleet.model import Contents, FleetOptions, Tell, UnitEnd, UnitTask
from orchestrator.measure.run import run
from orchestrator.model import Finished
from orchestrator.plan.planning import plan_elsewhere
from orchestrator.plan.request import RunOptions
from orchestrator.results.part_files import read_files
from orchestrator.results.rundir import RunDir
from orchestrator.terminal.progress import Quiet
from tests.support.fleets import Nodes

VERSIONS = ("2.13", "2.16")
ROUNDS = 6
TASK, END = TypeAdapter(UnitTask), TypeAdapter(UnitEnd)
WORKLOAD, FIRST = "nap", "case000"
SOURCE = """'''Does nothing.'''
PARAMS = {{"n": {names}}}

def build(tf, params):
    return lambda: sum(range(20000))
"""


@dataclass(frozen=True)
class FleetProgram:
    """How long units sleep, how many there are, and on how many hosts."""

    sleep_s: float
    units: int
    hosts: tuple[int, ...]
    at_once: int


FULL = FleetProgram(sleep_s=2.0, units=40, hosts=(1, 2, 4), at_once=200)
TINY = FleetProgram(sleep_s=0.2, units=4, hosts=(1, 2), at_once=4)


def section(program: FleetProgram = FULL) -> str:
    with TemporaryDirectory() as folder:
        scratch = Path(folder)
        template = _measure_one(scratch, max(program.units, program.at_once))
        with _cluster() as nodes:
            nodes.add("host1")
            # Before there are others: in a fleet, no other host is on the machine that hands out units.
            cost_s = share_out(scratch / "cost", template, 0.0, program.at_once) / program.at_once
            times = {}
            for hosts in program.hosts:
                for number in range(len(nodes.processes), hosts + 1):
                    nodes.add(f"host{number}")
                times[hosts] = share_out(scratch / f"hosts-{hosts}", template, program.sleep_s, program.units)
    lines = [
        "Simulated hosts on this machine, held together by Ray; a unit sleeps and answers with the files of a real run",
        f"of one case in {' and '.join(VERSIONS)}, {ROUNDS} rounds.",
        "",
        f"Units that do not sleep, {program.at_once} of them on one host: {cost_s * 1e3:.0f} ms each, from one to the",
        "next. That is what scheduling, Ray, checking, renumbering and writing cost.",
        "",
        f"Units that sleep {program.sleep_s:g} s, {program.units} of them:",
        "",
        "| hosts | time | if nothing but sleep took time | share of it |",
        "|---|---|---|---|",
    ]
    for hosts, took_s in times.items():
        ideal_s = program.sleep_s * program.units / hosts
        lines.append(f"| {hosts} | {took_s:.1f} s | {ideal_s:.1f} s | {ideal_s / took_s:.2f} |")
    lines += [
        "",
        f"One command hands out {1 / cost_s:.0f} units a second at most. With units of a minute, that keeps "
        f"{60 / cost_s:.0f} hosts busy,",
        "if the network is no slower than this machine, and each answer as small as here.",
    ]
    return "\n".join(lines)


def _measure_one(scratch: Path, count: int) -> Path:
    """Measure the first case for real."""
    options = RunOptions(
        versions=VERSIONS,
        own_workloads=write_cases(scratch / "own", count),
        selected=(f"{WORKLOAD}[n={FIRST}]",),
        rounds=ROUNDS,
        engine="venv",
        out=scratch / "template",
    )
    return run(options, Quiet()).path


def _name_cases(count: int) -> tuple[str, ...]:
    return (FIRST, *(f"case{number:03}" for number in range(1, count)))


def write_cases(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True)
    names = _name_cases(count)
    (folder / f"{WORKLOAD}.py").write_text(SOURCE.format(names=repr(names)))
    return folder


def share_out(scratch: Path, template: Path, sleep_s: float, count: int, versions: tuple[str, ...] = VERSIONS) -> float:
    """Share cases out to all hosts, and return the time from the first to the last."""
    cases = _name_cases(count)
    options = RunOptions(
        versions=versions,
        own_workloads=scratch.parent / "own",
        selected=(f"{WORKLOAD}[n={'|'.join(cases)}]",),
        rounds=ROUNDS,
        engine="venv",
        out=scratch,
    )
    planned = plan_elsewhere(options, lambda text: None)
    done = measure_on_fleet(planned, FleetOptions(on="auto"), Quiet(), partial(answer, template, sleep_s))
    assert done.error is None, done.error
    assert len(done.comparison.arms) == count * len(versions)
    *_, last = (entry for entry in RunDir(done.path).entries() if isinstance(entry, Finished))
    return last.seconds


def answer(template: Path, sleep_s: float, task: bytes, workloads: Contents, tell: Tell) -> tuple[bytes, Contents]:
    """Sleep, and answer with the template under the name of the unit's case; what a host does here."""
    time.sleep(sleep_s)
    asked = TASK.validate_json(task)
    [selected] = asked.options.selected
    name = selected.partition("=")[2].rstrip("]")
    # Names have one length, so that also a stream stays what it is.
    files = {path: data.replace(FIRST.encode(), name.encode()) for path, data in read_files(template).items()}
    return END.dump_json(UnitEnd(exit_code=0)), files


@contextmanager
def _cluster() -> Iterator[Nodes]:
    """Start a cluster without hosts."""
    nodes = Nodes({})
    try:
        os.environ.update(nodes.env)
        yield nodes
    finally:
        for name in nodes.env:
            os.environ.pop(name, None)
        nodes.close()
