"""Results of real TensorFlow: of all kinds in two versions, and of oneDNN, half precision and a transposed axis."""

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
        "--metric", "output", "--workload-folder", tmp_path / "own", "--output", tmp_path / "run",
    )  # fmt: skip
    assert code == 0, stderr
    softmax, half, transposed = (
        next(entry for entry in answer["outputs"] if entry["params"]["what"] == what)
        for what in ("softmax", "half", "transposed")
    )
    # Where the CPU has the instructions, oneDNN adds in another order.
    assert softmax["verdict"] in ("equal", "equal within tolerance")
    assert (softmax["ulps"] or 0) < 100
    assert half["verdict"] == "equal within tolerance"
    assert half["reason"] == "float16, not float32; beyond 256 values compared by sums"
    assert half["ulps"] <= 1
    assert transposed["verdict"] == "differs"
    assert transposed["difference"] > 1


KINDS = """
import numpy

PARAMS = {"changed": ("nothing", "bfloat16", "ragged", "sparse", "text", "late", "flag")}


def build(tf, params):
    if tf.__version__.startswith("1."):
        tf.compat.v1.enable_eager_execution()
    changed = "nothing" if tf.__version__.startswith("1.") else params["changed"]
    x = numpy.random.RandomState(1).randn(100, 300).astype("float32")
    other = x.copy()
    other[77, 77] = 9

    def step():
        parts = [tf.constant(x[:5]) for _ in range(30)]
        if changed == "late":
            parts[28] = tf.constant(x[1:6])
        return {
            "bfloat16": tf.cast(other if changed == "bfloat16" else x, tf.bfloat16),
            "complex": tf.complex(x, -x),
            "empty": tf.zeros((0, 3)),
            "flags": tf.constant((other if changed == "flag" else x) > 8),
            "half": tf.cast(x, tf.float16),
            "lone": tf.cast(1.5, tf.bfloat16),
            "ragged": tf.ragged.constant([[1.0], [2.0, 3.0]] if changed == "ragged" else [[1.0, 2.0], [3.0]]),
            "sparse": tf.SparseTensor([[0, 1], [2, 2 if changed == "sparse" else 3]], [1.5, 2.5], [3, 4]),
            "text": tf.constant(["a", "c" if changed == "text" else "b"]),
            "variable": tf.Variable(x),
            "zz": parts,
        }

    return step
"""


@pytest.mark.long
def test_results_of_all_kinds_are_equal_in_two_versions_unless_one_part_differs(tfcompare: str, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "kinds.py").write_text(KINDS)
    code, answer, stderr = compare(
        tfcompare, "--versions", "1.14,2.13", "--engine", "venv", "--rounds", "2", "--quiet",
        "--metric", "output", "--workload-folder", tmp_path / "own", "--output", tmp_path / "run",
    )  # fmt: skip
    assert code == 0, stderr
    verdicts = {entry["params"]["changed"]: entry["verdict"] for entry in answer["outputs"]}
    assert verdicts.pop("nothing") == "equal"
    assert set(verdicts.values()) == {"differs"}, verdicts
