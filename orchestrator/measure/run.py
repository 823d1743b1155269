"""The course of a run, from top to bottom: the request, what it requires, the measurement, the verdicts."""

from functools import partial

from orchestrator.machine.occupied import occupy
from orchestrator.measure.alternative import can_compare
from orchestrator.measure.conduct import Done, conduct
from orchestrator.measure.outline import outline
from orchestrator.measure.prepare_run import make_manifest, note_keras, open_run, pin_workloads, prepare_environments
from orchestrator.measure.replicate import Progress
from orchestrator.measure.round_range import first_rounds
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.results.find_runs import RUNS
from orchestrator.results.sealed import seal_run
from orchestrator.terminal.progress import View


def run(options: RunOptions, view: View) -> Done:
    """Plan a run, make its versions ready, measure, and judge what was measured."""
    return run_planned(plan_run(options, view.say), view)


def run_planned(planned: PlannedRun, view: View) -> Done:
    """Measure on this machine, unless a fleet measures on it."""
    with occupy(alone=False):
        return measure_planned(planned, view)


def measure_planned(planned: PlannedRun, view: View) -> Done:
    with open_run(planned, RUNS / planned.run, view) as opened:
        view.say(outline(planned, opened.engine_name))
        for note in (*planned.fitting.notes, *note_keras(planned)):
            view.say(f"note: {note}")
        opened = pin_workloads(opened)
        plan = planned.freeze(opened.engine_name, opened.large)
        manifest = make_manifest(opened.planned, {})
        seal_run(opened.folder, plan, manifest)
        opened.folder.write_begun(plan, manifest)
        prepared = prepare_environments(opened, enough=partial(can_compare, planned))
        # The engine may be another than was planned.
        seal_run(opened.folder, prepared.plan, manifest)
        prepared.folder.write_plan(prepared.plan)
        prepared.folder.write_manifest(make_manifest(opened.planned, prepared.environments, opened.large))
        return conduct(prepared, first_rounds(prepared.plan), Progress(), view)
