"""The profile's tables and its object: figures side by side, and never a word that they were measured."""

import json

import pytest
from rich.cells import cell_len

from orchestrator.model import Case
from orchestrator.profiling import report
from orchestrator.profiling.model import ProfileResult
from orchestrator.terminal.text import render_plain
from tests.support.builders import NEW, OLD, case
from tests.support.kept import kept
from tests.support.profiled import arm, function, profile, profiled

WIDTHS = (40, 80, 120, 200)
PREDICT = case("predict", call="predict", model="tiny")
POWER = case("power", style="jit")
TRAINING = "tensorflow/python/keras/engine/training.py"
NEW_TRAINING = "tensorflow_core/python/keras/engine/training_v2.py"
EAGER, DATA = "tensorflow_core/python/eager/function.py", "tensorflow_core/python/data/ops/dataset_ops.py"

BEFORE = profile(
    function("Model.predict", own=1, cumulative=10, file=TRAINING, line=962, start=300),
    function("model_iteration", own=4, cumulative=9, file="tensorflow/python/keras/engine/training_arrays.py"),
    function("TF_SessionRunCallable", own=3, file="", line=0),
    function("isinstance", calls=890, own=2, file="", line=0),
)
AFTER = profile(
    function("Model.predict", own=1, cumulative=900, file="tensorflow_core/python/keras/engine/training.py", line=835),
    function("_process_inputs", own=20, cumulative=650, file=NEW_TRAINING, line=571),
    function("Function._create_graph_function", calls=30, own=79, cumulative=500, file=EAGER),
    function("Data.__init__.<locals>.wrapper_fn", calls=30, own=300, cumulative=400, file=DATA),
    function("TFE_Py_FastPathExecute", calls=130, own=450, file="", line=0),
    function("isinstance", calls=20720, own=50, file="", line=0),
    function("collected", calls=1, own=5, start=1500),
    profiler="tracer",
    profiled_ns=(90 * 10**6,) * 10,
    plain_ns=(50 * 10**6,),
)  # fmt: skip


def scene() -> ProfileResult:
    return profiled(
        [
            arm(PREDICT, OLD, BEFORE),
            arm(PREDICT, NEW, AFTER),
            arm(POWER, OLD, None, "refused", "tf.function has no jit switch [yet]."),
            arm(POWER, NEW, None, "died", "killed by SIGSEGV"),
        ]
    )


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch):
    def draw(of: ProfileResult, width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        return render_plain(lambda width: report.layout_profile(of, width))

    return draw


@pytest.mark.parametrize("width", [80, 120])
def test_it_is_what_the_snapshot_shows(drawn, width: int):
    found = drawn(scene(), width) + "\n"
    assert found == kept(f"profile-{width}", found)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal(drawn, width: int):
    for line in drawn(scene(), width).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("width", [80, 120])
def test_no_figure_is_cut_however_many_versions_there_are(drawn, width: int):
    """The first version stands in every table."""
    versions = [f"2.{number}.0" for number in range(9)]
    told = drawn(
        profiled([arm(PREDICT, version, AFTER if number else BEFORE) for number, version in enumerate(versions)]), width
    )
    assert "…" not in told
    heads = [line.split() for line in told.splitlines() if line.split()[:1] == ["function"]]
    assert all("2.0.0" in head for head in heads)
    assert {word for head in heads for word in head} >= set(versions)


def test_it_says_that_times_under_a_profiler_are_longer_and_what_measures(drawn):
    told = " ".join(drawn(scene(), 80).split())
    assert "A profiler slows calls down" in told
    assert "`tfcompare run` measures" in told
    assert "a step under the profiler" in told


def test_a_version_whose_cprofile_lost_track_is_named_with_its_python(drawn):
    told = " ".join(drawn(scene(), 200).split())
    assert f"{NEW}: cProfile of Python 3.12.1 loses track" in told
    assert f"{OLD}: cProfile" not in told


def test_an_arm_without_a_profile_is_a_line_with_its_reason(drawn):
    told = drawn(scene(), 80)
    assert f"{OLD} refused: tf.function has no jit switch [yet]." in told
    assert f"{NEW} died: killed by SIGSEGV" in told


def test_new_and_grown_functions_stand_in_the_order_of_their_growth(drawn):
    told = drawn(scene(), 120)
    names = [
        "Model.predict",
        "_process_inputs",
        "Function._create_graph_function",
        "TFE_Py_FastPathExecute",
        "wrapper_fn",
    ]
    places = [told.index(name) for name in names]
    assert places == sorted(places)


def test_the_rows_of_own_times_add_up_to_the_step(drawn):
    """In the object, where nothing is rounded: what is shown, and the rest that the table has in one line."""
    told = report.profile_as_object(scene())
    for version in (OLD, NEW):
        [step] = [one["step_ms"] for one in told["profiles"] if one["target"] == version and "step_ms" in one]
        listed = [one["targets"][version] for one in told["functions"] if one["by"] == "own"]
        assert 0 < sum(cell["own_ms"] for cell in listed if cell) <= step + 1e-9


def test_only_as_many_functions_as_asked_are_listed(drawn):
    told = report.profile_as_object(profiled(scene().arms, top=2))
    assert [(one["by"], one["rank"]) for one in told["functions"]] == [
        ("cumulative", 1), ("cumulative", 2), ("own", 1), ("own", 2),
    ]  # fmt: skip
    assert "all others" in drawn(profiled(scene().arms, top=2), 80)


def test_a_single_version_has_its_largest_functions_and_nothing_to_compare(drawn):
    told = drawn(profiled([arm(PREDICT, NEW, AFTER)]), 80)
    assert "largest functions, with all that they call" in told
    assert "against" not in told
    assert "shrunk" not in told


def test_the_object_holds_every_arm_and_the_functions_of_every_version():
    told = json.loads(json.dumps(report.profile_as_object(scene())))
    assert told["schema"] == "tfcompare.profile/1"
    assert [one["outcome"] for one in told["profiles"]] == ["profiled", "profiled", "refused", "died"]
    before, after = told["profiles"][:2]
    assert before["files"]["speedscope"] == f"profiles/predict,call=predict,model=tiny-{OLD}.speedscope.json"
    assert (before["build_ms"], before["train_ms"], before["other_ms"], before["step_ms"]) == (300, 0.8, 0.2, 1.0)
    assert (after["profiler"], after["build_ms"], after["profiler_ratio"]) == ("tracer", 1505, 1.8)
    process = next(one for one in told["functions"] if one["name"] == "_process_inputs")
    assert (process["by"], process["rank"], process["growth_ms"], process["baseline"]) == ("cumulative", 2, 65, OLD)
    assert process["targets"] == {OLD: None, NEW: {"calls": 1.0, "own_ms": 2.0, "cumulative_ms": 65.0}}


def test_the_object_names_no_field_as_a_measurement_is_named():
    """Nobody may take a profiled time for a measured one by its key."""
    keys: set[str] = set()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            keys.update(value)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(inner)

    collect(report.profile_as_object(scene()))
    assert not keys & {"median_ms", "ratio", "ci_low", "ci_high", "verdict", "arms", "comparisons"}


def test_a_case_that_no_version_could_run_leaves_the_others(drawn):
    none = [arm(Case("own", ()), version, None, "died", "killed") for version in (OLD, NEW)]
    told = drawn(profiled([*none, *scene().arms]), 80)
    assert told.count("died: killed") == 3
    assert "_process_inputs" in told
    assert "build:" not in drawn(profiled(none), 80)
