"""The parts of docs/benchmarks.md: what each measures, what it showed last and before, and the page made of that.

A part is kept in bench/measured/parts: the newest measurement whole, and the figures of the last one of an earlier day.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.figures import Before, Figure, table
from orchestrator import files

BENCH = Path(__file__).resolve().parent
STORED = BENCH / "measured" / "parts"
HEAD = """# Benchmarks of tfcompare itself

`make bench` measures; no figure is written by hand. Each part names its day, its commit and its machine, and
`python -m bench --stale` lists the parts that are older than the code they measure.

A part ends with its figures: whether they meet their targets, and what the last measurement of an earlier day showed.
A figure is called worse or better as soon as the difference can be seen here, also if it may be noise. The measurement
before may have had other settings; its page is in the history of this file."""

# How a replicate is measured and judged; the suite is apart from that.
MEASURING = (
    "orchestrator/measure", "orchestrator/plan", "orchestrator/stats", "orchestrator/engines/worker",
    ":(glob)workloads/*.py",
)  # fmt: skip
VENV, SUITE, NIGHTS = "orchestrator/engines/venv", "workloads/suite", "orchestrator/history/alarms"


@dataclass(frozen=True)
class Part:
    """A part of the page: its title, and the paths of the code that it measures, as git takes them."""

    title: str
    code: tuple[str, ...]


# By the name of the module below bench whose `section` measures it.
PARTS: Mapping[str, Part] = {
    "detect": Part("Detection", (*MEASURING, "bench/workloads/slowed.py")),
    "busy": Part("A busy core", (*MEASURING, VENV, SUITE)),
    "bodies": Part("Other people's code", (*MEASURING, "bench/workloads/bodies.py")),
    "examples": Part("Other people's training loops", (*MEASURING, "bench/workloads/examples.py")),
    "why": Part("Causes", (*MEASURING, "orchestrator/why", "orchestrator/bisect", "bench/workloads/caused.py")),
    "upgrade": Part(
        "Upgrades", (*MEASURING, "orchestrator/upgrade", "orchestrator/metrics/gates.py", "bench/upgrades.json")
    ),
    "workers": Part("Workers", (":(glob)workloads/*.py", "orchestrator/engines/worker")),
    "metrics": Part(
        "Other metrics", (*MEASURING, "orchestrator/metrics", "orchestrator/results", SUITE, "bench/injected.py")
    ),
    "counts": Part("Counts", ("orchestrator/results/counts.py", "workloads/counting.py", "bench/workloads/counted.py")),
    "first_calls": Part("First calls", ("orchestrator/stats", "orchestrator/plan", "bench/recorded.json")),
    "overhead": Part("Overhead", (*MEASURING, VENV, SUITE)),
    "images": Part("Images", ("orchestrator/engines", "orchestrator/images", "images", "orchestrator/measure")),
    "pins": Part("Packages", ("orchestrator/catalog", "orchestrator/engines/venv", "orchestrator/engines/docker")),
    "isolation": Part("Isolation", (*MEASURING, VENV, "orchestrator/engines/docker")),
    "peers": Part("Peers", (*MEASURING, VENV, "workloads/suite/train_loop.py", "bench/workloads/slowed.py")),
    "fleet": Part("Fleet", ("orchestrator/fleet", "orchestrator/results")),
    "report": Part("Reports", ("orchestrator/reports", "orchestrator/results", "orchestrator/stats")),
    "load": Part("Load", (*MEASURING, "orchestrator/results")),
    "site": Part("Site", ("orchestrator/history",)),
    "alarms": Part("Alarms", (NIGHTS,)),
    "other_nights": Part("Alarms on other nights", (NIGHTS, "orchestrator/history/surroundings.py")),
    "repeated": Part(
        "Repeated steps", (NIGHTS, "orchestrator/history/series.py", "orchestrator/history/surroundings.py")
    ),
}


@dataclass(frozen=True)
class Measurement:
    """What a part showed: the day, the machine, the commits, a text, and figures.

    `commits` are those that were measured, or, of the days before they were recorded, the one that published it.
    """

    day: str
    machine: Mapping[str, str]
    commits: tuple[str, ...]
    recorded: bool
    uncommitted: bool
    body: str
    figures: tuple[Figure, ...]

    def stamp(self, name: str) -> str:
        named = " and ".join(f"`{commit}`" for commit in self.commits)
        if not self.recorded:
            commit = f"published in commit {named}; which commit was measured was not recorded yet"
        elif self.commits:
            commit = f"commit {named}{', with changes that were not committed' if self.uncommitted else ''}"
        else:
            commit = "outside of a git clone"
        machine = ", ".join(f"{fact} {value}" for fact, value in self.machine.items())
        return f"`make bench ARGS={name}` on {self.day}, {commit}: {machine}."


@dataclass(frozen=True)
class Stored:
    now: Measurement
    before: Before | None = None

    def page(self, name: str) -> str:
        figures = table(self.now.figures, self.before, self.now.machine["cpu"])
        return "\n\n".join([self.now.stamp(name), self.now.body, *(["\n".join(figures)] if figures else [])])


def read(name: str, stored: Path = STORED) -> Stored | None:
    path = stored / f"{name}.json"
    if not path.exists():
        return None
    kept: dict[str, Any] = json.loads(path.read_text())
    now = kept["now"]
    figures = tuple(Figure(**figure) for figure in now["figures"])
    commits, body = tuple(now["commits"]), "\n".join(now["body"])
    before = Before(**kept["before"]) if kept["before"] else None
    return Stored(Measurement(**{**now, "commits": commits, "body": body, "figures": figures}), before)


def write(name: str, now: Measurement, stored: Path = STORED) -> Stored:
    """Keep a measurement, and the figures of the one that it follows; one of the same day it replaces."""
    last = read(name, stored)
    before = last.before if last else None
    if last and last.now.day != now.day:
        values = {figure.name: figure.value for figure in last.now.figures}
        before = Before(last.now.day, last.now.machine["cpu"], values)
    # Each figure and each line of the text has its own line, so that version control shows what changed.
    kept = {"now": {**asdict(now), "body": now.body.split("\n")}, "before": asdict(before) if before else None}
    stored.mkdir(parents=True, exist_ok=True)
    files.write_atomically(stored / f"{name}.json", (json.dumps(kept, indent=1, ensure_ascii=False) + "\n").encode())
    return replace(last or Stored(now), now=now, before=before)


def benchmarks_page(stored: Path = STORED) -> str:
    parts = ((part.title, name, read(name, stored)) for name, part in PARTS.items())
    sections = [f"## {title}\n\n{kept.page(name)}" for title, name, kept in parts if kept]
    return "\n\n".join([HEAD, *sections]) + "\n"
