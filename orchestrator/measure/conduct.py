"""The measured part of a run, for its first rounds and for more: workers start, rounds are measured, workers end."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import interrupts
from orchestrator.errors import EngineUnavailable, Interrupted, TfCompareError
from orchestrator.machine.gpu_clocks import hold_clocks
from orchestrator.machine.host import moment
from orchestrator.measure.prepare_run import PreparedRun
from orchestrator.measure.replicate import Progress
from orchestrator.measure.round_range import RoundRange
from orchestrator.measure.rounds import RoundLoop
from orchestrator.measure.shares import measure_shares
from orchestrator.measure.workers import Workers
from orchestrator.model import Ended, Evaluation, Finished, Machine
from orchestrator.results.evaluation import judge_run
from orchestrator.results.exit_error import find_error
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.progress import View


@dataclass(frozen=True)
class Done:
    """A judged run, and the error that determines its exit code."""

    evaluation: Evaluation
    path: Path
    error: TfCompareError | None


def conduct(run: PreparedRun, rounds: RoundRange, progress: Progress, view: View) -> Done:
    """Measure the rounds and judge the run."""
    error = measure_rounds(run, rounds, progress, view)
    evaluation = judge_run(run.folder)
    again = sum(arm.external for arm in evaluation.died)
    error = error or find_error(evaluation.arms, run.failures, evaluation.broken, again=again)
    return Done(evaluation, run.folder.path, error)


def measure_rounds(run: PreparedRun, rounds: RoundRange, progress: Progress, view: View) -> TfCompareError | None:
    """Measure with the clocks of the run's GPUs as asked for; return the error that cut it short."""
    with hold_clocks(run.plan.gpus, run.plan.lock_mhz):
        return _measure_rounds(run, rounds, progress, view)


def _measure_rounds(run: PreparedRun, rounds: RoundRange, progress: Progress, view: View) -> TfCompareError | None:
    """Start the workers, measure, and end the workers whatever happens."""
    folder = run.folder
    begun = time.monotonic()
    workers = Workers(run, view.say)
    how, cut = "an error ended the run", True
    error: TfCompareError | None = None
    folder.record(Machine(when="begin", readings=moment()))
    folder.sync_workloads()
    folder.sync()
    try:
        for target in run.environments:
            view.preparing(str(target), "starting its worker")
        ready = workers.start_all(rounds.first_round)
        begun = time.monotonic()
        manifest = folder.read_manifest()
        facts = {target: answer.facts for target, answer in ready.items()}
        folder.write_manifest(replace(manifest, workers={**manifest.workers, **facts}))
        how = RoundLoop(run, workers, view, rounds, progress).measure()
        measure_shares(run, workers, progress)
        cut = False
        workers.stop()
    except EngineUnavailable as gone:
        how, error = str(gone), gone
    except KeyboardInterrupt:
        how, error = "interrupted", Interrupted("interrupted")
    finally:
        with interrupts.hold():
            workers.kill()
            folder.record(Machine(when="end", readings=moment()))
            # What is not on the disk yet has not ended.
            folder.sync()
            took_s, at_budget = time.monotonic() - begun, bool(how) and not cut
            folder.record(Finished(how=how, seconds=took_s, start_s=workers.start_s, cut=cut, at_budget=at_budget))
            folder.sync_journal()
    if error is None:
        return None
    if not _has_results(folder):
        raise error
    return type(error)(f"{error}; what was measured before is kept: tfcompare report {folder.path}")


def _has_results(folder: RunFolder) -> bool:
    return any(isinstance(entry, Ended) and entry.outcome == "measured" for entry in folder.entries())
