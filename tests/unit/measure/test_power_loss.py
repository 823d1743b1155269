"""A machine that loses its power at any moment of a run leaves a run that is read and continued."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import files
from orchestrator.errors import ContractBroken, TfCompareError, UsageError
from orchestrator.measure.resume import add_rounds
from orchestrator.measure.round_range import first_rounds
from orchestrator.measure.run import measure_rounds
from orchestrator.measure.session import Session, make_manifest
from orchestrator.model import Ended, Synced
from orchestrator.plan.request import RunOptions, check_request
from orchestrator.results.evaluation import gather, judge_run
from orchestrator.results.more_rounds import ResumeOptions
from orchestrator.results.past import Progress
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.sealed import seal_run
from orchestrator.terminal.view import View
from tests.support.actors import Dressing, Stage, offer
from tests.support.builders import environment_facts
from tests.support.power import Disk, Moment, restore
from tests.support.theatre import Theatre

ASKED = RunOptions(versions=("1.14", "2.0"), suite="smoke", selected=("power[style=eager]",), rounds=3, seed=1)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk of a whole run of three rounds; a moment is also kept after every line of its journal."""
    disk = Disk(tmp_path / "run", monkeypatch)
    append = files.append

    def keep(*arguments: object) -> None:
        append(*arguments)
        disk.keep()

    monkeypatch.setattr(files, "append", keep)
    _measure(RunFolder.create(tmp_path / "run"))
    monkeypatch.undo()
    yield disk
    disk.close()


def _measure(folder: RunFolder) -> TfCompareError | None:
    planned = check_request(ASKED)
    plan, bare = planned.freeze("venv"), make_manifest(planned, {})
    seal_run(folder, plan, bare)
    folder.write_begun(plan, bare)
    environments = {version: Dressing(Stage(), environment_facts(version, identity="")) for version in plan.targets}
    facts = {version: environment.facts for version, environment in environments.items()}
    folder.write_plan(plan)
    folder.write_manifest(replace(bare, environments=facts))
    return measure_rounds(Session(plan, environments, folder), first_rounds(plan), Progress()).error


def _restore(disk: Disk, moment: Moment, folder: Path, *, journal: bool) -> RunFolder | None:
    """Return the run as the disk has it; None if there is no run, or nothing of it was planned yet."""
    restore(moment, disk.root.stat().st_ino, folder, journal=journal)
    if not (folder / "plan.json").exists() or not (folder / "manifest.json").exists():
        with pytest.raises((UsageError, ContractBroken), match=r"holds no run|`tfcompare run --resume"):
            RunFolder.open(folder).read_manifest()
        return None
    return RunFolder.open(folder)


def _rounds_said_to_be_synced(run: RunFolder) -> int:
    """Return the last round of which the journal says that it is on the disk."""
    last = synced = 0
    for entry in run.entries():
        if isinstance(entry, Ended):
            last = entry.round
        elif isinstance(entry, Synced):
            synced = last
    return synced


@pytest.mark.parametrize("journal", [False, True], ids=["journal as synced", "journal as written"])
def test_a_run_is_readable_whenever_the_power_goes(disk: Disk, tmp_path: Path, journal: bool):
    rounds = []
    for number, moment in enumerate(disk.moments):
        run = _restore(disk, moment, tmp_path / f"{number}", journal=journal)
        if run is None:
            assert not rounds
            continue
        found = gather(run)
        assert found.broken == (), number
        arms = dict.fromkeys(found.plan.targets, 0)
        for replicate in found.replicates:
            arms[replicate.target] = max(arms[replicate.target], replicate.round)
        assert min(arms.values()) >= _rounds_said_to_be_synced(run)
        rounds.append(min(arms.values()))
    assert rounds == sorted(rounds)
    assert (rounds[0], rounds[-1]) == (0, 3)


def test_what_was_not_on_the_disk_yet_is_named(disk: Disk, tmp_path: Path):
    """The journal is ahead of the streams between a replicate's end and the end of its round."""
    notes = set()
    for number, moment in enumerate(disk.moments):
        if run := _restore(disk, moment, tmp_path / f"{number}", journal=True):
            notes.update(text for text in gather(run).problems if "were not on the disk yet" in text)
    assert "2.0.0: the results of 1 replicate were not on the disk yet when the machine stopped; they do not count" in (
        notes
    )


def test_a_run_is_continued_whenever_the_power_goes(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TFCOMPARE_TRUST", raising=False)
    offer(monkeypatch, venv=Theatre(Stage()))
    continued = 0
    # Each twelfth moment: to continue takes longer than to read.
    for number, moment in list(enumerate(disk.moments))[::12]:
        folder = tmp_path / f"{number}"
        restore(moment, disk.root.stat().st_ino, folder, journal=True)
        if not (folder / "begun.json").exists() or RunFolder(folder).read_begun().plan is None:
            continue
        run = RunFolder.open(folder, unprepared=True)
        before = {arm.target: arm.rounds for arm in judge_run(run).arms} if run.is_prepared else {}
        done = add_rounds(ResumeOptions(run=folder, rounds=4), View())
        assert done.evaluation.broken == ()
        after = {arm.target: arm.rounds for arm in done.evaluation.arms}
        assert all(after[version] == before.get(version, 0) + 4 for version in after), number
        numbers = [entry.replicate for entry in run.entries() if isinstance(entry, Ended)]
        assert len(numbers) == len(set(numbers))
        continued += 1
    assert continued > 3
