"""Whether a forked replicate, a fresh process and a fresh container give the same times.

All of them are measured in every round.
"""

import os
from contextlib import ExitStack
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import arena
from bench.figures import Figure, Section
from bench.overhead import TRAIN
from orchestrator import catalog
from orchestrator.engines import Environment
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.model import Comparison
from orchestrator.options import EngineOptions
from orchestrator.results.evaluation import gather
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.samples import samples
from orchestrator.stats.comparisons import Samples
from orchestrator.stats.paired import estimate

VERSION = "2.13"
ROUNDS = 40
ALPHA, MARGIN = 0.05, 0.05
ISOLATED = ("process", "container")
TOLD = {
    "process": "fresh process",
    "forked-in-container": "fork in a resident container",
    "container": "fresh container",
}


def arms(scratch: Path, held: ExitStack) -> tuple[dict[str, Environment], str]:
    """Return the four ways to start a replicate, with the fork in a virtual environment first.

    If there are only two, the text says why.
    """
    venv = arena.environment(VERSION, scratch)
    found: dict[str, Environment] = {"fork": venv, "process": venv}
    (version,) = catalog.resolve_versions([VERSION], fewest=1)
    try:
        engine = DockerEngine(EngineOptions(base=os.environ.get("TFCOMPARE_BASE")))
        held.callback(engine.close)
        engine.check()
        image = engine.prepare(version, BuildLog(scratch / "image.log"))
    except (EngineUnavailable, EnvironmentFailed) as error:
        # What follows in brackets names hosts of this machine's own network.
        return found, f"Containers were left out: {str(error).partition('(')[0].strip()}."
    return {**found, "forked-in-container": image, "container": image}, ""


def section() -> Section:
    with TemporaryDirectory() as scratch, ExitStack() as held:
        found, left_out = arms(Path(scratch), held)
        path = Path(scratch) / "run"
        evaluation = arena.run(found, [TRAIN], folder=path, seed=1, looks=(ROUNDS,), isolated=ISOLATED)
        times = samples(evaluation.plan, gather(RunFolder.open(path)).replicates)
    rows, figures = [], []
    for comparison in evaluation.comparisons:
        row, figure = _row(comparison, times)
        rows.append(row)
        figures += [figure] if figure else []
    body = "\n".join(
        [
            f"`{TRAIN.label}` in TensorFlow {VERSION}, {ROUNDS} rounds;",
            "every round holds a replicate of each kind, whose bursts alternate. Times are against those of a fork in",
            "a virtual environment; a 90 % interval inside 0.952-1.050 is equivalence within 5 % (two one-sided tests",
            f"at {ALPHA:.0%}).",
            *([left_out] if left_out else []),
            "",
            "| replicate | ratio to a fork | 90 % interval |",
            "|---|---|---|",
            *rows,
        ]
    )
    return Section(body, figures)


def _row(comparison: Comparison, times: Samples) -> tuple[str, Figure | None]:
    name = TOLD[str(comparison.pair.candidate)]
    of_rounds = estimate(*(times.get((*arm, comparison.pair.metric), {}) for arm in comparison.pair.arms))
    if of_rounds is None:
        return f"| {name} | {comparison.reason} | |", None
    width = of_rounds.half_width(2 * ALPHA)
    low, ratio, high = map(exp, (of_rounds.theta - width, of_rounds.theta, of_rounds.theta + width))
    figure = Figure(f"{name}: the farther end of its interval", max(high, 1 / low) - 1, "share", limit=MARGIN)
    return f"| {name} | {ratio:.3f} | {low:.3f}-{high:.3f} |", figure
