"""The course of a run, from top to bottom: the request, what it requires, the measurement, the verdicts."""

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orchestrator.errors import TfCompareError
from orchestrator.machine.gpu_clocks import hold_clocks
from orchestrator.machine.host import moment
from orchestrator.machine.occupied import occupy
from orchestrator.measure.alternative import can_compare
from orchestrator.measure.outline import outline
from orchestrator.measure.profiler import Profiler
from orchestrator.measure.round_range import Enough, RoundRange, first_rounds
from orchestrator.measure.rounds import RoundLoop
from orchestrator.measure.session import (
    Session,
    make_manifest,
    note_keras,
    open_session,
    pin_workloads,
    prepare_environments,
)
from orchestrator.measure.workers import RunningWorkers, Workers, employ
from orchestrator.model import ArmKey, Ended, Evaluation, Finished, Machine, Plan, Shares
from orchestrator.options import PROFILED_CALLS
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.results.evaluation import judge_run
from orchestrator.results.exit_error import find_error
from orchestrator.results.find_runs import RUNS
from orchestrator.results.past import Progress
from orchestrator.results.sealed import seal_run
from orchestrator.terminal.view import View


@dataclass(frozen=True)
class Done:
    """A judged run, and the error that determines its exit code."""

    evaluation: Evaluation
    path: Path
    error: TfCompareError | None


def plan_and_measure(options: RunOptions, view: View, enough: Enough | None = None) -> Done:
    """Plan a run, make its versions ready, measure, and judge what was measured."""
    return measure(plan_run(options, view), view, enough=enough)


def measure(planned: PlannedRun, view: View, *, alone: bool = False, enough: Enough | None = None) -> Done:
    """Measure a planned run; a unit of a fleet has this machine alone, and other runs leave it to fleets."""
    with occupy(alone=alone), open_session(planned, RUNS / planned.run, view) as opened:
        view.say(outline(planned, opened.plan.engine))
        for note in (*planned.fitting.notes, *note_keras(planned)):
            view.say(f"note: {note}")
        opened = pin_workloads(opened)
        opened.begin()
        session = prepare_environments(opened, enough=partial(can_compare, planned))
        # The engine may be another than was planned.
        seal_run(session.folder, session.plan, make_manifest(opened.planned, {}))
        session.folder.write_plan(session.plan)
        session.folder.write_manifest(make_manifest(opened.planned, session.environments, session.plan.large))
        rounds = first_rounds(session.plan, keep_going=planned.options.keep_going, enough=enough)
        return measure_rounds(session, rounds, Progress())


def measure_rounds(session: Session, rounds: RoundRange, progress: Progress) -> Done:
    """Measure these rounds, and judge the run; the end of the rounds is recorded however it comes."""
    folder = session.folder
    begun = time.monotonic()
    how, cut = "an error ended the run", True
    folder.record(Machine(when="begin", readings=moment()))
    folder.sync_workloads()
    folder.sync()

    def record_end(employed: RunningWorkers) -> None:
        folder.record(Machine(when="end", readings=moment()))
        # What is not on the disk yet has not ended.
        folder.sync()
        took_s, at_budget = time.monotonic() - begun, bool(how) and not cut
        finished = Finished(
            how=str(employed.error or how),
            seconds=took_s,
            start_s=employed.workers.start_s,
            cut=cut,
            at_budget=at_budget,
        )
        folder.record(finished)
        folder.sync_journal()

    with hold_clocks(session.plan.gpus, session.plan.lock_mhz), employ(session, record_end) as employed:
        employed.start(rounds.first_round)
        begun = time.monotonic()
        how = RoundLoop(session, employed.workers, rounds, progress).measure()
        measure_shares(session, employed.workers, progress)
        cut = False
    error = employed.error
    if error:
        if not any(isinstance(entry, Ended) and entry.outcome == "measured" for entry in folder.entries()):
            raise error
        error = type(error)(f"{error}; what was measured before is kept: tfcompare report {folder.path}")
    evaluation = judge_run(folder)
    again = sum(arm.external for arm in evaluation.died)
    error = error or find_error(evaluation.arms, session.failures, evaluation.broken, again=again)
    return Done(evaluation, folder.path, error)


def measure_shares(run: Session, workers: Workers, progress: Progress) -> None:
    """Profile each of these arms once, unless the run did so before, and record the shares."""
    done = {ArmKey(entry.case, entry.target) for entry in run.folder.entries() if isinstance(entry, Shares)}
    arms = {arm.key: arm for arm in run.plan.arms()}
    for key, functions in functions_to_profile(run.plan).items():
        if key not in done:
            progress.replicates += 1
            # The rounds have made the code of every GPU.
            profiler = Profiler(run.plan, workers, PROFILED_CALLS, set())
            arm = profiler.profile(*arms[key], progress.replicates)
            shares = {name: arm.profile.share(name) for name in sorted(functions)} if arm.profile else {}
            run.folder.record(Shares(case=key.case, target=key.target, shares=shares, reason=arm.reason))


def functions_to_profile(plan: Plan) -> Mapping[ArmKey, set[str]]:
    """Return the functions that claims which this device can test speak of, by arm."""
    functions: dict[ArmKey, set[str]] = defaultdict(set)
    for claim in plan.claims:
        if plan.device in claim.devices:
            for share in claim.shares:
                functions[share.arm].add(share.function)
    return functions
