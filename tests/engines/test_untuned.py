"""--untuned-datasets in real TensorFlows: whatever makes an iterator is given a dataset that nothing tunes."""

from pathlib import Path

import pytest

from tests.support.end_to_end import compare

# It sees a dataset as an iterator gets it. Older versions add the tuning to the dataset, newer ones have options.
IS_TUNED = """
def is_tuned(dataset):
    prepare = getattr(dataset, "_apply_debug_options", None) or dataset._apply_options
    prepared = prepare()
    if hasattr(prepared, "_options_attr") and hasattr(prepared._options_attr, "autotune"):
        return prepared._options_attr.autotune.enabled is not False
    return type(prepared).__name__ == "_ModelDataset"
"""
WORKLOAD = (
    IS_TUNED
    + """
PARAMS = {"tuned": ("yes", "no"), "by_options": ("yes", "no")}

def build(tf, params):
    if tf.__version__.startswith("1."):
        tf.compat.v1.enable_eager_execution()
    dataset = tf.data.Dataset.range(100).map(lambda number: number + 1)
    if params["by_options"] == "yes":
        options = tf.data.Options()
        if hasattr(options, "autotune"):
            options.autotune.enabled = True
        else:
            options.experimental_optimization.autotune = True
        dataset = dataset.with_options(options)

    def step():
        assert is_tuned(dataset) == (params["tuned"] == "yes")
        return sum(int(number) for number in dataset)

    return step
"""
)
PROGRAM = (
    IS_TUNED
    + """
import sys
import tensorflow as tf

assert is_tuned(tf.data.Dataset.range(3)) == (sys.argv[1] == "tuned")
"""
)
FEW = ("--engine", "venv", "--rounds", "2")


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("flags", "case"),
    [
        pytest.param((), "reading[tuned=yes,by_options=no]", id="as usual"),
        pytest.param(("--untuned-datasets",), "reading[tuned=no,by_options=no]", id="untuned"),
        pytest.param(("--untuned-datasets",), "reading[tuned=yes,by_options=yes]", id="its own options"),
    ],
)
def test_datasets_of_a_workload_are_tuned_unless_told_otherwise(
    tfcompare: str, tmp_path: Path, flags: tuple[str, ...], case: str
):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "reading.py").write_text(WORKLOAD)
    words = ("--versions", "1.14,2.0,2.13,2.20", "--workload-folder", str(tmp_path / "own"), "--case", case)
    _, answer, told = compare(tfcompare, *FEW, *words, *flags, "--output", str(tmp_path / "run"))
    assert [arm["outcome"] for arm in answer["arms"]] == ["measured"] * 4, told


@pytest.mark.tensorflow
@pytest.mark.parametrize(("flags", "word"), [((), "tuned"), (("--untuned-datasets",), "untuned")])
def test_so_are_those_of_a_program(tfcompare: str, tmp_path: Path, flags: tuple[str, ...], word: str):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "read.py").write_text(PROGRAM)
    words = ("--versions", "2.0,2.20", *FEW, *flags, "--output", str(tmp_path / "run"), "--", "python", "read.py", word)
    _, answer, told = compare(tfcompare, *words, cwd=tmp_path / "project")
    assert [arm["outcome"] for arm in answer["arms"]] == ["measured"] * 2, told
