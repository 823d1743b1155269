"""Workers get the same variables whoever starts them; a build's log is kept, shown and searched."""

from pathlib import Path

import pytest

from orchestrator.catalog import user_data
from orchestrator.catalog.user_data import cache
from orchestrator.catalog.variables import find_of_tensorflow, note_ignored
from orchestrator.engines.environment import worker_variables
from orchestrator.errors import UsageError


def test_a_worker_gets_the_variables_of_its_target_and_none_of_the_shell(monkeypatch: pytest.MonkeyPatch):
    for name in ("TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "XLA_FLAGS", "PYTHONPATH", "LD_PRELOAD", "AWS_SECRET"):
        monkeypatch.setenv(name, "x")
    found = worker_variables(own={"XLA_FLAGS": "--own"})
    assert found["XLA_FLAGS"] == "--own"
    assert not {"TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "PYTHONPATH", "LD_PRELOAD", "AWS_SECRET"} & found.keys()
    assert not {"PATH", "HOME"} & found.keys()


def test_what_tensorflow_logs_is_for_the_user_to_say(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    assert worker_variables()["TF_CPP_MIN_LOG_LEVEL"] == "0"


OF_TENSORFLOW = [
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_XLA_FLAGS",
    "TF_USE_LEGACY_KERAS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "KMP_AFFINITY",
    "MKL_CBWR",
    "CUDNN_LOGINFO_DBG",
    "NCCL_DEBUG",
    "CUDA_LAUNCH_BLOCKING",
    "TF_MLIR_ENABLE_MERGE_CONTROL_FLOW_PASS",
    "TF_VARIANT",
]
OF_OTHERS = [
    "KERAS_BACKEND",
    "TF_VAR_db_password",
    "TF_TOKEN_app_terraform_io",
    "TF_CLI_ARGS_plan",
    "TF_HTTP_PASSWORD",
    "TF_CPP_VMODULE",
    "CUDA_HOME",
    "CUDA_VERSION",
    "NCCL_VERSION",
    "CUDA_PATH_V11_2",
    "CUDA_VISIBLE_DEVICES",
    "TF_API_TOKEN",
    "TF_STORE_KEY",
    "HOME",
    "TF_FORCE_GPU_ALLOW_GROWTH",
]


def test_the_variables_of_tensorflow_are_told_from_others(monkeypatch: pytest.MonkeyPatch):
    for name in find_of_tensorflow():
        monkeypatch.delenv(name)
    for name in (*OF_TENSORFLOW, *OF_OTHERS):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("XLA_FLAGS", "http://me:secret@host")
    assert find_of_tensorflow().keys() == set(OF_TENSORFLOW)


def test_what_is_ignored_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch):
    for name in find_of_tensorflow():
        monkeypatch.delenv(name)
    assert note_ignored(()) == ""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert note_ignored(()) == (
        "note: OMP_NUM_THREADS of your shell is not passed on: name it in a target, such as "
        "'2.15 OMP_NUM_THREADS=...', or pass it to all with --inherit-env"
    )
    assert note_ignored(find_of_tensorflow()) == ""


def test_what_must_be_equal_in_every_target_is_set_and_not_taken_over(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert (worker_variables()["PYTHONHASHSEED"], worker_variables()["KERAS_BACKEND"]) == ("0", "tensorflow")


def test_the_seed_of_a_run_is_that_of_its_workers_hashes():
    assert worker_variables(20261122)["PYTHONHASHSEED"] == "20261122"


@pytest.mark.parametrize(
    ("variable", "folder"), [("TFCOMPARE_CACHE", cache), ("TFCOMPARE_DATA", user_data.folder)], ids=["cache", "data"]
)
def test_a_user_without_a_home_learns_what_to_set(monkeypatch: pytest.MonkeyPatch, variable: str, folder):
    def home() -> Path:
        raise RuntimeError("Could not determine home folder.")

    monkeypatch.setattr(Path, "home", home)
    for name in (variable, "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=f"set HOME, or {variable} to a folder"):
        folder()
