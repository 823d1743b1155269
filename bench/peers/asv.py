"""asv on existing environments.

asv compares two commits. An existing environment has none, but `--set-commit-hash` stores a run's results under a
commit of any repository, and `asv compare` then judges two such runs like any other two: both are asv's own commands on
asv's own files. Samples are recorded, as `asv continuous` does by default, because without them `asv compare` cannot
use its rank test. The suite is read from the working tree, whatever the commit; an environment variable selects what is
slower.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from bench.peers.places import HERE, Suite, attempt, call, surroundings

MACHINE = "bench"
# The names have the same length, because the length of a path shifts data in memory.
BEFORE, AFTER = "former", "latter"
MARKS = {"+": "slower", "-": "faster", "": "not different"}


@dataclass(frozen=True)
class Result:
    """asv's result for a case in a version."""

    seconds: float
    took_s: float


@dataclass(frozen=True)
class Asv:
    python: Path
    project: Path

    @classmethod
    def create(cls, python: Path, project: Path) -> "Asv":
        """Create a project with two empty commits, under which results are stored."""
        project.mkdir(parents=True)
        asv = cls(python, project)
        conf = {
            "version": 1, "project": "peers", "repo": ".", "branches": [BEFORE], "environment_type": "existing",
            "benchmark_dir": str(HERE / "suite"), "results_dir": "results",
        }  # fmt: skip
        (project / "asv.conf.json").write_text(json.dumps(conf))
        git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        call(["git", "init", "--quiet"], cwd=project)
        for commit in (BEFORE, AFTER):
            call([*git, "commit", "--quiet", "--allow-empty", "--message", commit], cwd=project)
            call(["git", "tag", commit], cwd=project)
        call([python, "-m", "asv", "machine", "--yes", "--machine", MACHINE], env=surroundings(project), cwd=project)
        return asv

    def run(self, pythons: list[Path], commit: str, suite: Suite, *options: str) -> float:
        """Run the suite and return the seconds that the whole command took."""
        begun = time.monotonic()
        call(
            [
                *(self.python, "-m", "asv", "run", "--machine", MACHINE, "--set-commit-hash", commit),
                *("--record-samples", *options, *(f"--environment=existing:{python}" for python in pythons)),
            ],
            env=surroundings(self.project, suite),
            cwd=self.project,
        )
        return time.monotonic() - begun

    def compare(self, case: str, *options: str) -> str:
        argv = [self.python, "-m", "asv", "compare", BEFORE, AFTER, *options]
        table = call(argv, env=surroundings(self.project), cwd=self.project)
        row = next(line for line in table.splitlines() if f" cases.time_{case} " in line)
        return MARKS[row.split("|")[1].strip()]

    def results(self, python: Path) -> dict[str, Result]:
        """Return asv's results by case."""
        for path in (self.project / "results" / MACHINE).glob("*-existing-*.json"):
            found = json.loads(path.read_text())
            if found["python"] == str(python):
                columns = found["result_columns"]
                return {
                    name.removeprefix("cases.time_"): Result(
                        seconds=row[columns.index("result")][0], took_s=row[columns.index("duration")]
                    )
                    for name, row in found["results"].items()
                }
        raise LookupError(f"asv filed nothing for {python}")

    def rounds(self, case: str) -> int:
        """Return the number of fresh processes that a case gets in a version by default."""
        found = json.loads((self.project / "results" / "benchmarks.json").read_text())
        return int(found[f"cases.time_{case}"]["rounds"])

    def refusal(self, python: Path, suite: Suite, *command: str) -> str:
        """Return asv's message about a command that it does not carry out in an existing environment."""
        argv = [self.python, "-m", "asv", *command, "--machine", MACHINE, f"--environment=existing:{python}"]
        done = attempt(argv, surroundings(self.project, suite), self.project)
        assert done.returncode, f"asv {' '.join(command)} is carried out after all"
        return done.stdout.strip().splitlines()[-1].strip("· ")
