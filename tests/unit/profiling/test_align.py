"""Functions across versions: which are the same, which grew, which are gone."""

import pytest

from orchestrator.model.profile import Profile
from orchestrator.profiling.align import (
    Figure,
    FunctionRow,
    align_profiles,
    cumulative,
    grown,
    growth,
    module,
    own,
    shrunk,
    split_profile,
)
from tests.support.profiled import CALLS, function, profile


def named(rows: tuple[FunctionRow, ...]) -> list[str]:
    return [row.name for row in rows]


def row(name: str, *profiles: Profile) -> FunctionRow:
    [found] = [row for row in align_profiles(profiles) if row.name == name]
    return found


def test_the_seeds_three_parts():
    """Building is what happens until the third call and what is called once or twice, training what every step calls
    once, and the rest is the rest."""
    parts = split_profile(
        profile(
            function("build", calls=0, start=100),
            function("collected", calls=1, own=7),
            function("traced again", calls=2, own=5),
            function("train_on_batch", calls=CALLS, own=30, start=1),
            function("convert", calls=3 * CALLS, own=50, start=2),
            function("every third call", calls=3, own=20),
        )
    )
    assert (parts.build_ns, parts.train_ns, parts.other_ns) == (115 * 10**6, 30 * 10**6, 70 * 10**6)
    assert (parts.train_ms, parts.other_ms, parts.step_ms) == (3.0, 7.0, 10.0)


def test_a_call_of_many_steps_is_divided_into_them():
    """With a dataset `fit` is called once, and train_step once a step."""
    parts = split_profile(
        profile(function("fit", calls=CALLS, own=4), function("train_step", calls=8 * CALLS, own=40), steps=8)
    )
    assert (parts.iterations, parts.train_ms, parts.other_ms) == (80, 0.5, 0.05)


def test_a_profile_of_nothing_is_of_no_time():
    assert split_profile(profile()).step_ms == 0


def test_own_and_cumulative_times_are_of_a_step():
    cell = row("predict", profile(function("predict", calls=20, own=30, cumulative=50, file="a.py"))).cells[0]
    assert cell is not None
    assert (cell.calls, cell.own_ms, cell.cumulative_ms) == (2.0, 3.0, 5.0)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("tensorflow/python/keras/engine/training.py", "keras/engine/training"),
        ("tensorflow_core/python/keras/engine/training.py", "keras/engine/training"),
        ("keras/engine/training.py", "keras/engine/training"),
        ("keras/src/engine/training.py", "keras/engine/training"),
        ("tf_keras/src/engine/training.py", "keras/engine/training"),
        ("tensorflow_core/python/eager/function.py", "tensorflow/python/eager/function"),
        ("predict.py", "predict"),
        ("", ""),
    ],
)
def test_a_file_is_known_again_in_every_version(file: str, expected: str):
    assert module(file) == expected


def test_a_function_is_one_row_however_its_line_and_its_package_move():
    old = profile(function("Model.predict", own=10, file="tensorflow/python/keras/engine/training.py", line=962))
    new = profile(function("Model.predict", own=90, file="tensorflow_core/python/keras/engine/training.py", line=835))
    newest = profile(function("Model.predict", own=70, file="keras/src/engine/training.py", line=2376))
    found = row("Model.predict", old, new, newest)
    assert [cell and cell.own_ms for cell in found.cells] == [1.0, 9.0, 7.0]
    assert (found.file, found.line) == ("keras/src/engine/training.py", 2376)


def test_a_function_in_c_has_no_file_and_is_known_by_its_name():
    found = row("TFE_Py_Execute", profile(function("TFE_Py_Execute", own=10, file="", line=0)), *[profile()] * 2)
    assert [cell is None for cell in found.cells] == [False, True, True]


def test_a_file_that_moved_is_found_by_its_own_name_and_a_class_by_its():
    old = profile(
        function("Set.add", own=10, file="tensorflow/python/training/tracking/object_identity.py"),
        function("Wrapper.__init__", own=20, file="tensorflow/python/data/ops/dataset_ops.py"),
        function("wrapper", own=30, file="tensorflow/python/util/dispatch.py"),
    )
    new = profile(
        function("Set.add", own=11, file="tensorflow/python/util/object_identity.py"),
        function("Wrapper.__init__", own=21, file="tensorflow/python/data/ops/structured_function.py"),
        function("wrapper", own=31, file="tensorflow/python/util/deprecation.py"),
    )
    cells = {found.name: found.cells for found in align_profiles([old, new]) if found.name != "wrapper"}
    assert all(None not in found for found in cells.values())
    assert len([found for found in align_profiles([old, new]) if found.name == "wrapper"]) == 2


def test_where_two_could_be_meant_neither_is():
    old = profile(function("get", own=1, file="a/registry.py"))
    new = profile(function("get", own=2, file="b/registry.py"), function("get", own=3, file="c/registry.py"))
    assert sorted(found.cells[0] is None for found in align_profiles([old, new])) == [False, True, True]


def test_two_functions_of_one_version_are_never_one_because_of_another():
    """keras and TensorFlow both have a traceback_utils.error_handler, one inside the other."""
    new = profile(
        function("error_handler", own=1, cumulative=100, file="keras/src/utils/traceback_utils.py"),
        function("error_handler", own=2, cumulative=40, file="tensorflow/python/util/traceback_utils.py"),
    )
    assert len(align_profiles([profile(), new])) == 2


def test_functions_that_a_file_has_under_one_name_are_added_up():
    both = profile(function("<lambda>", calls=3, own=1, line=4), function("<lambda>", calls=5, own=2, line=9))
    [found] = align_profiles([both])
    assert found.cells[0] is not None
    assert (found.cells[0].calls, found.cells[0].own_ms) == (0.8, 0.3)


def test_what_builds_is_in_no_row():
    assert align_profiles([profile(function("build", calls=0, start=9), function("retraced", calls=2, own=9))]) == ()


OLD = profile(
    function("predict", own=1, cumulative=10),
    function("run", own=9, cumulative=9),
    function("old loop", own=8, cumulative=8),
)
NEW = profile(
    function("predict", own=2, cumulative=100),
    function("_process_inputs", own=3, cumulative=80),
    function("_create_graph_function", own=40, cumulative=70),
    function("run", own=5, cumulative=5),
)


def of(figure: Figure, *profiles: Profile) -> list[str]:
    """The names of the new and grown functions."""
    return named(grown(align_profiles(profiles), figure, [split_profile(one) for one in profiles]))


def test_new_and_grown_functions_come_largest_first_by_either_time():
    assert of(cumulative, OLD, NEW) == ["predict", "_process_inputs", "_create_graph_function"]
    assert of(own, OLD, NEW) == ["_create_graph_function", "_process_inputs", "predict"]
    assert [growth(row(name, OLD, NEW), cumulative) for name in of(cumulative, OLD, NEW)] == [9.0, 8.0, 7.0]


def test_gone_and_shrunk_functions_come_largest_first():
    assert named(shrunk(align_profiles([OLD, NEW]))) == ["old loop", "run"]


def test_of_several_versions_the_one_counts_in_which_it_grew_most():
    later = profile(function("run", own=29), function("old loop", own=8))
    assert growth(row("run", OLD, NEW, later), own) == 2.0
    assert "run" in of(own, OLD, NEW, later)
    assert "run" not in named(shrunk(align_profiles([OLD, NEW, later])))
    assert "old loop" not in of(own, OLD, NEW, later)


def test_the_slowest_of_several_versions_does_not_hide_the_others():
    slow = profile(function("slow loop", own=1000), *(function(f"part {number}", own=100) for number in range(20)))
    assert of(own, OLD, NEW, slow).index("_create_graph_function") == 0


def test_of_a_single_version_everything_is_listed_and_nothing_shrank():
    assert of(cumulative, NEW) == ["predict", "_process_inputs", "_create_graph_function", "run"]
    assert shrunk(align_profiles([NEW])) == ()


def test_the_profiler_makes_a_call_longer_by_a_ratio_of_medians():
    assert profile().longer == 3.0
