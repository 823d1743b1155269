"""Which rows are shown and in which order: groups stay together, and a baseline stays with what is compared to it."""

from dataclasses import replace

import pytest

from orchestrator.errors import UsageError
from orchestrator.model import Evaluation
from orchestrator.reports import table
from orchestrator.reports.filter_sort import KINDS, SORTS, Arrangement, arrangement
from tests.support.builders import NEW, OLD, arm, case, case_pair, comparison, manifest, plan, unmeasured

QUICK, SLOW, SAME = (case("predict", model=name) for name in ("b-quick", "a-slow", "c-same"))
POWER, GONE = case("power", style="eager"), case("power", style="jit")


def five_cases() -> Evaluation:
    asked = plan((QUICK, SLOW, SAME, POWER, GONE))
    judged = ((0.5, "faster"), (3.0, "slower"), (1.0, "same"), (9.0, "slower"), (None, "inconclusive"))
    medians = {QUICK: 50.0, SLOW: 20.0, SAME: 10.0, POWER: 1.0}
    inside = (comparison(case_pair(QUICK, SLOW), 4.0, "slower"), comparison(case_pair(QUICK, SAME), 7.0, "slower"))
    return Evaluation(
        plan=asked,
        manifest=manifest(),
        arms=tuple(
            arm(of, version, time=medians[of]) if of in medians else unmeasured(of, version, "refused", "no jit")
            for of in asked.cases
            for version in asked.targets
        ),
        comparisons=(*(comparison(pair, *judged[place]) for place, pair in enumerate(asked.pairs)), *inside),
        warnings=(),
    )


def shown(arranged: Arrangement) -> list[str]:
    """The cases in the order of their rows."""
    return list(dict.fromkeys(arm.case.label for arm in arranged.arms(five_cases())))


def labels(*cases) -> list[str]:
    return [one.label for one in cases]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        (None, (QUICK, SLOW, SAME, POWER, GONE)),
        ("-case", (GONE, POWER, SAME, SLOW, QUICK)),
        ("name", (POWER, GONE, SLOW, QUICK, SAME)),
        ("ratio", (POWER, GONE, SLOW, SAME, QUICK)),
        ("-ratio", (QUICK, SAME, SLOW, GONE, POWER)),
        ("time", (QUICK, SLOW, SAME, POWER, GONE)),
        ("-time", (GONE, POWER, SAME, SLOW, QUICK)),
    ],
)
def test_cases_are_sorted_inside_their_workload_and_workloads_by_their_first(sort: str | None, order):
    arranged = arrangement(None, sort)
    assert shown(arranged) == labels(*order)
    for of in order:
        versions = [arm.target for arm in arranged.arms(five_cases()) if arm.case == of]
        assert versions == [OLD, NEW], "the baseline first, whatever the order"


@pytest.mark.parametrize(
    ("only", "cases"),
    [
        ("slower", (SLOW, POWER)),
        ("faster", (QUICK,)),
        ("same,faster", (QUICK, SAME)),
        ("refused", (GONE,)),
        ("inconclusive", (GONE,)),
        ("died", ()),
    ],
)
def test_only_what_is_asked_for_is_shown_with_the_baseline_it_is_compared_to(only: str, cases):
    arms = arrangement(only, None).arms(five_cases())
    assert list(dict.fromkeys(arm.case for arm in arms)) == list(cases)
    assert all({OLD, NEW} == {arm.target for arm in arms if arm.case == of} for of in cases)


def test_what_differs_slightly_is_also_the_same():
    judged = five_cases()
    pair = judged.comparisons[2].pair
    slight = replace(
        judged,
        comparisons=tuple(
            replace(each, ratio=1.02, size="slight") if each.pair == pair else each for each in judged.comparisons
        ),
    )
    for only, cases in (("slight", {SAME}), ("same", {SAME})):
        assert {one.case for one in arrangement(only, None).arms(slight)} == cases
    assert arrangement("slight", None).arms(judged) == []


def test_comparisons_inside_a_version_are_chosen_and_sorted_alike():
    found = arrangement(None, "ratio").inside(five_cases())
    assert [comparison.ratio for comparison in found] == [7.0, 4.0]
    assert [comparison.ratio for comparison in arrangement(None, "-ratio").inside(five_cases())] == [4.0, 7.0]
    assert arrangement("same", None).inside(five_cases()) == []


def test_the_table_says_what_was_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = table.render_details(five_cases(), arrangement=arrangement("slower", None))
    assert "--only slower: 2 of 5 cases, and 2 comparisons inside a version" in text
    assert "c-same" not in text.partition("inside each target")[0].partition("predict")[2].splitlines()[0]
    assert "2.0.0 is slower than 1.0.0 in 2 of 5 cases" in text, "the summary is of the whole run"
    nothing = table.render_details(five_cases(), arrangement=arrangement("died", None))
    assert "--only died: nothing; without it there are 5 cases" in nothing


@pytest.mark.parametrize(("flag", "values"), [("only", (*KINDS, "slower, died")), ("sort", (*SORTS, "-time"))])
def test_every_name_is_accepted(flag: str, values):
    made = [arrangement(**{"only": None, "sort": None, flag: value}) for value in values]
    assert len(set(made)) == len(values), "and each means something else"


@pytest.mark.parametrize(
    ("only", "sort", "words"),
    [
        ("slowr", None, "--only 'slowr' (did you mean slower?); choose from slower, faster, same"),
        (None, "ration", "--sort 'ration' (did you mean ratio?); choose from case, name, ratio, time, or reverse one"),
    ],
)
def test_an_unknown_name_is_told_with_the_known_ones(only: str | None, sort: str | None, words: str):
    with pytest.raises(UsageError) as caught:
        arrangement(only, sort)
    assert words in str(caught.value)
