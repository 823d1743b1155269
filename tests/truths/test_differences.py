"""What is judged by a difference has the verdict of the truth, and so has what all cases of a version share.

The real command and real workers measure; TensorFlow is the stub. Each run has a case for each truth.
"""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.results.run import load_run
from tests.support.truths import NEW, Stage

pytestmark = pytest.mark.slow

LEAKY = """
    def build(tf, params):
        held, base = [], b"x" * (200 << 20 if NEWER else 1)
        def step():
            held.append(b"x" * ({new} if NEWER else {old}))
            time.sleep(0.001)
            return float(len(base))
        return step
    """
KIB = 1024
# What each call keeps in either version, and the verdict on the newer one.
LEAKS = {
    "more": (40 * KIB, 48 * KIB, "slower"),
    "less": (48 * KIB, 40 * KIB, "faster"),
    "begun": (0, 4 * KIB, "slower"),
    "alike": (40 * KIB, 40 * KIB, "same"),
    "none": (0, 0, "same"),
}
# The older version makes many more calls in the same time.
RETRACING = """
    def build(tf, params):
        from tensorflow.python.framework import func_graph
        calls = []
        def step():
            calls.append(1)
            for _ in range({new} if NEWER else {old}):
                func_graph.func_graph_from_py_func("call", step, (), {{}})
            time.sleep(0.020 if NEWER else 0.0015)
        return step
    """
# What each call traces in either version, and the verdicts on the first calls and on later ones.
TRACES = {
    "once": ("1", "1", "same", "same"),
    "twice": ("1", "2", "slower", "slower"),
    "half": ("2", "1", "faster", "faster"),
    "warm": ("len(calls) == 1", "len(calls) == 1", "same", "same"),
    "first": ("len(calls) == 1", "2 * (len(calls) == 1)", "slower", "same"),
    "later": ("0", "len(calls) > 5", "same", "slower"),
}
CASE = """
    def refuse(tf, params):
        return "not here" if {refused} else None

    def build(tf, params):
        assert not ({dead})
        return lambda: time.sleep(0.002)
    """


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, {"STUB_IMPORT_S": "0.6"}, {"STUB_IMPORT_S": "0.1"}, (300, 900))


def find(answer: dict[str, Any], metric: str) -> dict[str, dict[str, Any]]:
    return {each["workload"]: each for each in answer["metrics"] if each["metric"] == metric}


def test_leaks_are_judged_in_bytes_per_call_whatever_the_process_holds(stage: Stage):
    workloads = {f"{name}.py": LEAKY.format(old=old, new=new) for name, (old, new, _) in LEAKS.items()}
    # One gate finds `more` and `begun`, one only `more`, and one neither.
    gates = "leak:more,leak:more>6KiB,leak:more>12KiB"
    flags = ("--rounds", "5", "--metric", "leak,memory", "--fail-on", gates)
    code, answer, told = stage.measure(workloads, *flags, differ=True)
    assert code == 1, told
    assert "2 leak:more, 1 leak:more>6KiB of 5 comparisons" in told
    for found in find(answer, "memory").values():
        assert found["verdict"] == "slower"
        # The first replicate of a worker holds as much as the others.
        assert found["ci_high"] / found["ci_low"] == pytest.approx(1, abs=0.1)
    leaks = find(answer, "leak")
    assert {name: leaks[name]["verdict"] for name in LEAKS} == {name: truth[-1] for name, truth in LEAKS.items()}
    for name, (old, new, _) in LEAKS.items():
        found = leaks[name]
        assert (found["ratio"], found["ci_low"], found["mde"]) == (None, None, None)
        assert found["difference_low"] < found["difference"] < found["difference_high"]
        assert found["difference"] == pytest.approx(new - old, abs=512)
    [said, *_] = metric_sentences(load_run(stage.folder / "different" / "run").evaluation)
    assert said.startswith("2.0.0 grows more with each call than 1.14.0 in 2 of 5 cases (most in more, +")
    assert " KiB per call: 40." in said
    # The same rounds within a margin of the user's own.
    wide = ("--rounds", "5", "--metric", "leak", "--margin", "5%,leak=64KiB", "--fail-on", "leak:more,leak:less")
    stage.folder /= "wide"
    code, answer, told = stage.measure({"more.py": workloads["more.py"]}, *wide, differ=True)
    assert code == 0, told
    assert (find(answer, "leak")["more"]["verdict"], find(answer, "leak")["more"]["size"]) == ("same", "slight")


def test_traces_are_those_of_as_many_calls(stage: Stage):
    workloads = {f"{name}.py": RETRACING.format(old=old, new=new) for name, (old, new, *_) in TRACES.items()}
    flags = ("--rounds", "5", "--metric", "traces")
    code, answer, told = stage.measure(workloads, *flags, differ=True)
    assert code == 0, told
    for place, metric in enumerate(("traces", "traces_per_call"), 2):
        found = {name: each["verdict"] for name, each in find(answer, metric).items()}
        assert found == {name: truth[place] for name, truth in TRACES.items()}
    arms = {
        (arm["workload"], arm["target"]): (arm["figures"]["traces"], arm["figures"]["traces_per_call"])
        for arm in answer["arms"]
    }
    assert [arms["once", version] for version in ("1.14.0", NEW)] == [(5, 1.0), (5, 1.0)]
    assert [arms["twice", version] for version in ("1.14.0", NEW)] == [(5, 1.0), (10, 2.0)]
    said = "\n".join(metric_sentences(load_run(stage.folder / "different" / "run").evaluation))
    assert "2.0.0 traces more functions than 1.14.0 in 2 of 6 cases (most in twice, +5: 5 to 10)" in said
    assert "2.0.0 traces more functions in later calls than 1.14.0 in 2 of 6 cases" in said


@pytest.mark.parametrize(("refused", "dead"), [("NEWER", "False"), ("False", "NEWER")])
def test_a_first_case_without_a_version_hides_neither_import_nor_size(stage: Stage, refused: str, dead: str):
    workloads = {"a_old.py": CASE.format(refused=refused, dead=dead), "b_both.py": CASE.format(refused="0", dead="0")}
    _, answer, told = stage.measure(workloads, "--rounds", "6", "--metric", "import,size", differ=True)
    outcomes = {arm["workload"]: arm["outcome"] for arm in answer["arms"] if arm["target"] == NEW}
    assert outcomes["a_old"] in ("refused", "died"), told
    assert outcomes["b_both"] == "measured", told
    for metric in ("import", "size"):
        [found] = find(answer, metric).values()
        assert (found["verdict"], found["size"]) == ("slower", "beyond")
        assert metric == "import" or found["ratio"] == 3.0


def test_size_is_compared_though_the_versions_have_no_case_in_common(stage: Stage):
    workloads = {
        "a_old.py": CASE.format(refused="NEWER", dead="False"),
        "b_new.py": CASE.format(refused="not NEWER", dead="False"),
    }
    _, answer, told = stage.measure(workloads, "--rounds", "6", "--metric", "import,size", differ=True)
    [found] = find(answer, "size").values()
    assert (found["verdict"], found["ratio"]) == ("slower", 3.0), told
    [unknown] = find(answer, "import").values()
    assert (unknown["verdict"], unknown["reason"]) == ("inconclusive", "not here"), told
