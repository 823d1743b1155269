"""pyperf: `Runner.bench_func` in a version's environment, and `pyperf compare_to` on two of its files."""

import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench.peers.places import HERE, Suite, call, surroundings

# Without --processes, pyperf runs this many.
DEFAULT_PROCESSES = 20


@dataclass(frozen=True)
class Result:
    """pyperf's result for a case in a version; `spawned` also counts calibrating processes."""

    seconds: float
    processes: int
    spawned: int

    def another(self, wall_s: float) -> float:
        """Return the seconds that one more process would add to a run of `wall_s`.

        The manager costs about half a process.
        """
        return wall_s / (self.spawned + 0.5)


@dataclass(frozen=True)
class Pyperf:
    home: Path

    def run(self, python: Path, case: str, suite: Suite, processes: int, output: Path) -> float:
        """Run a case and return the seconds that the whole command took."""
        begun = time.monotonic()
        env = surroundings(self.home, suite, CASE=case)
        # Named one by one, or its workers get next to none of them.
        command = [python, HERE / "suite" / "cases.py", "--quiet", "--inherit-environ", ",".join(env)]
        call([*command, "--processes", str(processes), "--output", output], env=env)
        return time.monotonic() - begun

    def compare(self, python: Path, before: Path, after: Path, *options: str | int) -> str:
        said = call([python, "-m", "pyperf", "compare_to", "--verbose", before, after, *options])
        if "Not significant!" in said:
            return "not different"
        return next(word for word in ("slower", "faster", "no change") if word in said)


def result(output: Path) -> Result:
    runs = json.loads(output.read_text())["benchmarks"][0]["runs"]
    values = [run["values"] for run in runs if "values" in run]
    return Result(statistics.median(value for some in values for value in some), len(values), len(runs))
