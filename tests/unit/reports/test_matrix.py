"""The matrix, to the letter; `UPDATE_SNAPSHOTS=1 pytest tests/unit/reports` rewrites it for review."""

from dataclasses import replace

import pytest
from rich.cells import cell_len

from orchestrator.model import Drift, Evaluation, FailureKind
from orchestrator.reports import matrix
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.reasons import describe_reasons
from tests.support import scenes
from tests.support.builders import arm, case, comparison, evaluation, mean, plan, target, unmeasured, version_pair
from tests.support.kept import kept

WIDTHS = (60, 80, 120, 200)
VERSIONS = ("1.14.0", "2.0.0", "2.5.3", "2.8.4", "2.10.1", "2.13.0", "2.16.2")


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch):
    def drawn(of: Evaluation, width: int = 80, arrangement: Arrangement | None = None) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        return matrix.render_matrix(of, arrangement)

    return drawn


def of_many(versions: tuple[str, ...] = VERSIONS, cases: int = 3) -> Evaluation:
    """Cases whose ratio grows with their number and with the version; the first is the same everywhere."""
    made = [case("train_loop", size=f"size_{number}") for number in range(cases)]
    arms, comparisons = [], []
    for number, of in enumerate(made):
        arms += [arm(of, version, time=10.0 * (1 + number * step)) for step, version in enumerate(versions)]
        for step, version in enumerate(versions[1:], 1):
            ratio = 1.0 + number * step
            pair = version_pair(of, versions[0], version)
            comparisons.append(comparison(pair, ratio, "same" if ratio == 1.0 else "slower"))
    means = tuple(mean(version, 1.5 + step, versions[0], cases=cases) for step, version in enumerate(versions[1:]))
    return evaluation(
        plan=plan(made, versions), arms=tuple(arms), comparisons=tuple(comparisons), means=means if cases > 1 else ()
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scene", ["everything", "exploratory"])
def test_it_is_what_the_snapshot_shows(draw, scene: str, width: int):
    found = draw(getattr(scenes, scene)(), width) + "\n"
    assert found == kept(f"matrix-{scene}-{width}", found)


def test_undecided_cases_are_listed_unless_something_is_decided(draw):
    first, second, refused = (case("train_loop", size=size) for size in ("one", "two", "three"))
    arms = [arm(of, version) for of in (first, second) for version in ("1.14.0", "2.0.0")]
    arms += [unmeasured(refused, version, "refused", "it lacks this") for version in ("1.14.0", "2.0.0")]
    made = plan((first, second, refused), ("1.14.0", "2.0.0"))
    for verdict, listed in (("inconclusive", True), ("slower", False)):
        comparisons = tuple(
            comparison(version_pair(of, "1.14.0", "2.0.0"), 1.2, said)
            for of, said in ((first, "inconclusive"), (second, verdict))
        )
        drawn = draw(evaluation(plan=made, arms=tuple(arms), comparisons=comparisons))
        named = {word for line in drawn.splitlines() if line.startswith("   ") for word in line.split()}
        assert ("one" in named) == listed
        assert {"two", "three"} <= named
        assert "not compared (1)" in drawn


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scene", [scenes.everything, scenes.hostile, scenes.exploratory, of_many])
def test_no_line_is_wider_than_the_terminal_and_no_word_breaks(draw, scene, width: int):
    drawn = draw(scene(), width)
    for line in drawn.splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()
    assert "\x1b" not in drawn


def test_the_worst_case_comes_first_and_what_is_not_decided_last(draw):
    drawn = draw(of_many(VERSIONS[:3], cases=4))
    rows = [line.split()[0:2] for line in drawn.splitlines() if line.strip().startswith("train_loop size_")]
    assert [name for _, name in rows] == ["size_3", "size_2", "size_1", "size_0"]
    assert drawn.index("▲ slower (3)") < drawn.index("= same (1)")


def test_another_order_is_kept_inside_the_groups(draw):
    drawn = draw(of_many(VERSIONS[:3], cases=4), arrangement=Arrangement(sort="name"))
    places = [drawn.index(f"\n   train_loop size_{number}") for number in (1, 2, 3)]
    assert places == sorted(places)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_ratio_stays_with_its_mark_and_its_interval_at_every_width(draw, width: int):
    drawn = draw(of_many(VERSIONS[:4]), width)
    for version in VERSIONS[1:4]:
        step = VERSIONS.index(version)
        assert f"▲ {1.0 + 2 * step:.2f}x ({(1 + 2 * step) * 0.97:.2f}-{(1 + 2 * step) * 1.03:.2f})" in drawn


def test_versions_that_do_not_fit_continue_with_the_same_rows_and_the_baseline(draw):
    drawn = draw(of_many(VERSIONS[:4]), 60)
    headers = [line for line in drawn.splitlines() if line.split()[:1] == [VERSIONS[0]]]
    assert len(headers) > 1
    assert sorted(version for line in headers for version in line.split()[1:]) == sorted(VERSIONS[1:4])
    assert drawn.count("\n   train_loop size_2") == len(headers)


def test_from_many_versions_on_cells_hold_mark_and_ratio_only(draw):
    drawn = draw(of_many(), 200)
    assert "▲ 3.00x" in drawn
    assert "(" not in next(line for line in drawn.splitlines() if line.startswith("   train_loop size_2"))


def test_a_difference_of_uncertain_size_has_a_small_mark_that_the_legend_explains(draw):
    whole = of_many(("1", "2"))
    explained = "▴ ▾ the size is uncertain: the interval reaches into the margin"
    assert explained not in draw(whole)
    unsure = tuple(replace(each, size="clear" if each.verdict == "slower" else None) for each in whole.comparisons)
    drawn = draw(replace(whole, comparisons=unsure))
    assert "▴ 2.00x (1.94-2.06)" in drawn
    assert "▲ 2.00x" not in drawn
    assert explained in drawn


def test_the_row_of_means_says_over_how_many_cases_and_rounds(draw):
    several = of_many(VERSIONS[:3])
    [row] = [line for line in draw(several, 120).splitlines() if "geometric mean" in line]
    assert row.split() == ["geometric", "mean", "of", "3", "cases", "1.50x", "(1.46-1.54)", "2.50x", "(2.42-2.58)"]
    # One of them has stopped after its sixth round, and the others have more.
    longer = (*several.comparisons[:-1], replace(several.comparisons[-1], rounds=10))
    assert "geometric mean: from the 6 rounds that all of its cases have" in draw(replace(several, comparisons=longer))
    assert "geometric mean" not in draw(of_many(VERSIONS[:2], cases=1))


def test_without_two_common_cases_there_is_no_mean_and_a_line_says_so(draw):
    assert "no geometric mean: no two cases" in draw(replace(of_many(VERSIONS[:3]), means=()), 120)
    # A mean of what was picked by its verdict says nothing.
    assert "geometric mean" not in draw(of_many(VERSIONS[:3]), arrangement=Arrangement(only=("slower",)))


def test_a_comparison_without_a_ratio_has_its_times(draw):
    of = case("train_loop")
    versions = ("1.14.0", "2.0.0")
    arms = tuple(arm(of, version, time=time) for version, time in zip(versions, (11.0, 23.0), strict=True))
    untold = comparison(version_pair(of, *versions), None, "inconclusive", "for a reason")
    drawn = draw(evaluation(plan=plan([of], versions), arms=arms, comparisons=(untold,)))
    assert ["11.0", "ms", "23.0", "ms"] in [line.split()[-4:] for line in drawn.splitlines()]


@pytest.mark.parametrize(("drifting", "marked"), [(0, "~ 11.0 ms"), (1, ") ~")])
def test_the_arm_that_does_not_settle_has_the_mark_of_the_legend(draw, drifting: int, marked: str):
    of, versions = case("train_loop"), ("1.14.0", "2.0.0")
    arms = [arm(of, version, time=time) for version, time in zip(versions, (11.0, 22.0), strict=True)]
    arms[drifting] = replace(arms[drifting], drift=Drift(rise=0.2))
    found = comparison(version_pair(of, *versions), 2.0, "slower")
    drawn = draw(evaluation(plan=plan([of], versions), arms=tuple(arms), comparisons=(found,)))
    assert drawn.count("~") == 2
    assert marked in drawn
    assert "~ its calls do not reach a steady state" in drawn


def test_reasons_are_one_line_per_class_and_none_per_row():
    made = [case(size=str(number)) for number in range(5)]
    reasons = ["too noisy: 6 rounds show slowdowns from 9% on", "too noisy: 6 rounds show slowdowns from 28% on",
               "not significant after correcting for 28 comparisons", "postponed: the budget holds",
               "something new"]  # fmt: skip
    comparisons = tuple(
        comparison(version_pair(of), 1.1, "inconclusive", reason, mde=0.09 + number * 0.19)
        for number, (of, reason) in enumerate(zip(made, reasons, strict=True))
    )
    [line] = describe_reasons(evaluation(plan=plan(made), arms=(), comparisons=comparisons))
    assert line.startswith(
        "? 5 of 5 comparisons are not decided: 2 too noisy (only slowdowns above 9.0% to 28.0% would show)"
    )
    assert "1 for other reasons" in line


def test_arms_without_a_time_are_named_once_per_reason():
    made = [case(size=str(number)) for number in range(5)]
    arms = tuple(arm(of, "2.0.0", outcome="died", reason="killed by SIGKILL", time=None) for of in made)
    lines = list(describe_reasons(evaluation(plan=plan(made), arms=arms, comparisons=())))
    assert len(lines) == 1
    assert lines[0].startswith("died: ")
    assert lines[0].endswith("and 2 more: killed by SIGKILL")
    assert str(target("2.0.0")) in lines[0]


@pytest.mark.parametrize(
    ("failure", "external", "words"),
    [
        ("disk", True, "died (disk, --resume tries it again): 2.0.0 power: x"),
        ("workload", False, "died (workload): 2.0.0 power: x"),
        ("gpu", True, "died (lost GPU, --resume tries it again): 2.0.0 power: x"),
    ],
)
def test_an_arm_that_died_is_named_with_the_kind_of_its_failure(failure: FailureKind, external: bool, words: str):
    dead = replace(arm(case(), "2.0.0"), outcome="died", reason="x", failure=failure, external=external)
    assert list(describe_reasons(evaluation(arms=(dead,), comparisons=()))) == [words]
