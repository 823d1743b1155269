"""The table, to the letter; `UPDATE_SNAPSHOTS=1 pytest tests/unit/reports` writes it anew for review."""

import os
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from orchestrator.model import Comparison
from orchestrator.reports import table
from tests.unit.builders import arm, case, comparison, contrast, version_pair
from tests.unit.reports import scenes

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"
WIDTHS = (80, 100, 140)
SCENES = {"everything": scenes.everything, "hostile": scenes.hostile}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch):
    def draw(of: Comparison, width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        return table.render(of)

    return draw


@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_what_the_snapshot_shows(drawn, width: int):
    found = drawn(scenes.everything(), width) + "\n"
    snapshot = SNAPSHOTS / f"everything-{width}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        snapshot.write_text(found)
    assert found == snapshot.read_text()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scene", SCENES)
def test_no_line_is_wider_than_the_terminal_and_none_ends_in_blanks(drawn, scene: str, width: int):
    for line in drawn(SCENES[scene](), width).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_contrast_has_its_verdict_in_words_unless_the_arm_itself_says_why_not(drawn, width: int):
    both = scenes.everything()
    timed = {(arm.case.label, arm.version) for arm in both.arms if arm.median_ms is not None}
    verdicts = re.findall(r"[▲▼=?] (slower|faster|same|inconclusive)", drawn(both, width))
    assert verdicts == [contrast.verdict for contrast in both.contrasts if contrast.pair.arms[1] in timed]
    assert set(verdicts) == table.MARKS.keys()


def test_without_a_terminal_width_it_is_drawn_for_eighty_columns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert table.render(scenes.everything()) + "\n" == (SNAPSHOTS / "everything-80.txt").read_text()


@pytest.mark.parametrize("width", WIDTHS)
def test_what_looks_like_markup_is_shown_as_it_is(drawn, width: int):
    text = drawn(scenes.hostile(), width)
    for literal in ("[red]x[/red]", ":smile:", "[link=x]too noisy[/link]", "[bold]boom[/bold]", "[/] :warning:"):
        assert literal in text


def test_markup_in_a_parameters_name_and_in_what_all_cases_share_is_shown_as_it_is(drawn):
    one, other = (case("mine", **{"[red]": value, "[b]same[/b]": "[i]y[/i]"}) for value in "ab")
    both = comparison(arms=tuple(arm(of, version) for of in (one, other) for version in ("1.0.0", "2.0.0")))
    text = drawn(both, 100)
    assert "mine  [b]same[/b]=[i]y[/i]" in text
    assert "\n [red]  version" in text


def test_there_is_no_colour_in_a_pipe(drawn):
    assert "\x1b" not in drawn(scenes.everything(), 100)


def test_a_reason_stands_once_however_many_rows_it_explains(drawn):
    text = drawn(scenes.everything(), 140)
    assert text.count("too noisy for 6 rounds") == 1
    assert text.count("? inconclusive (1)") == 2


def test_broken_streams_and_warnings_come_before_any_figure(drawn):
    text = drawn(comparison(broken=("stream x is no Arrow stream",), warnings=("cut short",)), 80)
    assert text.index("warning: stream x") < text.index("warning: cut short") < text.index("10.0 ms")


def test_the_head_says_on_what_and_how_sure(drawn):
    head = drawn(comparison(), 80).splitlines()[:3]
    assert head == [
        "tfcompare run 20260102-030405-abcd",
        "venv · cpu · A CPU, 2 cores · margin 5% · intervals at 98.75%",
        "2.0.0 against 1.0.0: 1 same.",
    ]


def test_a_version_without_any_contrast_is_said_to_have_measured_nothing():
    assert table.summary(comparison(contrasts=())) == "2.0.0 against 1.0.0: nothing measured."


def test_a_lone_case_needs_no_name_and_shows_its_parameters_in_the_title(drawn):
    only = case("power", style="jit")
    both = comparison(
        arms=(arm(only, "1.0.0"), arm(only, "2.0.0")), contrasts=(contrast(version_pair(only), 2.0, "slower"),)
    )
    text = drawn(both, 80)
    assert "power  style=jit\n" in text
    assert "▲ slower" in text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0.0000123, "0.0123 µs"), (0.0186, "18.6 µs"), (0.25, "250 µs"), (0.9994, "999 µs"), (1.0, "1.00 ms"),
        (5.414, "5.41 ms"), (99.96, "100 ms"), (123.4, "123 ms"), (1000.0, "1.00 s"), (1353.0, "1.35 s"),
        (600_000.0, "600 s"),
    ],
)  # fmt: skip
def test_a_time_has_three_figures_and_the_unit_that_fits(milliseconds: float, text: str):
    assert table.duration(milliseconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.003, "0.003x"), (0.0312, "0.031x"), (0.5, "0.50x"), (1.0, "1.00x"), (12.34, "12.3x"), (250.1, "250x")],
)
def test_a_ratio_has_the_figures_that_it_bears(value: float, text: str):
    assert table.ratio(value) == text
