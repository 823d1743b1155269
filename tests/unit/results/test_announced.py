"""A row counts only if the journal says that this worker closed its replicate, once, with as many rows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.model import Ended, Finished, Machine
from orchestrator.results.comparison import gather
from orchestrator.results.rundir import RunDir
from orchestrator.results.streams import Stream
from tests.support.builders import NEW, OLD, Row, case, plan, rows, run_directory, target, write_rows

A, B = case("a"), case("b")
ROWS = len(rows())


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """Two versions with one replicate each, as a host leaves them."""
    run = run_directory(tmp_path / "run", plan([A, B]))
    run.record(Machine(when="begin", readings={}))
    for number, version in enumerate((OLD, NEW), 1):
        run.record(ended(version, number))
        settled(run, version, 1, rows(A, version, replicate=number))
    return run


def ended(version: str, number: int, **changes) -> Ended:
    told = {"case": "a", "round": 1, "outcome": "measured", "part": 1, "rows": ROWS, **changes}
    return Ended(version=target(version), replicate=number, **told)


def settled(run: RunDir, version: str, part: int, *batches: list[Row]) -> None:
    write_rows(run.settled / f"{version}-{part}.arrow", batches)


def finished(run: RunDir, **changes) -> RunDir:
    run.record(Finished(how="", seconds=1.0, **changes))
    return run


def test_what_was_announced_counts(run: RunDir):
    found = gather(finished(run))
    assert [(one.version, one.number) for one in found.replicates] == [(OLD, 1), (NEW, 2)]
    assert (found.problems, found.broken) == ((), ())


def another_version(run: RunDir) -> None:
    settled(run, NEW, 9, rows(A, OLD, replicate=3, steady=(30, 30)))


def a_worker_that_never_was(run: RunDir) -> None:
    settled(run, OLD, 9, rows(A, OLD, replicate=3))


def the_same_again(run: RunDir) -> None:
    settled(run, OLD, 2, rows(A, OLD, replicate=1))


def twice_and_never_said_by_whom(run: RunDir) -> None:
    run.record(ended(OLD, 1, part=None))
    settled(run, OLD, 2, rows(A, OLD, replicate=1))


def a_case_that_is_not_planned(run: RunDir) -> None:
    run.record(ended(OLD, 3, case="c", part=2))
    settled(run, OLD, 2, rows(case("c"), OLD, replicate=3))


def another_case(run: RunDir) -> None:
    run.record(ended(OLD, 3, case="a", part=2))
    settled(run, OLD, 2, rows(B, OLD, replicate=3))


def another_round(run: RunDir) -> None:
    run.record(ended(OLD, 3, round=2, part=2))
    settled(run, OLD, 2, rows(A, OLD, replicate=3))


def more_rows(run: RunDir) -> None:
    run.record(ended(OLD, 3, part=2))
    settled(run, OLD, 2, rows(A, OLD, replicate=3, steady=(10,) * 30))


def two_cases_in_one(run: RunDir) -> None:
    run.record(ended(OLD, 3, part=2))
    batch = rows(A, OLD, replicate=3)
    batch[-1]["case"] = "b"
    settled(run, OLD, 2, batch)


FORGED = {
    another_version: "version: its row names '1.0.0', and '2.0.0' wrote it",
    a_worker_that_never_was: "is not in the journal",
    the_same_again: "was already read from another file",
    twice_and_never_said_by_whom: "was already read from another file",
    a_case_that_is_not_planned: "which the plan does not have",
    another_case: "is of b in round 1; the journal says a, round 1",
    another_round: "is of a in round 1; the journal says a, round 2",
    more_rows: "its worker announced",
    two_cases_in_one: "has rows of several cases",
}


@pytest.mark.parametrize(("forge", "words"), FORGED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_what_was_not_announced_like_that_costs_its_stream_and_is_reported(
    run: RunDir, forge: Callable[[RunDir], None], words: str
):
    forge(run)
    found = gather(finished(run))
    assert [(one.version, one.number) for one in found.replicates] == [(OLD, 1), (NEW, 2)]
    (broken,) = found.broken
    assert words in broken


def test_a_worker_cannot_announce_for_another(run: RunDir):
    """The rows of a replicate that part 1 closed, in the stream of part 2."""
    run.record(ended(OLD, 3, part=1))
    settled(run, OLD, 2, rows(A, OLD, replicate=3))
    broken, _ = gather(finished(run)).broken
    assert "was closed by another worker (number 1)" in broken


@pytest.mark.parametrize("cut", ["interrupted", "killed"])
def test_what_a_run_that_was_cut_short_could_not_journal_is_left_out_with_a_warning(run: RunDir, cut: str):
    settled(run, OLD, 2, rows(A, OLD, replicate=3))
    if cut == "interrupted":
        finished(run, cut=True)
    found = gather(run)
    assert [(one.version, one.number) for one in found.replicates] == [(OLD, 1), (NEW, 2)]
    assert found.broken == ()
    assert found.problems == (
        "streams/1.0.0-2.arrow: 1 replicates were written but not yet recorded when the run was cut short; they do not "
        "count",
    )


def test_more_rounds_after_a_cut_do_not_turn_its_leftovers_into_a_forgery(run: RunDir):
    settled(run, OLD, 2, rows(A, OLD, replicate=3))
    run.record(Machine(when="begin", readings={}))
    found = gather(finished(run))
    assert (len(found.replicates), found.broken) == (2, ())


def test_rows_of_a_replicate_that_died_while_it_closed_do_not_count(run: RunDir):
    run.record(ended(OLD, 3, outcome="died", part=None, rows=None))
    settled(run, OLD, 2, rows(A, OLD, replicate=3))
    found = gather(finished(run))
    assert (len(found.replicates), found.broken, found.problems) == (2, (), ())


def test_a_run_of_an_earlier_release_is_read_as_before(tmp_path: Path):
    """Its streams lie in results/, its journal names neither workers nor rows."""
    run = run_directory(tmp_path / "run", plan([A]))
    for number, (version, name) in enumerate(((OLD, "1.0.0-1.arrow"), (NEW, "2.0.0-1.arrow.partial")), 1):
        run.record(ended(version, number, part=None, rows=None))
        write_rows(run.results / name, [rows(A, version, replicate=number)])
    found = gather(finished(run))
    assert [one.version for one in found.replicates] == [OLD, NEW]
    assert found.broken == ()


def test_what_was_measured_and_is_gone_is_reported(run: RunDir):
    (run.settled / "2.0.0-1.arrow").unlink()
    found = gather(finished(run))
    assert [one.version for one in found.replicates] == [OLD]
    assert found.broken == ("2.0.0: 1 replicates were measured and are missing from its results; run it again",)


def test_a_stream_that_cannot_be_read_is_reported_once(run: RunDir):
    (run.settled / "2.0.0-1.arrow").write_text("hello")
    (broken,) = gather(finished(run)).broken
    assert "is no Arrow stream" in broken


def test_rows_of_a_run_that_recorded_no_replicate_do_not_count(tmp_path: Path):
    run = run_directory(tmp_path / "run", plan([A]))
    run.record(Machine(when="begin", readings={}))
    settled(run, OLD, 1, rows(A, OLD, replicate=1))
    found = gather(run)
    assert (found.replicates, found.broken, len(found.problems)) == ((), (), 1)


def test_a_stream_says_of_which_worker_it_is(run: RunDir):
    assert run.streams() == [
        Stream(target(OLD), 1, run.settled / "1.0.0-1.arrow", run.path),
        Stream(target(NEW), 1, run.settled / "2.0.0-1.arrow", run.path),
    ]
