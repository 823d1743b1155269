"""The matrix, to the letter; `UPDATE_SNAPSHOTS=1 pytest tests/unit/reports` rewrites it for review."""

from dataclasses import replace

import pytest
from rich.cells import cell_len

from orchestrator.model import Drift, Evaluation, FailureKind
from orchestrator.reports import matrix, table
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.reasons import describe_reasons
from tests.support import scenes
from tests.support.builders import (
    arm,
    case,
    case_pair,
    comparison,
    evaluation,
    mean,
    plan,
    target,
    unmeasured,
    version_pair,
)  # fmt: skip
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


def names_of(drawn: str) -> list[str]:
    """The size of each row, from the top."""
    return [line.split()[1] for line in drawn.splitlines() if line.startswith(" train_loop ")]


def test_undecided_cases_come_last_and_each_once(draw):
    sizes = ("open", "small", "refused", "large")
    opened, small, refused, large = made = [case("train_loop", size=size) for size in sizes]
    arms = [arm(of, version) for of in (opened, small, large) for version in ("1.14.0", "2.0.0")]
    arms += [unmeasured(refused, version, "refused", "it lacks this") for version in ("1.14.0", "2.0.0")]
    comparisons = tuple(
        comparison(version_pair(of, "1.14.0", "2.0.0"), ratio, said)
        for of, ratio, said in ((opened, 9.0, "inconclusive"), (small, 1.2, "slower"), (large, 0.2, "faster"))
    )
    drawn = draw(evaluation(plan=plan(made, ("1.14.0", "2.0.0")), arms=tuple(arms), comparisons=comparisons))
    assert names_of(drawn) == ["large", "small", "open", "refused"]
    assert "? 9.00x" in drawn


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scene", [scenes.everything, scenes.hostile, scenes.exploratory, of_many])
def test_no_line_is_wider_than_the_terminal_and_no_word_breaks(draw, scene, width: int):
    drawn = draw(scene(), width)
    for line in drawn.splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()
    assert "\x1b" not in drawn


def test_the_largest_change_of_any_version_comes_first(draw):
    whole = of_many(VERSIONS[:3], cases=4)
    assert names_of(draw(whole)) == ["size_3", "size_2", "size_1", "size_0"]
    # A gain counts as much as a loss of the same size, wherever it is.
    first = next(each for each in whole.comparisons if each.pair.case.label.endswith("size_0]"))
    gain = replace(first, ratio=0.05, ci_low=0.04, ci_high=0.06, verdict="faster", size="beyond")
    changed = tuple(gain if each is first else each for each in whole.comparisons)
    assert names_of(draw(replace(whole, comparisons=changed)))[0] == "size_0"


def test_another_order_is_kept(draw):
    drawn = draw(of_many(VERSIONS[:3], cases=4), arrangement=Arrangement(sort="name"))
    assert names_of(drawn) == ["size_0", "size_1", "size_2", "size_3"]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_ratio_stays_with_its_mark_and_its_interval_at_every_width(draw, width: int):
    drawn = draw(of_many(VERSIONS[:4]), width)
    for version in VERSIONS[1:4]:
        step = VERSIONS.index(version)
        assert f"▲ {1.0 + 2 * step:.2f}x {(1 + 2 * step) * 0.97:.2f}-{(1 + 2 * step) * 1.03:.2f}" in drawn


def test_versions_that_do_not_fit_continue_with_the_same_rows_and_the_baseline(draw):
    drawn = draw(of_many(VERSIONS[:4]), 60)
    headers = [line for line in drawn.splitlines() if line.split()[:1] == [VERSIONS[0]]]
    assert len(headers) > 1
    assert sorted(version for line in headers for version in line.split()[1:]) == sorted(VERSIONS[1:4])
    assert drawn.count("size_2") == len(headers)


def test_from_many_versions_on_cells_hold_mark_and_ratio_only(draw):
    drawn = draw(of_many(), 200)
    [row] = [line for line in drawn.splitlines() if line.startswith(" train_loop size_2")]
    assert "▲ 3.00x" in row
    assert "-" not in row
    assert drawn.startswith("6 targets against 1.14.0, time per step · run ")


def test_a_difference_of_uncertain_size_has_a_small_mark_that_the_legend_explains(draw):
    whole = of_many(("1", "2"))
    explained = "▴ ▾ of uncertain size"
    assert explained not in draw(whole)
    unsure = tuple(replace(each, size="clear" if each.verdict == "slower" else None) for each in whole.comparisons)
    drawn = draw(replace(whole, comparisons=unsure))
    assert "▴ 2.00x 1.94-2.06" in drawn
    assert "▲ 2.00x" not in drawn
    assert explained in drawn


def test_the_row_of_means_says_over_how_many_cases_and_rounds(draw):
    several = of_many(VERSIONS[:3])
    [row] = [line for line in draw(several, 120).splitlines() if line.startswith(" mean of")]
    assert row.split() == ["mean", "of", "3", "cases", "▲", "1.50x", "1.46-1.54", "▲", "2.50x", "2.42-2.58"]
    # One of them has stopped after its sixth round, and the others have more.
    longer = (*several.comparisons[:-1], replace(several.comparisons[-1], rounds=10))
    assert "means are of 6 common rounds" in draw(replace(several, comparisons=longer))
    assert "mean of" not in draw(of_many(VERSIONS[:2], cases=1))


@pytest.mark.parametrize(
    ("low", "high", "said", "mark"),
    [
        (1.2, 1.3, "slower", "▲"),
        # It reaches into the margin of 5 %.
        (1.02, 1.3, "slower", "▴"),
        (0.7, 0.8, "faster", "▼"),
        (0.9, 1.1, "slower", " "),
        # No case has that verdict in the whole report.
        (1.2, 1.3, "same", " "),
        (1.2, 1.3, "faster", " "),
    ],
)
def test_a_mean_has_a_mark_only_if_its_interval_and_a_case_of_it_say_the_same(draw, low, high, said, mark):
    whole = of_many(("1", "2"))
    ratio = (low * high) ** 0.5
    comparisons = tuple(replace(each, verdict=said) for each in whole.comparisons)
    means = tuple(replace(each, ratio=ratio, ci_low=low, ci_high=high) for each in whole.means)
    drawn = draw(replace(whole, comparisons=comparisons, means=means))
    assert f"{mark} {ratio:.2f}x {low:.2f}-{high:.2f}" in drawn


def with_memory(verdicts: tuple[str, ...], ratio: float = 1.5, mean_ratio: float | None = None) -> Evaluation:
    """Cases whose memory has these verdicts, and perhaps a mean."""
    whole = of_many(("1.14.0", "2.0.0"), cases=len(verdicts))
    made = tuple(
        comparison(scenes.in_memory(of, "2.0.0"), ratio if said == "slower" else 1 / ratio, said)
        for of, said in zip(whole.plan.cases, verdicts, strict=True)
    )
    means = (
        ()
        if mean_ratio is None
        else (replace(mean("2.0.0", mean_ratio, "1.14.0"), metric="memory", cases=len(verdicts)),)
    )
    return replace(whole, metrics={"memory": made}, means=means)


@pytest.mark.parametrize(
    ("verdicts", "mean_ratio", "cell"),
    [
        (("slower", "slower"), 1.5, "peak memory, mean of 2 ▲ 1.50x 1.46-1.54"),
        (("slower", "same"), 1.2, "peak memory, mean of 2 ▲ 1.20x in 1 of 2"),
        (("slower", "same"), None, "peak memory ▲ up to 1.50x in 1 of 2"),
        # The mean would say the opposite.
        (("slower", "same"), 0.9, "peak memory, mean of 2 ▲ up to 1.50x in 1 of 2"),
        (("faster", "same"), None, "peak memory ▼ down to 0.67x in 1 of 2"),
        (("slower", "faster", "slower"), None, "peak memory ▲ up to 1.50x ▲2 ▼1 of 3"),
        (("same", "same"), 1.0, "peak memory, mean of 2 = 1.00x 0.97-1.03"),
        (("same", "inconclusive"), None, "peak memory = in 1 of 2"),
        (("inconclusive", "inconclusive"), None, "peak memory ? in 2 of 2"),
    ],
)
def test_what_else_is_compared_is_a_row_each(draw, verdicts, mean_ratio, cell: str):
    drawn = draw(with_memory(verdicts, mean_ratio=mean_ratio), 120)
    assert cell in [" ".join(line.split()) for line in drawn.splitlines()]


def test_what_differs_in_its_row_alone_has_no_mark_in_the_row_of_its_metric(draw):
    whole = with_memory(("slower", "same"))
    unsure = tuple(replace(each, row_only=each.verdict == "slower") for each in whole.metrics["memory"])
    assert "peak memory = in 1 of 2" in " ".join(draw(replace(whole, metrics={"memory": unsure}), 120).split())


def test_the_only_case_of_a_metric_has_its_figure_and_its_interval(draw):
    whole = with_memory(("slower",))
    arms = tuple(replace(each, figures={**each.figures, "memory": 300 * 2.0**20}) for each in whole.arms)
    assert "peak memory 300 MiB ▲ 1.50x 1.46-1.54" in " ".join(draw(replace(whole, arms=arms), 120).split())


@pytest.mark.parametrize(
    ("verdicts", "cell"),
    [
        (("equal", "equal"), "results = equal"),
        (("equal", "equal within tolerance"), "results ≈ within tolerance"),
        (("differs", "equal within tolerance"), "results ≠ 1 of 2 differ"),
        (("equal", "not comparable"), "results = 1 of 2 equal"),
        (("not comparable", "not comparable"), "results ? not comparable"),
    ],
)
def test_results_are_a_row_that_names_the_worst(draw, verdicts: tuple[str, ...], cell: str):
    whole = of_many(("1.14.0", "2.0.0"), cases=2)
    outputs = tuple(
        scenes.results(of, "2.0.0", verdict=said) for of, said in zip(whole.plan.cases, verdicts, strict=True)
    )
    drawn = draw(replace(whole, outputs=outputs), 120)
    assert cell in [" ".join(line.split()) for line in drawn.splitlines()]
    assert ("returns different results" in drawn) == ("differs" in verdicts)


def test_the_digit_that_decides_is_shown(draw):
    whole = of_many(("1.14.0", "2.0.0"), cases=1)
    [only] = whole.comparisons
    for ratio, low, high, shown in ((0.97, 0.944, 0.996, "0.970x 0.944-0.996"), (1.07, 1.02, 1.12, "1.07x 1.02-1.12")):
        judged = replace(only, ratio=ratio, ci_low=low, ci_high=high, verdict="faster" if high < 1 else "slower")
        assert shown in draw(replace(whole, comparisons=(judged,)))


def test_the_legend_is_a_line_and_names_only_what_is_shown(draw):
    lines = draw(of_many(VERSIONS[:3]), 120).splitlines()
    assert lines[-1] == "▲ slower  = same within 5% · more: --table details"
    died = of_many(("1.14.0", "2.0.0"), cases=1)
    arms = tuple(replace(arm(each.case, str(each.target), time=None), outcome="died", reason="x") for each in died.arms)
    drawn = draw(replace(died, arms=arms, comparisons=(), means=()))
    assert drawn.splitlines()[-1] == "more: --table details"


def test_nothing_precedes_the_table_but_what_is_compared_and_where(draw):
    lines = draw(scenes.everything(), 200).splitlines()
    assert lines[0] == "2.0.0 and 2.13.0 against 1.14.0, time per step · run 20260102-030405-abcd"
    assert lines[1] == "venv · cpu · A CPU, 2 cores · 3 to 6 rounds"
    assert lines[2] == ""
    assert lines[3].split() == ["1.14.0", "2.0.0", "2.13.0"]


def test_without_two_common_cases_there_is_no_mean_and_a_line_says_so(draw):
    assert "no geometric mean: no two cases" in draw(replace(of_many(VERSIONS[:3]), means=()), 120)
    # A mean of what was picked by its verdict says nothing.
    assert "mean of" not in draw(of_many(VERSIONS[:3]), arrangement=Arrangement(only=("slower",)))


def test_a_comparison_without_a_ratio_has_its_times(draw):
    of = case("train_loop")
    versions = ("1.14.0", "2.0.0")
    arms = tuple(arm(of, version, time=time) for version, time in zip(versions, (11.0, 23.0), strict=True))
    untold = comparison(version_pair(of, *versions), None, "inconclusive", "for a reason")
    drawn = draw(evaluation(plan=plan([of], versions), arms=arms, comparisons=(untold,)))
    assert ["11.0", "ms", "23.0", "ms"] in [line.split()[-4:] for line in drawn.splitlines()]


@pytest.mark.parametrize(("drifting", "marked"), [(0, "~ 11.0 ms"), (1, "2.06 ~")])
def test_the_arm_that_does_not_settle_has_the_mark_of_the_legend(draw, drifting: int, marked: str):
    of, versions = case("train_loop"), ("1.14.0", "2.0.0")
    arms = [arm(of, version, time=time) for version, time in zip(versions, (11.0, 22.0), strict=True)]
    arms[drifting] = replace(arms[drifting], drift=Drift(rise=0.2))
    found = comparison(version_pair(of, *versions), 2.0, "slower")
    drawn = draw(evaluation(plan=plan([of], versions), arms=tuple(arms), comparisons=(found,)))
    assert drawn.count("~") == 2
    assert marked in drawn
    assert "~ not settled · more" in drawn.splitlines()[-1]


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
    assert line.startswith("? 5 of 5 inconclusive: 2 too noisy to see less than 9.0% to 28.0%")
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


def of_quick_suite() -> Evaluation:
    """The cases of `make run` on a busy machine, with everything below the table that such a run can have."""
    pairs = {
        "train_loop": [
            {"loop": loop, "mode": mode} for loop in ("fit", "train_on_batch") for mode in ("eager", "graph")
        ],
        "predict": [{"state": state} for state in ("uncompiled", "compiled")],
        "power": [{"style": style} for style in ("eager", "function")],
    }  # fmt: skip
    cases = [case(name, **params) for name, each in pairs.items() for params in each]
    versions = ("1.14.0", "2.0.0", "2.13.0")
    traces = {"1.14.0": 0.0, "2.0.0": 3.0, "2.13.0": 3.0}
    arms = tuple(
        arm(of, version, traces_per_call=traces[version], drift=Drift(rise=0.1) if version == "2.0.0" else None)
        for of in cases
        for version in versions
    )
    verdicts = ("slower", "faster", "inconclusive", "same")
    noisy = "too noisy: 6 rounds show slowdowns from 12% on; about 31 would show 5%"
    across = [
        comparison(
            version_pair(of, "1.14.0", version), 2.0, (said := verdicts[number % 4]),
            noisy if said == "inconclusive" else "", size="clear" if number == 0 else None, row_only=number == 1,
        )
        for number, of in enumerate(cases)
        for version in versions[1:]
    ]  # fmt: skip
    inside = [
        comparison(case_pair(one, other, version), 0.5, "faster")
        for one, other in zip(cases[::2], cases[1::2], strict=True)
        for version in versions
    ]
    return replace(
        scenes.everything(),
        plan=plan(cases, versions),
        arms=arms,
        comparisons=(*across, *inside),
        means=(mean("2.0.0", 1.999, "1.14.0"), mean("2.13.0", 0.866, "1.14.0")),
        outputs=(),
        seconds=226.0,
        ended_by_budget="the budget of 216 s ended the run after 8 rounds",
        warnings=(
            "other work shared all cores in 20 of 22 visits, so wall times are a mixture of computing and of waiting "
            "for a core; --judge cpu compares CPU times",
            "36 disturbances, e.g. other processes kept 1.2 cores busy; 0 repeated",
        ),
    )


def test_the_report_of_the_quick_suite_has_at_most_thirty_lines(draw):
    drawn = draw(of_quick_suite())
    assert len(drawn.splitlines()) <= 30
    assert drawn.splitlines()[1].endswith("3 min 46 s, budget spent")
    assert "inside each target" not in drawn
    assert drawn.count("goes with: ") == 1
    assert drawn.replace("\n", " ").endswith("(12 pairs inside targets, of which 12 differ; 1 more fact)")


def test_a_report_of_few_rows_or_of_one_target_keeps_the_pairs_inside(draw):
    large = of_quick_suite()
    assert "inside each target" in draw(large, arrangement=Arrangement(only=("faster",)))
    newest = tuple(each for each in large.arms if str(each.target) == "2.13.0")
    pairs = tuple(
        each
        for each in large.comparisons
        if each.pair.kind == "case" and each.pair.arms[0] in {one.key for one in newest}
    )
    alone = replace(
        large, plan=plan(large.plan.cases, ("2.13.0",)), arms=newest, comparisons=pairs, metrics={}, means=()
    )
    drawn = draw(alone)
    assert [line.split()[0] for line in drawn.splitlines() if " ▼ 0.50x" in line] == ["train_loop"] * 2 + [
        "predict",
        "power",
    ]
    assert drawn.endswith("more: --table details")


def test_the_details_keep_what_a_long_report_leaves_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    details = table.render_details(of_quick_suite())
    assert "inside each target" in details
    assert details.count("goes with: ") == 2
