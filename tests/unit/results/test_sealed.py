"""A run is continued without a question by the user who began it, as long as nothing that it executes was changed."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.catalog import seals, trust, user_data
from orchestrator.errors import UsageError
from orchestrator.model import Manifest, Plan
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.sealed import describe_run, read_request, require_seal, seal_run
from tests.support.builders import manifest, plan


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "user"))
    monkeypatch.delenv(trust.VARIABLE, raising=False)
    made = RunFolder.create(tmp_path / "run")
    made.workloads.mkdir()
    (made.workloads / "own.py").write_text("def build(tf, params): return len\n")
    seal_run(made, plan(), manifest())
    made.write_plan(plan())
    made.write_manifest(manifest())
    return made


def check(run: RunFolder) -> None:
    require_seal(run, *read_request(run))


def test_the_user_who_began_a_run_continues_it_also_elsewhere(run: RunFolder, tmp_path: Path):
    check(run)
    run.path.rename(tmp_path / "moved")
    check(RunFolder(tmp_path / "moved"))
    key = user_data.folder() / "key"
    assert key.stat().st_mode & 0o777 == 0o600


def test_another_user_is_asked(run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "another"))
    with pytest.raises(UsageError) as refused:
        check(run)
    assert f"`tfcompare trust {run.path}` shows what would run and asks you to confirm" in str(refused.value)
    seal_run(run, *read_request(run))
    check(run)
    # The first user's seal is still there.
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "user"))
    check(run)
    assert seals.remove_seals(run.path)
    assert not seals.remove_seals(run.path)
    with pytest.raises(UsageError, match="created by another user"):
        check(run)


def change_engine(plan: Plan, manifest: Manifest) -> tuple[Plan, Manifest]:
    return replace(plan, engine="venv" if plan.engine != "venv" else "docker"), manifest


def change_definitions(plan: Plan, manifest: Manifest) -> tuple[Plan, Manifest]:
    return replace(plan, definitions=("wheel=/evil.whl as mine",)), manifest


def change_variables(plan: Plan, manifest: Manifest) -> tuple[Plan, Manifest]:
    return plan, replace(manifest, variables={"TF_X": "/evil.so"})


@pytest.mark.parametrize("change", [change_engine, change_definitions, change_variables])
def test_a_plan_that_was_changed_asks(run: RunFolder, change):
    with pytest.raises(UsageError, match="was changed: "):
        require_seal(run, *change(*read_request(run)))


@pytest.mark.parametrize("name", ["own.py", "helper.py", ".hidden.py", "__pycache__/own.cpython-311.pyc"])
def test_a_workload_that_was_changed_asks(run: RunFolder, name: str):
    (run.workloads / name).parent.mkdir(exist_ok=True)
    (run.workloads / name).write_text("evil")
    with pytest.raises(UsageError, match="was changed: "):
        check(run)


def test_a_request_to_a_fleet_that_was_changed_asks(run: RunFolder):
    run.fleet.write_text("{}")
    with pytest.raises(UsageError, match="was changed: "):
        check(run)


@pytest.mark.parametrize("seal", ["", "0" * 64, "\xff" * 9])
def test_a_seal_that_is_none_asks(run: RunFolder, seal: str):
    (run.path / seals.NAME).write_text(seal)
    with pytest.raises(UsageError, match="was changed: "):
        check(run)


def test_the_variable_trusts_every_run(run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "another"))
    monkeypatch.setenv(trust.VARIABLE, "1")
    check(run)


def test_without_a_place_for_a_key_a_run_begins_all_the_same(run: RunFolder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", "/dev/null")
    seal_run(run, plan(), manifest())


def test_what_would_run_is_listed(run: RunFolder):
    lines = describe_run(run, *read_request(run))
    assert f"engine: {plan().engine}" in lines
    assert f"code: {run.workloads}/own.py" in lines
