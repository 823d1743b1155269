"""The study's tables, to the letter; `UPDATE_SNAPSHOTS=1 pytest tests/unit/reports` writes them anew for review."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from orchestrator.errors import UsageError
from orchestrator.model import Evaluation, Target
from orchestrator.reports import study
from orchestrator.reports.columns import MARKS
from tests.support.builders import arm, case, evaluation, unmeasured
from tests.support.kept import FOLDER, kept
from tests.unit.reports import study_scenes as scenes
from tests.unit.reports.study_scenes import LATER, TF1, TF2, loop, made, modes_apart, one_cell, versions_apart

WIDTHS = (80, 100, 140)


def two_versions() -> Evaluation:
    return scenes.study((TF1, TF2))


def small_block() -> Evaluation:
    """What fits into one table with a line a row."""
    cases = [loop(data=data, mode=mode) for mode in ("graph", "eager") for data in ("small", "medium")]
    ms = {("graph", TF1): 5.4, ("graph", TF2): 5.9, ("eager", TF1): 6.2, ("eager", TF2): 22.6}
    return made(
        cases,
        [arm(of, version, time=ms[dict(of.params)["mode"], version]) for of in cases for version in (TF1, TF2)],
    )


SCENES = {"study": scenes.study, "two": two_versions, "small": small_block, "hostile": scenes.hostile}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch):
    def draw(of: Evaluation, width: int = 140) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        return study.render_study(of)

    return draw


@pytest.mark.parametrize(
    ("scene", "width"),
    [
        ("study", 80),
        ("study", 140),
        ("two", 80),
        ("two", 100),
        ("two", 140),
        ("small", 140),
        ("hostile", 80),
        ("hostile", 140),
    ],
)
def test_it_is_what_the_snapshot_shows(drawn, scene: str, width: int):
    found = drawn(SCENES[scene](), width) + "\n"
    assert found == kept(f"study-{scene}-{width}", found)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scene", SCENES)
def test_no_line_is_wider_than_the_terminal_and_none_ends_in_blanks(drawn, scene: str, width: int):
    for line in drawn(SCENES[scene](), width).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("width", range(40, 161, 15))
def test_every_cell_has_its_times_ratio_interval_percent_and_mark_however_narrow_the_terminal(drawn, width: int):
    both = scenes.study()
    text = drawn(both, width)
    block = [comparison for comparison in both.comparisons if comparison.ratio]
    assert len(block) > 50
    for comparison in block:
        assert f"{comparison.ratio:.2f}x" in text
        assert f"{comparison.ci_low:.2f}-{comparison.ci_high:.2f}" in text
        assert re.search(
            rf"{re.escape(f'{round(comparison.seed_percent):+d}')} {re.escape(MARKS[comparison.verdict])}", text
        )
    for figure in ("5.40 ms", "22.8 ms", "28.5 ms", "~ 51.2 ms", "1.45 min", "7.81 s (1)", "died (1)"):
        assert figure in text


def body(text: str) -> str:
    """What stands below the legend."""
    return text.partition("fit · tf.keras · numpy\n")[2]


@pytest.mark.parametrize(
    ("comparison", "shown"),
    [
        (versions_apart(3.6, "slower"), "-260 ▲"),
        (versions_apart(1 / 3.6, "faster"), "+260 ▼"),
        (modes_apart(0.25, "faster"), "+300 ▼"),
        (modes_apart(4.0, "slower"), "-300 ▲"),
        (versions_apart(1.0, "same"), "+0 ="),
    ],
)
def test_percent_and_sign_are_the_studys(drawn, comparison, shown: str):
    assert f" {shown}" in body(drawn(one_cell(comparison)))


def test_a_later_version_is_compared_with_the_first_and_graph_with_eager_in_each(drawn):
    header = body(drawn(scenes.study(), 200)).splitlines()[:2]
    assert header[0].split() == ["graph", "eager", "GvE"]
    assert header[1].replace("%", "").split() == [TF1, TF2, LATER, TF1, TF2, LATER, TF1, TF2, LATER]


def test_the_order_of_versions_is_the_runs(drawn):
    header = body(drawn(scenes.study((TF2, TF1)), 200)).splitlines()[1]
    assert header.replace("%", "").split() == [TF2, TF1] * 3
    assert f"{TF1}: ratio to {TF2} in the same mode, + if faster" in drawn(scenes.study((TF2, TF1)), 200)


def test_all_blocks_have_the_same_form_a_line_a_row_or_two(drawn):
    for width, scene in ((140, scenes.study), (80, scenes.study), (140, small_block)):
        headers = [line for line in drawn(scene(), width).splitlines() if line.startswith("model ")]
        assert len({"time" in header for header in headers}) == 1


def test_a_row_is_a_size_the_model_named_once_and_the_studys_order_kept(drawn):
    rows = re.findall(r"^(\w+ +|  +)(small|medium|large) ", body(drawn(two_versions(), 140)), re.M)
    told = [(model.strip(), data) for model, data in rows][:8]
    assert told == [
        ("small", "small"), ("", "medium"), ("", "large"),
        ("medium", "small"), ("", "medium"), ("", "large"),
        ("large", "medium"), ("", "large"),
    ]  # fmt: skip


def test_the_large_model_without_small_data_is_told_only_where_both_are_in_the_run(drawn):
    told = "the large model has no small data, as in the study"
    assert told in drawn(scenes.study())
    assert told not in drawn(small_block())
    held = [loop(model, "small", mode=mode) for model in ("small", "large") for mode in ("graph", "eager")]
    assert told not in drawn(made(held, [arm(of, version) for of in held for version in (TF1, TF2)]))


def test_a_size_that_a_mode_does_not_hold_is_a_dot_without_a_note(drawn):
    cases = [loop(mode="graph"), loop(mode="eager"), loop("medium", mode="eager")]
    text = body(drawn(made(cases, [arm(of, version) for of in cases for version in (TF1, TF2)])))
    assert re.search(r"^medium small +· +· +10\.0 ms 10\.0 ms", text, re.M)
    assert "(1)" not in text


def test_a_refusal_stands_in_its_cell_or_once_below_where_nothing_else_was_measured(drawn):
    text = drawn(scenes.study())
    assert f"\nrefused (4): {TF1} eager\nrefused (5): {LATER} graph, {LATER} eager\n" in text
    assert text.count(scenes.NO_KERAS) == 1
    assert "\nfit · keras · dataset\nrefused (6)" in text
    cases = [loop(), loop("medium")]
    arms = [arm(cases[0], TF1), arm(cases[0], TF2), arm(cases[1], TF1), unmeasured(cases[1], TF2, "refused", "no")]
    assert re.search(r"^medium small +10\.0 ms refused \(1\)\n\n\(1\) no$", body(drawn(made(cases, arms))), re.M)


def test_times_without_a_baseline_are_shown_without_a_ratio(drawn):
    only = loop()
    text = body(drawn(made([only], [unmeasured(only, TF1, "refused", "no eager"), arm(only, TF2, time=22.6)])))
    assert re.search(r"^small +small +22\.6 ms\nrefused \(1\): 1\.14\.0 eager\n\n\(1\) no eager$", text, re.M)


def test_an_arm_that_died_after_some_rounds_keeps_its_time_and_says_why(drawn):
    text = drawn(two_versions())
    assert re.search(r"7\.23 s +7\.81 s \(1\) -8 \? \(2\)", text)
    assert f"(1) {scenes.KILLED}\n(2) {TF2} died after 3 rounds: {scenes.KILLED}\n" in text


@pytest.mark.parametrize(
    ("interval", "noted"),
    [
        ((0.7, 1.4), False),
        ((0.99, 1.06), False),
        ((0.94, 1.01), False),
        ((1.01, 1.2), True),
        ((0.8, 0.99), True),
        ((0.97, 1.03), True),
    ],
)
def test_undecided_has_a_note_only_where_the_interval_does_not_show_why(drawn, interval: Sequence[float], noted: bool):
    low, high = interval
    undecided = versions_apart(1.0, "inconclusive", "because", ci_low=low, ci_high=high)
    text = drawn(one_cell(undecided))
    assert ("+0 ? (1)" in text, "(1) because" in text) == (noted, noted)
    assert "+0 ?" in text


def test_two_times_without_a_ratio_say_why(drawn):
    text = drawn(one_cell(versions_apart(None, "inconclusive", "fewer than two rounds were measured")))
    assert re.search(r"10\.0 ms 36\.0 ms +\? \(1\)", text)
    assert text.endswith("\n(1) fewer than two rounds were measured")


def test_a_slight_difference_has_its_mark(drawn):
    text = drawn(one_cell(versions_apart(1.03, "same", size="slight")))
    assert "△" in text.rpartition("note says why")[2]


def test_few_rounds_show_a_ratio_and_why_there_is_no_interval(drawn):
    few = versions_apart(3.6, "inconclusive", "3 rounds are too few to tell", ci_low=None, ci_high=None, rounds=3)
    text = drawn(one_cell(few))
    assert re.search(r"36\.0 ms +3\.60x +-260 \? \(1\)", text)


def test_marks_are_told_in_words(drawn):
    assert "▲ slower · ▼ faster · △ slightly slower · ▽ slightly faster · = same · ? inconclusive" in drawn(
        small_block()
    )


def test_exploratory_comparisons_and_drifting_arms_are_marked_and_told(drawn):
    text = drawn(one_cell(versions_apart(3.6, "slower", exploratory=True)))
    assert "-260 ▲*" in text
    assert "\n* exploratory: " in text
    assert "~ 51.2 ms" in drawn(scenes.study())
    assert "\n~ 2.13.0 train_loop[" in drawn(scenes.study())


def test_the_margin_of_a_comparison_of_its_own_is_what_its_interval_is_held_against(drawn):
    of = versions_apart(1.0, "inconclusive", "because", ci_low=0.9, ci_high=1.3)
    wide = replace(of, pair=replace(of.pair, margin=0.5))
    assert "+0 ? (1)" in drawn(one_cell(wide))


def test_of_a_comparison_asked_for_twice_the_one_of_the_runs_margin_is_shown(drawn):
    of = versions_apart(1.2, "slower")
    claimed = replace(versions_apart(1.2, "inconclusive", "not 50%"), pair=replace(of.pair, margin=0.5))
    for comparisons in ((of, claimed), (claimed, of)):
        text = drawn(replace(one_cell(of), comparisons=comparisons))
        assert "-20 ▲" in text
        assert "not 50%" not in text


def test_only_times_after_the_warm_up_are_compared(drawn):
    of = versions_apart(9.0, "slower")
    first = replace(of, pair=replace(of.pair, metric="first"))
    text = body(drawn(replace(one_cell(of), comparisons=(first,))))
    assert "9.00x" not in text
    assert "10.0 ms 36.0 ms" in text


def test_other_workloads_and_the_control_arm_stay_out(drawn):
    power, train = case("power", style="jit"), loop()
    control = str(Target(TF1, control=True))
    versions = (TF1, control, TF2)
    text = drawn(made([power, train], [arm(of, version) for of in (power, train) for version in versions], versions))
    assert "power" not in text
    assert control not in text
    assert body(text).splitlines()[1].split() == [TF1, TF2]


def test_a_run_of_one_version_compares_its_modes(drawn):
    cases = [loop(mode=mode) for mode in ("graph", "eager")]
    text = drawn(made(cases, [arm(of, TF2) for of in cases], (TF2,)))
    assert body(text).splitlines()[0].split() == ["graph", "eager", "GvE"]
    assert "GvE: ratio of graph to eager in the same version, + if graph is faster" in text
    assert "TF2 v TF1" not in text


def test_a_run_of_one_mode_compares_its_versions(drawn):
    only = loop()
    text = drawn(made([only], [arm(only, version) for version in (TF1, TF2)]))
    assert body(text).splitlines()[0].split() == ["eager"]
    assert "GvE" not in text


def test_a_run_without_the_studys_cases_is_wrong_usage():
    with pytest.raises(
        UsageError, match=r"has no case of train_loop.*--table verdicts.*tfcompare run --case train_loop"
    ):
        study.layout(evaluation(), 80)


def test_warnings_come_before_any_figure(drawn):
    told = replace(small_block(), broken=("stream x is not an Arrow stream",), warnings=("cut short",))
    text = drawn(told)
    assert text.index("warning: stream x") < text.index("warning: cut short") < text.index("5.40 ms")


def test_without_a_terminal_width_it_is_drawn_for_eighty_columns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert study.render_study(scenes.study()) + "\n" == (FOLDER / "study-study-80.txt").read_text()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[2J", r"\x1b[2J"), ("\r", r"\r"), ("\a", r"\x07"), ("\x9b31m", r"\x9b31m"), ("\u202e", r"\u202e"),
        ("\u200b", r"\u200b"), ("\udc80", r"\udc80"), ("\x00", r"\x00"), ("[red]", "[red]"), (":smile:", ":smile:"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("terminal", [False, True])
def test_no_text_from_elsewhere_steers_the_terminal(text: str, seen: str, terminal: bool):
    buffer = io.StringIO()
    console = Console(file=buffer, width=400, force_terminal=terminal, color_system="standard" if terminal else None)
    console.print(study.layout(scenes.poisoned(text), 400))
    shown = re.sub(r"\x1b\[[\d;]*m", "", buffer.getvalue()) if terminal else buffer.getvalue()
    assert {character for character in shown if not character.isprintable()} == {"\n"}
    for place in ("run", "cpu", "CPU", "api", "model", "data", "refused", "died", "noisy", "warned", "broken", "2"):
        assert f"{place}{seen}" in shown


def test_a_reason_of_several_lines_forges_no_row(drawn):
    only = loop()
    text = drawn(made([only], [unmeasured(only, TF1, "died", "boom\n\nsmall small 1.00 ms\n"), arm(only, TF2)]), 80)
    assert text.endswith("\n(1) boom small small 1.00 ms")


def test_there_is_no_colour_in_a_pipe(drawn):
    assert "\x1b" not in drawn(scenes.study())
