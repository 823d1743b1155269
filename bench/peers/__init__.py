"""tfcompare next to asv and pyperf: the same cases, the same three environments, the same wall time.

The cases are those of `bench/workloads/slowed.py`, whose true ratio is exact: a body, then a spin for a known share of
the time that this very call of the body took. All three tools time the steps that this one file builds.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import arena
from bench.figures import Figure, Section
from bench.overhead import TRAIN
from bench.peers import cost, places, truth
from bench.peers.asv import AFTER, BEFORE, Asv
from bench.peers.contestants import THRESHOLD, ByAsv, ByPyperf, ByTfcompare, Contestant
from bench.peers.cost import Cost
from bench.peers.places import Places
from bench.store import Store
from orchestrator.catalog.workloads import BUILTIN

# Of a case in the time that asv takes by default, where it starts two.
FEWEST = 3
# The last is the one in which the true ratios are set.
VERSIONS = ("1.14", "2.0", "2.13")
CASES = {"matmul": arena.MATMUL, "train": arena.TRAIN}
# What replicates cost is asked of the product's own small training loops, which TensorFlow's users know.
LOOPS = {
    f"{loop}_{mode}": replace(TRAIN, params=tuple({**dict(TRAIN.params), "loop": loop, "mode": mode}.items()))
    for loop in ("train_on_batch", "fit")
    for mode in ("graph", "eager")
}


@dataclass(frozen=True)
class Contest:
    """The wall time that each tool gets for a comparison, and how often all comparisons are repeated.

    A repetition takes six times the wall time.
    """

    wall_s: float
    repetitions: int


# Three hours together. In half the time tfcompare, which starts new workers in every round, would hardly get beyond a
# first look.
CONTESTS = {"matmul": Contest(wall_s=30, repetitions=20), "train": Contest(wall_s=60, repetitions=20)}


def section() -> Section:
    with TemporaryDirectory() as folder:
        scratch = Path(folder)
        found = places.prepare(VERSIONS, scratch)
        store = Store("peers")
        if (costs := store.read("costs")) is None:
            costs = _costs(found, scratch)
            store.write("costs", costs)
        lines, figures = _truths(VERSIONS[-1], found, scratch, store)
        body = "\n".join([*costs["lines"], *lines, "", store.describe()])
        store.retire()
        fewest = Figure("fewest processes of a case in asv's default time", costs["fewest"], "count", "most", FEWEST)
        return Section(body, [fewest, *figures], store.commits)


def _costs(found: Places, scratch: Path) -> dict[str, Any]:
    suite = {name: (str(BUILTIN / "train_loop.py"), dict(case.params)) for name, case in LOOPS.items()}
    asv = Asv.create(found.asv, scratch / "asv")
    first = _told(cost.by_asv(asv, found, suite))
    own = _told(cost.by_tfcompare(VERSIONS, LOOPS, first.wall_s, scratch))
    last = _told(cost.by_pyperf(found, suite, first.wall_s, scratch))
    refusals = [
        f"`asv {' '.join(command)}` says *{asv.refusal(found.inside[VERSIONS[0]], suite, *command)}*."
        for command in (("run", "--interleave-rounds"), ("continuous", BEFORE, AFTER))
    ]
    pyperfs = ", ".join(f"{places.release(python, 'pyperf')} in {name}" for name, python in found.inside.items())
    lines = [
        f"asv {places.release(found.asv, 'asv')} and pyperf ({pyperfs}) on the environments that tfcompare keeps;",
        "asv calls them existing ones. All three time the steps that the same workload files build. Existing",
        "environments cost asv its alternation of arms:",
        *refusals,
        "",
        "### What replicates cost",
        "",
        f"`{LOOPS['fit_eager'].label}` and its",
        "three neighbours: asv with its defaults over these cases in the three versions; then the others, set to its",
        "wall time. tfcompare imports TensorFlow once a round and version, and forks a process for each case; asv and",
        "pyperf import it in each process.",
        "",
        *cost.table([own, first, last], VERSIONS, list(LOOPS)),
        "",
        "With a budget, tfcompare gives its rounds to the cases that it can decide, and postpones others after their",
        f"pilot: {len(own.cells)} arms got {own.processes} processes here, {own.processes / len(own.cells):.1f} each.",
        "",
    ]
    return {"lines": lines, "fewest": own.fewest}


def _told(one: Cost) -> Cost:
    print(f"{one.tool}, {one.setting}: {one.wall_s:.1f} s", file=sys.stderr)
    return one


def _truths(version: str, found: Places, scratch: Path, store: Store) -> tuple[list[str], list[Figure]]:
    lines = [
        "### False alarms and detection",
        "",
        "`matmul` is a product of two matrices in numpy, `train` is `train_on_batch` of two Dense layers.",
        f"Two arms in the environment of {version} whose true ratio is exact. Each tool gets the same wall time",
        "for a comparison, its start and end included: as many fresh processes (asv's `rounds`, pyperf's",
        "`--processes`), or as large a `--budget`, as fit it. The order of tools and slowdowns is drawn again in each",
        f"repetition. Every tool is judged under its own default and under a threshold of {THRESHOLD} % on the same",
        "files. In brackets: 95 % intervals. Each comparison is alone in its run, and shares the allowed error with no",
        "other.",
    ]
    figures: list[Figure] = []
    for name, contest in CONTESTS.items():
        own = scratch / f"truth-{name}"
        own.mkdir()
        contestants: list[Contestant] = [
            ByTfcompare.rehearsed(version, CASES[name], contest.wall_s, own),
            ByAsv.rehearsed(found, version, name, contest.wall_s, own),
            ByPyperf.rehearsed(found, version, name, contest.wall_s, own),
        ]
        trials = truth.trials(version, name, contestants, contest.repetitions, own, store)
        lines += ["", f"`{name}`, {contest.wall_s:g} s a comparison:", "", *truth.table(contestants, trials)]
        figures += truth.figures_of(name, contestants[0], trials)
    return lines, figures
