"""A program that nobody changed, in real TensorFlows on both engines: its whole time, its steps and its losses."""

from pathlib import Path

import pytest

from orchestrator.catalog.user_data import cache
from tests.conftest import run_command
from tests.support.end_to_end import Answer, compare

TRAIN = """
import sys

import numpy
from data import numbers
{imports}

numpy.random.seed(1)
model = {keras}.models.Sequential([{keras}.layers.Dense(8, activation="relu"), {keras}.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
inputs = numpy.random.rand(640, 4).astype("float32")
model.fit(inputs, inputs.sum(axis=1, keepdims=True), batch_size=32, epochs=int(sys.argv[1]), verbose=0)
model.evaluate(inputs, inputs.sum(axis=1, keepdims=True), verbose=0)
with open("weights.txt", "w") as weights:
    weights.write(str(numbers))
print("trained")
"""
# Where there is no tf_keras, keras is Keras 2.
SEPARATE_KERAS = """
try:
    import tf_keras as keras
except ImportError:
    import keras
"""
# There is no such host: what is there is not asked for.
READ_DATA = """
with open(tf.keras.utils.get_file("numbers.csv", "http://absent.invalid/numbers.csv")) as numbers:
    assert numbers.read() == "1,2"
with open("more.csv") as more:
    assert more.read() == "3,4"
"""
OF_TENSORFLOW = TRAIN.format(imports="import tensorflow as tf", keras="tf.keras")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "__init__.py").write_text("numbers = [1, 2, 3]\n")
    (folder / "train.py").write_text(OF_TENSORFLOW)
    return folder


def measure(
    tfcompare: str, project: Path, engine: str, *words: str, env: dict[str, str] | None = None
) -> tuple[int, Answer, str]:
    few = ("--engine", engine, "--rounds", "2", "--output", str(project.parent / "run"))
    return compare(tfcompare, *few, *words, env=env, cwd=project)


def check(answer: Answer, epochs: int) -> None:
    """Every target ran it, and saw as many epochs; it is compared by its whole time and by its steps."""
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    for arm in answer["arms"]:
        assert arm["workload"].startswith("python train.py")
        assert 0 < arm["figures"]["step"] < arm["first_step_s"] < arm["figures"]["time"]
        assert arm["resident_bytes"] > 100 * 2**20
        assert len(arm["losses"]) == epochs
        assert arm["losses"][-1] < arm["losses"][0]
    targets = {arm["target"] for arm in answer["arms"]}
    assert len(answer["comparisons"]) == 2 * (len(targets) - 1)
    assert {entry["metric"] for entry in answer["comparisons"]} == {"time", "step"}
    assert all(entry["ratio"] > 0 for entry in answer["comparisons"])


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_program_runs_unchanged_in_old_and_new_versions(tfcompare: str, project: Path):
    words = ("1.14", "2.17", "--", "python", "train.py", "3")
    code, answer, stderr = measure(tfcompare, project, "venv", *words)
    assert code == 0, stderr
    check(answer, epochs=3)
    assert sorted(path.name for path in project.iterdir()) == ["data", "train.py"]
    run = project.parent / "run"
    shown = run_command(tfcompare, "report", run, "--table", "details")
    assert "a step of fit" in shown.stdout
    assert "loss after the last epoch: 1.14.0 " in shown.stdout
    # It continues as any run does, with the program that it has kept.
    (project / "train.py").write_text("raise SystemExit(1)")
    more = run_command(tfcompare, "run", "--resume", run, "--rounds", "2", "--format", "json")
    assert more.returncode == 0, more.stderr


@pytest.mark.long
@pytest.mark.tensorflow
def test_the_steps_of_every_separate_keras_are_timed(tfcompare: str, project: Path):
    (project / "train.py").write_text(TRAIN.format(imports=SEPARATE_KERAS, keras="keras"))
    targets = ("2.0", "2.13", "2.17 keras=2")
    code, answer, stderr = measure(tfcompare, project, "venv", *targets, "--", "python", "train.py", "2")
    assert code == 0, stderr
    check(answer, epochs=2)


@pytest.mark.long
@pytest.mark.docker
@pytest.mark.tensorflow
def test_a_program_runs_in_containers_and_finds_what_was_downloaded_before(
    tfcompare: str, project: Path, tmp_path: Path, docker_base: str
):
    datasets, more = tmp_path / "home" / ".keras" / "datasets", tmp_path / "more.csv"
    datasets.mkdir(parents=True)
    (datasets / "numbers.csv").write_text("1,2")
    more.write_text("3,4")
    (project / "train.py").write_text(OF_TENSORFLOW + READ_DATA)
    words = ("1.14", "2.0", "--data", str(datasets), "--data", str(more), "--", "python", "train.py", "2")
    # With another cache it would not wait for a test that builds the same image, and each would name its own.
    env = {"TFCOMPARE_BASE": docker_base, "HOME": str(tmp_path / "home"), "TFCOMPARE_CACHE": str(cache().parent)}
    code, answer, stderr = measure(tfcompare, project, "docker", *words, env=env)
    assert code == 0, stderr
    check(answer, epochs=2)
    assert sorted(path.name for path in datasets.iterdir()) == ["numbers.csv"]


@pytest.mark.tensorflow
def test_a_version_that_cannot_run_a_program_says_why_in_one_line(tfcompare: str, project: Path):
    (project / "train.py").write_text("import tensorflow as tf\ntf.Session()\nprint('in a session')\n")
    code, answer, stderr = measure(tfcompare, project, "venv", "1.14", "2.0", "--", "python", "train.py")
    assert code == 6
    old, new = answer["arms"]
    assert (old["outcome"], old["figures"]["step"]) == ("measured", None)
    assert (new["outcome"], new["failure"]) == ("died", "workload")
    assert "exit code 1: AttributeError: module 'tensorflow' has no attribute 'Session'" in new["reason"]
    # It calls no `fit`, so nothing is said about steps.
    assert [entry["metric"] for entry in answer["comparisons"]] == ["time"]
    assert "Traceback" not in stderr


@pytest.mark.tensorflow
def test_packages_that_a_program_needs_are_locked_for_each_target(tfcompare: str, project: Path):
    (project / "train.py").write_text("import tabulate\nimport numpy\nprint(tabulate.tabulate([[1]]))\n")
    (project / "needs.txt").write_text("tabulate\nnumpy<1.20\n")
    flags = ("--requirements", "needs.txt")
    code, answer, stderr = measure(tfcompare, project, "venv", "2.0", "2.13", *flags, "--", "python", "train.py")
    assert code == 0, stderr
    assert [arm["outcome"] for arm in answer["arms"]] == ["measured", "refused"]
    assert "numpy" in answer["arms"][1]["reason"]


MISTAKES = {
    "no program": (("--",), "there is no program after --"),
    "no file": (("--", "python", "absent.py"), "there is no absent.py in"),
    "a suite": (("--suite", "quick", "--", "python", "train.py"), "--suite: not for a program"),
    "threads": (("--threads", "2", "--", "python", "train.py"), "--threads: not for a program"),
    "no sign": (("python", "train.py"), "To measure a program, put its command after --"),
    "packages for nothing": (("--requirements", "needs.txt"), "--requirements is for a program"),
}


@pytest.mark.parametrize(("words", "reason"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_ends_before_any_work(tfcompare: str, project: Path, words: tuple[str, ...], reason: str):
    done = run_command(tfcompare, "run", "2.0", "2.13", *words, cwd=project)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / "runs").exists()
