"""Steps of a search whose times are made up."""

from collections.abc import Callable, Iterable

from orchestrator.measure.run import Done
from orchestrator.plan.request import RunOptions
from orchestrator.results.evaluation import judge_run
from orchestrator.terminal.view import View
from tests.support.builders import MS, case, finished, plan, rows, run_folder, target, write_stream

CASE = case("power", style="function")


def measure_by(is_slow: Callable[[str], bool], asked: list[tuple[str, ...]]):
    """A run of these targets, of which some are slow."""

    def measured(options: RunOptions, view: View) -> Done:
        asked.append(options.versions)
        assert options.out
        names = [text.rpartition(" as ")[2] for text in options.versions]
        run_of = run_folder(options.out, plan([CASE], names, looks=(4,)))
        for place, name in enumerate(names):
            ms = 90 if is_slow(name) else 1
            batches = [
                rows(CASE, name, round=number, replicate=number * 10 + place, bursts=(int(ms * MS + number),) * 3)
                for number in range(1, 5)
            ]
            write_stream(run_of.worker_output.stream(target(name), 1), batches)
        run_of.record(finished(seconds=1.0))
        return Done(judge_run(run_of), run_of.path, None)

    return measured


def provide(texts: Iterable[str], view: View, device: str) -> tuple[str, ...]:
    return tuple(texts)
