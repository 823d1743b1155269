"""Workers that speak the real protocol over no wire and take the times that a script gives them.

The workers, the clients, the run folder and the judge around them are the real ones.
"""

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from orchestrator import contract
from orchestrator.catalog.gpu_support import NO_GPUS, GpuSupport
from orchestrator.engines import ENGINES, Engine, StartedWorker, WorkerPaths
from orchestrator.engines.worker.channel import ChannelClosed
from orchestrator.errors import EnvironmentFailed
from orchestrator.measure.round_range import first_rounds
from orchestrator.measure.rounds import RoundLoop
from orchestrator.measure.session import Session
from orchestrator.measure.workers import Workers
from orchestrator.model import Case, EnvironmentFacts, Evaluation, Plan
from orchestrator.options import EngineOptions
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.support.builders import MS, environment_facts, rows, run_folder

MOST_IN_BURST = 50
# An order by its kind and its round, as in ("burst", 2).
Order = tuple[str, int]


@dataclass(frozen=True)
class Part:
    """What a case does in a version."""

    ms: Callable[[int], float] = lambda number: 10.0
    # Its first call, whose round is given, and how many replicates its worker opened before.
    first_ms: Callable[[int, int], float] = lambda number, before: 50.0
    refuses: str = ""
    dies: Order | None = None
    how: str = "exit"
    reason: str = "ended with exit code 3"
    takes_its_worker_along: Order | None = None
    # How often it dies so.
    times: float = math.inf
    # What its replicates need, and a sketch of what they return.
    memory_kb: int | None = None
    output: str | None = None
    # What its code is warned of, as lines of one of its files.
    warned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Event:
    round: int
    case: str
    kind: str
    version: str
    calls: int = 0
    once: bool = False


@dataclass
class Stage:
    """The script by case and version, what has happened, and whose workers do not start or leave without a word."""

    parts: dict[tuple[str, str], Part] = field(default_factory=dict)
    log: list[Event] = field(default_factory=list)
    broken: tuple[str, ...] = ()
    rude: tuple[str, ...] = ()
    forks: list[bool] = field(default_factory=list)
    # The GPUs that every TensorFlow sees, and which workers came and went, in order.
    gpus: list[dict[str, str]] = field(default_factory=list)
    # What the driver says where they see none.
    driver: dict[str, Any] = field(default_factory=dict)
    doors: list[tuple[str, str]] = field(default_factory=list)
    # The folder of the user's own workloads that each worker was given.
    workload_folders: list[Path | None] = field(default_factory=list)
    # The seed that each worker was given.
    seeds: list[int] = field(default_factory=list)
    # Those of replicates, by round.
    draws: dict[int, set[int]] = field(default_factory=dict)
    deaths: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Called when a worker starts, with its version; it may raise EnvironmentFailed.
    on_start: Callable[[str], None] = lambda version: None

    def count_death(self, case: str, version: str) -> int:
        self.deaths[case, version] += 1
        return self.deaths[case, version]

    def visits(self) -> list[str]:
        """The log with one line a visit: `round case: open:version ...`."""
        by_visit = groupby(self.log, key=lambda event: (event.round, event.case))
        return [
            f"{number} {case}: " + " ".join(f"{event.kind}:{event.version[0]}" for event in events)
            for (number, case), events in by_visit
        ]

    def openings(self) -> list[list[Event]]:
        """From the first opening to the last closing of what is open at once."""
        openings: list[list[Event]] = [[]]
        opened = 0
        for event in self.log:
            openings[-1].append(event)
            opened += {"open": 1, "close": -1}.get(event.kind, 0)
            if not opened:
                openings.append([])
        return openings[:-1]

    def opened(self, case: str, version: str) -> list[int]:
        """The rounds in which an arm was opened."""
        return [event.round for event in self.log if (event.kind, event.case, event.version) == ("open", case, version)]


class Actor:
    """A worker: a Channel whose other end is a script."""

    def __init__(self, stage: Stage, version: str, stream: Path) -> None:
        self._stage = stage
        self._version = version
        self._file = stream.open("wb")
        self._stream: Any = pa.ipc.new_stream(self._file, contract.arrow_schema(pa))
        self._open: dict[int, dict[str, Any]] = {}
        self._begun = 0
        self._answers: list[str] = []
        self._run = ""
        self._here = True
        stage.doors.append(("in", version))

    def send(self, line: str, longest: int = contract.LONGEST_LINE) -> None:
        event = self._play(contract.decode(line, contract.COMMANDS))
        self._answers.append(contract.encode(event))

    def receive(self, timeout_s: float) -> str:
        if not self._answers:
            raise ChannelClosed("killed by SIGKILL")
        return self._answers.pop(0)

    def close(self) -> None:
        if self._here:
            self._stage.doors.append(("out", self._version))
        self._here = False
        self._file.close()

    def _play(self, order: dict[str, Any]) -> dict[str, Any]:
        if order["kind"] == "hello":
            self._run = order["run"]
            self._stage.forks.append(order["fork"])
            return {"kind": "ready", "facts": {"python": "3.11.7"}, "import_ns": MS, "pid": 1}
        if order["kind"] == "probe":
            gpus = self._stage.gpus
            return {"kind": "probed", "gpus": gpus, "driver": {} if gpus else self._stage.driver}
        if order["kind"] == "quit":
            if self._version in self._stage.rude:
                raise ChannelClosed("killed by SIGKILL")
            self._stream.close()
            return {"kind": "bye"}
        number = order["replicate"]
        if order["kind"] == "warn":
            part = self._stage.parts.get((order["case"], self._version), Part())
            if part.dies:
                return {"kind": "died", "replicate": number, "how": part.how, "reason": part.reason, "log": "x"}
            given = [
                {"kind": "FutureWarning", "text": text, "place": "own.py", "line": line, "own": True}
                for line, text in enumerate(part.warned, 1)
            ]
            return {"kind": "warned", "replicate": number, "warnings": given}
        if order["kind"] == "open":
            self._open[number] = {**order, "walls": [], "before": self._begun}
            self._begun += 1
            self._stage.draws.setdefault(order["round"], set()).add(order["seed"])
        opened = self._open[number]
        part = self._stage.parts.get((opened["case"], self._version), Part())
        told = Event(
            opened["round"], opened["case"], order["kind"], self._version, order.get("calls", 0), opened["once"]
        )
        self._stage.log.append(told)
        here = (order["kind"], opened["round"])
        if part.takes_its_worker_along == here and self._stage.count_death(opened["case"], self._version) <= part.times:
            raise ChannelClosed("killed by SIGKILL")
        if part.dies == here and self._stage.count_death(opened["case"], self._version) <= part.times:
            return {"kind": "died", "replicate": number, "how": part.how, "reason": part.reason, "log": "x"}
        if part.refuses:
            return {"kind": "refused", "replicate": number, "reason": part.refuses}
        return {"replicate": number, **self._done(order, opened, part)}

    def _done(self, order: dict[str, Any], opened: dict[str, Any], part: Part) -> dict[str, Any]:
        call_ns = int(part.ms(opened["round"]) * MS)
        if order["kind"] == "open":
            times = dict.fromkeys(("build_ns", "first_ns", "second_ns"), call_ns)
            times["second_ns"] *= not order["once"]
            return {"kind": "opened", "steps": 1, "items": 0, "output": "", "threads": [], **times}
        if order["kind"] == "burst":
            # Like a real worker, which goes on with a burst that is too short.
            enough = math.ceil(order["least_s"] * 1e9 / call_ns)
            calls = [call_ns] * max(order["calls"], min(enough, MOST_IN_BURST))
            opened["walls"] += calls
            return {"kind": "measured", "walls_ns": calls, "cpu_ns": sum(calls)}
        written = rows(
            Case(opened["workload"], tuple(opened["params"].items())),
            self._version,
            round=opened["round"],
            replicate=order["replicate"],
            bursts=opened["walls"],
            run=self._run,
            position=opened["position"],
            first=int(part.first_ms(opened["round"], opened["before"]) * MS),
            once=opened["once"],
        )
        written[0].update(memory_kb=part.memory_kb, output=part.output, fifth_output=part.output)
        self._stream.write_batch(pa.RecordBatch.from_pylist(written, schema=contract.arrow_schema(pa)))
        self._file.flush()
        return {"kind": "closed", "rows": len(written)}


@dataclass(frozen=True)
class Dressing:
    """An environment whose workers are actors."""

    stage: Stage
    facts: EnvironmentFacts

    def start(self, paths: WorkerPaths, stream: Path) -> StartedWorker:
        if self.facts.target in self.stage.broken:
            raise EnvironmentFailed("does not start", target=self.facts.target)
        self.stage.on_start(self.facts.target)
        self.stage.workload_folders.append(paths.own_workloads)
        self.stage.seeds.append(paths.seed)
        return StartedWorker(Actor(self.stage, self.facts.target, stream), ("/suite",), str(stream))


@dataclass(frozen=True)
class Play:
    """A run that was played to its end."""

    ending: str
    run: RunFolder
    evaluation: Evaluation


def play(
    folder: Path,
    plan: Plan,
    stage: Stage,
    fitting: GpuSupport = NO_GPUS,
    view: View | None = None,
    *,
    keep_going: bool = False,
    **loop: Any,
) -> Play:
    """A whole run, from the workers' start to the judged comparison."""
    run = run_folder(folder / "run", plan)
    environments = {
        version: Dressing(stage, environment_facts(version=str(version), kind="venv")) for version in plan.targets
    }
    session = Session(plan, environments, run, fitting=fitting, view=view or View())
    workers = Workers(session)
    try:
        workers.start_all()
        ending = RoundLoop(session, workers, first_rounds(plan, keep_going=keep_going), **loop).measure()
        with suppress(ChannelClosed):
            workers.stop()
    finally:
        workers.kill()
    return Play(ending, run, judge_run(run))


def offer(monkeypatch: pytest.MonkeyPatch, **engines: Callable[[EngineOptions], Engine]) -> None:
    """Let these engines stand in for all of their names; others are not offered."""
    offered = {name: replace(ENGINES[name], make=make) for name, make in engines.items()}
    # Backwards, since monkeypatch puts back the last one first, and the order of the registry counts.
    for name in reversed(list(ENGINES)):
        monkeypatch.delitem(ENGINES, name)
    for name, info in offered.items():
        monkeypatch.setitem(ENGINES, name, info)
