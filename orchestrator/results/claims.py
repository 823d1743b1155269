"""The verdict of a judged run on each of its claims."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.model import ArmResult, Claim, Comparison, Contrast, Effect, Expectation

Answer = Literal["reproduced", "not reproduced", "inconclusive", "needs a GPU"]

# The verdict at the pair's margin that an effect needs.
SEEN: Mapping[Effect, str] = {
    "slower": "slower", "more": "slower", "faster": "faster", "less": "faster", "same": "same",
}  # fmt: skip


@dataclass(frozen=True)
class ClaimCheck:
    """One statement of a claim and its result: a contrast, or an arm that checks itself."""

    tested: Contrast | ArmResult
    expectation: Expectation | None
    answer: Answer
    reason: str = ""


@dataclass(frozen=True)
class ClaimResult:
    claim: Claim
    answer: Answer
    findings: tuple[ClaimCheck, ...]

    @property
    def headline(self) -> Contrast | None:
        """The contrast that represents the claim in one line."""
        tested = self.findings[0].tested if self.findings else None
        return tested if isinstance(tested, Contrast) else None

    @property
    def reason(self) -> str:
        """The reason why the claim was not simply reproduced."""
        if not self.findings:
            return "" if self.answer == "needs a GPU" else "it is tested only on a CPU: run it without --gpu"
        return next((finding.reason for finding in self.findings if finding.answer == self.answer), "")


def judge_claims(comparison: Comparison, claims: Sequence[Claim]) -> tuple[ClaimResult, ...]:
    contrasts = {contrast.pair: contrast for contrast in comparison.contrasts}
    arms = {arm.key: arm for arm in comparison.arms}
    judged = []
    for claim in claims:
        if comparison.plan.device not in claim.devices:
            judged.append(ClaimResult(claim, "needs a GPU" if "gpu" in claim.devices else "inconclusive", ()))
            continue
        findings = (
            *(_effect(expectation, contrasts[expectation.pair]) for expectation in claim.expectations),
            *(_holds(arms[arm]) for arm in claim.holds),
        )
        judged.append(ClaimResult(claim, _all(findings), findings))
    return tuple(judged)


def _all(findings: Sequence[ClaimCheck]) -> Answer:
    """Combine the answers to a claim's statements: all must hold, so one that fails fails the claim."""
    answers = {finding.answer for finding in findings}
    return next((answer for answer in ("not reproduced", "inconclusive") if answer in answers), "reproduced")


def _effect(expectation: Expectation, contrast: Contrast) -> ClaimCheck:
    if contrast.verdict == SEEN[expectation.effect]:
        if contrast.verdict == "same" or _is_as_large(contrast, expectation.pair.margin or 0.0):
            return ClaimCheck(contrast, expectation, "reproduced")
        return ClaimCheck(contrast, expectation, "inconclusive", "it differs, but not clearly by as much as that")
    if contrast.verdict == "inconclusive":
        return ClaimCheck(contrast, expectation, "inconclusive", contrast.reason)
    if contrast.verdict == "same":
        return ClaimCheck(contrast, expectation, "not reproduced", "the difference is smaller than that")
    if expectation.effect != "same":
        return ClaimCheck(contrast, expectation, "not reproduced", "it is the other way round")
    if contrast.size == "beyond":
        return ClaimCheck(contrast, expectation, "not reproduced", "it differs")
    return ClaimCheck(contrast, expectation, "inconclusive", "it differs, but not clearly by more than that")


def _is_as_large(contrast: Contrast, margin: float) -> bool:
    """Return whether the estimate is beyond the margin; the verdict `slower` asks for half of it."""
    return abs(math.log(contrast.ratio or 1.0)) >= math.log1p(margin)


def _holds(arm: ArmResult) -> ClaimCheck:
    if arm.outcome == "measured":
        return ClaimCheck(arm, None, "reproduced")
    return ClaimCheck(arm, None, "not reproduced" if arm.refuted else "inconclusive", arm.reason)
