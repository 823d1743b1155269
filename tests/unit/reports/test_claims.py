"""Claims as a table, to the letter, and as the object that programs read."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from orchestrator.errors import UsageError
from orchestrator.model import Comparison, Expectation
from orchestrator.reports import claims
from tests.support.builders import (
    NEW,
    OLD,
    arm,
    case,
    case_pair,
    claim,
    comparison,
    contrast,
    plan,
    unmeasured,
    version_pair,
)
from tests.support.kept import kept

EAGER, FUNCTION = case(style="eager"), case(style="function")
BROKEN = case("semantics", which="variables")


def scene(title: str = "eager training takes longer than it did") -> Comparison:
    slower = replace(version_pair(EAGER), margin=1.5)
    same = replace(version_pair(FUNCTION), margin=0.25)
    inside = replace(case_pair(EAGER, FUNCTION), margin=0.05, metric="traces")
    said = (
        claim(Expectation(pair=slower, effect="slower", published=6.25), name="eager-training", title=title),
        claim(
            Expectation(pair=same, effect="same", published=None),
            Expectation(pair=inside, effect="more", published=None),
            name="function-on-par", title="functions cost the same, and trace no more",
        ),
        claim(name="variables", title="variables belong outside", holds=((BROKEN.label, NEW),), withdrawn=True),
        claim(Expectation(pair=slower, effect="faster", published=2.0),
              name="only-on-a-gpu", title="it is faster there", devices=("gpu",)),
    )  # fmt: skip
    cases = (EAGER, FUNCTION, BROKEN)
    return comparison(
        plan=plan(cases, pairs=(slower, same, inside), claims=said),
        arms=(
            arm(EAGER, OLD), arm(EAGER, NEW), arm(FUNCTION, OLD), arm(FUNCTION, NEW),
            unmeasured(BROKEN, NEW, "died", "AssertionError: the variable stayed as it was (raised in a call)",
                       refuted=True),
        ),
        contrasts=(
            contrast(slower, 4.2, "slower"),
            contrast(same, 1.02, "same"),
            contrast(inside, 1.5, "inconclusive", "too noisy: 6 rounds show slowdowns from 90% on"),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("width", [80, 120])
def test_it_is_what_the_snapshot_shows(monkeypatch: pytest.MonkeyPatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    found = claims.render(scene()) + "\n"
    assert found == kept(f"claims-{width}", found)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_the_terminal_and_nothing_hostile_gets_out(monkeypatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    text = claims.render(scene("[red]gone[/red] \x1b[2J \u202e" + "x" * 300))
    assert max(map(cell_len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_object_has_what_the_schema_promises():
    found = json.loads(claims.as_json(scene()))
    assert found["schema"] == "tfcompare.claims/1"
    assert [one["verdict"] for one in found["claims"]] == [
        "reproduced", "inconclusive", "not reproduced", "needs a GPU",
    ]  # fmt: skip
    first = found["claims"][0]
    promised = {"claim", "title", "source", "verdict", "expected", "ratio", "ci_low", "ci_high", "versions", "reason"}
    assert promised <= first.keys()
    assert (first["claim"], first["ratio"], first["versions"]) == ("eager-training", 4.2, [OLD, NEW])
    assert first["expected"] == "slower, at least 2.50x (published 6.25x)"
    assert first["reason"] is None
    assert found["claims"][1]["checks"][1]["metric"] == "traces"
    assert "stayed as it was" in found["claims"][2]["reason"]
    assert found["claims"][3]["ratio"] is None


def test_a_run_without_claims_has_no_such_table():
    with pytest.raises(UsageError, match="tested no claims"):
        claims.render(comparison())


def test_every_builtin_claim_can_be_listed(capsys: pytest.CaptureFixture[str]):
    from orchestrator.cli.list import draw_listing, find_listing

    draw_listing(find_listing("claims"), "json")
    listed = json.loads(capsys.readouterr().out)
    files = Path(claims.__file__).parents[2].glob("workloads/claims/*.toml")
    assert {one["claim"] for one in listed} == {path.stem for path in files}
