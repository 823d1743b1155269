"""The error that the exit code of a completed run comes from."""

from collections.abc import Iterable

from orchestrator.errors import ArmsDied, ContractBroken, EnvironmentFailed, NothingSelected, TfCompareError
from orchestrator.model import Comparison


def join_failures(failures: Iterable[EnvironmentFailed]) -> list[str]:
    """Return one message per reason, prefixed with the versions it concerns."""
    versions: dict[str, list[str]] = {}
    for failure in failures:
        versions.setdefault(failure.reason, []).append(failure.version)
    named = ((", ".join(filter(None, numbers)), reason) for reason, numbers in versions.items())
    return [f"{numbers}: {reason}" if numbers else reason for numbers, reason in named]


def verdict_on(comparison: Comparison, failures: list[EnvironmentFailed]) -> TfCompareError | None:
    """Return the error, if any, that determines the exit code of a completed run."""
    if comparison.broken:
        return ContractBroken("\n".join(comparison.broken))
    if failures:
        return EnvironmentFailed("\n".join(join_failures(failures)))
    if comparison.died:
        told = [f"{arm.version} {arm.case.label}: {arm.reason}" for arm in comparison.died]
        return ArmsDied(f"{len(told)} of {len(comparison.arms)} arms died:\n" + "\n".join(told))
    if all(arm.outcome == "refused" for arm in comparison.arms):
        reasons = sorted({arm.reason for arm in comparison.arms})
        return NothingSelected("no version can run what was selected:\n" + "\n".join(reasons))
    return None
