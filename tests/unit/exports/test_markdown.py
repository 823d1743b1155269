"""Markdown for a pull request, read by a Markdown parser."""

from dataclasses import replace

import pytest

from orchestrator.exports.markdown import MOST_ROWS, render
from orchestrator.results.run import Run
from orchestrator.terminal.markdown import code
from tests.support import scenes
from tests.support.builders import arm, case, comparison, evaluation, manifest, plan, targets, version_pair
from tests.support.claims_scene import scene as claims_scene
from tests.support.export_runs import BATCH, JIT, MID, NEW, OLD, POISONS, of_scene
from tests.support.markdown_pages import Page

# GitHub's own limit for the text of a comment.
LONGEST_COMMENT = 65_536


EXPECTED_TAGS = {
    "h3", "ul", "li", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary",
}  # fmt: skip


def test_a_line_a_version_says_how_many_of_what(run: Run):
    text = render(run)
    assert f"- `{MID}` against `{OLD}`: 1 slower, 1 same, 3 inconclusive." in text
    assert f"- `{NEW}` against `{OLD}`: 1 slower, 1 faster, 1 same, 2 inconclusive." in text


def test_what_changed_most_stands_first_with_ratio_and_interval(run: Run):
    page = Page(render(run))
    assert page.rows[0] == ["case", "target", "time", "ratio", "interval", "verdict"]
    assert [row[:2] for row in page.rows[1:4]] == [
        ["power eager", MID], ["power eager", NEW], [page.rows[3][0], NEW],
    ]  # fmt: skip
    assert page.rows[3][0].startswith("train_loop")
    assert page.rows[1][2:4] == ["40.0 ms", "4.00x"]
    assert page.rows[1][5] == "▲ slower"


def test_details_have_every_comparison_what_was_not_measured_and_why(run: Run):
    text = render(run)
    shown, folded = text.split("<details>")
    page = Page(f"<details>{folded}")
    comparisons = [row for row in page.rows if len(row) == 6 and row[0] != "comparison"]
    assert len(comparisons) == len(run.comparisons) + len(run.evaluation.of_metrics)
    assert [JIT.label, OLD, "refused", "no jit switch before TensorFlow 2.1"] in page.rows
    assert [BATCH.label, NEW, "died", "ended with exit code 3"] in page.rows
    assert "SIGKILL" not in shown
    assert "tfcompare run --versions 1.14.0,2.0.0,2.13.0" in page.codes
    assert [MID, "3.11.7", "venv x"] in page.rows
    assert folded.rstrip().endswith("</details>")


def test_the_gravest_warning_is_seen_without_unfolding():
    shown, folded = render(of_scene(scenes.poisoned("!"))).split("<details>")
    assert "**warning:** `broken!` (and 1 more, below)" in shown
    assert "- warning: `warned!`" in folded


def test_nothing_changed_is_said():
    assert "Nothing is shown to be slower or faster." in render(of_scene(evaluation()))


def test_more_than_a_screenful_of_changes_is_counted():
    cases = [case("many", number=str(number)) for number in range(50)]
    asked = plan(cases)
    found = evaluation(
        plan=asked,
        arms=tuple(arm(one, version) for one in cases for version in asked.targets),
        comparisons=tuple(comparison(pair, 1.1 + place / 100, "slower") for place, pair in enumerate(asked.pairs)),
    )
    page = Page(render(of_scene(found)))
    details = page.rows.index(["comparison", "ratio or difference", "interval", "rounds", "verdict", "why"])
    first_table = page.rows[1:details]
    assert len(first_table) == MOST_ROWS
    assert first_table[0][:1] == ["many 49"]
    assert "30 more are slower or faster, but by less; see below." in page.outside


def test_exploratory_verdicts_are_marked():
    assert "▲ slower (exploratory)" in render(of_scene(scenes.exploratory()))


def test_what_is_certain_in_its_row_alone_is_counted_on_top_and_listed_below():
    cases = [case("many", number=str(number)) for number in range(3)]
    asked = plan(cases)
    sure, row_only, slight = (
        comparison(pair, ratio, "slower") for pair, ratio in zip(asked.pairs, (2.0, 3.0, 1.02), strict=True)
    )
    found = evaluation(
        plan=asked,
        arms=tuple(arm(one, version) for one in cases for version in asked.targets),
        comparisons=(
            sure,
            replace(row_only, row_only=True, reason="certain in its row, but not among all 9 comparisons"),
            replace(slight, verdict="same", size="slight", row_only=True),
        ),
    )
    text = render(of_scene(found))
    shown, folded = text.split("<details>")
    assert "`2.0.0` against `1.0.0`: 1 slower, 1 same, 1 not certain among all comparisons." in shown
    assert [row[0] for row in Page(shown).rows[1:]] == ["many 0"]
    assert "certain in its row, but not among all 9 comparisons" in folded


def test_a_run_of_claims_says_how_many_were_reproduced():
    counts = "2 reproduced; 1 reproduced, smaller; 2 not reproduced; 1 inconclusive; 1 needs a GPU"
    assert f"- 7 claims: {counts}." in render(of_scene(claims_scene()))


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_nothing_foreign_is_markup_a_mention_or_a_link(poison: str):
    found = scenes.poisoned(poison)
    asked = replace(found.plan, targets=targets((OLD, f"2{poison}")))
    told = replace(found, plan=asked, manifest=manifest((OLD,), command=("run", poison), host={"cpu": poison}))
    text = render(of_scene(told))
    page = Page(text)
    assert set(page.tags) <= EXPECTED_TAGS
    for trace in ("@", "#", "http", "octocat", "alert", "evil", "HYPERLINK", "CDATA", "é"):
        assert trace not in page.outside
    assert {len(row) for row in page.rows} == {3, 4, 6}
    assert len([row for row in page.rows if len(row) == 6]) == 1 + len(found.comparisons)
    assert page.tags.count("details") == 1
    assert all(sign.isprintable() or sign == "\n" for sign in text)


@pytest.mark.parametrize(
    "text", ["plain", "a`b", "a|b", "a\\|b", "`", "``x``", "<b>&lt;", "*x* [y](z)", "a\\", "x" * 300]
)
def test_code_shows_what_it_was_given(text: str):
    page = Page(f"| h |\n|---|\n| {code(text)} |")
    assert page.codes == [text]
    assert page.rows[1] == [text]


def test_the_longest_run_fits_into_a_comment():
    poison = "|é" * 5_000
    cases = [case(f"{poison}{number}", value=poison) for number in range(60)]
    asked = plan(cases)
    found = evaluation(
        plan=replace(asked, run=poison),
        manifest=manifest(command=tuple([poison] * 50), host={"cpu": poison}),
        arms=tuple(arm(one, version, outcome="died", reason=poison) for one in cases for version in asked.targets),
        comparisons=tuple(comparison(pair, 2.0, "slower", poison) for pair in asked.pairs),
        warnings=(poison,) * 50,
    )
    text = render(of_scene(found))
    assert len(text) < LONGEST_COMMENT
    assert "more are left out; other export formats list them." in text
    assert set(Page(text).tags) <= EXPECTED_TAGS


def test_the_same_within_a_margin_of_its_own_names_the_margin():
    """Or a claim that allows a quarter would make 1.14x the same without a word."""
    text = render(of_scene(claims_scene()))
    assert "| 1.02x | 0.99-1.05 | 6 | = same within 25% |" in text


def test_a_slight_difference_is_counted_and_shown_as_such():
    text = render(of_scene(evaluation(comparisons=(comparison(version_pair(case()), 0.98, size="slight"),))))
    assert "- `2.0.0` against `1.0.0`: 1 slightly faster." in text
    assert "| ▽ slightly faster |" in text
    assert "Nothing is shown to be slower or faster." in text
