"""Packages as an axis, for real: one TensorFlow with two releases of Keras; between them, a step became cheap."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.support.end_to_end import Answer, compare, comparison

WORKLOAD = '''
"""Trains and applies a small dense net."""

PARAMS = {"call": ("train_on_batch", "fit", "predict")}


def build(tf, params):
    import numpy as np

    keras = tf.keras
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    inputs, targets = np.ones((32, 8), "float32"), np.ones((32, 1), "float32")
    if params["call"] == "train_on_batch":
        return lambda: model.train_on_batch(inputs, targets)
    if params["call"] == "fit":
        return lambda: model.fit(inputs, targets, batch_size=8, verbose=0).history["loss"]
    return lambda: model.predict(inputs, verbose=0)
'''
OLD, NEW = "2.20.0+keras==3.5.0", "2.20.0+keras==3.8.0"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "steps.py").write_text(WORKLOAD)
    return tmp_path / "own"


def check_steps(answer: Answer, others: tuple[str, ...]) -> None:
    """`train_on_batch` traced a new function in every call, until 3.7; other calls have any verdict."""
    step = comparison(answer, "steps", "target", {"candidate": NEW}, call="train_on_batch")
    assert step["verdict"] == "faster"
    # 28 to 42 times on an idle machine of two cores, by a plain script and by tfcompare.
    assert step["ratio"] < 1 / 15
    for call in others:
        assert comparison(answer, "steps", "target", {"candidate": NEW}, call=call)["rounds"] >= 4
    [difference] = answer["differences"]
    facts = {fact["name"]: (fact["baseline"], fact["candidate"]) for fact in difference["facts"]}
    assert facts["Keras"] == ("3.5.0", "3.8.0")


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.timeout(900)
def test_a_release_of_keras_is_faster_on_the_same_tensorflow_and_shares_its_files(
    tfcompare: str, tmp_path: Path, own: Path
):
    env = {"TFCOMPARE_DATA": str(tmp_path / "data")}
    words = ("2.20 keras==3.5.0", "2.20 keras==3.8.0", "--engine", "venv", "--workload-folder", own, "--rounds", "4")
    # Other tests take turns with it, which wall times of short calls show.
    flags = ("--case", "steps[call=train_on_batch|predict]", "--judge", "cpu", "--output", tmp_path / "run")
    code, answer, stderr = compare(tfcompare, *words, *flags, env=env)
    assert code == 0, stderr
    check_steps(answer, ("predict",))
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    paths = [Path(manifest["environments"][name]["details"]["path"]) for name in (OLD, NEW)]
    inodes = [os.stat(next(path.glob("lib/python*/site-packages/tensorflow/__init__.py"))).st_ino for path in paths]
    assert inodes[0] == inodes[1]
    own_files = [next(path.glob("lib/python*/site-packages/keras/__init__.py")).stat().st_ino for path in paths]
    assert own_files[0] != own_files[1]
    # What was locked is not locked again, and the plan says nothing new.
    again = run_command(tfcompare, "run", *words, "--dry-run", env=env)
    assert again.returncode == 0, again.stderr
    assert "locking" not in again.stderr
    assert f"{OLD}, {NEW}: ready" in again.stdout


@pytest.mark.long
@pytest.mark.docker
@pytest.mark.timeout(1800)
def test_a_release_of_keras_is_faster_in_a_layer_above_the_same_image(
    tfcompare: str, tmp_path: Path, own: Path, docker_base: str
):
    env = {"TFCOMPARE_DATA": str(tmp_path / "data"), "TFCOMPARE_BASE": docker_base}
    words = ("2.20 keras==3.5.0", "2.20 keras==3.8.0", "--engine", "docker", "--workload-folder", own, "--rounds", "4")
    code, answer, stderr = compare(tfcompare, *words, "--output", tmp_path / "run", env=env)
    assert code == 0, stderr
    check_steps(answer, ("fit", "predict"))


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.timeout(1800)
def test_a_search_over_keras_finds_the_release_that_made_it_faster(tfcompare: str, tmp_path: Path, own: Path):
    env = {"TFCOMPARE_DATA": str(tmp_path / "data")}
    done = run_command(
        tfcompare, "bisect", "--over", "keras", "--good", "2.20 keras==3.5.0", "--bad", "2.20 keras==3.8.0",
        "--case", "steps[call=train_on_batch]", "--workload-folder", own, "--engine", "venv", "--rounds", "4",
        "--output", tmp_path / "hunt", "--format", "json", env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["over"], found["version"]) == ("keras", "2.20.0")
    changes = [(each["earlier"], each["later"]) for each in found["changes"] if (each["share"] or 0) > 0.5]
    assert changes == [("keras-3.6.0", "keras-3.7.0")]


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("2.20 keras==99.0", "it cannot be locked: No solution found when resolving dependencies: Because there is no"),
        ("2.20 keras==3.8.0 keras==3.5.0", "it cannot be locked: No solution found"),
        ("2.20 'keras[nothing]==3.8.0'", "does not have an extra named"),
        ("2.20 as-of=2015-01-01", "it cannot be locked"),
    ],
)
def test_what_cannot_be_resolved_is_told_once_with_the_reason(
    tfcompare: str, tmp_path: Path, own: Path, target: str, words: str
):
    env = {"TFCOMPARE_DATA": str(tmp_path / "data")}
    flags = ("--engine", "venv", "--workload-folder", own, "--dry-run")
    done = run_command(tfcompare, "run", "2.20", target, *flags, env=env)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stderr.count("cannot be locked") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pywin32==306\n", "pywin32==306 has no wheels with a matching"),
        ("numpy==1.16.6\n", "tensorflow-cpu==2.20.0 depends on numpy>=1.26.0"),
        ("keras==3.8.0\nkeras==3.5.0\n", "you require keras==3.8.0 and keras==3.5.0"),
    ],
    ids=["another system", "another Python", "twice"],
)
def test_a_freeze_that_does_not_fit_here_is_told_with_the_reason(
    tfcompare: str, tmp_path: Path, own: Path, text: str, words: str
):
    (tmp_path / "freeze.txt").write_text(text)
    env = {"TFCOMPARE_DATA": str(tmp_path / "data")}
    flags = ("--engine", "venv", "--workload-folder", own, "--dry-run")
    done = run_command(tfcompare, "run", "2.20", f"2.20 py=3.11 freeze={tmp_path}/freeze.txt as ours", *flags, env=env)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.tensorflow
def test_an_environment_of_the_users_is_a_target(tfcompare: str, tmp_path: Path, own: Path):
    (tmp_path / "freeze.txt").write_text("tensorflow==2.20.0\nkeras==3.12.0\nnumpy==2.1.3\n-e /home/me/own\n")
    env = {"TFCOMPARE_DATA": str(tmp_path / "data")}
    flags = ("--engine", "venv", "--workload-folder", own, "--dry-run")
    done = run_command(tfcompare, "run", "2.20", f"freeze={tmp_path}/freeze.txt py=3.11 as ours", *flags, env=env)
    assert done.returncode == 0, done.stderr
    assert "are no releases, and left out: -e /home/me/own" in done.stderr
    assert "keras 3.11.3 -> 3.12.0" in done.stderr


@pytest.mark.tensorflow
def test_today_says_what_moved_and_is_locked_once(tfcompare: str, tmp_path: Path, own: Path):
    env = {"TFCOMPARE_DATA": str(tmp_path / "data")}
    flags = ("--engine", "venv", "--workload-folder", own, "--dry-run")
    done = run_command(tfcompare, "run", "2.20", "2.20 today py=3.11", *flags, env=env)
    assert done.returncode == 0, done.stderr
    [moved] = [line for line in done.stderr.splitlines() if "moved as well" in line]
    assert moved.startswith("2.20.0+py=3.11+today: ")
    assert "keras 3.11.3 -> " in moved
    again = run_command(tfcompare, "run", "2.20", "2.20 today py=3.11", *flags, env=env)
    assert "locking" not in again.stderr
