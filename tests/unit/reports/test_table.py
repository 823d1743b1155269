"""The table, to the letter; `UPDATE_SNAPSHOTS=1 pytest tests/unit/reports` writes it anew for review."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest
from rich.cells import cell_len
from rich.console import Console

from orchestrator.errors import UsageError
from orchestrator.model import Evaluation, VerdictName
from orchestrator.reports import table
from orchestrator.reports.columns import COLUMNS
from tests.support import scenes
from tests.support.builders import (  # fmt: skip
    NEW,
    OLD,
    arm,
    case,
    case_pair,
    comparison,
    evaluation,
    manifest,
    plan,
    unmeasured,
    version_pair,
)
from tests.support.kept import FOLDER, kept

WIDTHS = (80, 100, 130, 140)
PICKED = ("build", "train", "verdict")
SCENES = {"everything": scenes.everything, "hostile": scenes.hostile, "exploratory": scenes.exploratory}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch):
    def draw(of: Evaluation, width: int, columns: Sequence[str] | None = None) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        return table.render_details(of, columns)

    return draw


@pytest.mark.parametrize(
    ("name", "scene", "width", "columns"),
    [
        ("everything-80", scenes.everything, 80, None),
        ("everything-100", scenes.everything, 100, None),
        ("everything-130", scenes.everything, 130, None),
        ("everything-140", scenes.everything, 140, None),
        ("picked-80", scenes.everything, 80, PICKED),
        ("all-columns-80", scenes.everything, 80, tuple(COLUMNS)),
        ("exploratory-80", scenes.exploratory, 80, None),
    ],
)
def test_it_is_what_the_snapshot_shows(drawn, name: str, scene, width: int, columns: Sequence[str] | None):
    found = drawn(scene(), width, columns) + "\n"
    assert found == kept(name, found)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scene", SCENES)
def test_no_line_is_wider_than_the_terminal_and_none_ends_in_blanks(drawn, scene: str, width: int):
    for line in drawn(SCENES[scene](), width).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_comparison_has_its_verdict_in_words_unless_the_arm_itself_says_why_not(drawn, width: int):
    both = scenes.everything()
    timed = {arm.key for arm in both.arms if arm.time_ms is not None}
    verdicts = re.findall(r"[▲▼=?] (slower|faster|same|inconclusive)", drawn(both, width))
    assert verdicts == [comparison.verdict for comparison in both.comparisons if comparison.pair.arms[1] in timed]
    assert set(verdicts) == set(get_args(VerdictName))


def of_cases(*judged: dict, **changes):
    """A run of as many cases, each with its comparison between two versions."""
    cases = [case(size=str(number)) for number in range(len(judged))]
    return evaluation(
        plan=plan(cases),
        arms=tuple(arm(one, version) for one in cases for version in (OLD, NEW)),
        comparisons=tuple(comparison(version_pair(one), **each) for one, each in zip(cases, judged, strict=True)),
        **changes,
    )


SLIGHT = ({"ratio": 1.02, "size": "slight"}, {"ratio": 0.98, "size": "slight"}, {"ratio": 1.0})


@pytest.mark.parametrize("width", WIDTHS)
def test_a_slight_difference_is_shown_as_such(drawn, width: int):
    text = drawn(of_cases(*SLIGHT), width)
    assert re.findall(r"[△▽=] [a-z ]*(?:slower|faster|same)", text) == [
        "△ slightly slower",
        "▽ slightly faster",
        "= same",
    ]
    assert "the same as 1.0.0 in 3 of 3 cases (1 slightly slower, 1 slightly faster)." in " ".join(text.split())


NOISY = {"ratio": 1.1, "ci_low": 0.8, "ci_high": 1.5, "verdict": "inconclusive", "reason": "too noisy", "mde": 0.4}
CPU = {"cpu_ratio": 1.07, "cpu_low": 1.04, "cpu_high": 1.11, "cpu_verdict": "slower"}


@pytest.mark.parametrize("width", WIDTHS)
def test_on_a_noisy_machine_cpu_time_is_shown_for_what_stays_open(drawn, width: int):
    decided = {"ratio": 2.0, "verdict": "slower", "cpu_ratio": 1.9, "cpu_low": 1.8, "cpu_high": 2.0}
    text = drawn(of_cases(NOISY | CPU, NOISY | CPU, NOISY, decided), width)
    # In the summary, and in the rows.
    assert " ".join(text.split()).count("1.07x (1.04-1.11)") == 2 + 2
    assert "1.90x" not in text
    assert "cpu ratio: of CPU times" in " ".join(text.split())
    assert max(map(cell_len, text.splitlines())) <= width


def test_cpu_time_is_not_shown_unasked_on_a_quiet_machine_or_in_named_columns(drawn):
    quiet = NOISY | CPU | {"mde": 0.04}
    assert "cpu ratio" not in drawn(of_cases(quiet, quiet, quiet), 130)
    noisy = of_cases(NOISY | CPU, NOISY | CPU, NOISY | CPU)
    assert "cpu ratio" not in drawn(noisy, 130, ("ratio", "verdict"))
    assert drawn(of_cases(quiet, quiet, quiet), 130, ("+cpu-ratio",)).count("1.07x (1.04-1.11)") == 3
    assert drawn(noisy, 130, ("+cpu-ratio",)).count("cpu ratio:") == 1


def test_few_rounds_show_a_ratio_and_no_interval(drawn):
    few = {"ratio": 1.5, "ci_low": None, "ci_high": None, "mde": None, "rounds": 3, "verdict": "inconclusive"}
    so_far = "1.5x so far (3 rounds; 1 more needed for a verdict)"
    text = drawn(of_cases(few | {"missing": 1, "reason": so_far}), 100)
    assert re.search(r"1\.50x +│▌ +\? 3 of 4 rounds$", text, re.M)
    assert "\n(1)" not in text
    text = drawn(of_cases(few | {"missing": 1, "reason": f"postponed: too few; {so_far}"}), 100)
    assert re.search(r"1\.50x +│▌ +\? 3 of 4 rounds \(1\)$", text, re.M)
    assert text.endswith("\n(1) postponed: too few")


def test_without_a_terminal_width_it_is_drawn_for_eighty_columns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert table.render_details(scenes.everything()) + "\n" == (FOLDER / "everything-80.txt").read_text()


@pytest.mark.parametrize("width", WIDTHS)
def test_what_looks_like_markup_is_shown_as_it_is(drawn, width: int):
    text = drawn(scenes.hostile(), width, ("time", "ratio", "verdict"))
    for literal in ("[red]x[/red]", ":smile:", "[link=x]too noisy[/link]", "[bold]boom[/bold]", "[/] :warning:"):
        assert literal in text


def test_markup_in_a_parameters_name_and_in_what_all_cases_share_is_shown_as_it_is(drawn):
    one, other = (case("mine", **{"[red]": value, "[b]same[/b]": "[i]y[/i]"}) for value in "ab")
    both = evaluation(arms=tuple(arm(of, version) for of in (one, other) for version in ("1.0.0", "2.0.0")))
    text = drawn(both, 100)
    assert "mine  [b]same[/b]=[i]y[/i]" in text
    assert "\n [red]  target" in text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[2J", r"\x1b[2J"), ("\r", r"\r"), ("\a", r"\x07"), ("\b", r"\x08"), ("\x9b31m", r"\x9b31m"),
        ("\u202e", r"\u202e"), ("\u2066", r"\u2066"), ("\u200b", r"\u200b"), ("\udc80", r"\udc80"), ("\x00", r"\x00"),
        ("\x1b]8;;http://x\x1b\\", r"\x1b]8;;http://x\x1b"), ("[red]", "[red]"), (":smile:", ":smile:"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("terminal", [False, True])
def test_no_text_from_elsewhere_steers_the_terminal(text: str, seen: str, terminal: bool):
    buffer = io.StringIO()
    console = Console(file=buffer, width=240, force_terminal=terminal, color_system="standard" if terminal else None)
    console.print(table.layout(scenes.poisoned(text), 240, tuple(COLUMNS)))
    shown = re.sub(r"\x1b\[[\d;]*m", "", buffer.getvalue()) if terminal else buffer.getvalue()
    assert {character for character in shown if not character.isprintable()} == {"\n"}
    for place in ("run", "cpu", "CPU", "w", "p", "a", "refused", "died", "noisy", "warned", "broken", "shared="):
        assert f"{place}{seen}" in shown


@pytest.mark.parametrize("width", [80, 140])
def test_names_and_reasons_of_ten_thousand_characters_fill_no_screen(drawn, width: int):
    endless = "x" * 10_000
    one, other = case("mine", text=endless, other="a"), case("mine", text="short", other="a")
    pairs = (*plan([one, other]).pairs, case_pair(one, other))
    text = drawn(
        Evaluation(
            plan=plan([one, other], pairs=pairs),
            manifest=manifest(),
            arms=(arm(one, OLD), unmeasured(one, NEW, "died", endless), arm(other, OLD), arm(other, NEW)),
            comparisons=tuple(comparison(pair, 2.0, "slower") for pair in pairs[1:]),
            warnings=(endless,),
        ),
        width,
    )
    assert len(text.splitlines()) < 100
    assert text.count(" (10000 characters) ") >= 2, "reason and warning; a name may wrap inside it"
    assert all(cell_len(line) <= width for line in text.splitlines())


def test_a_reason_of_several_lines_forges_no_row(drawn):
    reason = "boom\n\n  2.0.0  1.00 ms\n"
    text = drawn(evaluation(arms=(unmeasured(case(), "1.0.0", "died", reason), arm(case(), "2.0.0"))), 80)
    assert text.endswith("\n(1) boom 2.0.0  1.00 ms")


def test_there_is_no_colour_in_a_pipe(drawn):
    assert "\x1b" not in drawn(scenes.everything(), 100)


def test_a_reason_stands_once_however_many_rows_it_explains(drawn):
    text = drawn(scenes.everything(), 130)
    assert text.count("too noisy: 6 rounds") == 1
    assert text.count("? inconclusive (1)") == 2


def test_broken_streams_and_warnings_come_before_any_figure(drawn):
    text = drawn(evaluation(broken=("stream x is not an Arrow stream",), warnings=("cut short",)), 80)
    assert text.index("warning: stream x") < text.index("warning: cut short") < text.index("10.0 ms")


def test_the_head_says_on_what_how_sure_and_what_a_time_is(drawn):
    head = drawn(evaluation(), 80).splitlines()[:6]
    assert head == [
        "tfcompare run 20260102-030405-abcd",
        "venv · cpu · A CPU, 2 cores · margin 5% · rows: at most 2.5% of equal arms are",
        "called slower or faster · intervals hold in at least 95% of runs",
        "sentences and --fail-on name equal arms in at most 5% of reports",
        "time: after the warm-up, per step · bar: log scale, full at 10x · ratios and",
        "verdicts: of times, by round",
    ]


CARDS = "NVIDIA H200 (GPU-1, driver 580.1); Tesla T4 (GPU-2); NVIDIA H200 (GPU-3)"


@pytest.mark.parametrize(
    ("listed", "chosen", "told"),
    [
        (CARDS, ("GPU-2",), "Tesla T4"),
        (CARDS, ("GPU-1", "GPU-3"), "2 x NVIDIA H200"),
        (CARDS, (), "2 x NVIDIA H200, Tesla T4"),
        (None, (), "gpu"),
        (CARDS, ("MIG-4",), "gpu"),
    ],
)
def test_the_head_names_the_cards(drawn, listed: str | None, chosen: tuple[str, ...], told: str):
    host = {"cpu": "A CPU", "usable_cores": 2, "gpus": listed}
    of = evaluation(plan=plan(device="gpu", gpus=chosen), manifest=manifest(host=host))
    assert drawn(of, 120).splitlines()[1].startswith(f"venv · {told} · A CPU, 2 cores")


@pytest.mark.parametrize("width", range(40, 131, 5))
def test_no_figure_loses_a_digit_however_narrow_the_terminal(drawn, width: int):
    text = drawn(scenes.everything(), width, tuple(COLUMNS))
    for figure in ("5.41 ms", "2.53 min", "1.14 h", "0.0029-0.0031", "+33233", "250x", "300 MiB", "? inconclusive (2)"):
        assert figure in text


def test_columns_that_do_not_fit_beside_each_other_stand_in_a_second_table(drawn):
    columns = ("time", "build", "first", "second", "train", "resident")
    assert drawn(scenes.everything(), 80, columns).count("train_loop  loop=fit") == 1
    narrow = drawn(scenes.everything(), 50, columns)
    assert narrow.count("train_loop  loop=fit") == 2
    assert narrow.count("refused (1)") == 4


def test_an_arm_that_was_not_measured_says_why_whichever_columns_are_shown(drawn):
    for columns in (("build",), ("verdict",), ("rounds", "time")):
        text = drawn(scenes.everything(), 80, columns)
        assert text.count("refused (") == 2
        assert "tf.function has no jit switch" in text


def test_an_arm_that_died_after_some_rounds_keeps_its_time_and_says_so(drawn):
    only = case()
    both = evaluation(
        arms=(arm(only, "1.0.0", outcome="died", reason="out of memory"), arm(only, "2.0.0")), comparisons=()
    )
    assert re.search(r"1\.0\.0 +10\.0 ms +died \(1\)\n", drawn(both, 80))


def test_without_a_column_of_comparisons_there_is_no_table_inside_versions(drawn):
    assert "inside each target" not in drawn(scenes.everything(), 80, ("build", "time"))
    assert "inside each target" in drawn(scenes.everything(), 80, ("build", "verdict"))


def test_the_star_is_explained_once_and_only_where_one_is_shown(drawn):
    shown = drawn(scenes.exploratory(), 80)
    assert shown.count("▲ slower*") == 1
    assert "? inconclusive* (1)" in shown
    assert shown.count("* exploratory: more rounds were taken after the error of 5 % was spent") == 1
    assert "*" not in drawn(scenes.exploratory(), 80, ("time", "ratio"))
    assert "*" not in drawn(scenes.everything(), 130)


def test_the_star_tells_the_error_of_the_plan(drawn):
    strict = replace(scenes.exploratory(), plan=replace(scenes.exploratory().plan, alpha=0.01))
    assert "the error of 1 % was spent" in drawn(strict, 130)


def test_a_name_that_is_no_column_is_wrong_usage():
    with pytest.raises(UsageError, match=r"unknown column 'tiem' \(did you mean time\?\)"):
        table.layout(evaluation(), 80, ("tiem",))


def test_a_lone_case_needs_no_name_and_shows_its_parameters_in_the_title(drawn):
    only = case("power", style="jit")
    both = evaluation(
        arms=(arm(only, "1.0.0"), arm(only, "2.0.0")), comparisons=(comparison(version_pair(only), 2.0, "slower"),)
    )
    text = drawn(both, 80)
    assert "power  style=jit\n" in text
    assert "▲ slower" in text
