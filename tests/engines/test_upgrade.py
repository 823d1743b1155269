"""The real command on both engines: equal ends are go, a known obstacle is not yet, and a known remedy is a flag."""

import json
import shlex
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.conftest import ROOT, run_command
from tests.support.end_to_end import Answer

SCHEMA = json.loads((ROOT / "docs" / "schema" / "upgrade-1.json").read_text())
# The step takes longer with one variable, and it is warned of something in its own line.
STEP = """
import os
import time
import warnings

PAUSE_S = 0.004
if os.environ.get("SLOW"):
    PAUSE_S *= 3


def build(tf, params):
    warnings.warn("this goes away; it will be removed in version 9.0", DeprecationWarning)
    return lambda: time.sleep(PAUSE_S)
"""
# `LinearModel` is in Keras 2 alone, and NumPy 1.25 deprecated `product`.
ONLY_KERAS_2 = """
import numpy
import tensorflow as tf

numpy.random.seed(1)
inputs = numpy.random.rand(64, int(numpy.product((2, 2)))).astype("float32")
model = tf.keras.experimental.LinearModel()
model.compile(optimizer="sgd", loss="mse")
model.fit(inputs, inputs.sum(axis=1), epochs=1, verbose=0)
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "step.py").write_text(STEP)
    return tmp_path / "own"


@pytest.fixture(
    params=[
        pytest.param("venv", marks=pytest.mark.tensorflow),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.long]),
    ]
)
def place(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """An engine, and the variables of the command that uses it."""
    if request.param == "docker":
        return "docker", {"TFCOMPARE_BASE": request.getfixturevalue("docker_base")}
    return "venv", request.getfixturevalue("stub_cache")


def ask(tfcompare: str, *words: str | Path, code: int, env: dict[str, str] | None = None, cwd: Path | None = None):
    done = run_command(tfcompare, "upgrade", *words, env=env, cwd=cwd)
    assert done.returncode == code, done.stderr
    answer: Answer = json.loads(done.stdout)
    Draft202012Validator(SCHEMA).validate(answer)
    return answer, done.stderr


def test_a_known_variable_is_in_the_way_and_without_it_one_may_move(
    tfcompare: str, own: Path, tmp_path: Path, place: tuple[str, dict[str, str]]
):
    engine, env = place
    flags = ("--case", "step", "--workload-folder", own, "--engine", engine, "--format", "json", "--budget", "90s")
    answer, stderr = ask(
        tfcompare, "2.13", "2.13 SLOW=1 OTHER=1", *flags, "--output", tmp_path / "worse", code=0, env=env
    )
    assert answer["decision"] == "go with a flag", stderr
    assert set(shlex.split(answer["flag"])) == {"2.13.0", "OTHER=1"}
    assert [each["metric"] for each in answer["tripped"]] == ["time"]
    assert any("SLOW none -> 1" in line for line in answer["why"])
    [warned] = [each for each in answer["warnings"] if each["own"]]
    assert (warned["place"], warned["line"], warned["until"]) == ("step.py", 12, "version 9.0")
    page = (tmp_path / "worse" / "report.html").read_text()
    assert "GO WITH A FLAG" in page
    shown = run_command(tfcompare, "upgrade", "--resume", tmp_path / "worse", env={**env, "COLUMNS": "80"})
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout.splitlines()) <= 60
    assert "GO WITH A FLAG: OTHER=1" in shown.stdout
    not_yet, _ = ask(
        tfcompare, "2.13", "2.13 SLOW=1", *flags, "--no-remedies", "--output", tmp_path / "plain", code=1, env=env
    )
    assert (not_yet["decision"], not_yet["why"], not_yet["helped"]) == ("not yet", [], [])


def test_equal_ends_are_go(tfcompare: str, own: Path, tmp_path: Path, place: tuple[str, dict[str, str]]):
    engine, env = place
    flags = ("--case", "step", "--workload-folder", own, "--engine", engine, "--format", "json", "--budget", "90s")
    answer, stderr = ask(tfcompare, "2.13", "2.13 OTHER=1", *flags, "--output", tmp_path / "same", code=0, env=env)
    assert answer["decision"] == "go", stderr
    assert answer["tripped"] == []
    assert list(answer["runs"]) == ["run"]


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_program_that_needs_keras_2_may_move_with_it(tfcompare: str, tmp_path: Path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(ONLY_KERAS_2)
    (project / "needs.txt").write_text("einops==0.8.0\n")
    # Its first step takes seconds with Keras 2 in 2.16, so only deaths are in the way.
    words = ("2.13", "2.16", "--engine", "venv", "--budget", "90s", "--fail-on", "died", "--format", "json")
    program = ("--requirements", "needs.txt", "--output", tmp_path / "up", "--", "python", "train.py")
    answer, stderr = ask(tfcompare, *words, *program, code=0, cwd=project)
    assert answer["decision"] == "go with a flag", stderr
    assert answer["flag"] == "2.16.2 keras=2"
    assert [each["metric"] for each in answer["tripped"]] == ["died"]
    assert "has no attribute 'experimental'" in answer["tripped"][0]["text"]
    assert [each["outcome"] for each in answer["requirements"]] == ["stays"]


@pytest.mark.tensorflow
def test_warnings_of_a_real_tensorflow_name_the_users_lines(tfcompare: str, tmp_path: Path):
    (tmp_path / "train.py").write_text(
        "import numpy\nimport tensorflow as tf\n\nnumpy.product([1, 2])\ntf.test.is_gpu_available()\n"
    )
    words = ("2.13", "2.16", "train.py", "--engine", "venv", "--no-remedies", "--budget", "21s", "--format", "json")
    answer, stderr = ask(tfcompare, *words, "--output", tmp_path / "up", code=0, cwd=tmp_path)
    own = {each["line"]: each for each in answer["warnings"] if each["own"]}
    assert set(own) == {4, 5}, stderr
    assert own[4]["until"] == "NumPy 2.0"
    assert own[5]["until"] == "a future version"
    assert "is_gpu_available" in own[5]["text"]
    assert "not shown" in run_command(tfcompare, "upgrade", "--resume", tmp_path / "up", cwd=tmp_path).stdout


@pytest.mark.tensorflow
def test_a_package_that_does_not_fit_is_named_and_another_release_of_it_is_taken(tfcompare: str, tmp_path: Path):
    (tmp_path / "train.py").write_text("import einops\nimport tensorflow\n")
    (tmp_path / "needs.txt").write_text("numpy==1.24.3\neinops==0.8.0\n")
    words = ("2.13", "2.16", "--engine", "venv", "--no-remedies", "--budget", "21s", "--format", "json")
    program = ("--requirements", "needs.txt", "--output", tmp_path / "up", "--", "python", "train.py")
    answer, stderr = ask(tfcompare, *words, *program, code=0, cwd=tmp_path)
    found = {each["text"]: each["outcome"] for each in answer["requirements"]}
    assert found == {"numpy": "moves", "einops==0.8.0": "stays"}, stderr
    assert "1.24.3" in answer["requirements"][0]["reason"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("2.13", "2.13", "--case", "power[style=eager]"), "2.13"),
        (("2.8", "2.9", "2.10"), "two ends"),
        (("2.13", "2.16", "--fail-on", "sluggish"), "sluggish"),
        (("2.13", "9.9"), "9.9"),
        (("2.13", "2.16", "--", "python", "absent.py"), "absent.py"),
        (("--resume", "absent"), "absent"),
    ],
    ids=["equal", "three", "gate", "version", "program", "folder"],
)
def test_a_mistake_ends_before_any_work(tfcompare: str, tmp_path: Path, words: tuple[str, ...], reason: str):
    done = run_command(tfcompare, "upgrade", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_an_environment_without_tensorflow_is_named_as_what_is_missing(tfcompare: str, tmp_path: Path):
    (tmp_path / "train.py").touch()
    env = {"VIRTUAL_ENV": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = run_command(tfcompare, "upgrade", "2.16", "train.py", cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert "name what you have as well" in done.stderr
