"""How many functions of Python a call runs, as real workers count them."""

import pytest

from orchestrator.engines.worker.client import Burst, Closed, Opened
from orchestrator.model import Replicate
from orchestrator.results import replicates, streams
from tests.support.bench import RUN, Bench

BODIES = {
    # The step itself is a function.
    "ten": "for _ in range(9): own()",
    "none_of_its_own": "sum(range(10))",
    "grows": "calls.append(1); [own() for _ in calls]",
    "ends_with_its_result": "return Ends()",
    "collects": "cycle = []; cycle.append((cycle, Ends())); own()",
}
HEAD = """
    class Ends:
        def __del__(self):
            len("")

    def own():
        return 1

    def build(tf, params):
        calls = []
        def step():
            {}
        return step
"""


def count(bench: Bench, body: str, rounds: int = 2) -> list[Replicate]:
    bench.workload("counted", HEAD.format(body))
    for number in range(1, rounds + 1):
        replicate, opened = bench.open("counted", round=number, count=["calls"])
        assert isinstance(opened, Opened), opened
        assert isinstance(bench.burst(replicate), Burst)
        # Counted calls are not timed, and have no rows.
        assert bench.close(replicate) == Closed(rows=7)
    assert bench.client.quit()
    return list(replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates)


@pytest.mark.parametrize(("name", "functions"), [("ten", 10), ("none_of_its_own", 1), ("collects", 2)])
def test_each_function_counts_once_in_each_call(bench: Bench, name: str, functions: int):
    counted = count(bench, BODIES[name])
    assert {(each.python_calls, each.next_python_calls) for each in counted} == {(functions, functions)}


def test_what_ends_with_a_result_is_no_part_of_the_next_call(bench: Bench):
    counted = count(bench, BODIES["ends_with_its_result"])
    assert {(each.python_calls, each.next_python_calls) for each in counted} == {(1, 1)}


@pytest.mark.parametrize("other", ["None", "lambda *_: None"])
def test_a_call_that_takes_the_counter_away_has_no_count(bench: Bench, other: str):
    counted = count(bench, f"import sys; sys.setprofile({other}); own()")
    assert {(each.python_calls, each.next_python_calls) for each in counted} == {(None, None)}


def test_calls_that_run_more_each_time_are_seen_to(bench: Bench):
    for each in count(bench, BODIES["grows"]):
        assert each.python_calls is not None
        assert each.next_python_calls == each.python_calls + 1


def test_five_hundred_counts_of_the_same_work_are_equal(bench: Bench):
    counted = count(bench, "[sorted(str(own()) for _ in range(50))]", rounds=250)
    counts = {number for each in counted for number in (each.python_calls, each.next_python_calls)}
    assert len(counted) == 250
    assert len(counts) == 1


def test_a_run_that_does_not_ask_has_no_counts(bench: Bench):
    bench.workload("counted", HEAD.format(BODIES["ten"]))
    bench.measure("counted")
    assert bench.client.quit()
    [only] = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates
    assert (only.python_calls, only.next_python_calls) == (None, None)


def test_a_first_call_alone_is_not_counted(bench: Bench):
    bench.workload("counted", HEAD.format(BODIES["ten"]))
    replicate, _ = bench.open("counted", once=True, count=["calls"])
    bench.close(replicate)
    assert bench.client.quit()
    [only] = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates
    assert only.python_calls is None


def test_a_call_that_fails_under_the_profiler_says_so(bench: Bench):
    bench.workload("counted", HEAD.format("import sys; assert not sys.getprofile(), 'a profiler'"))
    replicate, _ = bench.open("counted", count=["calls"])
    bench.burst(replicate)
    died = bench.close(replicate)
    assert "AssertionError: a profiler (raised in a counted call" in died.reason
