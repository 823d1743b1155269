"""Runs of several machines as one: real runs under a stub of TensorFlow, one of which is made another machine's."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

from orchestrator.errors import ContractBroken, UsageError
from orchestrator.measure.resume import ResumeOptions, plan_rounds
from orchestrator.model import Extended, Prolonged
from orchestrator.results.merge import merge_runs
from orchestrator.results.run import Run, load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.conftest import ROOT
from tests.support.commands import called
from tests.support.stub_runs import Scene

WORKLOAD = """
'''Sleeps.'''
import time
from orchestrator.terminal.view import View
PARAMS = {"style": ("eager", "graph"), "size": ("1", "2", "3")}
COMPARISONS = {"style": "eager"}

def build(tf, params):
    wait = 0.004 if params["style"] == "eager" else 0.002
    return lambda: time.sleep(wait)
"""
SCHEMA = json.loads((ROOT / "docs" / "schema" / "comparison-1.json").read_text())
COUNT = 2


def change(path: Path, name: str, how: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads((path / name).read_text())
    how(content)
    (path / name).write_text(json.dumps(content))


def moved(path: Path) -> None:
    """As if another machine had measured it."""
    change(path, "manifest.json", lambda manifest: manifest["host"].update(id="other", cpu="Another CPU", boot="x"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    scene = Scene(tmp_path_factory.mktemp("shards"))
    paths = []
    for number in range(1, COUNT + 1):
        code, _, stderr = scene.run(
            WORKLOAD, "--rounds", "3", "--control", "--shard", f"{number}/{COUNT}", out=f"shard-{number}"
        )
        assert code == 0, stderr
        paths.append(scene.out)
    moved(paths[1])
    return paths


@pytest.fixture
def shards(measured: list[Path], tmp_path: Path) -> list[Path]:
    """Copies, which a test may change."""
    return [Path(shutil.copytree(path, tmp_path / path.name)) for path in measured]


@pytest.fixture(scope="module")
def whole(measured: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(merge_runs(measured, tmp_path_factory.mktemp("merged") / "whole", ["merge"]).path)


def test_all_cases_and_comparisons_are_there_once(measured: list[Path], whole: Run):
    parts = [load_run(path) for path in measured]
    assert len(whole.arms) == 6 * 3 == sum(len(part.arms) for part in parts)
    assert {arm.outcome for arm in whole.arms} == {"measured"}
    assert {arm.rounds for arm in whole.arms} == {3}
    pairs = [comparison.pair for comparison in whole.comparisons]
    assert sorted(map(str, pairs)) == sorted(str(one.pair) for part in parts for one in part.comparisons)
    # Both styles of each size are in one shard.
    assert sum(pair.kind == "case" for pair in pairs) == 3 * 2


def test_every_ratio_is_that_of_its_part_and_nothing_is_lost_or_doubled(measured: list[Path], whole: Run):
    of_parts = {str(one.pair): one for path in measured for one in load_run(path).comparisons}
    for comparison in whole.comparisons:
        assert comparison.ratio == of_parts[str(comparison.pair)].ratio
        assert comparison.rounds == of_parts[str(comparison.pair)].rounds
    assert whole.evaluation.broken == ()
    assert len(whole.replicates) == sum(len(load_run(path).replicates) for path in measured)
    assert len({(one.target, one.number) for one in whole.replicates}) == len(whole.replicates)


def test_the_machines_are_named_with_their_cases(measured: list[Path], whole: Run, monkeypatch, capsys):
    assert [each.host["id"] for each in whole.manifest.hosts][1] == "other"
    assert str(whole.manifest.host["cpu"]).startswith("2 machines: ")
    assert called(monkeypatch, "report", str(whole.path)) == 0
    shown = capsys.readouterr().out
    first = load_run(measured[1]).plan.cases[0].label
    assert f"host other (Another CPU, {whole.manifest.hosts[1].host['usable_cores']} cores): {first}" in " ".join(
        shown.split()
    )
    assert called(monkeypatch, "report", str(whole.path), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    Draft202012Validator(SCHEMA).validate(found)
    manifest = json.loads((whole.path / "manifest.json").read_text())
    assert [host["run"] for host in manifest["hosts"]] == [load_run(path).plan.run for path in measured]


def test_the_files_are_those_of_any_run(measured: list[Path], whole: Run):
    names = {path.name for path in measured[0].iterdir()} - {".lock", "logs", "seal"}
    assert names <= {path.name for path in whole.path.iterdir()}
    before, after = (
        {name: set(json.loads((path / f"{name}.json").read_text())) for name in ("plan", "manifest")}
        for path in (measured[0], whole.path)
    )
    assert after["plan"] == before["plan"]
    assert after["manifest"] == before["manifest"] | {"hosts"}
    assert (whole.path / "workloads" / "own.py").exists()
    assert not (whole.path.stat().st_mode & 0o077)


def test_a_merged_run_is_shown_by_the_command(measured: list[Path], tmp_path: Path, monkeypatch, capsys):
    out = tmp_path / "by-command"
    assert called(monkeypatch, "merge", *map(str, measured), "--output", str(out), "--format", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["arms"]) == 18
    assert called(monkeypatch, "merge", *map(str, measured), "--output", str(out)) == 2
    assert "is not empty" in capsys.readouterr().err


def test_more_rounds_are_measured_in_the_parts(whole: Run):
    with (
        pytest.raises(UsageError, match="measured on another machine"),
        plan_rounds(ResumeOptions(run=whole.path), View()),
    ):
        pass


def test_the_parts_of_one_machine_are_those_of_that_machine(shards: list[Path], tmp_path: Path):
    host = json.loads((shards[0] / "manifest.json").read_text())["host"]
    change(shards[1], "manifest.json", lambda manifest: manifest.update(host={**host, "boot": "later"}))
    manifest = load_run(merge_runs(shards, tmp_path / "whole", ["merge"]).path).manifest
    assert manifest.host["id"] == host["id"]
    assert "boot" not in manifest.host


def extended(path: Path) -> None:
    folder = RunFolder(path)
    more = Extended(
        created=folder.read_plan().created, command=(), seed=1, first_round=4, looks=(6,), budget_s=None,
        exploratory=False,
    )  # fmt: skip
    folder.record(more)


def other_lock(path: Path) -> None:
    def swap(manifest: dict[str, Any]) -> None:
        for facts in manifest["environments"].values():
            facts["lock"] = "other"

    change(path, "manifest.json", swap)


WRONG: dict[str, tuple[Callable[[Path], None], str]] = {
    "margin": (lambda path: change(path, "plan.json", lambda plan: plan.update(margin=0.1)), "margin: 0.05 and 0.1"),
    "judged time": (
        lambda path: change(path, "plan.json", lambda plan: plan.update(judge="cpu")),
        "judged time .--judge.: wall and cpu",
    ),
    "rounds": (
        lambda path: change(path, "plan.json", lambda plan: plan.update(looks=[4])),
        "looks .--rounds.: 3 and 4",
    ),
    "sources": (
        lambda path: change(path, "manifest.json", lambda manifest: manifest["sources"].update(own="other")),
        "other sources of own",
    ),
    "packages": (other_lock, "have other packages in"),
    "contract": (
        lambda path: change(path, "manifest.json", lambda manifest: manifest.update(contract="other")),
        "contract with workers",
    ),
    "more rounds": (extended, "has other looks than were planned"),
    "a noisy pilot": (
        lambda path: RunFolder(path).record(Prolonged(looks=(3, 25))),
        "has other looks than were planned",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_runs_that_do_not_belong_together_are_refused_in_a_line(shards: list[Path], tmp_path: Path, what: str):
    how, said = WRONG[what]
    how(shards[1])
    with pytest.raises(UsageError, match=said):
        merge_runs(shards, tmp_path / "whole", ["merge"])
    assert not (tmp_path / "whole").exists()


def test_a_case_that_two_runs_have_is_refused(shards: list[Path], tmp_path: Path):
    with pytest.raises(UsageError, match=r"is in .*shard-1 and in .*again; each case is measured on one machine"):
        merge_runs([shards[0], Path(shutil.copytree(shards[0], tmp_path / "again"))], tmp_path / "whole", ["merge"])


def test_one_run_is_no_merge_and_a_merged_run_no_part(shards: list[Path], whole: Run, tmp_path: Path):
    with pytest.raises(UsageError, match="takes two runs or more"):
        merge_runs(shards[:1], tmp_path / "whole", ["merge"])
    with pytest.raises(UsageError, match="is a run of merged runs"):
        merge_runs([whole.path, *shards], tmp_path / "whole", ["merge"])


def test_a_run_that_is_still_measured_is_waited_for(shards: list[Path], tmp_path: Path):
    with RunFolder(shards[0]).hold(), pytest.raises(UsageError, match="still being measured"):
        merge_runs(shards, tmp_path / "whole", ["merge"])


def test_a_part_that_was_cut_short_says_so(shards: list[Path], tmp_path: Path):
    journal = shards[1] / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"kind":"finished"' not in line))
    found = load_run(merge_runs(shards, tmp_path / "whole", ["merge"]).path)
    assert "shard-2 was cut short" in found.warnings
    assert len(found.arms) == 18


def test_a_damaged_part_leaves_nothing_behind(shards: list[Path], tmp_path: Path, monkeypatch, capsys):
    stream = sorted((shards[1] / "streams").iterdir())[0]
    stream.write_bytes(b"no arrow")
    assert called(monkeypatch, "merge", *map(str, shards), "--output", str(tmp_path / "whole")) == 7
    assert "Traceback" not in capsys.readouterr().err
    assert not (tmp_path / "whole").exists()


def test_numbers_that_no_run_has_are_refused_and_do_not_wrap(shards: list[Path], tmp_path: Path):
    stream = sorted((shards[0] / "streams").iterdir())[0]
    table = pa.ipc.open_stream(stream.read_bytes()).read_all()
    place = table.schema.get_field_index("replicate")
    largest = pa.array([2**31 - 1] * table.num_rows, table.schema.field(place).type)
    with pa.ipc.new_stream(str(stream), table.schema) as writer:
        writer.write_table(table.set_column(place, table.schema.field(place), largest))
    with pytest.raises(ContractBroken, match="numbers its replicates beyond"):
        merge_runs(shards, tmp_path / "whole", ["merge"])
    assert not (tmp_path / "whole").exists()
