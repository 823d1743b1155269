"""Backends of Keras, for real: one suite on three of them, with a step that is slower in one of two targets."""

from pathlib import Path

import pytest

from tests.support.end_to_end import compare

WORKLOAD = '''
"""Trains a small net; a target may let it sleep."""
import os
import time

PARAMS = {"sleeps": ("yes", "no")}


def build(keras, params):
    import numpy as np

    model = keras.Sequential([keras.layers.Dense(4)])
    model.compile(optimizer="sgd", loss="mse")
    inputs, targets = np.ones((8, 4), "float32"), np.ones((8, 4), "float32")
    slow = params["sleeps"] == "yes" and os.environ.get("TF_TEST_SLOW") == "1"

    def step():
        if slow:
            time.sleep(0.1)
        return model.train_on_batch(inputs, targets)

    return step
'''
BACKENDS = {
    "tensorflow": "2.20 keras==3.15.1",
    **{name: f"keras==3.15.1 backend={name}" for name in ("jax", "torch")},
}


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "engine", [pytest.param("venv", marks=pytest.mark.tensorflow), pytest.param("docker", marks=pytest.mark.docker)]
)
def test_a_slower_step_is_found_on_every_backend_and_an_equal_one_on_none(tfcompare: str, tmp_path: Path, engine: str):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "net.py").write_text(WORKLOAD)
    words = [
        word
        for name, target in BACKENDS.items()
        for word in (f"{target} as {name}", f"{target} TF_TEST_SLOW=1 as {name}-slow")
    ]
    env = {"TFCOMPARE_DATA": str(tmp_path / "data")}
    flags = ("--engine", engine, "--workload-folder", tmp_path / "own", "--pairs", "neighbours", "--rounds", "6")
    code, answer, stderr = compare(tfcompare, *words, *flags, "--output", tmp_path / "run", env=env)
    assert code == 0, stderr
    verdicts = {
        (each["candidate"], each["params"]["sleeps"]): each["verdict"]
        for each in answer["comparisons"]
        if each["kind"] == "target" and each["candidate"] == f"{each['baseline']}-slow"
    }
    assert {verdicts[f"{name}-slow", "yes"] for name in BACKENDS} == {"slower"}
    assert {verdicts[f"{name}-slow", "no"] for name in BACKENDS} <= {"same", "inconclusive"}
    differing = {
        fact["candidate"]
        for each in answer["differences"]
        for fact in each["facts"]
        if fact["name"] == "Keras' backend"
    }
    assert differing == {"jax", "torch"}
