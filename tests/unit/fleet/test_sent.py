"""The workloads that a fleet sends arrive as the run keeps them, with their folders and what can be executed."""

import json
import os
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from orchestrator import contract
from orchestrator.catalog import pinned
from orchestrator.errors import ContractBroken
from orchestrator.fleet import host
from orchestrator.fleet.conduct import _read_workloads
from orchestrator.fleet.model import Contents, SentFolder, UnitTask
from orchestrator.plan.request import RunOptions
from orchestrator.results.run_folder import RunFolder

# Takes the place of the process that measures, and answers what it finds where its workloads are.
LISTS = """
import json, os, pathlib, sys
folder = pathlib.Path(json.loads(sys.stdin.readline())["options"]["own_workloads"])
found = {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o7777 for path in folder.rglob("*")}
print(json.dumps({"exit_code": 0, "error": json.dumps(found)}), flush=True)
"""


def arrive(contents: Contents, folder: SentFolder, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return the modes of what a host has, by name."""
    monkeypatch.setattr(host, "PROGRAM", (sys.executable, "-c", LISTS))
    task = UnitTask(unit=1, attempt=1, sent_every_s=60.0, options=RunOptions(), workloads=folder)
    end, _ = host.measure_unit(TypeAdapter(UnitTask).dump_json(task), contents, lambda line, files: None)
    answer = TypeAdapter(host.UnitEnd).validate_json(end)
    found: dict[str, int] = json.loads(answer.error)
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
    with pytest.raises(ContractBroken, match="is no name of a file in a folder"):
        arrive({"one.py": b"x"}, SentFolder(folders=(name,)), monkeypatch)
