"""The page's table of claims: what a source says, and what this run saw of it."""

from dataclasses import dataclass

from orchestrator.model import Evaluation
from orchestrator.reports import claims
from orchestrator.reports.html.escape import escape_value
from orchestrator.results.claims import Answer, ClaimCheck, ClaimResult

# The colours of verdicts, for answers that mean as much.
COLOURS: dict[Answer, str] = {
    "reproduced": "faster", "reproduced, smaller": "slightly-faster", "not reproduced": "slower",
    "inconclusive": "inconclusive", "needs a GPU": "refused",
}  # fmt: skip


@dataclass(frozen=True)
class ClaimCheckRow:
    mark: str
    subject: str
    expected: str
    seen: str
    reason: str


@dataclass(frozen=True)
class ClaimRow:
    name: str
    title: str
    answer: str
    mark: str
    colour: str
    source: str
    said_of: str
    checks: tuple[ClaimCheckRow, ...]


def build_claims(evaluation: Evaluation) -> tuple[str, list[ClaimRow]]:
    """Return a sentence about all claims of a run, and a row for each; ('', []) for a run without claims."""
    if not evaluation.plan.claims:
        return "", []
    results = claims.judge_planned_claims(evaluation)
    return claims.summarize_claims(results), list(map(_row, results))


def _row(result: ClaimResult) -> ClaimRow:
    claim = result.claim
    return ClaimRow(
        name=escape_value(claim.name),
        title=escape_value(claim.title),
        answer=result.answer,
        mark=claims.MARKS[result.answer],
        colour=COLOURS[result.answer],
        source=escape_value(claim.source),
        said_of=escape_value(claims.format_said_of(claim)),
        checks=tuple(map(_check, result.findings)),
    )


def _check(finding: ClaimCheck) -> ClaimCheckRow:
    return ClaimCheckRow(
        mark=claims.MARKS[finding.answer],
        subject=escape_value(claims.subject(finding)),
        expected=escape_value(claims.format_expected(finding.statement)),
        seen=escape_value(claims.format_seen(finding)),
        reason=escape_value(finding.reason),
    )
