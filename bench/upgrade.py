"""Whether `tfcompare upgrade` answers as a reader of the program would, for programs of other people.

`upgrades.json` names ten programs, with their files' hashes, and what was judged of each move before its page was seen,
from its code and from a run of it by hand in each version.
The programs are no part of this repository: PROGRAMS names a folder with one subfolder for each. Their environments are
installed first, because the time of a page counts from there.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.figures import Figure, Section
from bench.store import Store
from orchestrator.child_process import PROGRAM

JUDGED = Path(__file__).with_suffix(".json").with_stem("upgrades")
OLD, DECISIONS = "2.8", ("go", "go with a flag", "not yet")
AGREE, PAGE_S, REST_S = 0.9, 300.0, 900.0


@dataclass(frozen=True)
class Judgement:
    """What a reader expects of a move: the decision, the gate that is in the way or the flag that helps, and why."""

    decision: str
    reason: str
    gate: str = ""
    flag: str = ""


@dataclass(frozen=True)
class ThirdParty:
    """A program of other people: where it is from, its files with their hashes, and how it is started."""

    name: str
    repository: str
    commit: str
    # By its path in the folder of the program: the path in the repository, and the SHA-256.
    files: Mapping[str, tuple[str, str]]
    command: tuple[str, ...]
    requirements: tuple[str, ...]
    # What is in the way, as `--fail-on` takes it; empty for the usual gates.
    gates: str
    moves: Mapping[str, Judgement]

    @property
    def source(self) -> str:
        return f"[{self.repository}](https://github.com/{self.repository}/tree/{self.commit})"


@dataclass(frozen=True)
class Move:
    """A program that moves to another version: what was judged of it, what its page says, and how long that took."""

    program: ThirdParty
    new: str
    page: Mapping[str, Any]
    page_s: float
    rest_s: float

    @property
    def judged(self) -> Judgement:
        return self.program.moves[self.new]

    @property
    def agrees(self) -> bool:
        """Return whether the page decides as was judged, for the same cause."""
        judged, gates = self.judged, {each["gate"] for each in self.page["tripped"]}
        is_flag = not judged.flag or judged.flag in (self.page["flag"] or "").split()
        return self.page["decision"] == judged.decision and is_flag and (not judged.gate or judged.gate in gates)


def read_programs() -> tuple[ThirdParty, ...]:
    return tuple(
        ThirdParty(**{
            **each,
            "files": {path: tuple(file) for path, file in each["files"].items()},
            "command": tuple(each["command"]),
            "requirements": tuple(each["requirements"]),
            "moves": {new: Judgement(**judged) for new, judged in each["moves"].items()},
        })
        for each in json.loads(JUDGED.read_text())
    )  # fmt: skip


def collect(program: ThirdParty, source: Path, folder: Path) -> Path:
    """Copy the files of a program; exit if one of them is not what was named."""
    for path, (origin, expected) in program.files.items():
        found = source / program.name / path
        if not found.is_file() or hashlib.sha256(found.read_bytes()).hexdigest() != expected:
            problem = "has other contents" if found.exists() else "is missing"
            where = f"https://github.com/{program.repository}/blob/{program.commit}/{origin}"
            sys.exit(f"upgrade: {found} {problem}; it is {where}")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(found, folder / path)
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in program.requirements))
    return folder


def ask(program: ThirdParty, new: str, path: Path, source: Path) -> dict[str, Any]:
    """Ask, and return what the page says after the first part, after all, and how long each took."""

    def call(*words: object) -> tuple[str, float]:
        begun = time.monotonic()
        done = subprocess.run(
            [*PROGRAM, *map(str, words)], cwd=folder, env={**os.environ, "MPLBACKEND": "Agg"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not done.stdout.strip():
            raise SystemExit(f"upgrade: {program.name} to {new}: {done.stderr[-2000:]}")
        return done.stdout, time.monotonic() - begun

    shutil.rmtree(path, ignore_errors=True)
    with TemporaryDirectory() as scratch:
        folder = collect(program, source, Path(scratch))
        needs = ("--requirements", "requirements.txt") if program.requirements else ()
        same = (OLD, new, "--engine", "venv", *needs)
        call("run", *same, "--rounds", "2", "--output", f"{path}-installed", "--", *program.command)
        gates = ("--fail-on", program.gates) if program.gates else ()
        asked = ("--no-remedies", *gates, "--format", "json", "--output", path, "--", *program.command)
        text, page_s = call("upgrade", *same, *asked)
        kept = {"page": json.loads(text), "page_s": page_s, "rest_s": 0.0}
        if kept["page"]["decision"] == "not yet":
            text, rest_s = call("upgrade", "--resume", path, "--format", "json")
            kept |= {"page": json.loads(text), "rest_s": rest_s}
    names = ("decision", "flag", "tripped", "open", "best_between", "why", "seconds")
    return {**kept, "page": {name: kept["page"][name] for name in names}}


def section() -> Section:
    if "PROGRAMS" not in os.environ:
        sys.exit(f"upgrade: PROGRAMS must name a folder with a subfolder for each program of {JUDGED.name}")
    source, store, programs = Path(os.environ["PROGRAMS"]).resolve(), Store("upgrade"), read_programs()
    moves = []
    for program, new in [(each, new) for each in programs for new in each.moves]:
        name = f"{program.name} to {new}"
        kept = store.read(name)
        if kept is None:
            kept = ask(program, new, store.folder / name.replace(" ", "-"), source)
            store.write(name, kept)
            print(f"upgrade: {name}: {_tell(kept['page'])}, {kept['page_s']:.0f} s", file=sys.stderr)
        moves.append(Move(program, new, **kept))
    body = "\n".join(
        [
            f"`tfcompare upgrade {OLD} NEW --engine venv --no-remedies -- PROGRAM`, and where that says not yet,",
            "`tfcompare upgrade --resume FOLDER` for the cause and what helps. What was judged, with reasons, was",
            "committed before the first page was seen; a page agrees if it decides the same for the same gate or flag.",
            "By the usual gates, none of those that were tried by hand may move: importing a newer TensorFlow alone",
            "takes more memory and time than gates allow to a short program. So half of them are asked with others.",
            "",
            "| program | from | gates | to | judged | because | the page | |",
            "|---|---|---|---|---|---|---|---|",
            *map(_row, moves),
            "",
            store.describe(),
        ]
    )
    of = f"of {len(moves)}, of {len(programs)} programs"
    figures = [
        Figure("pages that agree", sum(move.agrees for move in moves) / len(moves), "share", "most", AGREE, detail=of),
        Figure("longest page without remedies", max(move.page_s for move in moves), "s", limit=PAGE_S),
        Figure("longest rest", max(move.rest_s for move in moves), "s", limit=REST_S),
    ]
    commits = store.commits
    store.retire()
    return Section(body, figures, commits)


def _tell(page: Mapping[str, Any]) -> str:
    """Return what a page decides, and because of what."""
    gates: Sequence[str] = list(dict.fromkeys(each["gate"] for each in page["tripped"]))
    told = ": ".join([page["decision"], *([page["flag"]] if page["flag"] else [])])
    if page["decision"] == "go" and page["open"]:
        told += f", not shown: {', '.join(dict.fromkeys(each['metric'] for each in page['open']))}"
    return f"{told} ({', '.join(gates)})" if gates else told


def _row(move: Move) -> str:
    judged = move.judged
    told = ": ".join([judged.decision, *([judged.flag] if judged.flag else [])])
    told += f" ({judged.gate})" if judged.gate else ""
    agrees = "agrees" if move.agrees else "**differs**"
    program = move.program
    gates = f"`{program.gates}`" if program.gates else "usual"
    cells = (program.name, program.source, gates, move.new, told, judged.reason, _tell(move.page), agrees)
    return f"| {' | '.join(cells)} |"
