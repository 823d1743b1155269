"""What it costs to share cases out: a real Ray cluster on this machine, whose hosts are simulated and only sleep.

Each unit answers with the files of a real run of one case, under another case's name. All that comes after is the
product's: the answer is checked and written, and the run is judged. A machine like this one cannot hold a
thousand of Ray's nodes, so that many hosts are without Ray: they are entries in a table, and all else is the product's.
"""

import heapq
import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter

from bench.figures import Figure, Section
from orchestrator.fleet import host
from orchestrator.fleet.conduct import OpenFleet, join, measure_on_fleet
from orchestrator.fleet.model import (
    Contents,
    Fleet,
    FleetNode,
    FleetOptions,
    HostReport,
    SendMessage,
    UnitAnswer,
    UnitEnd,
    UnitTask,
)
from orchestrator.measure.run import plan_and_measure
from orchestrator.model import Finished
from orchestrator.plan.planning import plan_elsewhere
from orchestrator.plan.request import RunOptions
from orchestrator.results.part_files import read_files
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.support.fleets import Nodes

VERSIONS = ("2.13", "2.16")
ROUNDS = 6
TASK, END = TypeAdapter(UnitTask), TypeAdapter(UnitEnd)
WORKLOAD, FIRST = "nap", "case0000"
LOOK_S = 0.02
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
    # Of many hosts without Ray: how many, how many units, and how long these take on average.
    many: int
    of_many: int
    minute_s: float


FULL = FleetProgram(sleep_s=2.0, units=40, hosts=(1, 2, 4), at_once=200, many=1000, of_many=3000, minute_s=60.0)
TINY = FleetProgram(sleep_s=0.2, units=4, hosts=(1, 2), at_once=4, many=10, of_many=20, minute_s=0.5)


def section(program: FleetProgram = FULL) -> Section:
    with TemporaryDirectory() as folder:
        scratch = Path(folder)
        template = _measure_one(scratch, max(program.units, program.at_once, program.of_many))
        with _cluster() as nodes:
            nodes.add("host1")
            # Before there are others: in a fleet, no other host is on the machine that hands out units.
            cost_s = share_out(scratch / "cost", template, 0.0, program.at_once) / program.at_once
            times = {}
            for hosts in program.hosts:
                for number in range(len(nodes.processes), hosts + 1):
                    nodes.add(f"host{number}")
                times[hosts] = share_out(scratch / f"hosts-{hosts}", template, program.sleep_s, program.units)
        many_s, ideal_many_s = _share_out_to_many(scratch / "many", template, program)
    lines = [
        "Simulated hosts on this machine, held together by Ray; a unit sleeps and answers with the files of a real run",
        f"of one case in {' and '.join(VERSIONS)}, {ROUNDS} rounds.",
        "",
        f"Units that do not sleep, {program.at_once} of them on one host: {cost_s * 1e3:.0f} ms each, from one to the",
        "next. That is what scheduling, Ray, checking and writing cost.",
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
        f"Units of {program.minute_s:g} s on average, {program.of_many} of them, on {program.many} hosts that are no "
        "more than entries in a table,",
        f"with all of the product but Ray: {many_s:.0f} s, where {ideal_many_s:.0f} s are possible, a share of "
        f"{ideal_many_s / many_s:.2f}.",
    ]
    ideals = {hosts: program.sleep_s * program.units / hosts for hosts in times}
    figures = [
        Figure("from one unit to the next", cost_s * 1e3, "ms"),
        *(
            Figure(f"share of the ideal, hosts: {hosts}", ideals[hosts] / times[hosts], "share", "most")
            for hosts in times
        ),
        Figure(f"share of the ideal, hosts: {program.many}", ideal_many_s / many_s, "share", "most"),
    ]
    return Section("\n".join(lines), figures)


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
    return plan_and_measure(options, View()).path


def _name_cases(count: int) -> tuple[str, ...]:
    return (FIRST, *(f"case{number:04}" for number in range(1, count)))


def write_cases(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True)
    names = _name_cases(count)
    (folder / f"{WORKLOAD}.py").write_text(SOURCE.format(names=repr(names)))
    return folder


def share_out(scratch: Path, template: Path, sleep_s: float, count: int, versions: tuple[str, ...] = VERSIONS) -> float:
    """Share cases out to all hosts, and return the time from the first to the last."""
    return _share_out(scratch, count, versions, partial(join, work=partial(answer, template, sleep_s)))


def _share_out(scratch: Path, count: int, versions: tuple[str, ...], open_fleet: OpenFleet) -> float:
    cases = _name_cases(count)
    options = RunOptions(
        versions=versions,
        own_workloads=scratch.parent / "own",
        selected=(f"{WORKLOAD}[n={'|'.join(cases)}]",),
        rounds=ROUNDS,
        engine="venv",
        out=scratch,
    )
    planned = plan_elsewhere(options, View())
    done = measure_on_fleet(planned, FleetOptions(on="auto"), View(), open_fleet)
    assert done.error is None, done.error
    assert len(done.evaluation.arms) == count * len(versions)
    *_, last = (entry for entry in RunFolder(done.path).entries() if isinstance(entry, Finished))
    return last.seconds


@dataclass
class Table:
    """A fleet of hosts that are entries in a table. It answers as a cluster does, and units take the times given."""

    template: Path
    hosts: int
    times_s: Iterator[float]
    # Of this machine; those of the hosts differ from it in their ids.
    report: HostReport = field(default_factory=lambda: host.REPORT.validate_json(host.describe_host()))
    # By what stands for a task: when it ends, and what its answer is made of.
    begun: list[tuple[float, Callable[[], Any]]] = field(default_factory=list)

    def nodes(self) -> Sequence[FleetNode]:
        return [FleetNode(id=f"id{number}", name=f"host{number:04}") for number in range(self.hosts)]

    def ask(self, node: FleetNode) -> int:
        facts = {**self.report.facts, "id": node.id}
        return self._begin(0.0, lambda: host.REPORT.dump_json(replace(self.report, facts=facts)))

    def begin(self, node: FleetNode, task: bytes, files: Contents) -> int:
        return self._begin(next(self.times_s), lambda: self._answer(task))

    def wait(self, begun: Collection[int], seconds: float) -> Sequence[int]:
        until = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            ended = [handle for handle in begun if self.begun[handle][0] <= now]
            if ended or now >= until:
                return ended
            time.sleep(LOOK_S)

    def answer(self, begun: int) -> Any:
        return self.begun[begun][1]()

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        return ()

    def end(self, begun: int) -> None: ...

    def _begin(self, seconds: float, answer: Callable[[], Any]) -> int:
        self.begun.append((time.monotonic() + seconds, answer))
        return len(self.begun) - 1

    def _answer(self, task: bytes) -> UnitAnswer:
        end, files = answer(self.template, 0.0, task, {}, lambda line, contents: None)
        return UnitAnswer(END.validate_json(end), files)


def _share_out_to_many(scratch: Path, template: Path, program: FleetProgram) -> tuple[float, float]:
    """Return the time that many hosts without Ray need, and the time that they need if nothing but units takes time."""
    source = random.Random(1)
    times_s = [program.minute_s * source.uniform(2 / 3, 4 / 3) for _ in range(program.of_many)]

    @contextmanager
    def open_table(on: str, view: View) -> Iterator[Fleet]:
        yield Table(template, program.many, iter(times_s))

    took_s = _share_out(scratch, program.of_many, VERSIONS, open_table)
    ends = [0.0] * program.many
    for seconds in times_s:
        # Each unit goes to whichever host is free first.
        heapq.heapreplace(ends, ends[0] + seconds)
    return took_s, max(ends)


def answer(
    template: Path, sleep_s: float, task: bytes, workloads: Contents, tell: SendMessage
) -> tuple[bytes, Contents]:
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
