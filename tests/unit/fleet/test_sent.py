"""The workloads that a fleet sends arrive as the run keeps them, with their folders and what can be executed."""

import errno
import io
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from orchestrator import contract
from orchestrator.catalog import claims, pinned
from orchestrator.catalog.workloads import all_workloads
from orchestrator.fleet import measure
from orchestrator.fleet.conduct import _read_workloads
from orchestrator.fleet.model import Contents, SentFolder, UnitTask
from orchestrator.machine.gpu import Gpu
from orchestrator.options import EngineOptions
from orchestrator.plan import gpus, planning
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View


def arrive(contents: Contents, folder: SentFolder, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return the modes of what a host has when it plans its unit, by name; its end says why it has nothing."""
    found: dict[str, int] = {}

    def list_files(options: RunOptions, view: object) -> None:
        own = options.own_workloads
        assert own
        found.update({path.relative_to(own).as_posix(): path.stat().st_mode & 0o7777 for path in own.rglob("*")})
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "plan_as_given", list_files)
    task = UnitTask(unit=1, attempt=1, sent_every_s=60.0, options=RunOptions(), workloads=folder)
    answer = measure.measure_task(task, contents, io.BytesIO())
    end = measure.END.validate_json(answer.text)
    assert end.error == "interrupted", end.error
    return found


def test_a_host_gets_what_can_be_executed_and_empty_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mine = tmp_path / "mine"
    for name in ("checkpoints/inner", "code"):
        (mine / name).mkdir(parents=True)
    for name, mode in (("train.py", 0o644), ("run.sh", 0o755), ("code/tool", 0o4700), ("code/table.json", 0o600)):
        (mine / name).write_text("x")
        (mine / name).chmod(mode)
    run = RunFolder.create(tmp_path / "run")
    pinned.pin(mine, run.workloads)
    large = pinned.place_data({"a/numbers": mine / "train.py"}, run.workloads)
    found = arrive(*_read_workloads(run, large), monkeypatch)
    kept = {path.relative_to(run.workloads).as_posix(): path for path in run.workloads.rglob("*")}
    assert found.keys() == {name for name in kept if not name.startswith(contract.DATA)}
    files = {name: mode for name, mode in found.items() if kept[name].is_file()}
    umask = os.umask(0o022)
    os.umask(umask)
    plain = 0o666 & ~umask
    assert files == {"train.py": plain, "run.sh": 0o755, "code/tool": 0o755, "code/table.json": plain}
    again = RunFolder.create(tmp_path / "again")
    assert _read_workloads(again, ()) == ({}, SentFolder()), "built-in workloads are on every host"


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out"])
def test_no_name_of_a_folder_leads_out(monkeypatch: pytest.MonkeyPatch, name: str):
    with pytest.raises(AssertionError, match="is no name of a file in a folder"):
        arrive({"one.py": b"x"}, SentFolder(folders=(name,)), monkeypatch)


def test_a_disk_that_is_full_is_no_bug_of_tfcompare(monkeypatch: pytest.MonkeyPatch):
    def fill(options: RunOptions, view: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/x")

    monkeypatch.setattr(measure, "plan_as_given", fill)
    task = UnitTask(unit=1, attempt=1, sent_every_s=60.0, options=RunOptions())
    end = measure.END.validate_json(measure.measure_task(task, {}, io.BytesIO()).text)
    assert (end.exit_code, end.error) == (70, "/tmp/x: No space left on device")


@pytest.fixture
def h100(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Gpu(0, "GPU-9f31-33", "NVIDIA H100", "9.0", "550.54", 81_920, 700, True, False)
    for name in ("adapt_claims", "fit"):
        monkeypatch.setattr(planning, name, partial(getattr(gpus, name), find=lambda: (card,)))


@pytest.mark.parametrize("name", ["xla-on-gpu", "../../../../etc/passwd"])
def test_a_host_measures_claims_in_the_releases_of_the_run_whatever_its_gpu(
    monkeypatch: pytest.MonkeyPatch, h100: None, name: str
):
    """Another release would be no arm of the run. A name that leads to another file is never read as one."""
    claim = claims.all_claims(all_workloads())["xla-on-gpu"]
    options = RunOptions(claims=(claim,), environments=EngineOptions(gpu=True))
    alone = plan_run(options, View())
    assert [str(target) for target in alone.selection.targets] == ["2.18.1", "2.21.0"]
    assert alone.fitting.notes[0].startswith("xla-on-gpu is tested in 2.18.1 and 2.21.0 instead")
    planned: list[PlannedRun] = []

    def keep(unit: PlannedRun, *others: object, **more: object) -> None:
        planned.append(unit)
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "measure", keep)
    asked = replace(options, claims=(replace(claim, name=name),))
    measure.measure_task(UnitTask(unit=1, attempt=1, sent_every_s=60.0, options=asked), {}, io.BytesIO())
    assert [str(target) for target in planned[0].selection.targets] == ["2.13.0"]
