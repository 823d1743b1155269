"""Two runs compared, as they are drawn and as they are given to programs."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from orchestrator.model import Evaluation
from orchestrator.reports import changes
from orchestrator.reports.html.changes import render_changes
from orchestrator.results.compare_runs import Changes, Difference, RatioChange, TimeChange
from orchestrator.results.run import Run
from orchestrator.terminal.text import render_plain
from tests.support import scenes
from tests.support.builders import change_arm, comparison
from tests.support.kept import kept

ROOT = Path(__file__).resolve().parents[3]


def both() -> Changes:
    """All verdicts, one comparison that a run lacks, and differences of the machine."""
    evaluation = scenes.everything()
    runs = [Run(Path(name), evaluation, (), ()) for name in ("earlier", "later")]
    outcomes = (
        (1.5, "slower", ""), (0.4, "faster", ""), (1.01, "same", ""),
        (1.1, "inconclusive", "too noisy: these rounds show changes from 18% on"),
    )  # fmt: skip
    found = []
    timed = [one for one in evaluation.comparisons if one.ratio is not None]
    for one, (ratio, verdict, reason) in zip(timed, outcomes, strict=False):
        later = comparison(one.pair, one.ratio * ratio, one.verdict)
        found.append(
            RatioChange(
                pair=one.pair, earlier=one, later=later, ratio=ratio, ci_low=ratio * 0.95, ci_high=ratio * 1.05,
                verdict=verdict, reason=reason,
            )
        )  # fmt: skip
    missing = next(one for one in evaluation.comparisons if one.ratio is None)
    found.append(
        RatioChange(
            pair=missing.pair, earlier=missing, later=missing, ratio=None, ci_low=None, ci_high=None,
            verdict="inconclusive", reason=f"no ratio in the earlier run: {missing.reason}",
        )
    )  # fmt: skip
    return Changes(
        earlier=runs[0],
        later=runs[1],
        margin=0.05,
        changes=tuple(found),
        differences=(Difference("engine", "venv", "docker"), Difference("host cpu", "A CPU", "Another CPU")),
        left_out=("left out, because their source or data changed between the runs: power",),
        own_times=own_times(evaluation),
    )


def own_times(evaluation: Evaluation) -> tuple[TimeChange, ...]:
    """One that changed, one that did not, and one that is open."""
    timed = [arm for arm in evaluation.arms if arm.time_ms]
    outcomes = ((1.5, "slower", "beyond", ""), (1.01, "same", None, ""), (1.1, "inconclusive", None, "too noisy"))
    return tuple(
        TimeChange(
            arm=arm.key, earlier=arm, later=change_arm(arm, time=arm.time_ms * ratio), ratio=ratio,
            ci_low=ratio * 0.95, ci_high=ratio * 1.05, verdict=verdict, size=size, reason=reason,
        )
        for arm, (ratio, verdict, size, reason) in zip(timed, outcomes, strict=False)
    )  # fmt: skip


@pytest.mark.parametrize("width", [80, 120])
def test_it_is_what_the_snapshot_shows(monkeypatch: pytest.MonkeyPatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    found = render_plain(lambda wide: changes.layout_changes(both(), wide)) + "\n"
    assert found == kept(f"changes-{width}", found)


def test_the_object_holds_every_figure_that_the_table_shows():
    found = json.loads(json.dumps(changes.changes_as_object(both()), allow_nan=False))
    assert found["schema"] == "tfcompare.changes/1"
    assert [one["verdict"] for one in found["changes"]] == [
        "slower", "faster", "same", "inconclusive", "inconclusive",
    ]  # fmt: skip
    assert found["changes"][0]["later_ratio"] == pytest.approx(found["changes"][0]["earlier_ratio"] * 1.5)
    assert found["changes"][4]["change"] is None
    assert found["differences"][0] == {"what": "engine", "earlier": "venv", "later": "docker"}
    assert found["warnings"] == ["left out, because their source or data changed between the runs: power"]


def test_the_object_is_what_its_published_schema_says():
    schema = json.loads((ROOT / "docs" / "schema" / "changes-1.json").read_text())
    found = changes.changes_as_object(both())
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)
    for name, one in (("change", found["changes"][0]), ("run", found["earlier"])):
        assert list(schema["$defs"][name]["properties"]) == list(one)
    assert list(schema["properties"]) == list(found)


def test_what_steers_a_terminal_is_shown_and_not_obeyed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    hostile = replace(
        both(), differences=(Difference("host cpu", "\x1b[2J[red]x[/red]", "\u202e"),), left_out=("\x07",)
    )
    text = render_plain(lambda wide: changes.layout_changes(hostile, wide))
    assert r"\x1b[2J[red]x[/red]" in text
    assert {character for character in text if not character.isprintable()} == {"\n"}


def test_nothing_of_two_runs_becomes_markup_of_their_page():
    attack = '</style><script>alert(1)</script><img src=x onerror="x">\u202e'
    compared = both()
    hostile = replace(
        compared,
        changes=tuple(replace(change, reason=attack) for change in compared.changes),
        differences=(Difference(attack, attack, "a later fact"),),
        left_out=(attack,),
    )
    page, harmless = render_changes(hostile), render_changes(compared)
    assert page.count("<script") == page.count("<img") == harmless.count("<script") == 0
    assert page.count("</style>") == harmless.count("</style>") == 1
    assert "\u202e" not in page
    shown = "&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&#34;x&#34;&gt;\\u202e"
    assert page.count(shown) == len(compared.changes) + 3
    assert "a later fact" in page


def test_the_sum_counts_what_is_certain_among_all_changes():
    slower, faster, *others = both().changes
    marked = (replace(slower, row_only=True), faster, *others)
    assert changes.summarize_changes(marked) == (
        "5 ratios in both: 1 faster, 1 same, 2 inconclusive, 1 not certain among all comparisons."
    )
