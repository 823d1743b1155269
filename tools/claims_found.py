"""Write the result of each claim in some runs to workloads/claims/found.json; other claims keep what they have there.

    python tools/claims_found.py runs/reproduce-seed runs/reproduce-reported
    python -m tools.docs

A claim that a run could not test on its device is left out, and so is one that the budget left undecided: a longer run
has to say. Of several runs, the last one counts.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from orchestrator.catalog.found import Found, FoundCheck, all_found, write_found  # noqa: E402
from orchestrator.model import Evaluation  # noqa: E402
from orchestrator.reports.claims import format_expected, format_seen, judge_planned_claims, subject_of  # noqa: E402
from orchestrator.results.claims import ClaimCheck, ClaimResult  # noqa: E402
from orchestrator.results.run import load_run  # noqa: E402


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = dict(all_found())
    for path in sys.argv[1:]:
        evaluation = load_run(Path(path)).evaluation
        results = [result for result in judge_planned_claims(evaluation) if result.findings and not cut_short(result)]
        found |= {result.claim.name: found_in(evaluation, result) for result in results}
    write_found(found)
    print(f"{len(found)} claims; now run: python -m tools.docs")


def cut_short(result: ClaimResult) -> bool:
    """Return whether a claim is undecided because there were too few rounds for one of its comparisons."""
    return result.answer == "inconclusive" and any(
        finding.reason.startswith("postponed")
        or finding.reason.endswith(("rounds are too few to tell", "needed for a verdict)"))
        for finding in result.findings
    )


def found_in(evaluation: Evaluation, result: ClaimResult) -> Found:
    plan, host = evaluation.plan, evaluation.manifest.host
    return Found(
        answer=result.answer,
        reason=result.reason,
        date=plan.created.date().isoformat(),
        machine=f"{plan.device} of {host.get('cpu')} ({host.get('usable_cores')} cores), {plan.engine}",
        checks=tuple(map(check, result.findings)),
    )


def check(finding: ClaimCheck) -> FoundCheck:
    statement = finding.statement
    return FoundCheck(
        subject=subject_of(statement),
        expected=format_expected(statement),
        seen=format_seen(finding),
        answer=finding.answer,
    )


if __name__ == "__main__":
    main()
