"""What tests of kills at random points share: who is killed when, and what has to be true afterwards.

SOAK_KILLS says how many there are, SOAK_SEED where their seeds begin; a failure names its own seed.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from orchestrator.history.model import Night
from orchestrator.history.store import Store
from orchestrator.results.run import load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.streams import read_stream
from tests.conftest import run_command

KILLS, FIRST = int(os.environ.get("SOAK_KILLS", "6")), int(os.environ.get("SOAK_SEED", "1"))
PATIENCE_S = 120.0
# Of a nightly run: only itself, or also the process that measures for it.
NIGHT_VICTIMS = ("night", "night and measuring")
# A run that was killed, or whose engine, worker or replicate was; never a bug.
ENDINGS = (-signal.SIGKILL, 0, 4, 5, 6)


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    words: str


def marked(mark: str) -> list[Process]:
    """Every process that inherited this variable and is no zombie."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() not in (folder / "environ").read_bytes():
                continue
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if state not in "ZX":
            found.append(Process(int(folder.name), int(parent), words))
    return found


def kill(pid: int | None) -> None:
    with suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, signal.SIGKILL)


def until(true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"still waiting for: {what}"
        time.sleep(0.05)


def recorded(run: Path) -> list[tuple[str, int]]:
    """The replicates that the journal says were measured, by version and number."""
    path = run / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [
        (entry["target"], entry["replicate"])
        for entry in entries
        if entry["kind"] == "ended" and entry["outcome"] == "measured"
    ]


def written(run: Path) -> list[tuple[str, int]]:
    """The replicates that are in some stream, each as often as streams have it."""
    found: list[tuple[str, int]] = []
    for stream in RunFolder(run).worker_output.streams():
        table, _ = read_stream(stream.path, stream.root)
        found += {(str(stream.target), number) for number in table["replicate"].to_pylist()}
    return found


def check(run: Path) -> frozenset[tuple[str, int]]:
    """Return what counts, after a look at whether journal and streams agree; it can be read and judged."""
    measured, kept = recorded(run), written(run)
    assert len(measured) == len(set(measured)), "a replicate is recorded twice"
    assert len(kept) == len(set(kept)), "a replicate is in two streams"
    assert set(measured) <= set(kept), "a recorded replicate is in no stream"
    # A run that was killed between its plan and its manifest has measured nothing; it says so, and can be continued.
    if measured or (run / "manifest.json").exists():
        load_run(run)
    return frozenset(measured)


def check_resumed(run: Path, tfcompare: str, env: dict[str, str], *flags: str) -> None:
    """Continue a run that was killed: what had been measured stays, and nothing is left besides it."""
    before = check(run)
    resumed = run_command(tfcompare, "run", "--resume", run, "--rounds", "2", "--quiet", *flags, env=env)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert "Traceback" not in resumed.stderr
    assert before <= check(run), "what had been measured is gone"
    report = run_command(tfcompare, "report", run, "--format", "json", env=env)
    assert (report.returncode, "Traceback" in report.stderr) == (0, False), report.stderr
    left = [str(path) for path in run.rglob(".*") if path.name != ".lock"]
    assert not left, f"half-written files are left: {left}"


def check_killed_night(argv: list[str], history: Path, env: dict[str, str], seed: int, longest_s: float) -> list[Path]:
    """Kill a nightly run, and begin the next one of the day at once; return the runs that count for none."""
    draw = random.Random(seed)
    kind, moment_s = draw.choice(NIGHT_VICTIMS), draw.uniform(0.2, longest_s)
    marks = [f"TF_CPP_SOAK=night-{os.getpid()}-{seed}-{number}" for number in (1, 2)]
    killed, following = ({**os.environ, **env, "TF_CPP_SOAK": mark.partition("=")[2]} for mark in marks)
    with subprocess.Popen(argv, env=killed, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(moment_s)
        measuring = [each.pid for each in marked(marks[0]) if each.parent == process.pid]
        for victim in [process.pid, *measuring][: None if kind == "night and measuring" else 1]:
            kill(victim)
        done = run_command(*argv, env=following)
        _, stderr = process.communicate(timeout=PATIENCE_S)
    print(f"seed {seed}: {kind} after {moment_s:.2f} s; exit code {process.returncode}; then {done.stderr!r}")
    assert process.returncode in (-signal.SIGKILL, 0), stderr
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    until(lambda: not marked(marks[0]), "the last process of the killed night")
    assert not marked(marks[1])
    return check_history(history)


def check_history(history: Path) -> list[Path]:
    """Return the runs that count for no night, after a look at whether one counts, once, and none overlapped."""
    store = Store(history)
    read = store.read()
    events, warnings = store.events()
    assert (read.warnings, warnings) == ((), ())
    [night] = [event for event in events if isinstance(event, Night) and event.outcome == "measured"]
    points = read.points()
    assert {point.run for point in points} == {night.run}
    assert len(points) == len({point.key for point in points}) > 0, "a screen counts twice"
    runs = sorted((run for run in store.runs.iterdir() if (run / ".lock").exists()), key=begun_at)
    assert store.runs / night.run in runs
    for run, following in pairwise(runs):
        assert ended_at(run) <= begun_at(following), f"{run} and {following} were measured at the same time"
    for run in runs:
        check(run)
    return [run for run in runs if run.name != night.run]


def begun_at(run: Path) -> float:
    # It is made once nothing of earlier runs is left, and never written to.
    return (run / ".lock").stat().st_mtime


def ended_at(run: Path) -> float:
    written = [run / "journal.jsonl", *(run / "results").rglob("*"), *(run / "streams").rglob("*")]
    return max((path.stat().st_mtime for path in written if path.is_file()), default=0.0)
