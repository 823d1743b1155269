"""A real TensorFlow without oneDNN, in half precision and transposed: the report tells the three results apart."""

from pathlib import Path

import pytest

from tests.support.end_to_end import compare

pytestmark = pytest.mark.tensorflow

# The plain target differs from the other by one variable, and where the case says so, by more.
WORKLOAD = """
import os

import numpy

PARAMS = {"what": ("softmax", "half", "transposed")}


def build(tf, params):
    plain = os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0"
    square = tf.constant(numpy.random.RandomState(1).randn(64, 64).astype("float32"))

    def step():
        if params["what"] == "softmax":
            return tf.nn.softmax(tf.matmul(square, square))
        if params["what"] == "half":
            return tf.cast(square, tf.float16 if plain else tf.float32)
        return tf.transpose(square) if plain else square

    return step
"""


@pytest.mark.long
def test_onednn_half_precision_and_a_transposed_axis_are_told_apart(tfcompare: str, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "returned.py").write_text(WORKLOAD)
    code, answer, stderr = compare(
        tfcompare, "2.13", "2.13 TF_ENABLE_ONEDNN_OPTS=0 as plain", "--engine", "venv", "--rounds", "2", "--quiet",
        "--metric", "output", "--workload-dir", tmp_path / "own", "--output", tmp_path / "run",
    )  # fmt: skip
    assert code == 0, stderr
    softmax, half, transposed = (
        next(entry for entry in answer["outputs"] if entry["params"]["what"] == what)
        for what in ("softmax", "half", "transposed")
    )
    # Where the CPU has the instructions, oneDNN adds in another order.
    assert softmax["verdict"] in ("equal", "equal within tolerance")
    assert (softmax["ulps"] or 0) < 100
    assert (half["verdict"], half["reason"]) == ("equal within tolerance", "float16, not float32")
    assert half["ulps"] <= 1
    assert transposed["verdict"] == "differs"
    assert transposed["difference"] > 1
