"""The host's time and memory for a large run, and their growth: 1,000 cases, 3 versions, 20 rounds of 1 ms calls.

Workers and everything that they write are real, and TensorFlow is a stub: nothing in a version takes time or memory, so
the figures are those of tfcompare itself. The host is a fresh process, and writes a line after each round.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import arena, plain
from bench.figures import Figure, Section
from orchestrator.model import ArmKey, Case, Ended, EnvironmentFacts, Target
from orchestrator.plan.pairs import LOOKS
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats.calibrate import Effort
from orchestrator.terminal.view import RoundDone, View
from tests.support import stub
from tests.support.stub_engine import Environment

VERSIONS = ("1.14.0", "2.0.0", "2.13.0")
MOST_MB, MOST_GROWTH = 300, 1.25
# No case is shown to be the same, so few leave the rotation.
MARGIN = 1e-9
# Every arm has this effort, and no pilot is needed: a worker extends a burst until it is long enough to time.
EFFORT = Effort(warmup=0, bursts=4, calls=2)
HOST = "import sys; from bench.load import run; run(*sys.argv[1:])"
SEED = 1


@dataclass(frozen=True)
class Program:
    cases: int
    rounds: int


FULL = Program(1_000, 20)
TINY = Program(20, 6)


@dataclass(frozen=True)
class Round:
    """A round: its replicates and their time, the time of its look, and the memory and files in use after it."""

    number: int
    replicates: int
    seconds: float
    look_s: float
    resident_mb: float
    files: int
    journal_bytes: int
    stream_bytes: int

    @property
    def replicate_ms(self) -> float:
        return self.seconds / self.replicates * 1e3


class Recorder(View):
    """Writes a line for each round, once the look after it is done."""

    def __init__(self, path: Path) -> None:
        self._run = RunFolder(path)
        self._lines = path.with_suffix(".rounds")
        self._round: Round | None = None
        self._ended = 0.0

    def round_done(self, done: RoundDone) -> None:
        self.write()
        self._ended = time.monotonic()
        streams = [stream.path.stat().st_size for stream in self._run.worker_output.streams()]
        self._round = Round(
            number=done.number,
            replicates=done.cases * len(VERSIONS),
            seconds=done.took_s,
            look_s=0.0,
            resident_mb=_read_status("VmRSS"),
            files=sum(1 for _ in self._run.path.rglob("*")),
            journal_bytes=self._run.journal.stat().st_size,
            stream_bytes=sum(streams),
        )

    def look_done(self, number: int, new: Sequence[str], decided: int, comparisons: int) -> None:
        assert self._round
        look_s, resident_mb = time.monotonic() - self._ended, _read_status("VmRSS")
        self._round = Round(**{**asdict(self._round), "look_s": look_s, "resident_mb": resident_mb})

    def write(self) -> None:
        if self._round:
            with self._lines.open("a") as lines:
                lines.write(json.dumps(asdict(self._round)) + "\n")
        self._round = None


def run(folder: str, cases: str, rounds: str) -> None:
    """Measure a run, and print the most memory in MiB that this process has held, and how many replicates ended."""
    path, last = Path(folder), int(rounds)
    environments = {
        version: Environment(
            EnvironmentFacts(target=version, kind="venv", identity="", lock="", python="", **plain.ENVIRONMENT), folder
        )
        for folder in [stub.write(path.with_suffix(".stub"))]
        for version in VERSIONS
    }
    selected_cases = [Case("idle", (("number", str(number)),)) for number in range(int(cases))]
    recorder = Recorder(path)
    arms = [ArmKey(case.label, Target(version)) for case in selected_cases for version in VERSIONS]
    looks = tuple(look for look in LOOKS if look < last)
    arena.run(
        environments, selected_cases, folder=path, seed=SEED, looks=(*looks, last), margin=MARGIN, view=recorder,
        efforts=dict.fromkeys(arms, EFFORT),
    )  # fmt: skip
    recorder.write()
    ended = sum(isinstance(entry, Ended) for entry in RunFolder.open(path).entries())
    print(json.dumps({"peak_mb": _read_status("VmHWM"), "replicates": ended}))


def _read_status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


def section(program: Program = FULL) -> Section:
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "run"
        argv = [sys.executable, "-c", HOST, path, str(program.cases), str(program.rounds)]
        done = json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout)
        rounds = [Round(**json.loads(line)) for line in path.with_suffix(".rounds").read_text().splitlines()]
    return describe(program, rounds, done["peak_mb"], done["replicates"])


def describe(program: Program, rounds: Sequence[Round], peak_mb: float, replicates: int) -> Section:
    shown = [each for each in rounds if each.look_s or each in (rounds[0], rounds[-1])]
    first, last = rounds[0], rounds[-1]
    growth = last.replicate_ms / first.replicate_ms
    rows = "\n".join(
        f"| {each.number} | {each.replicates} | {each.replicate_ms:.1f} ms | {each.look_s:.2f} s "
        f"| {each.resident_mb:.0f} MiB | {each.files} |"
        for each in shown
    )
    body = f"""{program.cases:,} cases in {len(VERSIONS)} versions, {program.rounds} rounds, with a stub in place of
TensorFlow and a step that sleeps for 1 ms: {replicates:,} replicates, each of {EFFORT.bursts} bursts of at least 8 ms.
Memory is that of the host, after the look if there was one.

| round | replicates | per replicate | look | memory | files in the run |
|---:|---:|---:|---:|---:|---:|
{rows}

Of the journal, {last.journal_bytes / replicates:.0f} bytes are for a replicate, and of the streams
{last.stream_bytes / replicates:.0f}."""
    figures = [
        Figure("most memory of the host", peak_mb, "MiB", limit=MOST_MB),
        Figure("a replicate in the last round, of one in the first", growth, "ratio", limit=MOST_GROWTH),
        Figure("the look after the last round", last.look_s, "s"),
    ]
    return Section(body, figures)
