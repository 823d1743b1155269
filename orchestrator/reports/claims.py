"""The report on claims: what was claimed, what was measured here, and whether the two agree."""

import json
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orchestrator.errors import UsageError
from orchestrator.model import Claim, Comparison, Contrast, Expectation, Pair, VersionPair, params_label
from orchestrator.reports import table
from orchestrator.reports.case_names import set_against
from orchestrator.reports.columns import MEASURES, Notes, format_ratio, ratio
from orchestrator.reports.json import run_object
from orchestrator.results.claims import Answer, ClaimCheck, ClaimResult, judge_claims
from orchestrator.terminal.text import render_plain, safe_text

SCHEMA = "tfcompare.claims/1"

STYLES: dict[Answer, str] = {
    "reproduced": "bold green", "not reproduced": "bold red", "inconclusive": "yellow", "needs a GPU": "dim",
}  # fmt: skip
MARKS: dict[Answer, str] = {"reproduced": "✓", "not reproduced": "✗", "inconclusive": "?", "needs a GPU": "-"}


def render(comparison: Comparison) -> str:
    return render_plain(lambda width: layout(comparison, width))


def layout(comparison: Comparison, width: int) -> RenderableType:
    claims, notes = judge_planned_claims(comparison), Notes()
    grid = _frame()
    for claim in claims:
        _claim(grid, claim, notes)
        grid.add_section()
    head = Text("\n").join(
        [
            safe_text(f"tfcompare reproduce {comparison.plan.run}", style="bold"),
            safe_text(table.facts(comparison), style="dim"),
            safe_text(summary(claims)),
        ]
    )
    return Group(
        head, *table.render_warnings(comparison), Padding(grid, (1, 0, 0, 0)), *notes.lines(comparison.plan.alpha)
    )


def judge_planned_claims(comparison: Comparison) -> tuple[ClaimResult, ...]:
    if not comparison.plan.claims:
        raise UsageError(f"run {comparison.plan.run} tested no claims; `tfcompare reproduce` does")
    return judge_claims(comparison, comparison.plan.claims)


def summary(claims: Sequence[ClaimResult]) -> str:
    counts = {answer: sum(1 for claim in claims if claim.answer == answer) for answer in MARKS}
    listing = ", ".join(f"{count} {answer}" for answer, count in counts.items() if count)
    return f"{len(claims)} {'claim' if len(claims) == 1 else 'claims'}: {listing}."


def _frame() -> Table:
    grid = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0))
    grid.pad_edge = False
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("claim: what was measured, and what is expected", overflow="fold", ratio=1)
    return grid


def _claim(grid: Table, result: ClaimResult, notes: Notes) -> None:
    claim = result.claim
    withdrawn = " (withdrawn by its reporter)" if claim.withdrawn else ""
    grid.add_row(
        _format_answer(result.answer, result.reason, notes),
        Text.assemble(safe_text(claim.name, style="bold"), "\n", safe_text(claim.title + withdrawn)),
    )
    if said_of := format_said_of(claim):
        grid.add_row("", safe_text(said_of, style="dim"))
    for finding in result.findings:
        mark = MARKS[finding.answer] if len(result.findings) > 1 else " "
        text = Text.assemble(_format_measured(finding), "\n", safe_text(subject(finding), style="dim"))
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_row(mark, text)
        grid.add_row("", line)


def _format_measured(finding: ClaimCheck) -> str:
    contrast = finding.tested if isinstance(finding.tested, Contrast) else None
    measured = f"{format_ratio(contrast)} · " if contrast and contrast.ratio else ""
    return f"{measured}expected: {format_expected(finding.expectation)}"


def _format_answer(answer: Answer, reason: str, notes: Notes) -> Text:
    return Text(f"{MARKS[answer]} {answer}{notes.mark(reason)}", style=STYLES[answer])


def subject(finding: ClaimCheck) -> str:
    """Return what is compared with what, candidate first."""
    tested = finding.tested
    if not isinstance(tested, Contrast):
        return f"{tested.version}: {tested.case.label}"
    return subject_of(tested.pair)


def subject_of(pair: Pair) -> str:
    of = "" if pair.metric == "steady" else f"{MEASURES[pair.metric]}, "
    if isinstance(pair, VersionPair):
        return f"{of}{pair.candidate} v {pair.baseline}: {pair.workload}{params_label(pair.params)}"
    return f"{of}{pair.version}: {pair.workload} {set_against(pair)}{params_label(pair.params)}"


def format_expected(expectation: Expectation | None) -> str:
    if expectation is None:
        return "holds"
    bound = ratio(1 + (expectation.pair.margin or 0.0))
    if expectation.effect == "same":
        return f"same, within {bound}"
    if figure := _format_figure(expectation):
        return f"{expectation.effect}, at least {bound} ({figure})"
    return expectation.effect


def _format_figure(expectation: Expectation) -> str:
    """Return the ratio that the source gives, or what its words are read as, or ''."""
    if expectation.published is not None:
        return f"published {expectation.published:.3g}x"
    return "" if expectation.read_as is None else f"read as {expectation.read_as:.3g}x"


def format_said_of(claim: Claim) -> str:
    """Return the devices and systems that the source speaks of, or '' for a run of an earlier release."""
    return f"said of: {'; '.join(claim.said_of)}" if claim.said_of else ""


def as_json(comparison: Comparison) -> str:
    return json.dumps(as_object(comparison), indent=2)


def as_object(comparison: Comparison) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": run_object(comparison),
        "claims": [_object(result) for result in judge_planned_claims(comparison)],
        "warnings": [*comparison.broken, *comparison.warnings],
    }


def _object(result: ClaimResult) -> dict[str, Any]:
    claim, headline = result.claim, result.headline
    return {
        "claim": claim.name,
        "title": claim.title,
        "source": claim.source,
        "suite": claim.suite,
        "said_of": list(claim.said_of),
        "withdrawn": claim.withdrawn,
        "verdict": result.answer,
        "expected": format_expected(claim.expectations[0] if claim.expectations else None),
        "published": claim.expectations[0].published if claim.expectations else None,
        "read_as": claim.expectations[0].read_as if claim.expectations else None,
        "ratio": headline.ratio if headline else None,
        "ci_low": headline.ci_low if headline else None,
        "ci_high": headline.ci_high if headline else None,
        "versions": [str(version) for version in claim.versions],
        "reason": result.reason or None,
        "checks": [_check(finding) for finding in result.findings],
    }


def _check(finding: ClaimCheck) -> dict[str, Any]:
    tested, expectation = finding.tested, finding.expectation
    contrast = tested if isinstance(tested, Contrast) else None
    margin = expectation.pair.margin if expectation else None
    return {
        "subject": subject(finding),
        "verdict": finding.answer,
        "expected": format_expected(expectation),
        "at_least": None if margin is None else 1 + margin,
        "published": expectation.published if expectation else None,
        "read_as": expectation.read_as if expectation else None,
        "metric": contrast.pair.metric if contrast else None,
        "ratio": contrast.ratio if contrast else None,
        "ci_low": contrast.ci_low if contrast else None,
        "ci_high": contrast.ci_high if contrast else None,
        "reason": finding.reason or None,
    }
