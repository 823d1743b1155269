"""Arms with a known true ratio: the same environment, and a workload slowed by an exact share in each arm.

The product's own workers, measurement and judge measure them; only the arms' names and folders come from here.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bench import plain
from orchestrator import catalog, contract
from orchestrator.catalog.selectors import MARGIN
from orchestrator.catalog.workloads import all_workloads
from orchestrator.engines import Environment, StartedWorker, WorkerPaths
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.errors import TfCompareError
from orchestrator.measure.round_range import first_rounds
from orchestrator.measure.rounds import RoundLoop
from orchestrator.measure.session import Session
from orchestrator.measure.workers import Workers
from orchestrator.model import ArmKey, Case, EnvironmentFacts, Evaluation, Finished, Manifest, Pair, Plan, Target
from orchestrator.options import EngineOptions
from orchestrator.plan.pairs import ALPHA, LOOKS, plan_pairs
from orchestrator.results.evaluation import judge_run
from orchestrator.results.past import Progress
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats.calibrate import Effort
from orchestrator.terminal.view import View

WORKLOADS = Path(__file__).parent / "workloads"
# It ends with its parent, also if that is killed.
BUSY = """
import os

parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""
MATMUL, TRAIN = (Case("slowed", (("body", body),)) for body in ("matmul", "train"))


@dataclass(frozen=True)
class Arm:
    """An environment under another name, with a separate folder of workloads and perhaps other hashes."""

    environment: Environment
    folder: Path
    seed: int | None = None

    @property
    def facts(self) -> EnvironmentFacts:
        return self.environment.facts

    def start(self, paths: WorkerPaths, stream: Path) -> StartedWorker:
        seed = paths.seed if self.seed is None else self.seed
        return self.environment.start(replace(paths, own_workloads=self.folder, seed=seed), stream)


def keep_busy(core: int) -> "subprocess.Popen[bytes]":
    """Start a process that keeps a core busy until it is killed."""
    return subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", BUSY])


def environment(number: str, scratch: Path) -> Environment:
    (version,) = catalog.resolve_versions([number], fewest=1)
    return VenvEngine(EngineOptions()).prepare(version, BuildLog(scratch / "build.log"))


def slowed(number: str, slowdowns: Mapping[str, float], scratch: Path) -> dict[str, Arm]:
    """Create one arm per slowdown, by name, all in one environment."""
    made = environment(number, scratch)
    arms = {}
    for name, slowdown in slowdowns.items():
        folder = scratch / f"slowed-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(WORKLOADS / "slowed.py", folder)
        # Every such file has the same length, because a longer one shifts data in memory.
        (folder / "slowdown.txt").write_text(f"{slowdown:.3f}")
        arms[name] = Arm(made, folder)
    return arms


def run(
    arms: Mapping[str, Environment],
    cases: Sequence[Case],
    *,
    folder: Path,
    seed: int,
    looks: tuple[int, ...] = LOOKS,
    alpha: float = ALPHA,
    budget_s: float | None = None,
    isolated: Collection[str] = (),
    efforts: Mapping[ArmKey, Effort] | None = None,
    keep_workers: bool = False,
    pairs: tuple[Pair, ...] = (),
    margin: float = MARGIN,
    view: View | None = None,
) -> Evaluation:
    """Measure a whole run into a new folder; an arm that dies is an error.

    Unless pairs are given, each arm is compared with the first. Arms whose effort is given need no pilot. Each round
    has new workers, unless they are to be kept.
    """
    workloads = all_workloads(WORKLOADS)
    environments = {Target(name): environment for name, environment in arms.items()}
    plan = Plan(
        run=folder.name,
        created=datetime.now(UTC).replace(microsecond=0),
        suite="bench",
        engine="venv",
        device="cpu",
        targets=tuple(environments),
        cases=tuple(cases),
        pairs=pairs or plan_pairs(cases, tuple(environments), workloads),
        looks=looks,
        alpha=alpha,
        margin=margin,
        budget_s=budget_s,
        seed=seed,
        threads=None,
        untuned_datasets=False,
        keeps_xla_code=False,
        timeout_s=300,
        **plain.PLAN,
    )
    run_folder = RunFolder.create(folder)
    run_folder.write_plan(plan)
    run_folder.write_manifest(
        Manifest(
            tool="bench",
            contract=contract.FINGERPRINT,
            command=(),
            host={},
            sources={},
            environments={},
            workers={},
            **plain.MANIFEST,
        )
    )
    session = Session(plan, environments, run_folder, WORKLOADS, view=view or View())
    workers = Workers(session, [Target(name) for name in isolated])
    try:
        workers.start_all()
        begun = time.monotonic()
        progress = Progress(dict(efforts or {}))
        rounds = first_rounds(plan)
        how = RoundLoop(session, workers, rounds, progress, keep_workers=keep_workers).measure()
        workers.stop()
    finally:
        workers.kill()
    # The end of a budget is a look, too.
    run_folder.record(Finished(how=how, seconds=time.monotonic() - begun, start_s=0.0, cut=False, at_budget=False))
    evaluation = judge_run(run_folder)
    if evaluation.died:
        raise TfCompareError("\n".join(f"{arm.target}: {arm.reason}" for arm in evaluation.died))
    return evaluation
