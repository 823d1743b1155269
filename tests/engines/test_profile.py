"""Profiles of real TensorFlows: what the published study found in 2.0 is found again, by name and by order."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.model import Case
from orchestrator.plan.request import RunOptions
from orchestrator.profiling.align import FunctionRow, cumulative, grown, growth, own, split_profile
from orchestrator.profiling.model import ProfileResult
from orchestrator.profiling.report import NO_LAYER, CaseProfiles, compare_profiles, layout_profile, profile_as_object
from orchestrator.profiling.run import ProfileOptions, profile
from orchestrator.profiling.stored import read_profile
from orchestrator.terminal.text import render_plain
from orchestrator.terminal.view import View

TRAIN = "train_loop[loop={},api=tf.keras,mode=eager,input=numpy,model=small,data=small]"
PREDICT = "predict[call=predict,state={},model=tiny]"
SELECTED = (PREDICT.format("compiled|uncompiled"), TRAIN.format("train_on_batch"), TRAIN.format("fit"))
METHODS = ("Model.predict", "Model.train_on_batch", "Model.fit")
CALLS = 10


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> ProfileResult:
    out = tmp_path_factory.mktemp("profile") / "run"
    run = RunOptions(versions=("1.14", "2.0"), selected=SELECTED, engine="venv", out=out, seed=1)
    return profile(ProfileOptions(run=run, calls=CALLS), View())


def of(done: ProfileResult, label: str) -> CaseProfiles:
    [found] = [one for one in compare_profiles(done) if one.case.label == label]
    return found


def grown_rank(one: CaseProfiles, name: str, file: str, figure=cumulative) -> int:
    """The place of a function among the new and grown ones."""
    rows = grown(one.rows, figure, one.splits)
    [place] = [place for place, row in enumerate(rows) if row.name == name and row.file.endswith(file)]
    return place


def row(one: CaseProfiles, name: str) -> FunctionRow:
    [found] = [row for row in one.rows if row.name == name]
    return found


def share(one: CaseProfiles, name: str, figure=cumulative) -> float:
    """Of a step in TensorFlow 2.0."""
    cell = row(one, name).cells[1]
    assert cell is not None, name
    return figure(cell) / one.splits[1].step_ms


def test_every_arm_is_profiled(done: ProfileResult):
    assert done.error is None
    assert [arm.outcome for arm in done.arms] == ["profiled"] * 8
    assert {arm.profile.profiler for arm in done.arms if arm.profile} == {"cProfile"}


def test_predict_after_compile_makes_new_graph_functions_in_2_0(done: ProfileResult):
    """The study: `_process_inputs` took 81 % of a predict, `_create_graph_function` in it 72 %, and uncompiled there is
    neither."""
    one = of(done, PREDICT.format("compiled"))
    order = [
        ("Loop.predict", "training_v2.py"),
        ("_process_inputs", "training_v2.py"),
        ("TensorLikeDataAdapter.__init__", "data_adapter.py"),
        ("Function._create_graph_function", "eager/function.py"),
        ("func_graph_from_py_func", "func_graph.py"),
    ]
    places = [grown_rank(one, *function) for function in order]
    assert places == sorted(places)
    assert places[-1] < 20
    assert all(row(one, name).cells[0] is None for name, _ in order), "they are new in 2.0"
    assert share(one, "_process_inputs") > 0.4
    assert share(one, "Function._create_graph_function") > 0.3
    calls = row(one, "Function._create_graph_function").cells[1]
    assert calls is not None
    assert calls.calls >= 1, "in every call anew"


def test_uncompiled_predict_makes_none(done: ProfileResult):
    names = {row.name for row in of(done, PREDICT.format("uncompiled")).rows}
    assert not names & {"_process_inputs", "Function._create_graph_function", "TensorLikeDataAdapter.__init__"}


def test_eager_fit_makes_an_adapter_and_its_functions_in_every_call_of_2_0(done: ProfileResult):
    one = of(done, TRAIN.format("fit"))
    for name in ("_process_inputs", "TensorLikeDataAdapter.__init__", "Function._create_graph_function"):
        assert row(one, name).cells[0] is None
        assert share(one, name) > 0.2


def test_eager_train_on_batch_runs_op_by_op_in_2_0_and_uses_no_adapter(done: ProfileResult):
    """A TensorFlow developer in the study: of train_on_batch, the execution function was left a pure Python one."""
    one = of(done, TRAIN.format("train_on_batch"))
    order = [("_process_single_batch", "training_eager.py"), ("GradientTape.gradient", "backprop.py")]
    places = [grown_rank(one, *function) for function in order]
    assert places == sorted(places)
    assert share(one, "_process_single_batch") > 0.5
    assert grown_rank(one, "TFE_Py_FastPathExecute", "", own) == 0
    ops = row(one, "TFE_Py_FastPathExecute").cells
    assert ops[0] is None
    assert ops[1] is not None
    assert ops[1].calls > 100, "that many ops a step, where 1.14 calls one function"
    assert not [row for row in one.rows if "data_adapter" in row.file]


def test_in_1_14_the_step_is_one_call_of_the_graph(done: ProfileResult):
    first = row(of(done, TRAIN.format("train_on_batch")), "TFE_Py_Execute").cells[0]
    assert first is not None
    assert first.calls == 1.0


def test_a_step_is_what_its_functions_take_by_themselves(done: ProfileResult):
    for one in compare_profiles(done):
        for place, parts in enumerate(one.splits):
            together = sum(cell.own_ms for row in one.rows if (cell := row.cells[place]))
            assert together == pytest.approx(parts.step_ms)
            assert parts.train_ns > 0
            assert parts.build_ns > 0


def test_the_call_itself_takes_all_of_a_step(done: ProfileResult):
    """It is around the method of Keras, and within what all functions take together, however busy the machine is."""
    for arm in done.arms:
        assert arm.profile is not None
        bursts = [each for each in arm.profile.functions if each.later.calls]
        [step] = [each.later for each in bursts if each.file == f"{arm.case.workload}.py" and "<lambda>" in each.name]
        [method] = [each.later for each in bursts if each.name in METHODS and each.later.calls == CALLS]
        assert step.calls == CALLS
        assert method.cumulative_ns <= step.cumulative_ns <= sum(each.later.own_ns for each in bursts) * 1.001
        assert step.own_ns <= step.cumulative_ns - method.cumulative_ns + CALLS


def test_keras_functions_are_one_row_in_both_versions(done: ProfileResult):
    """tensorflow/python/keras has become tensorflow_core/python/keras."""
    predict = row(of(done, PREDICT.format("compiled")), "Model.predict")
    assert None not in predict.cells
    assert growth(predict, cumulative) > 0


def test_no_time_of_it_is_a_measurement(done: ProfileResult):
    assert not list(done.path.rglob("*.arrow*"))
    assert not (done.path / "plan.json").exists()
    assert profile_as_object(done)["schema"] == "tfcompare.profile/1"
    assert "how many times as long a call takes under it" in " ".join(
        render_plain(lambda width: layout_profile(done, width)).split()
    )


def test_its_files_hold_it_and_no_folder_of_this_machine(done: ProfileResult):
    again = read_profile(done.path)
    assert again.arms == done.arms
    for path in (done.path / "profiles").iterdir():
        text = path.read_text()
        assert str(Path.home()) not in text
        assert "site-packages" not in text
    case = Case("predict", (("call", "predict"), ("state", "compiled"), ("model", "tiny")))
    [arm] = [arm for arm in again.arms if arm.case == case and arm.target == "2.0.0"]
    assert arm.profile is not None
    assert split_profile(arm.profile).step_ms > 0
    frames = {frame.name for frame in arm.profile.stacks.frames}
    assert {"_process_inputs", "Function._create_graph_function"} <= frames


NET = """
    import numpy

    from workloads import compat

    PARAMS = {"call": ("predict", "train_on_batch")}


    def build(tf, params):
        class Odd(tf.keras.layers.Layer):
            def call(self, inputs):
                return inputs * (1.02 if tf.__version__.startswith("2.20") else 1.0)

        dense = tf.keras.layers.Dense
        model = tf.keras.Sequential([dense(8, activation="relu", name="a"), Odd(name="b"), dense(4, name="c")])
        model.compile(loss="mse", optimizer="sgd")
        inputs = numpy.random.RandomState(1).rand(16, 5).astype("float32")
        targets = numpy.random.RandomState(2).rand(16, 4).astype("float32")
        model.predict(inputs)
        compat.fix_weights(model, 1)
        if params["call"] == "predict":
            return lambda: model.predict(inputs)
        return lambda: model.train_on_batch(inputs, targets)
"""


@pytest.mark.long
def test_the_layer_that_returns_something_else_is_named(tmp_path: Path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "net.py").write_text(dedent(NET))
    run = RunOptions(
        versions=("1.14", "2.0", "2.13", "2.20"), selected=("net",), own_workloads=tmp_path / "own", engine="venv",
        out=tmp_path / "run", seed=1,
    )  # fmt: skip
    done = profile(ProfileOptions(run=run, calls=0), View())
    assert done.error is None
    assert read_profile(tmp_path / "run").arms == done.arms
    found = {
        (one["params"]["call"], one["target"]): (one["baseline"], one["finding"])
        for one in profile_as_object(done)["layers"]
    }
    for call in ("predict", "train_on_batch"):
        # Its layers are part of a graph.
        assert found[call, "1.14.0"] == (None, NO_LAYER)
        assert found[call, "2.13.0"][1].startswith("all 4 layers return the same")
        baseline, finding = found[call, "2.20.0"]
        assert baseline == "2.0.0"
        assert re.search(r"is b \(Odd\), layer 2 of 4: by \d\.?\d?%, from equal weights", finding)
