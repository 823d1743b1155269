"""Two runs: never their times, always their ratios, and whatever else was not the same about them."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from orchestrator.errors import UsageError
from orchestrator.history.between_runs import estimate_between_run_variance
from orchestrator.history.model import Segment, Value
from orchestrator.model import LargeFile
from orchestrator.plan.pairs import LOOKS
from orchestrator.reports.changes import summarize_changes
from orchestrator.results.compare_runs import ALPHA, Compared, Stopped, compare_runs
from orchestrator.stats.comparisons import DIFFERENCE_ERROR, MeasuredPair
from orchestrator.stats.looks import Stretch, make_schedule
from orchestrator.stats.paired import Estimate
from orchestrator.stats.verdict import Levels, judge_estimate
from tests.support.builders import NEW, OLD, case, case_pair, manifest, plan, target
from tests.support.two_runs import A, B, by_case, run


def test_a_ratio_that_grew_is_slower_and_one_that_stayed_is_the_same(tmp_path: Path):
    earlier = run(tmp_path / "earlier", {"a": 2.0, "b": 1.5})
    later = run(tmp_path / "later", {"a": 3.0, "b": 1.5})
    found = by_case(compare_runs(earlier, later))
    assert (found["a"].verdict, found["b"].verdict) == ("slower", "same")
    assert found["a"].ratio == pytest.approx(1.5, rel=0.05)
    assert found["a"].ci_low < 1.5 < found["a"].ci_high
    assert found["a"].earlier.ratio == pytest.approx(2.0, rel=0.05)
    assert found["a"].later.ratio == pytest.approx(3.0, rel=0.05)


def test_of_a_run_with_too_few_rounds_there_is_a_ratio_and_no_interval(tmp_path: Path):
    earlier, later = run(tmp_path / "earlier", {"a": 2.0}), run(tmp_path / "later", {"a": 3.0}, rounds=3)
    for before, after, which in ((earlier, later, "later"), (later, earlier, "earlier")):
        found = by_case(compare_runs(before, after))["a"]
        assert (found.ci_low, found.ci_high, found.verdict) == (None, None, "inconclusive")
        assert found.reason == f"3 rounds of the {which} run are too few to tell"
        assert found.ratio in (pytest.approx(1.5, rel=0.05), pytest.approx(1 / 1.5, rel=0.05))


def test_a_ratio_that_changed_a_little_for_certain_is_shown_so(tmp_path: Path):
    of = plan([A, B], margin=0.2)
    earlier, later = run(tmp_path / "earlier", {"a": 2.0}, of=of), run(tmp_path / "later", {"a": 2.2}, of=of)
    found = by_case(compare_runs(earlier, later))["a"]
    assert (found.verdict, found.size, found.shown_verdict) == ("same", "slight", "slightly slower")


def test_a_ratio_that_moved_during_a_run_may_be_anywhere_between_its_ends(tmp_path: Path):
    settled, moving = run(tmp_path / "settled", {"a": 2.0}), run(tmp_path / "moving", {"a": 2.0}, moves=0.2)
    later = run(tmp_path / "later", {"a": 2.2})
    widths = [by_case(compare_runs(earlier, later))["a"] for earlier in (settled, moving)]
    assert [change.verdict for change in widths] == ["slower", "inconclusive"]
    assert widths[1].ci_high / widths[1].ci_low > 1.1 * widths[0].ci_high / widths[0].ci_low


def test_backwards_it_is_faster_by_as_much(tmp_path: Path):
    earlier, later = run(tmp_path / "earlier", {"a": 2.0}), run(tmp_path / "later", {"a": 3.0})
    there, back = by_case(compare_runs(earlier, later))["a"], by_case(compare_runs(later, earlier))["a"]
    assert back.verdict == "faster"
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert (back.ci_low, back.ci_high) == pytest.approx((1 / there.ci_high, 1 / there.ci_low))


def test_a_machine_on_which_everything_takes_ten_times_as_long_has_changed_no_ratio(tmp_path: Path):
    slow = {"host": {"cpu": "A slower CPU", "id": "other", "usable_cores": 2, "load": 9.0}}
    earlier = run(tmp_path / "earlier", {"a": 2.0, "b": 1.5})
    later = run(tmp_path / "later", {"a": 2.0, "b": 1.5}, base_ms=100.0, **slow)
    found = compare_runs(earlier, later)
    assert [change.verdict for change in found.changes] == ["same", "same"]
    differing = {one.what: (one.earlier, one.later) for one in found.differences}
    assert differing == {"host cpu": ("A CPU", "A slower CPU"), "host id": ("-", "other")}, "load moves by itself"


ONE_START = {"host": {"id": "m", "boot": "b1", "usable_cores": 2, "load": 0.1}}


def test_own_times_say_which_side_moved_if_the_machine_has_not_restarted_in_between(tmp_path: Path):
    earlier = run(tmp_path / "earlier", {"a": 2.0, "b": 1.5}, **ONE_START)
    later = run(tmp_path / "later", {"a": 3.0, "b": 1.5}, **ONE_START)
    found = {(change.arm.case, str(change.arm.target)): change for change in compare_runs(earlier, later).own_times}
    assert {arm: change.verdict for arm, change in found.items()} == {
        ("a", OLD): "same", ("a", NEW): "slower", ("b", OLD): "same", ("b", NEW): "same",
    }  # fmt: skip
    moved = found["a", NEW]
    assert moved.ratio == pytest.approx(1.5, rel=0.05)
    assert moved.ci_low < 1.5 < moved.ci_high
    assert (moved.earlier.time_ms, moved.later.time_ms) == (
        pytest.approx(20, rel=0.05),
        pytest.approx(30, rel=0.05),
    )


@pytest.mark.parametrize("host", [{"id": "m", "boot": "b2"}, {"id": "other", "boot": "b1"}, {"id": "m"}])
def test_there_are_no_own_times_of_another_machine_or_after_a_restart(tmp_path: Path, host: dict[str, str]):
    earlier = run(tmp_path / "earlier", {"a": 2.0}, **ONE_START)
    later = run(tmp_path / "later", {"a": 2.0}, host={"usable_cores": 2, "load": 0.1, **host})
    assert compare_runs(earlier, later).own_times == ()


def test_an_own_time_of_too_few_rounds_is_left_out(tmp_path: Path):
    earlier, later = (
        run(tmp_path / name, {"a": 2.0}, rounds=rounds, **ONE_START) for name, rounds in (("e", 8), ("l", 3))
    )
    assert compare_runs(earlier, later).own_times == ()


def test_environments_flags_and_tool_that_differ_are_told_and_equal_ones_are_not(tmp_path: Path):
    environments = manifest().environments
    other = {
        **environments,
        target(NEW): replace(environments[target(NEW)], lock="another lock", variables={"TF_X": "1"}),
    }
    earlier = run(tmp_path / "earlier", {"a": 2.0})
    later = run(
        tmp_path / "later",
        {"a": 2.0},
        of=plan([A, B], threads=(1, 2), engine="docker"),
        environments=other,
        tool="9",
        variables={"XLA_FLAGS": "--x"},
    )
    found = {one.what: (one.earlier, one.later) for one in compare_runs(earlier, later).differences}
    assert found == {
        "tfcompare": ("0.1.0", "9"),
        "engine": ("venv", "docker"),
        "threads": ("-", "1,2"),
        "variable XLA_FLAGS": ("-", "--x"),
        f"{NEW} lock": ("y", "another lock"),
        f"{NEW} variable TF_X": ("-", "1"),
    }


def test_a_branch_that_has_moved_between_two_runs_is_told(tmp_path: Path):
    earlier, later = (
        run(tmp_path / name, {"a": 2.0}, of=plan([A, B], definitions=(f"{NEW} @main={digit * 40}",)))
        for name, digit in (("earlier", "1"), ("later", "2"))
    )
    found = {one.what: (one.earlier, one.later) for one in compare_runs(earlier, later).differences}
    assert found == {f"{NEW}@main your code": ("1" * 12, "2" * 12)}
    same = run(tmp_path / "same", {"a": 2.0}, of=plan([A, B], definitions=(f"{NEW} @main={40 * '1'}",)))
    assert compare_runs(earlier, same).differences == ()


def test_comparisons_inside_a_version_are_compared_too(tmp_path: Path):
    pairs = (*plan([A, B]).pairs, case_pair(A, B, NEW))
    earlier, later = (
        run(tmp_path / name, {"a": 2.0, "b": ratio}, of=plan([A, B], pairs=pairs))
        for name, ratio in (("earlier", 2.0), ("later", 6.0))
    )
    [inside] = [change for change in compare_runs(earlier, later).changes if change.pair.kind == "case"]
    assert inside.verdict == "slower"
    assert inside.ratio == pytest.approx(3.0, rel=0.05)


def test_a_workload_whose_source_has_changed_is_left_out_and_named(tmp_path: Path):
    earlier = run(tmp_path / "earlier", {"a": 2.0, "b": 1.5}, sources={"a": "1", "b": "1"})
    later = run(tmp_path / "later", {"a": 2.0, "b": 1.5}, sources={"a": "2", "b": "1"})
    found = compare_runs(earlier, later)
    assert list(by_case(found)) == ["b"]
    assert found.left_out == ("left out, because their source or data changed between the runs: a",)


@pytest.mark.parametrize(
    ("old", "new"),
    [({"table.json": "1"}, {"table.json": "2"}), ({}, {"table.json": "1"}), ({"table.json": "1"}, {})],
)
def test_a_file_next_to_workloads_that_has_changed_leaves_out_all_of_its_folder(
    tmp_path: Path, old: dict[str, str], new: dict[str, str]
):
    """`b` is built in: it is in no folder of the user's."""
    runs = []
    for name, neighbours in (("earlier", old), ("later", new), ("same", new)):
        sources = {"a": "1", "b": "1", **{f"workloads/{file}": digest for file, digest in neighbours.items()}}
        runs.append(run(tmp_path / name, {"a": 2.0, "b": 1.5}, sources=sources))
        (runs[-1] / "workloads").mkdir()
        (runs[-1] / "workloads" / "a.py").write_text("x")
    earlier, later, same = runs
    found = compare_runs(earlier, later)
    assert list(by_case(found)) == ["b"]
    line = "left out, because their source or data changed between the runs: a (table.json)"
    assert found.left_out == (line,)
    assert list(by_case(compare_runs(later, same))) == ["a", "b"]
    assert compare_runs(later, same).left_out == ()


@pytest.mark.parametrize("program", [(), ("sh", "train.sh")])
def test_a_workload_whose_data_has_changed_is_left_out(tmp_path: Path, program: tuple[str, ...]):
    """A program is the only workload of its run, so its data are not in a folder with its name."""
    name = "tfcompare_data/numbers" if program else "tfcompare_data/a/numbers"
    of = plan([A] if program else [A, B], program=program)
    ratios = {"a": 2.0} if program else {"a": 2.0, "b": 1.5}
    runs = [run(tmp_path / digest, ratios, of=of, sources={name: digest}) for digest in ("1", "2")]
    if program:
        with pytest.raises(UsageError, match=r"no comparison in common .the source or the data of a changed"):
            compare_runs(*runs)
    else:
        found = compare_runs(*runs)
        assert list(by_case(found)) == ["b"]
        assert found.left_out == ("left out, because their source or data changed between the runs: a",)
    same = run(tmp_path / "3", ratios, of=of, sources={name: "1"})
    assert "a" in by_case(compare_runs(runs[0], same))


@pytest.mark.parametrize(("later_bytes", "verdict", "ratio"), [(3000, "same", 1.0), (6000, "slower", 2.0)])
def test_sizes_need_no_rounds(tmp_path: Path, later_bytes: int, verdict: str, ratio: float):
    paths = []
    for name, size in (("earlier", 3000), ("later", later_bytes)):
        environments = dict(manifest().environments)
        for version, size_bytes in ((OLD, 1000), (NEW, size)):
            environments[target(version)] = replace(environments[target(version)], size_bytes=size_bytes)
        of = plan([A], metrics=("size",))
        paths.append(run(tmp_path / name, {"a": 2.0}, of=of, environments=environments))
    [size] = [change for change in compare_runs(*paths).changes if change.metric == "size"]
    assert (size.verdict, size.ratio, size.reason) == (verdict, pytest.approx(ratio), "")
    assert size.ci_low == size.ci_high == size.ratio


def test_data_that_changed_are_a_difference_also_without_their_hashes(tmp_path: Path):
    data = LargeFile(name="tfcompare_data/a/numbers", path="/data", bytes=1, modified_ns=1_800_000_000 * 10**9)
    changed = replace(data, bytes=2)
    earlier, same, later = (
        run(tmp_path / name, {"a": 2.0}, of=plan([A], large=(file,)))
        for name, file in (("1", data), ("2", data), ("3", changed))
    )
    [found] = compare_runs(earlier, later).differences
    assert (found.what, found.later) == (data.name, "2 bytes, modified at 2027-01-15 08:00:00 UTC")
    assert compare_runs(earlier, same).differences == ()


def test_a_run_is_not_compared_with_itself(tmp_path: Path):
    own = run(tmp_path / "own", {"a": 2.0})
    shutil.copytree(own, tmp_path / "copy")
    for other in (own, tmp_path / "copy"):
        with pytest.raises(UsageError, match="are the same run; compare it with another run"):
            compare_runs(own, other)


def test_a_worker_that_has_changed_is_a_difference_and_no_workload(tmp_path: Path):
    earlier = run(tmp_path / "earlier", {"a": 2.0}, sources={"a": "1", "worker": "1" * 64})
    later = run(tmp_path / "later", {"a": 2.0}, sources={"a": "1", "worker": "2" * 64})
    found = compare_runs(earlier, later)
    assert list(by_case(found)) == ["a", "b"]
    assert not [text for text in found.left_out if "worker" in text]
    assert [one.what for one in found.differences] == ["tfcompare's worker"]


def test_what_only_one_run_has_is_counted(tmp_path: Path):
    earlier = run(tmp_path / "earlier", {"a": 2.0, "b": 1.5})
    later = run(tmp_path / "later", {"a": 2.0}, of=plan([A]))
    found = compare_runs(earlier, later)
    assert list(by_case(found)) == ["a"]
    assert found.left_out == ("left out, for only the earlier run has them: 1 comparison",)


def test_a_case_that_one_run_did_not_measure_is_inconclusive_with_its_reason(tmp_path: Path):
    earlier, later = run(tmp_path / "earlier", {"a": 2.0, "b": 1.5}), run(tmp_path / "later", {"a": 2.0})
    found = by_case(compare_runs(earlier, later))["b"]
    assert (found.verdict, found.ratio) == ("inconclusive", None)
    assert found.reason == "not compared in the later run: nothing was left to compare it with"


def test_runs_without_a_common_comparison_are_refused_with_what_to_do(tmp_path: Path):
    earlier = run(tmp_path / "earlier", {"a": 2.0}, of=plan([A], ("1.14.0", "2.0.0")))
    later = run(tmp_path / "later", {"a": 2.0}, of=plan([A], ("2.0.0", "2.13.0")))
    with pytest.raises(UsageError) as refused:
        compare_runs(earlier, later)
    told = str(refused.value)
    assert "Times of two runs are never compared with each other" in told
    assert "tfcompare run --versions 1.14.0,2.0.0,2.13.0" in told


def test_of_many_ratios_that_stayed_few_are_called_changed(tmp_path: Path):
    """Forty cases, nothing changed: at five per cent each, two would be called so by chance; the rule allows fewer."""
    cases = [case(f"w{number}") for number in range(40)]
    ratios = {one.workload: 1.5 for one in cases}
    earlier, later = (run(tmp_path / name, ratios, of=plan(cases, margin=0.001)) for name in ("earlier", "the-later"))
    assert sum(change.verdict in ("slower", "faster") for change in compare_runs(earlier, later).changes) <= 1


def test_what_is_said_of_all_changes_is_corrected_for_all_of_them(tmp_path: Path):
    """Half of the ratios grew, each by more: several are certain in their rows, and some of these only there."""
    cases = [case(f"w{number}") for number in range(20)]
    before = {one.workload: 1.5 for one in cases}
    after = {one.workload: 1.5 * (1.03 + 0.005 * place if place < 10 else 1) for place, one in enumerate(cases)}
    of = plan(cases, margin=0.02)
    found = compare_runs(run(tmp_path / "earlier", before, of=of), run(tmp_path / "the-later", after, of=of))
    assert found.judged_together == 20
    called = [change for change in found.changes if change.verdict == "slower"]
    sure = [change for change in called if not change.row_only]
    row_only = [change for change in called if change.row_only]
    assert sure
    assert row_only
    assert max(change.p for change in sure) < min(change.p for change in row_only)
    assert {change.reason for change in row_only} == {"certain in its row, but not among all 20 comparisons"}
    assert summarize_changes(found.changes).endswith(f"{len(row_only)} not certain among all comparisons.")


def test_a_broken_stream_costs_its_own_ratios_only(tmp_path: Path):
    three = plan([A], (OLD, NEW, "3.0.0"))
    earlier, later = (run(tmp_path / name, {"a": 2.0}, of=three) for name in ("earlier", "later"))
    (later / "streams" / "3.0.0-0.arrow").write_bytes(b"no stream")
    found = compare_runs(earlier, later)
    assert [change.ratio is None for change in found.changes] == [False, True]
    assert len(found.broken) == 1
    assert "3.0.0-0.arrow is not an Arrow stream" in found.broken[0]


def stopped(draw: np.random.Generator, theta: float, spread: float, freedom: int) -> Stopped:
    """A run of rounds with heavy tails, which ends at the look that decides its only ratio."""
    differences = theta + spread * draw.standard_t(freedom, LOOKS[-1])
    schedule = make_schedule([Stretch(LOOKS)])
    for look in LOOKS:
        found = Estimate(tuple(differences[:look]))
        levels = Levels(schedule.level(look, ALPHA), schedule.level(look, DIFFERENCE_ERROR))
        if look == LOOKS[-1] or judge_estimate(found, 0.05, levels).verdict != "inconclusive":
            return Stopped(MeasuredPair(found, look), schedule)
    raise AssertionError


@pytest.mark.parametrize(("theta", "spread"), [(0.0, 0.02), (0.03, 0.03), (0.03, 0.05), (0.08, 0.05)])
def test_the_interval_of_a_change_holds_for_runs_that_stopped_early(theta: float, spread: float):
    """A plain one misses in up to 12 of 100; at five degrees of freedom, which no constant was chosen for."""
    draw, trials = np.random.default_rng(20261125), 1000
    missed = called = 0
    for _ in range(trials):
        compared = Compared(*(stopped(draw, theta, spread, 5) for _ in range(2)))
        missed += abs(compared.across.theta) > compared.across.half_width(compared.levels.same)
        called += compared.p <= ALPHA
    most = stats.binom.ppf(0.999, trials, 0.05)
    assert missed <= most
    assert called <= most


def share_called(spread: float, of_runs: float, nights: int, trials: int = 3000) -> float:
    """How often equal ratios of two runs are called changed, where runs differ by this much and so many came before."""
    draw, called = np.random.default_rng(20261202), 0
    for _ in range(trials):
        runs = [stopped(draw, draw.normal(0.03, of_runs), spread, 6) for _ in range(2 + nights)]
        between = estimate_between_run_variance([as_nights(runs[2:])]) if nights else None
        compared = Compared(*runs[:2], between)
        called += judge_estimate(compared.across, 0.05, compared.levels).verdict in ("slower", "faster")
    return called / trials


def as_nights(runs: Sequence[Stopped]) -> Segment:
    first = date(2026, 1, 1)
    found = [each.measured.estimate for each in runs]
    values = (
        Value(night=first + timedelta(days=day), effect=each.theta, error=each.standard_error, rounds=each.rounds)
        for day, each in enumerate(found)
    )
    return Segment(values=tuple(values), control=())


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.02, 0.05, 0.1])
def test_equal_ratios_are_called_changed_in_at_most_one_of_forty(spread: float):
    assert share_called(spread, 0.0, 0) <= 0.025


@pytest.mark.slow
@pytest.mark.parametrize("spread", [pytest.param(0.02, marks=pytest.mark.long), 0.05, 0.1])
@pytest.mark.parametrize("nights", [5, pytest.param(20, marks=pytest.mark.long)])
def test_with_a_history_what_differs_from_run_to_run_is_rarely_called_a_change(spread: float, nights: int):
    assert share_called(spread, 0.01, nights) <= 0.05
