"""Runs that are made up where a command would measure: all of the command is real but that."""

from orchestrator.measure.run import Done
from orchestrator.plan.request import PlannedRun
from orchestrator.results.evaluation import judge_run
from orchestrator.results.find_runs import RUNS
from orchestrator.terminal.view import View
from tests.support.builders import MS, finished, rows, run_folder, write_stream


def measure_at_once(planned: PlannedRun, view: View, *, alone: bool = False, enough: object = None) -> Done:
    """Make up a run of this plan: each target takes a tenth longer than the one before it."""
    plan = planned.freeze("venv")
    folder = run_folder(planned.options.out or RUNS / planned.run, plan)
    for place, target in enumerate(plan.targets):
        batches = [
            rows(
                case, str(target), run=plan.run, round=number, replicate=(number * 1000 + which) * 30 + place,
                bursts=(int((10 + place) * MS * (1 + number / 1000)),) * 3,
            )
            for number in range(1, 7)
            for which, case in enumerate(plan.cases)
        ]  # fmt: skip
        write_stream(folder.settled / f"{target}-0.arrow", batches)
    folder.record(finished(seconds=30.0))
    return Done(judge_run(folder), folder.path, None)
