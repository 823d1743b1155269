"""What it costs to share cases out: a real Ray cluster on this machine, whose hosts are simulated and only sleep.

Each unit answers with the files of a real run of one case, under the name of its own case. All that comes after is the
product's: the answer is checked, renumbered and written, and the run is judged.
"""

import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
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
WORKLOAD, FIRST = "nap", "case0"
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
        with _cluster(max(program.hosts)):
            cost_s = _run(scratch / "cost", template, 0.0, program.at_once, 1) / program.at_once
            times = {
                hosts: _run(scratch / f"hosts-{hosts}", template, program.sleep_s, program.units, hosts)
                for hosts in program.hosts
            }
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


def _measure_one(scratch: Path, count: int) -> dict[str, bytes]:
    """Return the files of a real run of the first case."""
    options = RunOptions(
        versions=VERSIONS,
        own_workloads=_write_cases(scratch / "own", count),
        selected=(f"{WORKLOAD}[n={FIRST}]",),
        rounds=ROUNDS,
        engine="venv",
        out=scratch / "template",
    )
    return read_files(run(options, Quiet()).path)


def _write_cases(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True)
    names = (FIRST, *(f"case{number}" for number in range(1, count)))
    (folder / f"{WORKLOAD}.py").write_text(SOURCE.format(names=repr(names)))
    return folder


def _run(scratch: Path, template: Contents, sleep_s: float, count: int, hosts: int) -> float:
    """Share cases out, and return the time from the first to the last."""
    cases = (FIRST, *(f"case{number}" for number in range(1, count)))
    options = RunOptions(
        versions=VERSIONS,
        own_workloads=scratch.parent / "own",
        selected=(f"{WORKLOAD}[n={'|'.join(cases)}]",),
        rounds=ROUNDS,
        engine="venv",
        out=scratch,
    )
    planned = plan_elsewhere(options, lambda text: None)
    where = FleetOptions(on="auto", where=((f"of{hosts}", "yes"),))
    done = measure_on_fleet(planned, where, Quiet(), partial(answer, dict(template), sleep_s))
    assert done.error is None, done.error
    assert len(done.comparison.arms) == count * len(VERSIONS)
    *_, last = (entry for entry in RunDir(done.path).entries() if isinstance(entry, Finished))
    return last.seconds


def answer(template: Contents, sleep_s: float, task: bytes, workloads: Contents, tell: Tell) -> tuple[bytes, Contents]:
    """Sleep, and answer with the template under the name of the unit's case; what a host does here."""
    time.sleep(sleep_s)
    asked = TypeAdapter(UnitTask).validate_json(task)
    [selected] = asked.options.selected
    name = selected.partition("=")[2].rstrip("]")
    files = {path: _rename(path, data, name) for path, data in template.items()}
    return TypeAdapter(UnitEnd).dump_json(UnitEnd(exit_code=0)), files


def _rename(path: str, data: bytes, name: str) -> bytes:
    if not path.endswith(".arrow"):
        return data.replace(FIRST.encode(), name.encode())
    table = pa.ipc.open_stream(data).read_all()
    for index, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            text = table.column(index).cast(pa.utf8())
            table = table.set_column(
                index, field, pc.replace_substring(text, FIRST, name).dictionary_encode().cast(field.type)
            )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@contextmanager
def _cluster(hosts: int) -> Iterator[None]:
    """Start a cluster whose host number N is one of the first N, and of as many more as there are."""
    nodes = Nodes({})
    try:
        for number in range(1, hosts + 1):
            nodes.add(f"host{number}", **{f"of{size}": "yes" for size in range(number, hosts + 1)})
        os.environ.update(nodes.env)
        yield
    finally:
        for name in nodes.env:
            os.environ.pop(name, None)
        nodes.close()
