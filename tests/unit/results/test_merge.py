"""Runs of several machines as one: real runs under a stub of TensorFlow, one of which is made another machine's."""

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.errors import ContractBroken, UsageError
from orchestrator.measure.resume import plan_rounds
from orchestrator.model import Case, Ended, Prolonged
from orchestrator.reports.next_step import next_command
from orchestrator.results.endings import read_endings
from orchestrator.results.merge import merge_runs
from orchestrator.results.more_rounds import ResumeOptions
from orchestrator.results.run import Run, load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.conftest import ROOT
from tests.support.builders import case
from tests.support.commands import called
from tests.support.parts import measured as measured_part
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
    names = {path.name for path in measured[0].iterdir()} - {".lock", "logs", "seal"} | {"parts"}
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


def test_the_parts_of_one_machine_are_those_of_that_machine(shards: list[Path], tmp_path: Path):
    host = json.loads((shards[0] / "manifest.json").read_text())["host"]
    change(shards[1], "manifest.json", lambda manifest: manifest.update(host={**host, "boot": "later"}))
    manifest = load_run(merge_runs(shards, tmp_path / "whole", ["merge"]).path).manifest
    assert manifest.host["id"] == host["id"]
    assert "boot" not in manifest.host


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
        "different sources of own",
    ),
    "packages": (other_lock, "have different packages in"),
    "contract": (
        lambda path: change(path, "manifest.json", lambda manifest: manifest.update(contract="other")),
        "contract with workers",
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
    with pytest.raises(UsageError, match="is a run that was merged"):
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


def test_a_part_is_continued_where_it_is_and_not_in_the_whole(shards: list[Path], tmp_path: Path):
    host = json.loads((shards[0] / "manifest.json").read_text())["host"]
    change(shards[1], "manifest.json", lambda manifest: manifest.update(host=host))
    whole = merge_runs(shards, tmp_path / "whole", ["merge"])
    with (
        pytest.raises(UsageError, match="put together from other runs: continue these, and merge them again"),
        plan_rounds(ResumeOptions(run=whole.path), View()),
    ):
        pass
    assert next_command(whole.path, load_run(whole.path).evaluation) == ()


def test_a_damaged_part_is_kept_and_the_report_says_so(shards: list[Path], tmp_path: Path, monkeypatch, capsys):
    stream = sorted((shards[1] / "streams").iterdir())[0]
    stream.write_bytes(b"no arrow")
    assert called(monkeypatch, "merge", *map(str, shards), "--output", str(tmp_path / "whole")) == 7
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert stream.name in " ".join(told.out.split())
    assert (tmp_path / "whole" / "parts" / "2" / "streams" / stream.name).read_bytes() == b"no arrow"


def test_numbers_that_no_run_has_are_refused_and_do_not_wrap(shards: list[Path], tmp_path: Path):
    for shard in shards:
        *_, ended = (entry for entry in RunFolder(shard).entries() if isinstance(entry, Ended))
        RunFolder(shard).record(replace(ended, replicate=2**31 - 1))
    with pytest.raises(ContractBroken, match="numbers its replicates beyond"):
        merge_runs(shards, tmp_path / "whole", ["merge"])
    assert not (tmp_path / "whole").exists()


def test_packages_are_the_same_in_all_parts_that_have_a_version(measured: list[Path], tmp_path: Path):
    """The first part lost the version, so it says nothing of its packages; the two others differ."""
    paths = [Path(shutil.copytree(measured[0], tmp_path / name)) for name in ("none", "one", "other")]
    change(paths[0], "manifest.json", lambda manifest: manifest.update(environments={}))
    other_lock(paths[2])
    with pytest.raises(UsageError, match=r"one and .*other have different packages in"):
        merge_runs(paths, tmp_path / "whole", ["merge"])


LOOKS = (4, 6, 9)
STRAYS = (0.08, -0.04, 0.12, 0.0, -0.08, 0.04, 0.06, -0.06, 0.02)


def part_of_rounds(folder: Path, of: Case, rounds: int, how: str, ratio: float = 1.1) -> Path:
    """A part whose budget may have ended it after this many rounds."""
    return measured_part(folder, of, folder.name, ratio, rounds, strays=STRAYS, how=how, looks=LOOKS).path


@pytest.mark.parametrize("ratio", [1.0, 1.1, 2.0])
def test_each_case_keeps_the_looks_of_its_part(tmp_path: Path, ratio: float):
    """Merged with a part of 9 rounds, one that its budget ended after 5 has the same level and the same interval."""
    paths = [
        part_of_rounds(tmp_path / f"part-{size}", case(size=size), rounds, how, ratio)
        for size, rounds, how in (("1", 5, "the budget is over"), ("2", 9, ""))
    ]
    alone = [load_run(path).comparisons[0] for path in paths]
    whole = load_run(merge_runs(paths, tmp_path / "whole", ["merge"]).path)
    for comparison, of_part in zip(whole.comparisons, alone, strict=True):
        assert (comparison.rounds, comparison.verdict) == (of_part.rounds, of_part.verdict)
        # What two comparisons take instead of one widens both a little; another look took a third.
        assert math.log(comparison.ci_high) == pytest.approx(math.log(of_part.ci_high), rel=0.15)
        assert math.log(comparison.ci_high) >= math.log(of_part.ci_high) - 1e-9
    # The same rounds at a look of the whole run would get an interval that is a third wider.
    joined = read_endings(RunFolder(whole.path))
    of_parts = joined.find_parts(LOOKS)
    level = of_parts[case(size="1").label].schedule.level(5, 0.05)
    assert level == pytest.approx(read_endings(RunFolder(paths[0])).schedule(LOOKS).level(5, 0.05))
    assert level > 1.2 * joined.schedule(LOOKS).level(5, 0.05)


def test_a_part_that_was_continued_keeps_its_looks(tmp_path: Path):
    first = part_of_rounds(tmp_path / "part-1", case(size="1"), 9, "")
    RunFolder(first).record(Prolonged(looks=(4, 9, 16)))
    second = part_of_rounds(tmp_path / "part-2", case(size="2"), 9, "")
    merge_runs([first, second], tmp_path / "whole", ["merge"])
    parts = read_endings(RunFolder(tmp_path / "whole")).find_parts(LOOKS)
    assert parts[case(size="1").label].schedule.looks == (4, 9, 16)
    assert parts[case(size="2").label].schedule.looks == LOOKS


def test_noise_of_one_machine_widens_no_interval_of_another(tmp_path: Path):
    """Parts share neither what they say of the scatter of rounds, nor of how rounds depend on each other."""
    paths = [part_of_rounds(tmp_path / f"part-{size}", case(size=size), 9, "") for size in "12"]
    merged = load_run(merge_runs(paths, tmp_path / "whole", ["merge"]).path)
    alone = load_run(paths[0])
    assert merged.comparisons[0].spread == alone.comparisons[0].spread


def test_rows_are_those_that_were_measured_and_numbers_follow_each_other(measured: list[Path], whole: Run):
    for number, path in enumerate(measured, 1):
        for stream in (path / "streams").iterdir():
            assert (whole.path / "parts" / str(number) / "streams" / stream.name).read_bytes() == stream.read_bytes()
    calls = whole.to_arrow("calls")
    assert calls.num_rows == sum(load_run(path).to_arrow("calls").num_rows for path in measured)
    numbers = {(str(one.target), one.number) for one in whole.replicates}
    assert set(zip(calls["target"].to_pylist(), calls["replicate"].to_pylist(), strict=True)) == numbers


def test_parts_of_a_stranger_lead_nowhere(shards: list[Path], tmp_path: Path):
    whole = merge_runs(shards, tmp_path / "whole", ["merge"]).path
    shutil.move(whole / "parts" / "1", tmp_path / "elsewhere")
    (whole / "parts" / "1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is a link; a run folder must not contain any"):
        load_run(whole)
    (whole / "parts" / "1").unlink()
    (whole / "parts" / "1").mkdir()
    with pytest.raises(ContractBroken, match=r"parts/1/plan\.json is missing"):
        load_run(whole)
    # A part has no parts: what lies below it is not read.
    shutil.copytree(tmp_path / "elsewhere", whole / "parts" / "1", dirs_exist_ok=True)
    shutil.copytree(whole / "parts" / "2", whole / "parts" / "1" / "parts" / "1")
    assert len(load_run(whole).replicates) == sum(len(load_run(path).replicates) for path in shards)
