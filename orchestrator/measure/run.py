"""The course of a run, from top to bottom: the request, what it requires, the measurement, the verdicts."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from orchestrator.catalog import pinned
from orchestrator.engines.choose import choose_engine
from orchestrator.measure.alternative import can_compare
from orchestrator.measure.conduct import Done, conduct
from orchestrator.measure.outline import outline
from orchestrator.measure.prepare_run import make_manifest, open_run, pin_workloads, prepare_environments
from orchestrator.measure.replicate import Progress
from orchestrator.measure.round_range import first_rounds
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.terminal.progress import View


def run(options: RunOptions, view: View) -> Done:
    """Plan a run, make its versions ready, measure, and judge what was measured."""
    return run_planned(plan_run(options, view.say), view)


def run_planned(planned: PlannedRun, view: View) -> Done:
    with open_run(planned, Path("runs") / planned.run, view) as opened:
        view.say(outline(planned))
        for note in planned.fitting.notes:
            view.say(f"note: {note}")
        opened = pin_workloads(opened)
        prepared = prepare_environments(opened, enough=partial(can_compare, planned))
        prepared.directory.write_plan(prepared.plan)
        prepared.directory.write_manifest(make_manifest(opened.planned, prepared.environments))
        return conduct(prepared, first_rounds(prepared.plan), Progress(), view)


def forecast(planned: PlannedRun, say: Callable[[str], None]) -> list[str]:
    """Describe in lines what a run would do; nothing is built, installed or measured."""
    options = planned.options
    _, engine = choose_engine(options.engine, options.isolation, options.environments, say)
    lines = [outline(planned), *(f"  {match}" for match in planned.fitting.matches)]
    lines += [f"  {version.number}: {engine.outlook(version)}" for version in planned.selection.versions]
    lines += [f"  {case.label}" for case in planned.selection.cases]
    if options.own_workloads and not all(workload.builtin for workload in planned.workloads.values()):
        lines += [f"  {note}" for note in pinned.notes_on(pinned.divide(options.own_workloads)[1])]
    return lines
