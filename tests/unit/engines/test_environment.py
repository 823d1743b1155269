"""Workers get the same variables whoever starts them; a build's log is kept, shown and searched."""

from pathlib import Path

import pytest

from orchestrator.catalog import user_data
from orchestrator.engines.environment import cache, is_passed_on, worker_variables
from orchestrator.errors import UsageError


def test_only_what_is_meant_for_tensorflow_reaches_a_worker(monkeypatch: pytest.MonkeyPatch):
    for name in ("TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "XLA_FLAGS", "PYTHONPATH", "LD_PRELOAD", "AWS_SECRET"):
        monkeypatch.setenv(name, "x")
    found = worker_variables()
    assert {"TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "XLA_FLAGS"} <= found.keys()
    assert not {"PYTHONPATH", "LD_PRELOAD", "AWS_SECRET", "PATH", "HOME"} & found.keys()


@pytest.mark.parametrize(
    "name",
    ["TF_VAR_db_password", "TF_TOKEN_app_terraform_io", "TF_CLI_CONFIG_FILE", "TF_CLI_ARGS_plan", "TF_HTTP_PASSWORD"],
)
def test_the_variables_of_terraform_reach_no_worker(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv(name, "x")
    assert name not in worker_variables()
    assert not is_passed_on(name)


@pytest.mark.parametrize(
    "name",
    ["TF_ENABLE_ONEDNN_OPTS", "TF_CPP_MIN_LOG_LEVEL", "TF_XLA_FLAGS", "TF_CLIENT", "TF_VARIANT", "TF_USE_LEGACY_KERAS"],
)
def test_the_variables_of_tensorflow_reach_every_worker(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv(name, "x")
    assert worker_variables()[name] == "x"


def test_what_must_be_equal_in_every_version_is_set_and_not_taken_over(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert (worker_variables()["PYTHONHASHSEED"], worker_variables()["KERAS_BACKEND"]) == ("0", "tensorflow")


def test_the_seed_of_a_run_is_that_of_its_workers_hashes():
    assert worker_variables(20261122)["PYTHONHASHSEED"] == "20261122"


@pytest.mark.parametrize(
    ("variable", "folder"), [("TFCOMPARE_CACHE", cache), ("TFCOMPARE_DATA", user_data.directory)], ids=["cache", "data"]
)
def test_a_user_without_a_home_learns_what_to_set(monkeypatch: pytest.MonkeyPatch, variable: str, folder):
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    for name in (variable, "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=f"set HOME, or {variable} to a folder"):
        folder()
