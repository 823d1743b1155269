"""A row counts only if the journal says that this worker closed its replicate, once, with as many rows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.model import Ended, Entry, Machine, Synced
from orchestrator.results.evaluation import gather
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.streams import Stream
from tests.support import builders
from tests.support.builders import NEW, OLD, RUN, Row, case, plan, rows, run_folder, target, write_rows
from tests.support.commands import called

A, B = case("a"), case("b")
ROWS = len(rows())


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return one_replicate_each(tmp_path / "run")


def one_replicate_each(path: Path, name: str = RUN) -> RunFolder:
    """Two versions with one replicate each, as a host leaves them."""
    run = run_folder(path, plan([A, B], run=name))
    run.record(Machine(when="begin", readings={}))
    for number, version in enumerate((OLD, NEW), 1):
        run.record(ended(version, number))
        settled(run, version, 1, rows(A, version, replicate=number, run=name))
    return run


def ended(version: str, number: int, **changes) -> Ended:
    told = {"case": "a", "round": 1, "outcome": "measured", "part": 1, "rows": ROWS, **changes}
    return Ended(target=target(version), replicate=number, **told)


def settled(run: RunFolder, version: str, part: int, *batches: list[Row]) -> None:
    write_rows(run.settled / f"{version}-{part}.arrow", batches)


def finished(run: RunFolder, **changes) -> RunFolder:
    run.record(builders.finished(how="", seconds=1.0, **changes))
    return run


def test_what_was_announced_counts(run: RunFolder):
    found = gather(finished(run))
    assert [(one.target, one.number) for one in found.replicates] == [(OLD, 1), (NEW, 2)]
    assert (found.problems, found.broken) == ((), ())


def another_version(run: RunFolder) -> None:
    settled(run, NEW, 9, rows(A, OLD, replicate=3, bursts=(30, 30)))


def a_worker_that_never_was(run: RunFolder) -> None:
    settled(run, OLD, 9, rows(A, OLD, replicate=3))


def the_same_again(run: RunFolder) -> None:
    settled(run, OLD, 2, rows(A, OLD, replicate=1))


def a_case_that_is_not_planned(run: RunFolder) -> None:
    run.record(ended(OLD, 3, case="c", part=2))
    settled(run, OLD, 2, rows(case("c"), OLD, replicate=3))


def another_case(run: RunFolder) -> None:
    run.record(ended(OLD, 3, case="a", part=2))
    settled(run, OLD, 2, rows(B, OLD, replicate=3))


def another_round(run: RunFolder) -> None:
    run.record(ended(OLD, 3, round=2, part=2))
    settled(run, OLD, 2, rows(A, OLD, replicate=3))


def more_rows(run: RunFolder) -> None:
    run.record(ended(OLD, 3, part=2))
    settled(run, OLD, 2, rows(A, OLD, replicate=3, bursts=(10,) * 30))


def two_cases_in_one(run: RunFolder) -> None:
    run.record(ended(OLD, 3, part=2))
    batch = rows(A, OLD, replicate=3)
    batch[-1]["case"] = "b"
    settled(run, OLD, 2, batch)


FORGED = {
    another_version: "target: its row names '1.0.0', and '2.0.0' wrote it",
    a_worker_that_never_was: "is not in the journal",
    the_same_again: "replicate 1 was already read from another file. Nothing",
    a_case_that_is_not_planned: "which the plan does not have",
    another_case: "is of b in round 1; the journal says a, round 1",
    another_round: "is of a in round 1; the journal says a, round 2",
    more_rows: "its worker announced",
    two_cases_in_one: "has rows of several cases",
}


@pytest.mark.parametrize(("forge", "words"), FORGED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_what_was_not_announced_like_that_costs_its_stream_and_is_reported(
    run: RunFolder, forge: Callable[[RunFolder], None], words: str
):
    forge(run)
    found = gather(finished(run))
    assert [(one.target, one.number) for one in found.replicates] == [(OLD, 1), (NEW, 2)]
    broken, *_ = found.broken
    assert words in broken


def test_a_worker_cannot_announce_for_another(run: RunFolder):
    """The rows of a replicate that part 1 closed, in the stream of part 2."""
    run.record(ended(OLD, 3, part=1))
    settled(run, OLD, 2, rows(A, OLD, replicate=3))
    broken, _ = gather(finished(run)).broken
    assert "was closed by another worker (number 1)" in broken


@pytest.mark.parametrize("cut", ["interrupted", "killed"])
def test_what_a_run_that_was_cut_short_could_not_journal_is_left_out_with_a_warning(run: RunFolder, cut: str):
    settled(run, OLD, 2, rows(A, OLD, replicate=3))
    if cut == "interrupted":
        finished(run, cut=True)
    found = gather(run)
    assert [(one.target, one.number) for one in found.replicates] == [(OLD, 1), (NEW, 2)]
    assert found.broken == ()
    assert found.problems == (
        "streams/1.0.0-2.arrow: the journal does not have 1 replicate of 1.0.0, because the run was cut short or the "
        "journal is damaged; they do not count",
    )


def test_more_rounds_after_a_cut_do_not_turn_its_leftovers_into_a_forgery(run: RunFolder):
    settled(run, OLD, 2, rows(A, OLD, replicate=3))
    run.record(Machine(when="begin", readings={}))
    found = gather(finished(run))
    assert (len(found.replicates), found.broken) == (2, ())


def test_rows_of_a_replicate_that_died_while_it_closed_do_not_count(run: RunFolder):
    run.record(ended(OLD, 3, outcome="died", part=None, rows=None, failure="worker"))
    settled(run, OLD, 2, rows(A, OLD, replicate=3))
    found = gather(finished(run))
    assert (len(found.replicates), found.broken, found.problems) == (2, (), ())


def test_what_was_measured_and_is_gone_is_reported(run: RunFolder):
    (run.settled / "2.0.0-1.arrow").unlink()
    found = gather(finished(run))
    assert [one.target for one in found.replicates] == [OLD]
    assert found.broken == (
        "2.0.0: the results of 1 replicate are lost: measured, and in no file. Measure 2.0.0 again, in a new run",
    )


def test_several_that_are_lost_are_one_line_for_each_version(run: RunFolder):
    for number in (3, 4, 5):
        run.record(ended(OLD if number == 3 else NEW, number, part=2))
    assert gather(finished(run)).broken == (
        "1.0.0: the results of 1 replicate are lost: measured, and in no file. Measure 1.0.0 again, in a new run",
        "2.0.0: the results of 2 replicates are lost: measured, and in no file. Measure 2.0.0 again, in a new run",
    )


def test_several_that_are_unknown_are_one_line(run: RunFolder):
    settled(run, OLD, 9, *(rows(A, OLD, replicate=number) for number in (3, 4, 5)))
    (broken,) = gather(finished(run)).broken
    assert broken.endswith(
        "1.0.0-9.arrow: replicate 3 is not in the journal, and 2 more are not as the journal says. Nothing in this "
        "file is used; measure 1.0.0 again, in a new run"
    )


def test_several_that_are_doubled_are_one_line(run: RunFolder):
    run.record(ended(OLD, 1))
    run.record(ended(NEW, 2))
    found = gather(finished(run))
    assert [(one.target, one.number) for one in found.replicates] == [(OLD, 1), (NEW, 2)]
    assert found.broken == tuple(
        f"{version}: the journal says of 1 replicate twice that it was measured. Measure {version} again, in a new run"
        for version in (OLD, NEW)
    )


def test_rows_that_a_damaged_line_announced_are_left_out_with_a_warning(run: RunFolder):
    """Not as a forgery, which would cost the other replicates of the stream."""
    finished(run)
    run.journal.write_bytes(run.journal.read_bytes().replace(b'"replicate":2,', b'"replicate":2;'))
    found = gather(run)
    assert [(one.target, one.number) for one in found.replicates] == [(OLD, 1)]
    assert found.broken == ()
    assert found.problems == (
        f"the journal has 1 line that cannot be used: line 3 of {run.journal} is not what this tfcompare writes (it is "
        "no JSON): it is damaged, or another tfcompare wrote it",
        "streams/2.0.0-1.arrow: the journal does not have 1 replicate of 2.0.0, because the run was cut short or the "
        "journal is damaged; they do not count",
    )


@pytest.mark.parametrize("command", ["report", "export", "html", "compare"])
def test_every_command_that_reads_a_run_ends_with_7_after_its_table(
    run: RunFolder, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (run.settled / "2.0.0-1.arrow").unlink()
    path = str(finished(run).path)
    words = {
        "report": ("report", path),
        "html": ("report", path, "--format", "html", "--output", "-"),
        "export": ("export", path, "--format", "csv"),
        "compare": ("compare", path, str(finished(one_replicate_each(tmp_path / "other", "other")).path)),
    }[command]
    assert called(monkeypatch, *words) == 7
    out, err = capsys.readouterr()
    assert "the results of 1 replicate are lost" in err
    assert "2.0.0" in out


LATER = builders.finished(cut=True)


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ((), (), False),
        ((Synced(),), (), False),
        ((Synced(),), (LATER,), True),
        ((Synced(),), (Synced(), LATER), True),
        ((Synced(),), (Machine(when="begin", readings={}), LATER), False),
    ],
    ids=[
        "it was lost in the first round",
        "the power was lost",
        "it ended",
        "it was synced",
        "and was continued",
    ],
)
def test_what_was_measured_after_the_last_sync_may_be_lost_with_the_power(
    run: RunFolder, before: tuple[Entry, ...], after: tuple[Entry, ...], lost: bool
):
    for entry in (*before, ended(NEW, 3, part=2), *after):
        run.record(entry)
    found = gather(run)
    assert bool(found.broken) == lost
    words = "2.0.0: the results of 1 replicate were not on the disk yet when the machine stopped; they do not count"
    assert (words in found.problems) != lost


def test_a_stream_that_cannot_be_read_is_reported_once(run: RunFolder):
    (run.settled / "2.0.0-1.arrow").write_text("hello")
    (broken,) = gather(finished(run)).broken
    assert "is not an Arrow stream" in broken


def test_rows_of_a_run_that_recorded_no_replicate_do_not_count(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan([A]))
    run.record(Machine(when="begin", readings={}))
    settled(run, OLD, 1, rows(A, OLD, replicate=1))
    found = gather(run)
    assert (found.replicates, found.broken, len(found.problems)) == ((), (), 1)


def test_a_stream_says_of_which_worker_it_is(run: RunFolder):
    assert run.worker_output.streams() == [
        Stream(target(OLD), 1, run.settled / "1.0.0-1.arrow", run.path),
        Stream(target(NEW), 1, run.settled / "2.0.0-1.arrow", run.path),
    ]


def test_each_version_that_lost_something_has_its_line_in_the_order_of_their_names(run: RunFolder):
    for version in (NEW, OLD):
        (run.settled / f"{version}-1.arrow").unlink()
    broken = gather(finished(run)).broken
    assert [line.partition(":")[0] for line in broken] == [OLD, NEW]
    assert all("the results of 1 replicate are lost" in line for line in broken)


@pytest.mark.parametrize(("count", "more"), [(1, ""), (2, ", and 1 more are not as the journal says")])
def test_how_many_replicates_of_a_stream_are_wrong_is_told(run: RunFolder, count: int, more: str):
    settled(run, OLD, 2, *(rows(A, OLD, replicate=number) for number in range(8, 8 + count)))
    [line] = gather(finished(run)).broken
    assert f"replicate 8 is not in the journal{more}. Nothing in this file is used" in line


def test_streams_are_checked_against_a_journal_that_does_not_say_when_measuring_began(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan([A, B]))
    run.record(ended(OLD, 1))
    settled(run, OLD, 1, rows(A, OLD, replicate=1), rows(A, OLD, replicate=2))
    [line] = gather(finished(run)).broken
    assert "replicate 2 is not in the journal" in line
