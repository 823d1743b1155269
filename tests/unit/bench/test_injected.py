"""A difference that is put into a run of equal arms is found, and its absence is, too."""

import pytest

from bench.injected import CHANGES, SIZES, judge_injected
from bench.metrics import figures_of, later_results_that_differ, results_that_differ
from orchestrator.model import Metric
from orchestrator.results.evaluation import RunContents, gather, judge_gathered
from tests.support.builders import MS, NEW, OLD, RUN, case, plan, rows, run_folder, target, write_stream
from tests.support.result_pairs import DIFFERENCES, NOISE

METRICS: tuple[Metric, ...] = tuple(CHANGES)


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> RunContents:
    """A run of eight rounds whose arms differ by noise of a thousandth, with 1,000 calls in each replicate."""
    run = run_folder(tmp_path_factory.mktemp("equal") / "run", plan([case()], metrics=METRICS))
    for place, version in enumerate((OLD, NEW)):
        noise = [1 + 0.001 * ((number * 7 + place * 3) % 5 - 2) for number in range(1, 9)]
        batches = [
            rows(
                case(), version, run=RUN, round=number, replicate=number * 2 + place, position=place,
                bursts=(int(MS * stray),) * 1000, first=int(50 * MS * stray), memory_kb=int(100_000 * stray),
                import_ns=int(1000 * MS * stray), resident_kb=200_000, growth_bytes=100, growth_calls=1000,
                traces=3, later_traces=50,
            )
            for number, stray in enumerate(noise, 1)
        ]  # fmt: skip
        write_stream(run.settled / f"{version}-0.arrow", batches)
    return gather(run)


def test_every_metric_calls_equal_arms_the_same(equal: RunContents) -> None:
    verdicts = {comparison.pair.metric: comparison.verdict for comparison in judge_gathered(equal).of_metrics}
    assert verdicts == dict.fromkeys(METRICS, "same")


def test_every_metric_finds_what_one_arm_has_more_of(equal: RunContents) -> None:
    found = list(judge_injected(equal, target(NEW), METRICS))
    assert {(metric, size) for metric, size, _ in found} == {(metric, size) for metric in METRICS for size in SIZES}
    assert {verdict for _, size, verdict in found if size > 1} == {"slower"}
    assert not any(verdict == "faster" for *_, verdict in found)


def test_what_is_missed_misses_its_target() -> None:
    found = [("leak", 0, "same"), ("leak", 0, "slower"), *[("leak", 2, "slower")] * 8, *[("leak", 2, "faster")] * 2]
    seen = {figure.name: (figure.value, figure.limit) for figure in figures_of(found)}
    assert seen == {
        "leak: called different": (0.5, 0.025),
        "leak: two margins more, found": (0.8, 0.9),
        "leak: more, called less": (0.2, 0.0),
    }


def test_results_of_each_kind_are_drawn_and_told_apart() -> None:
    assert {name: results_that_differ(draw, 1) for name, draw in DIFFERENCES.items()} == dict.fromkeys(DIFFERENCES, 1)
    assert {name: results_that_differ(draw, 1) for name, draw in NOISE.items()} == dict.fromkeys(NOISE, 0)
    later = {name: later_results_that_differ(draw, 1) for name, draw in DIFFERENCES.items()}
    assert later == dict.fromkeys(DIFFERENCES, 1)
    assert later_results_that_differ(NOISE["sums in another order"], 1) == 0
