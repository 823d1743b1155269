"""What real workers keep of results that differ where a sample of the first call does not show it."""

import pytest

from orchestrator.model import OutputComparison
from orchestrator.results import replicates, streams
from orchestrator.results.outputs import compare_outputs
from orchestrator.terminal.text import render_plain, safe_text
from tests.support.bench import RUN, Bench
from tests.support.builders import NEW, OLD, case, plan, target
from tests.support.other_results import BODIES, FIFTH, WITHOUT_VALUE, write

HEAD = """
    import numpy

    def build(tf, params):
        new = params["arm"] == "new"
        draw = numpy.random.RandomState(0)
"""


def measure(bench: Bench, name: str, *arms: str) -> OutputComparison:
    """The finding about two versions of which one behaves as the first arm and the other as the second one."""
    bench.workload(name, write(HEAD, name))
    for number in (1, 2):
        for arm in arms:
            bench.measure(name, {"arm": arm}, round=number)
    assert bench.client.quit()
    found = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates
    named = [each._replace(case=case().label, target=target((OLD, NEW)[place % 2])) for place, each in enumerate(found)]
    [output] = compare_outputs(plan([case()]), named)
    return output


@pytest.mark.parametrize("name", BODIES)
def test_another_result_differs_or_is_not_comparable(bench: Bench, name: str):
    found = measure(bench, name, "old", "new")
    assert found.verdict == ("not comparable" if name in WITHOUT_VALUE else "differs"), found
    assert found.call == ("fifth" if name in FIFTH else "first")


@pytest.mark.parametrize("name", [name for name in BODIES if name not in WITHOUT_VALUE])
def test_the_same_result_is_equal(bench: Bench, name: str):
    assert measure(bench, name, "new", "new").verdict == "equal"


@pytest.mark.parametrize("arms", [("old", "new"), ("old", "old")])
@pytest.mark.parametrize(
    "reason", ["each version draws other random numbers " * 10, "\\x1b[2J\\x1b]0;owned\\x07" * 1000]
)
def test_a_workload_says_why_its_results_cannot_be_compared(bench: Bench, reason: str, arms: tuple[str, str]):
    text = f"""
        def build(tf, params):
            step = lambda: {{"old": 1.0, "new": 2.0}}[params["arm"]]
            step.no_result = "{reason}"
            return step
    """
    bench.workload("silent", text)
    for number in (1, 2):
        for arm in arms:
            bench.measure("silent", {"arm": arm}, round=number)
    assert bench.client.quit()
    found = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN).replicates
    named = [each._replace(case=case().label, target=target((OLD, NEW)[place % 2])) for place, each in enumerate(found)]
    [output] = compare_outputs(plan([case()]), named)
    assert (output.verdict, len(output.reason)) == ("not comparable", 200)
    # Reports show it as they show the reason of a refusal.
    assert "\x1b" not in render_plain(lambda width: safe_text(output.reason))
