"""A run ends well or badly: which engine its plan names, and what it leaves in its folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentFailed, UsageError
from orchestrator.measure import run
from orchestrator.measure.resume import add_rounds
from orchestrator.model import Isolation
from orchestrator.plan.request import RunOptions
from orchestrator.results.more_rounds import ResumeOptions
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.support import actors
from tests.support.engines import Engine, Lacking, offer_engines

SMOKE = RunOptions(versions=("1.14", "2.0"), suite="smoke", selected=("power[style=eager]",))


@pytest.mark.parametrize(
    ("isolation", "tried", "not_tried"),
    [("fork", ("docker", "venv"), ()), ("container", ("docker",), ("venv",)), ("process", ("venv",), ("docker",))],
)
def test_where_no_image_can_be_had_only_a_fork_may_live_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    isolation: Isolation,
    tried: tuple[str, ...],
    not_tried: tuple[str, ...],
):
    """A container of a replicate's own cannot become a process without anybody having asked for that."""
    offer_engines(monkeypatch, docker=True, venv=True)
    with pytest.raises(EnvironmentFailed) as failed:
        run.plan_and_measure(replace(SMOKE, isolation=isolation, out=tmp_path / "run"), View())
    assert f"{tried[-1]} cannot make it" in str(failed.value)
    assert not any(name in str(failed.value) for name in not_tried)


def test_the_plan_is_written_once_with_the_engine_that_made_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    actors.offer(monkeypatch, docker=lambda options: Engine("docker", answers=True), venv=lambda options: Lacking())
    written: list[str] = []
    real = RunFolder.write_plan
    monkeypatch.setattr(RunFolder, "write_plan", lambda self, plan: (written.append(plan.engine), real(self, plan)))
    done = run.plan_and_measure(replace(SMOKE, rounds=2, seed=1, out=tmp_path / "run"), View())
    assert written == ["venv"]
    assert RunFolder.open(done.path).read_plan().engine == "venv"


def test_a_run_whose_environments_fail_leaves_a_folder_that_says_what_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    offer_engines(monkeypatch, venv=True)
    command = ("run", "--versions", "1.14,2.0")
    with pytest.raises(EnvironmentFailed):
        run.plan_and_measure(replace(SMOKE, command=command, out=tmp_path / "run"), View())
    assert not (tmp_path / "run" / "plan.json").exists()
    with pytest.raises(UsageError, match=r"`tfcompare run --versions 1\.14,2\.0`, begun .* ended before its env"):
        RunFolder.open(tmp_path / "run")
    with pytest.raises(EnvironmentFailed, match="venv cannot make it"):
        add_rounds(ResumeOptions(run=tmp_path / "run"), View())
    assert not (tmp_path / "run" / "plan.json").exists()


def test_a_run_that_still_makes_its_environments_is_told_from_one_that_ended(tmp_path: Path):
    folder = RunFolder.create(tmp_path / "run")
    with folder.hold(), pytest.raises(UsageError, match=r"no run yet: a run is still making its environments ready"):
        RunFolder.open(folder.path)
