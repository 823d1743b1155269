"""The real command, host and workers, with versions whose difference is known.

TensorFlow is the stub. A workload finds its version in `ARM` and behaves as it likes, so each verdict can be right or
wrong. `measure` makes the versions differ, or makes them equal under two names.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

from orchestrator.__main__ import main
from orchestrator.engines import ENGINES
from tests.conftest import ROOT
from tests.support import libcuda, stub
from tests.support.processes import PATIENCE_S
from tests.support.stub_engine import Engine

OLD, NEW = "1.14.0", "2.0.0"
GPU_LINE = f"0, GPU-{libcuda.UUID}, Tesla T4, 7.5, 550.54.15, 15360, 70, Enabled, [N/A]"
# Every workload begins with this: `NEWER` is true in the later version, if the versions differ.
PRELUDE = f'import os, time\nNEWER = os.environ["ARM"] == "{NEW}"\n'


@dataclass
class Stage:
    """A folder with workloads, and what the two versions are like besides."""

    folder: Path
    # Of the later version, if the versions differ; of both, if they are equal, `same`.
    other: Mapping[str, str]
    same: Mapping[str, str]
    sizes: tuple[int, int] = (300, 300)
    # Where the program is taken from.
    tree: Path = ROOT

    def measure(
        self, workloads: Mapping[str, str], *flags: str | Path, differ: bool, program: str = ""
    ) -> tuple[int, dict[str, Any], str]:
        """Return the exit code, the comparison and the standard error of a run of these workloads, or of a program."""
        where = self.folder / ("different" if differ else "equal")
        own = where / "own"
        own.mkdir(parents=True)
        stub.write(where / "stub")
        for name, source in workloads.items():
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).write_text(PRELUDE + dedent(source))
        variables = {OLD: {**self.same, "ARM": OLD}, NEW: {**self.same, "ARM": OLD}}
        if differ:
            variables[NEW] = {**self.same, **self.other, "ARM": NEW}
        sizes = {OLD: self.sizes[0] << 20, NEW: self.sizes[differ] << 20}
        truth = {"stub": str(where / "stub"), "variables": variables, "sizes": sizes}
        done = subprocess.run(
            [
                sys.executable, "-m", "tests.support.truths", json.dumps(truth), "run", "--engine", "venv",
                "--versions", f"{OLD},{NEW}", "--format", "json", "--output", str(where / "run"),
                *map(str, flags), *(("--", "python", program) if program else ("--workload-folder", str(own))),
            ],
            cwd=own if program else self.tree,
            env={**os.environ, "PYTHONPATH": str(self.tree)},
            capture_output=True, text=True, timeout=4 * PATIENCE_S,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout), done.stderr


def measure_twice(stage: Stage, right: set[str], measure: Callable[[Stage], set[str]]) -> set[str]:
    """Return the verdicts of a run or, if one of them is not right, those of a second one.

    Now and then a run errs by chance, as the level of a verdict says, and a machine that does much else may leave one
    undecided. A rule that is wrong errs again.
    """
    verdicts = measure(stage)
    return verdicts if verdicts <= right else measure(replace(stage, folder=stage.folder / "again"))


def run() -> None:
    """Run the command that follows the truth, with the stub as its engine."""
    truth = json.loads(sys.argv.pop(1))
    engine = Engine(Path(truth["stub"]), variables=truth["variables"], sizes=truth["sizes"])
    ENGINES["venv"] = replace(ENGINES["venv"], make=lambda options: engine)
    main()


if __name__ == "__main__":
    run()
