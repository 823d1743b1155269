"""The real command saves and loads models with real TensorFlows, on both engines."""

import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.conftest import ROOT, run_command

SCHEMA = json.loads((ROOT / "docs" / "schema" / "models-1.json").read_text())
# What the layer computes depends on the version, and so does whether the file is of any use.
VERSIONED = """
import parts
import tensorflow as tf


class Versioned(tf.keras.layers.Layer):
    def call(self, values):
        return values * (parts.OLD if tf.__version__.startswith("2.8") else 3.0)


def build(tf):
    given = tf.keras.Input((4,))
    return tf.keras.Model(given, Versioned()(tf.keras.layers.Dense(3)(given)))
"""
CUSTOM = """

def custom_objects(tf):
    return {"Versioned": Versioned}
"""

pytestmark = pytest.mark.slow


def ask(tfcompare: str, *words: str | Path, code: int = 0, env: dict[str, str] | None = None) -> dict[str, Any]:
    done = run_command(tfcompare, "models", *words, "--format", "json", env=env)
    assert done.returncode == code, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    Draft202012Validator(SCHEMA).validate(answer)
    return answer


def cells(answer: dict[str, Any]) -> dict[tuple[str, str, str, str], str]:
    """Verdicts by what was saved, how, the target that loads it, and the model."""
    return {
        (each["saved_in"] or each["file"], each["format"], each["loaded_in"], each["model"]): each["verdict"]
        for each in answer["models"]
    }


@pytest.mark.tensorflow
def test_models_of_keras_2_reach_keras_3_as_far_as_they_load(tfcompare: str, tmp_path: Path) -> None:
    flags = ("--versions", "2.8,2.16", "--engine", "venv", "--output", tmp_path / "run")
    found = cells(ask(tfcompare, *flags, "--models", "functional,optimizer_state,custom_layer,subclassed"))
    old, new = "2.8.4", "2.16.2"
    assert found[old, "h5", old, "functional"] == found[old, "h5", new, "functional"] == "ok"
    assert found[old, "h5", old, "optimizer_state"] == "ok"
    assert found[old, "h5", new, "custom_layer"] == "ok"
    assert found[old, "h5", new, "subclassed"] == "not saved"
    assert found[old, "savedmodel", old, "functional"] == "ok"
    # TensorFlow warns that it cannot restore the slots of an optimizer from a SavedModel.
    assert found[old, "savedmodel", old, "optimizer_state"] == "differs"
    assert found[old, "served", new, "functional"] == "ok"
    assert found[old, "savedmodel", new, "functional"] == "refused"
    assert found[old, "keras", new, "functional"] == "refused"
    assert found[new, "keras", new, "optimizer_state"] == "ok"
    assert found[new, "export", new, "subclassed"] == "ok"
    assert found[new, "h5", old, "functional"] == found[new, "weights", old, "functional"] == "dies"
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Unrecognized keyword arguments: [&#39;batch_shape&#39;]" in page


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("venv", marks=pytest.mark.tensorflow),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.long]),
    ],
)
def test_a_layer_that_computes_something_else_is_found(
    tfcompare: str, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    env = {"TFCOMPARE_BASE": request.getfixturevalue("docker_base")} if engine == "docker" else None
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "parts.py").write_text("OLD = 2.0\n")
    (tmp_path / "mine" / "model.py").write_text(VERSIONED + CUSTOM)
    flags = ("--versions", "2.8,2.13", "--formats", "h5", "--engine", engine, "--output", tmp_path / "run")
    answer = ask(tfcompare, *flags, "--model", tmp_path / "mine" / "model.py", "--fail-on", "differs", code=1, env=env)
    found = cells(answer)
    assert [found["2.8.4", "h5", target, "model"] for target in ("2.8.4", "2.13.0")] == ["ok", "differs"]
    assert [found["2.13.0", "h5", target, "model"] for target in ("2.13.0", "2.8.4")] == ["ok", "differs"]
    differences = [each["difference"] for each in answer["models"] if each["verdict"] == "differs"]
    assert differences == [pytest.approx(1 / 3)] * 2
    # Workers may not write what others read.
    assert sorted(path.name for path in (tmp_path / "run" / "saved").iterdir()) == [
        "2.13.0-h5", "2.8.4-h5", "model", "saved_models.py",
    ]  # fmt: skip


GREEDY = """
import glob
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def build(tf):
    given = tf.keras.Input((4,))
    return tf.keras.Model(given, tf.keras.layers.Dense(3)(given))


def custom_objects(tf):
    written = []
    for path in glob.glob(os.path.join(HERE, "..", "*-h5", "*")) + [os.path.join(HERE, "more.py"), __file__]:
        try:
            open(path, "a").close()
            written.append(path)
        except OSError:
            pass
    assert not written, written
    return {}
"""


@pytest.mark.docker
@pytest.mark.long
def test_a_version_cannot_change_what_others_load(tfcompare: str, tmp_path: Path, docker_base: str) -> None:
    (tmp_path / "greedy.py").write_text(GREEDY)
    flags = ("--versions", "2.8,2.13", "--formats", "h5", "--engine", "docker", "--output", tmp_path / "run")
    answer = ask(tfcompare, *flags, "--model", tmp_path / "greedy.py", env={"TFCOMPARE_BASE": docker_base})
    assert set(cells(answer).values()) == {"ok"}


@pytest.mark.tensorflow
def test_a_missing_custom_object_is_named(tfcompare: str, tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text("OLD = 2.0\n")
    (tmp_path / "bare.py").write_text(VERSIONED)
    flags = ("--versions", "2.13,2.16", "--engine", "venv", "--output", tmp_path / "run", "--formats", "keras,h5")
    answer = ask(tfcompare, *flags, "--model", tmp_path / "bare.py", "--fail-on", "died,differs", code=6)
    reasons = {
        (each["saved_in"], each["format"]): each["reason"]
        for each in answer["models"]
        if each["saved_in"] == each["loaded_in"]
    }
    assert len(reasons) == 4
    assert all(str(reason).startswith("needs the custom object Versioned: ") for reason in reasons.values())


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_models_that_users_reported_do_not_load(tfcompare: str, tmp_path: Path) -> None:
    flags = ("--engine", "venv", "--models", "functional,nested,registered_loss,preprocessing")
    # keras#19959 and keras#20806.
    varied = ("2.17", "--vary", "keras=3.3.3,3.4.1,3.6,3.7", "--formats", "keras", "--output", tmp_path / "keras")
    found = cells(ask(tfcompare, *varied, *flags))
    by_keras = {
        (source.rpartition("==")[2], target.rpartition("==")[2], model): verdict
        for (source, _, target, model), verdict in found.items()
    }
    assert [by_keras["3.3.3", keras, "nested"] for keras in ("3.3.3", "3.4.1", "3.6.0")] == ["ok", "dies", "ok"]
    assert [by_keras["3.6.0", keras, "registered_loss"] for keras in ("3.6.0", "3.7.0")] == ["ok", "dies"]
    # tf-keras#369.
    old = ("--versions", "2.7,2.8", "--formats", "savedmodel", "--output", tmp_path / "old")
    found = cells(ask(tfcompare, *old, *flags))
    assert [found["2.7.4", "savedmodel", target, "preprocessing"] for target in ("2.7.4", "2.8.4")] == ["ok", "dies"]
    assert found["2.7.4", "served", "2.8.4", "preprocessing"] == "ok"
    # keras#21663.
    new = ("--versions", "2.13,2.16", "--formats", "keras", "--output", tmp_path / "new")
    found = cells(ask(tfcompare, *new, *flags))
    assert [found["2.13.0", "keras", target, "functional"] for target in ("2.13.0", "2.16.2")] == ["ok", "dies"]


def make_hostile(folder: Path, saved: Path) -> None:
    """Put damaged and hostile files next to a good one, which a version has saved."""
    shutil.copyfile(saved, folder / "good.keras")
    data = saved.read_bytes()
    (folder / "cut.keras").write_bytes(data[: len(data) // 2])
    (folder / "empty.h5").write_bytes(b"")

    class Evil:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.system, (f"touch {folder}/owned",)

    (folder / "pickle.h5").write_bytes(pickle.dumps(Evil()))
    with zipfile.ZipFile(saved) as good, zipfile.ZipFile(folder / "lambda.keras", "w") as evil:
        for name in good.namelist():
            content = good.read(name)
            if name == "config.json":
                config = json.loads(content)
                for layer in config["config"]["layers"]:
                    if layer["class_name"] == "Dense":
                        layer["class_name"] = "Lambda"
                        layer["config"] = {
                            "name": layer["config"]["name"],
                            "function": {"class_name": "__lambda__", "config": {"code": "4wEAAAA=", "defaults": None}},
                        }
                content = json.dumps(config).encode()
            evil.writestr(name, content)


@pytest.mark.tensorflow
def test_damaged_and_hostile_files_die_alone_and_run_nothing(tfcompare: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "def build(tf):\n    given = tf.keras.Input((4,))\n"
        "    return tf.keras.Model(given, tf.keras.layers.Dense(3)(given))\n"
    )
    first = ("--versions", "2.13,2.16", "--engine", "venv", "--output", tmp_path / "first", "--formats", "keras")
    ask(tfcompare, *first, "--model", tmp_path / "model.py")
    old = tmp_path / "old"
    old.mkdir()
    make_hostile(old, tmp_path / "first" / "saved" / "2.16.2-keras" / "model.keras")
    answer = ask(tfcompare, "2.16", "--saved", old, "--engine", "venv", "--output", tmp_path / "run")
    assert {file: verdict for (file, *_), verdict in cells(answer).items()} == {
        "cut.keras": "dies", "empty.h5": "dies", "good.keras": "ok", "lambda.keras": "dies", "pickle.h5": "dies",
    }  # fmt: skip
    [reason] = [each["reason"] for each in answer["models"] if each["file"] == "lambda.keras"]
    assert "safe_mode" in reason or "disallowed" in reason
    assert not (old / "owned").exists()
    assert any("--engine docker confines it" in note for note in answer["notes"])


# With these, the first function that XLA compiles ends its process.
FATAL = {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit", "XLA_FLAGS": "--no_such_flag"}


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_night_reports_models_that_break_and_no_others(tfcompare: str, tmp_path: Path) -> None:
    flags = ("--case", "power[style=eager]", "--rounds", "2", "--engine", "venv", "--backfill", "0", "--inherit-env")
    words = ("nightly", "run", "--versions", "2.16,2.8", *flags, "--history", tmp_path, "--saved-models", "keras")
    first, equal = (run_command(tfcompare, *words, "--again") for _ in range(2))
    assert [done.returncode for done in (first, equal)] == [0, 0], first.stderr + equal.stderr
    assert "there is no earlier table" in " ".join(first.stdout.split())
    assert "broke" not in equal.stdout
    broken = run_command(tfcompare, *words, "--again", env=FATAL)
    assert broken.returncode == 1, broken.stderr
    text = " ".join(broken.stdout.split())
    assert "saved models broke" in text.splitlines()[0]
    assert "2.16.2 as keras: not saved: killed by SIGABRT (" in text
    assert "optimizer_state" in text
    assert len(list((tmp_path / "runs").glob("*-models*/report.html"))) == 4
    again = run_command(tfcompare, *words, "--again")
    assert again.returncode == 0, again.stderr
    assert "Saved models that are ok again" in again.stdout
