"""The journal says how each arm ended, and what later rounds change about it."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.contract import PILOT_ROUND
from orchestrator.model import (
    BESIDE,
    ArmKey,
    Calibrated,
    Discarded,
    Disturbed,
    Ended,
    Entry,
    Extended,
    Load,
    Lost,
    Postponed,
    Shares,
    Strays,
    Watched,
)
from orchestrator.results.endings import Endings, read_endings, summarise_endings
from tests.support import builders
from tests.support.builders import NEW, OLD, finished, plan, run_folder, target

END = finished(how="", seconds=1.0)


@pytest.fixture
def read(tmp_path: Path):
    def from_entries(*entries: Entry) -> Endings:
        run = run_folder(tmp_path / "run", plan())
        for entry in entries:
            run.record(entry)
        return read_endings(run)

    return from_entries


def ended(outcome: str, **changes) -> Ended:
    return builders.ended("a", NEW, outcome, **changes)


def extended(first_round: int, *, exploratory: bool) -> Extended:
    return Extended(
        created=datetime(2026, 1, 2, tzinfo=UTC), command=(), seed=1, first_round=first_round, looks=(28,),
        budget_s=None, exploratory=exploratory,
    )  # fmt: skip


def test_an_arm_is_refused_or_dead_unless_it_died_in_the_hands_of_another(read):
    died = ended("died", how="signal", reason="killed")
    endings = read(ended("refused", reason="no such op"), died, ended("died", how=BESIDE))
    assert endings.refused == {ArmKey("a", target(NEW)): "no such op"}
    assert endings.died == {ArmKey("a", target(NEW)): died}


def test_a_version_that_is_measured_again_is_no_longer_lost(read):
    losses = [
        Lost(target=target(version), stage="worker", reason="it died 3 times", failure="worker", external=False)
        for version in (OLD, NEW)
    ]
    assert read(*losses, ended("measured")).lost == {OLD: losses[0]}


@pytest.mark.parametrize("external", [True, False])
def test_only_a_death_from_outside_ends_when_its_arm_is_measured_again(read, external: bool):
    died = ended("died", how="signal", reason="killed", failure="signal", external=external)
    assert read(died, extended(2, exploratory=False), ended("measured")).died == (
        {} if external else {ArmKey("a", target(NEW)): died}
    )


def test_more_rounds_take_back_the_end_and_the_exploratory_rounds_stay(read):
    entries = (END, extended(21, exploratory=True), END, extended(25, exploratory=True))
    endings = read(*entries)
    assert (endings.finished, endings.exploratory) == (None, (20, 24))


def test_more_rounds_within_the_error_are_not_exploratory(read):
    assert read(END, extended(7, exploratory=False), END) == Endings(
        finished=END, seconds=2 * END.seconds, extended=[(0, (28,))]
    )


def test_only_the_replicates_of_a_repeated_round_are_left_out(read):
    rounds = [
        Disturbed(case="a", round=number, replicates=(number,), cause="others", redone=number == 2) for number in (1, 2)
    ]
    endings = read(*rounds)
    assert (endings.redone, endings.disturbed) == ({2}, rounds)


def test_a_stream_that_was_no_file_is_broken_and_not_read(read):
    entries = [
        Discarded(target=target(version), part=1, what=f"found in {version}", stream=version == NEW)
        for version in (OLD, NEW)
    ]
    endings = read(*entries)
    assert (endings.broken, endings.unread) == ((f"found in {NEW}",), {(NEW, 1)})


def test_the_journal_keeps_what_tensorflow_states_of_its_threads(read):
    entries = [ended("measured", threads=threads) for threads in ((1, 2), (0, 0), None, ())]
    assert read(*entries).threads == {ArmKey("a", target(NEW)): {(1, 2), (0, 0)}}


def test_what_else_happened_is_kept_as_it_was_told(read):
    told = (
        Load(cases=("a",), round=1, foreign=0.5, steal=0.1, cpus=2, idle=0.4, waiting=None),
        Watched(cases=("a",), round=1, gpus=()),
        Shares(case="a", target=target(NEW), shares={"fit": 0.5}),
    )
    endings = read(*told)
    assert (endings.loads, endings.watched) == ([told[0]], [told[1]])
    assert endings.shares == {ArmKey("a", target(NEW)): told[2]}


def test_processes_that_were_left_are_counted_over_all_workers_of_a_version(read):
    left = (Strays(target=target(NEW), part=part, count=count) for part, count in ((1, 2), (2, 3)))
    assert read(*left).strays == {target(NEW): 5}


def test_a_case_is_postponed_until_it_is_measured():
    assert summarise_endings([Postponed(cases=("a", "b"))]).postponed == {"a", "b"}
    assert summarise_endings([Postponed(cases=("a", "b")), ended("measured")]).postponed == {"b"}


def test_a_pilot_counts_where_its_arm_had_one():
    pilot = replace(ended("measured"), round=PILOT_ROUND, replicate=7)
    counts = Calibrated(case="a", target=target(NEW), warmup=0, bursts=8, calls=1, once=0, counts=True)
    assert summarise_endings([pilot, counts]).counted == {7}
    assert summarise_endings([pilot, replace(counts, target=target(OLD))]).counted == set()
    assert summarise_endings([pilot, replace(counts, counts=False)]).counted == set()
