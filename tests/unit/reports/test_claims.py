"""Claims as a table, to the letter, and as the object that programs read."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from orchestrator.catalog.found import Found
from orchestrator.errors import UsageError
from orchestrator.model import OutputComparison, Part, Returns
from orchestrator.reports import claims
from tests.support.builders import (
    NEW,
    OLD,
    case,
    case_pair,
    claim,
    comparison,
    evaluation,
    expectation,
    plan,
    version_pair,
)
from tests.support.claims_scene import scene
from tests.support.kept import kept


@pytest.mark.parametrize("width", [80, 120])
def test_it_is_what_the_snapshot_shows(monkeypatch: pytest.MonkeyPatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    found = claims.render_claims(scene()) + "\n"
    assert found == kept(f"claims-{width}", found)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_the_terminal_and_nothing_hostile_gets_out(monkeypatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    text = claims.render_claims(scene("[red]gone[/red] \x1b[2J \u202e" + "x" * 300))
    assert max(map(cell_len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_object_has_what_the_schema_promises():
    found = json.loads(claims.as_json(scene()))
    assert found["schema"] == "tfcompare.claims/1"
    assert [one["verdict"] for one in found["claims"]] == [
        "reproduced", "inconclusive", "not reproduced", "reproduced, smaller", "not reproduced", "reproduced",
        "needs a GPU",
    ]  # fmt: skip
    first = found["claims"][0]
    promised = {"claim", "title", "source", "verdict", "expected", "ratio", "ci_low", "ci_high", "targets", "reason"}
    assert promised <= first.keys()
    assert (first["claim"], first["ratio"], first["targets"]) == ("eager-training", 4.2, [OLD, NEW])
    assert first["expected"] == "slower, at least 2.50x (published 6.25x)"
    assert (first["published"], first["read_as"]) == (6.25, None)
    assert first["said_of"] == ["a GTX 1070, Windows 10", "CPU of Colab"]
    assert first["reason"] is None
    assert found["claims"][1]["checks"][1]["metric"] == "memory"
    assert found["claims"][1]["said_of"] == ["any machine"]
    assert "stayed as it was" in found["claims"][2]["reason"]
    assert found["claims"][-1]["ratio"] is None


def test_a_reading_of_words_is_never_shown_as_published():
    read = json.loads(claims.as_json(scene()))["claims"][1]["checks"][1]
    assert (read["published"], read["read_as"]) == (None, 10.0)
    assert read["expected"] == "more, at least 3.16x (read as 10x)"


def test_each_kind_of_statement_says_what_was_seen_in_its_own_words():
    checks = {one["claim"]: one["checks"] for one in json.loads(claims.as_json(scene()))["claims"]}
    mean, wins = checks["on-par"]
    assert mean["expected"] == "the geometric mean within 1.25x"
    assert (round(mean["ratio"], 2), mean["verdict"]) == (2.07, "not reproduced")
    assert wins["expected"] == "more often slower than the other way round"
    often, seldom, share = checks["retraces"]
    assert (often["figure"], often["at_least"], often["ratio"]) == (0.98, 0.9, None)
    assert (seldom["figure"], seldom["at_most"], seldom["metric"]) == (0.02, 0.05, "traces_per_call")
    assert (share["figure"], share["expected"]) == (0.7, "at least 40% of the time (published 81%)")
    control = checks["first-call"][1]
    assert control["expected"] == "not slower by 4.00x or more"
    assert (control["published"], control["at_least"], control["below"], control["ours"]) == (None, None, 4.0, False)


def test_a_part_and_a_control_of_ours_are_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "140")
    eager, function, jit = (case(style=style) for style in ("eager", "function", "jit"))
    step, whole = case_pair(eager, function), case_pair(eager, jit)
    control = replace(whole, margin=0.25)
    said = claim(
        expectation(pair=control, effect="not slower", published=None, ours=True),
        parts=(Part(step=step, whole=whole, at_least=0.5),),
    )
    made = evaluation(
        plan=plan((eager, function, jit), pairs=(step, whole, control), claims=(said,)),
        comparisons=(
            comparison(step, 0.05, "faster", ci_low=0.04, ci_high=0.06),
            comparison(whole, 0.03, "faster", ci_low=0.025, ci_high=0.035),
            comparison(control, 0.03, "faster", ci_low=0.025, ci_high=0.035),
        ),
    )
    text = claims.render_claims(made)
    assert "85% · expected: at least 50% of the difference, on the log scale" in text
    assert "not slower by 1.25x or more (a control of ours)" in text
    [shown] = json.loads(claims.as_json(made))["claims"]
    part = shown["checks"][0]
    assert (shown["verdict"], shown["ratio"], shown["ci_low"]) == ("reproduced", None, None)
    assert (round(part["figure"], 2), part["at_least"], part["ratio"]) == (0.85, 0.5, None)
    assert (shown["checks"][1]["below"], shown["checks"][1]["ours"]) == (1.25, True)


def test_a_claim_alone_shows_its_source_and_its_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    whole = scene()
    alone = replace(whole, plan=replace(whole.plan, claims=whole.plan.claims[3:4]))
    text = claims.render_claims(alone)
    assert "source: https://example.org/1" in text
    assert 'in its words: "It takes 16 times as long."' in text
    assert "in its words" not in claims.render_claims(whole)


def test_what_was_found_before_is_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    before = Found(answer="reproduced", reason="", date="2026-01-02", machine="cpu of a Xeon", checks=())
    monkeypatch.setattr(claims, "all_found", lambda: {"first-call": before})
    whole = scene()
    alone = replace(whole, plan=replace(whole.plan, claims=whole.plan.claims[3:4]))
    assert "found before: reproduced, 2026-01-02, cpu of a Xeon" in claims.render_claims(alone)


def test_a_run_without_claims_has_no_such_table():
    with pytest.raises(UsageError, match="tested no claims"):
        claims.render_claims(evaluation())


def test_every_builtin_claim_can_be_listed(capsys: pytest.CaptureFixture[str]):
    from orchestrator.cli.list import find_listing, print_listing

    print_listing(find_listing("claims"), "json")
    listed = json.loads(capsys.readouterr().out)
    assert all(one["said_of"] and one["devices"] for one in listed)
    files = Path(claims.__file__).parents[2].glob("workloads/claims/*.toml")
    assert {one["claim"] for one in listed} == {path.stem for path in files}


def test_what_two_versions_return_is_shown_by_how_much_it_differs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    pair = version_pair(case())
    compared = {"case": pair.case, "baseline": pair.baseline, "candidate": pair.candidate}
    said = claim(returns=(Returns(**compared, expected="differs"),))
    made = evaluation(
        plan=plan(claims=(said,)), outputs=(OutputComparison(**compared, verdict="differs", difference=0.033),)
    )
    text = claims.render_claims(made)
    assert "results differ by 3.3% · expected: differs" in text
    assert "results, 2.0.0 v 1.0.0: power" in text
    [shown] = json.loads(claims.as_json(made))["claims"]
    assert (shown["verdict"], shown["ratio"], shown["expected"]) == ("reproduced", None, "differs")
    assert shown["checks"][0]["subject"].startswith("results, 2.0.0 v 1.0.0")
