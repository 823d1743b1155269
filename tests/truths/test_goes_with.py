"""The real command with real workers tells each fact of the case that has it, and of no other case.

TensorFlow is the stub, and each case has a known truth.
"""

from pathlib import Path

import pytest

from tests.support.truths import Stage, measure_twice

pytestmark = pytest.mark.slow

HEAD = """
    def spin(seconds):
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass

    def build(tf, params):
        from tensorflow.python.framework import func_graph
        def trace(times):
            for _ in range(times):
                func_graph.func_graph_from_py_func("call", lambda: 1, (), {})
        def step():
            BODY
        return step
"""
BODIES = {
    "retraces": "trace(NEWER); spin(0.015 if NEWER else 0.005)",
    "waits": "spin(0.005); time.sleep(0.03 if NEWER else 0.001)",
    # It is slower, and nothing else is different; or everything is alike.
    "computes": "spin(0.015 if NEWER else 0.005)",
    "equal": "trace(1); spin(0.005); time.sleep(0.005)",
}
RIGHT = {"retraces: retraces", "waits: waits"}


def workloads() -> dict[str, str]:
    return {f"{name}.py": HEAD.replace("BODY", body) for name, body in BODIES.items()}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, {}, {})


def test_facts_go_with_the_cases_that_have_them(stage: Stage):
    def measure_bodies(stage: Stage) -> set[str]:
        code, answer, told = stage.measure(workloads(), "--rounds", "6", "--metric", "time", differ=True)
        assert code == 0, told
        assert {(each["slower"], each["faster"]) for each in answer["goes_with"]} == {("2.0.0", "1.14.0")}
        return {f"{each['rule']}: {case}" for each in answer["goes_with"] for case in each["cases"]}

    assert measure_twice(stage, RIGHT, measure_bodies) == RIGHT


def test_nothing_goes_with_equal_arms(stage: Stage):
    def measure_equal(stage: Stage) -> set[str]:
        code, answer, told = stage.measure(workloads(), "--rounds", "6", "--metric", "time", differ=False)
        assert code == 0, told
        return {each["text"] for each in answer["goes_with"]}

    assert measure_twice(stage, set(), measure_equal) == set()
