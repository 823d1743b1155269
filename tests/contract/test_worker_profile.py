"""The worker profiles in a fork, tells where the time went, and writes no row of it."""

import json
import os
from itertools import count
from typing import Any

import pytest
from pydantic import TypeAdapter

from orchestrator.engines.worker.client import Burst, Closed, Died, Opened, Refused
from orchestrator.model import Case
from orchestrator.model.profile import Profile
from orchestrator.profiling.align import split_profile
from orchestrator.results import streams
from tests.support.bench import PATIENCE_S, Bench

PROFILE = TypeAdapter(Profile)
CALLS = 8
numbers = count(1000)

# Called in the build: setup; once a step: middle; twice a step: leaf; every fifth call, so twice in the profile: rare.
LAYERED = """
    calls = []

    def build(tf, params):
        setup()
        return Model().step

    def setup():
        for _ in range(100):
            leaf()

    def leaf():
        return sum(range(2000))

    def rare():
        return sum(range(2000))

    def middle():
        return leaf() + leaf()

    class Model:
        def step(self):
            calls.append(None)
            if len(calls) in PARAMS["rare"]:
                rare()
            return float(middle())

    PARAMS = {"rare": (5, 7)}
"""


def profile(bench: Bench, workload: str, params: dict[str, str] | None = None, **changes: Any) -> Any:
    order = {"replicate": next(numbers), "calls": CALLS, "seed": 1, "timeout_s": PATIENCE_S, **changes}
    return bench.client.profile(Case(workload, tuple((params or {}).items())), **order)


@pytest.fixture
def layered(veteran: Bench) -> Profile:
    veteran.workload("layered", LAYERED)
    answer = profile(veteran, "layered")
    assert isinstance(answer, dict), answer
    return PROFILE.validate_python(answer)


def counted(of: Profile) -> dict[str, tuple[int, int]]:
    return {function.name: (function.start.calls, function.later.calls) for function in of.functions}


def test_every_function_is_counted_apart_until_the_third_call_and_after_it(layered: Profile):
    found = counted(layered)
    assert (layered.calls, layered.steps) == (CALLS, 1)
    assert found["setup"] == (1, 0)
    assert found["Model.step"] == found["middle"] == (2, CALLS)
    assert found["leaf"] == (104, 2 * CALLS)


def test_its_times_are_those_of_the_calls_under_the_profiler(layered: Profile):
    [step] = [function.later for function in layered.functions if function.name == "Model.step"]
    assert len(layered.profiled_ns) == CALLS
    assert 0 < step.own_ns <= step.cumulative_ns <= sum(layered.profiled_ns)
    assert sum(function.later.own_ns for function in layered.functions) <= sum(layered.profiled_ns)
    assert layered.longer > 0


def test_what_is_called_once_or_twice_is_building_however_late(layered: Profile):
    """Calls without the profiler are made in between: which of those hit `rare` is the worker's affair."""
    rare = [function for function in layered.functions if function.name == "rare"]
    without = [function for function in layered.functions if function.name != "rare"]
    parts = split_profile(layered)
    assert parts.build_ns >= sum(function.start.own_ns for function in without)
    assert all(function.later.calls <= 2 for function in rare)


def test_its_stacks_come_of_the_same_step(layered: Profile):
    names = [frame.name for frame in layered.stacks.frames]
    roots = {names[node.frame] for node in layered.stacks.nodes if node.parent == -1}
    assert "Model.step" in roots
    assert {"middle", "leaf", "sum"} <= set(names)
    assert roots <= {"Model.step", "to_host"}


def test_no_folder_of_this_machine_is_told(veteran: Bench):
    veteran.workload("layered", LAYERED)
    told = json.dumps(profile(veteran, "layered"))
    for folder in (str(veteran.folder), os.getcwd(), os.path.expanduser("~")):
        assert folder not in told
    assert '"file": "layered.py"' in told


def test_no_row_comes_of_it_and_the_worker_measures_on(bench: Bench):
    assert isinstance(profile(bench, "good"), dict)
    number = bench.measure()
    assert isinstance(profile(bench, "good"), dict)
    assert bench.client.quit()
    table, cut = streams.read_stream(bench.stream)
    assert not cut
    assert {row["replicate"] for row in table.to_pylist()} == {number}


def test_a_replicate_that_is_open_stays_open_meanwhile(veteran: Bench):
    number, _ = veteran.open("good")
    assert isinstance(profile(veteran, "good"), dict)
    assert isinstance(veteran.burst(number), Burst)
    assert isinstance(veteran.close(number), Closed)


def test_the_number_of_a_replicate_that_is_open_is_taken(veteran: Bench):
    number, opened = veteran.open("good")
    assert isinstance(opened, Opened)
    again = veteran.ask(
        "profile", replicate=number, case="good", workload="good", params={}, seed=1, calls=3, timeout_s=1.0
    )
    assert again == {"kind": "error", "message": f"replicate {number} is open already"}
    assert isinstance(veteran.close(number), Closed)


ENDS = {
    "refuses": ("def refuse(tf, params): return 'no such op'", Refused("no such op")),
    "raises in build": (
        "def build(tf, params): raise ValueError('x')",
        Died("raised", "ValueError: x (raised in build, at ending.py:1)"),
    ),
    "raises in a call": (
        "def build(tf, params): return lambda: 1 / 0",
        Died("raised", "ZeroDivisionError: division by zero (raised in a call, at ending.py:1)"),
    ),
    "is killed": (
        "import os\ndef build(tf, params): os.kill(os.getpid(), 11)",
        Died("signal", "killed by SIGSEGV"),
    ),
    "hangs": (
        "import time\ndef build(tf, params): time.sleep(600)",
        Died("timeout", "no answer within 0.3 s; ended"),
    ),
}


@pytest.mark.parametrize(("source", "expected"), ENDS.values(), ids=ENDS)
def test_a_workload_that(veteran: Bench, source: str, expected: Refused | Died):
    veteran.workload("ending", source)
    found = profile(veteran, "ending", timeout_s=0.3 if "sleep" in source else PATIENCE_S)
    if isinstance(found, Died):
        found = Died(found.how, found.reason)
    assert found == expected
    veteran.measure()


# As much as ten TensorFlows have.
MANY = """
    SOURCE = "\\n".join("def function_{}(): return 1".format(number) for number in range(40000))
    scope = {}
    exec(compile(SOURCE, "many.py", "exec"), scope)
    functions = [value for name, value in sorted(scope.items()) if name.startswith("function")]

    def build(tf, params):
        def step():
            for function in functions:
                function()

        return step
"""


def test_a_profile_of_megabytes_is_one_line_like_any_other(veteran: Bench):
    veteran.workload("many", MANY)
    found = profile(veteran, "many", calls=3)
    assert len(json.dumps(found)) > 5 * 2**20
    assert sum(function["name"].startswith("function_") for function in found["functions"]) == 40000
    veteran.measure()


def test_the_same_seed_is_set_as_for_a_measured_replicate(veteran: Bench):
    veteran.workload(
        "drawing",
        """
        import numpy

        def build(tf, params):
            drawn = numpy.random.randint(1, 100)
            return lambda: [leaf() for _ in range(drawn)] and None

        def leaf():
            pass
        """,
    )
    first, same, other = (
        counted(PROFILE.validate_python(profile(veteran, "drawing", seed=seed))) for seed in (1, 1, 2)
    )
    assert first["leaf"] == same["leaf"] != other["leaf"]


def test_a_worker_that_may_not_fork_profiles_in_its_own_process(fresh: Bench):
    fresh.hello(fork=False)
    assert isinstance(profile(fresh, "good"), dict)
    assert fresh.client.quit()
