"""The rows of each replicate become one summary, however they lie in their stream."""

import math
from pathlib import Path

import pytest

from orchestrator import contract
from orchestrator.results import replicates
from orchestrator.results.replicates import LoadedReplicates
from orchestrator.results.streams import Stream
from tests.support.builders import MS, NEW, RUN, case, rows, write_stream


def load(*paths: Path) -> LoadedReplicates:
    return replicates.load_replicates([Stream.at(path) for path in paths], RUN)


def test_a_stream_becomes_one_summary_a_replicate(tmp_path: Path):
    first, second = rows(replicate=1), rows(case(style="eager"), replicate=2, round=3, bursts=(4 * MS,) * 3)
    loaded = load(write_stream(tmp_path / "a.arrow", [first, second]))
    assert loaded.problems == loaded.broken == ()
    assert [found.case for found in loaded.replicates] == ["power", "power[style=eager]"]
    found = loaded.replicates[1]
    assert (found.target, found.round, found.build_ns, found.first_ns) == (NEW, 3, 500 * MS, 50 * MS)
    assert found.time_ns == 4 * MS
    assert {name: getattr(found, name) for name in contract.REPLICATE_FIELDS} == {
        name: second[0][name] for name in contract.REPLICATE_FIELDS
    }


def test_rows_of_what_is_no_version_break_their_stream(tmp_path: Path):
    loaded = load(write_stream(tmp_path / "a.arrow", [rows(version="+control")]))
    assert loaded.replicates == ()
    assert loaded.broken == (f"{tmp_path / 'a.arrow'}: '' is not a valid name of a target; run its version again",)


def test_only_a_replicate_of_a_thousand_calls_has_percentiles(tmp_path: Path):
    calls = [MS * number for number in range(1, 1001)]
    paths = [
        write_stream(tmp_path / "few.arrow", [rows(bursts=calls[:-1])]),
        write_stream(tmp_path / "many.arrow", [rows(replicate=2, bursts=calls[::-1], steps=2)]),
    ]
    few, many = load(*paths).replicates
    assert few.percentiles == ()
    # Per step.
    assert [math.exp(log) / MS for log in many.percentiles] == pytest.approx([250.25, 475.025, 495.005])


@pytest.mark.parametrize(
    ("bursts", "typical"),
    [
        # A burst is its mean,
        ([(3,)], 3),
        ([(2, 4, 9)], 5),
        # and a replicate the geometric mean of the middle half of its bursts, one of which may count in part.
        ([(4,), (9,)], 6),
        ([(1,), (8,), (2,), (900,)], 4),
        ([(100,), (5,), (7,)], (100 * 5 * 7**4) ** (1 / 6)),
        ([(7, 7), (7, 7)], 7),
    ],
)
def test_the_time_of_a_replicate_is_that_of_its_middle_bursts(
    tmp_path: Path, bursts: list[tuple[int, ...]], typical: float
):
    batch = rows(bursts=tuple(call for burst in bursts for call in burst))
    numbers = [number for number, burst in enumerate(bursts, 1) for _ in burst]
    called = [row for row in batch if row["phase"] == "burst"]
    for row, number in zip(called, numbers, strict=True):
        row["burst"] = number
    (found,) = load(write_stream(tmp_path / "a.arrow", [batch])).replicates
    assert found.time_ns == pytest.approx(typical, abs=0.001)
    assert found.bursts == pytest.approx([math.log(sum(burst) / len(burst)) for burst in bursts])


def test_times_are_told_a_step_where_a_call_holds_several(tmp_path: Path):
    """Build and what the first call costs once are of the whole; first and later calls are divided."""
    (found,) = load(write_stream(tmp_path / "a.arrow", [rows(bursts=(100, 400), steps=50)])).replicates
    assert (found.build_ns, found.first_ns, found.time_ns) == (500 * MS, MS, 4)
    assert found.first_call_ns == 50 * MS


def test_calls_of_several_replicates_are_never_pooled(tmp_path: Path):
    """Not even when their rows lie in one batch, or a replicate's number comes back in another stream."""
    one = write_stream(tmp_path / "a.arrow", [rows(replicate=2, bursts=(10,)) + rows(replicate=1, bursts=(30,))])
    other = write_stream(tmp_path / "b.arrow", [rows(replicate=1, bursts=(50,))])
    loaded = load(one, other)
    assert [(found.number, found.time_ns) for found in loaded.replicates] == [(2, 10), (1, 30), (1, 50)]


def test_a_replicate_without_a_burst_is_reported_and_costs_no_other(tmp_path: Path):
    stream = write_stream(tmp_path / "a.arrow", [rows(replicate=5, bursts=()), rows(replicate=6)])
    loaded = load(stream)
    assert [replicate.number for replicate in loaded.replicates] == [6]
    assert loaded.problems == ("a.arrow: replicates without a burst do not count: 5",)
    assert loaded.broken == ()


def test_a_broken_stream_does_not_lose_the_others(tmp_path: Path):
    good = write_stream(tmp_path / "a.arrow", [rows(replicate=1)])
    text = tmp_path / "b.arrow"
    text.write_text("hello")
    foreign = write_stream(tmp_path / "c.arrow", [rows(run="other")])
    last = write_stream(tmp_path / "d.arrow", [rows(replicate=9)])
    loaded = load(good, text, foreign, last)
    assert [found.number for found in loaded.replicates] == [1, 9]
    assert [str(path) in words for path, words in zip((text, foreign), loaded.broken, strict=True)] == [True, True]


def test_what_is_not_said_row_by_row_is_said_all_the_same(tmp_path: Path):
    """The fields of a replicate that are null in every row, in some, and labels that come late in the stream."""
    batches = [rows(case(style=name), replicate=number) for number, name in enumerate("abc", 1)]
    for batch in batches:
        batch[0] |= {"psi_us": None, "device": "abcdef"}
    batches[1][0] |= {"traces": None, "device": None}
    batches[2][0] |= {"traces": 7, "device": "ffffff"}
    loaded = load(write_stream(tmp_path / "a.arrow", batches))
    assert [(one.case, one.psi_us, one.traces, one.device) for one in loaded.replicates] == [
        ("power[style=a]", None, 1, "abcdef"),
        ("power[style=b]", None, None, None),
        ("power[style=c]", None, 7, "ffffff"),
    ]


def test_rows_in_disorder_are_put_in_the_order_of_calls(tmp_path: Path):
    """The later half is that of the calls, wherever their rows stand."""
    batch = rows(bursts=(8 * MS, 8 * MS, 2 * MS, 2 * MS))
    (found,) = load(write_stream(tmp_path / "a.arrow", [batch[::-1]])).replicates
    assert found.rise == pytest.approx(math.log(2 / 8))
    assert (found.first_ns, found.second_ns, found.build_ns) == (50 * MS, 20 * MS, 500 * MS)


@pytest.mark.parametrize(("count", "words"), [(0, "no build row"), (2, "several build rows")])
def test_a_replicate_has_one_build_row(tmp_path: Path, count: int, words: str):
    build, *others = rows(replicate=5)
    stream = write_stream(tmp_path / "a.arrow", [[build] * count + others])
    assert load(stream).broken == (f"{stream}: replicate 5 has {words}; measure its version again, in a new run",)
