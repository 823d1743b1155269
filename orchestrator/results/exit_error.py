"""The error that determines the exit code of a completed run or profile."""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from orchestrator.errors import ArmsDied, ContractBroken, EnvironmentFailed, NothingSelected, TfCompareError
from orchestrator.model import Case, Target
from orchestrator.terminal.counts import name_some


class EndedArm(Protocol):
    """An arm of a run or of a profile."""

    @property
    def case(self) -> Case: ...
    @property
    def target(self) -> Target: ...
    @property
    def outcome(self) -> str: ...
    @property
    def reason(self) -> str: ...


def join_failures(failures: Iterable[EnvironmentFailed]) -> list[str]:
    """Return one message per reason, prefixed with the versions it concerns."""
    targets: dict[str, list[str]] = {}
    for failure in failures:
        targets.setdefault(failure.reason, []).append(failure.target)
    named = ((", ".join(filter(None, numbers)), reason) for reason, numbers in targets.items())
    return [f"{numbers}: {reason}" if numbers else reason for numbers, reason in named]


def find_error(
    arms: Sequence[EndedArm],
    failures: Collection[EnvironmentFailed],
    broken: Collection[str] = (),
    *,
    again: int = 0,
) -> TfCompareError | None:
    """Return the error, if any, that determines the exit code of a completed run or profile.

    `again` is the number of dead arms that are tried again when the run is continued.
    """
    if broken:
        return ContractBroken("\n".join(broken))
    if failures:
        return EnvironmentFailed("\n".join(join_failures(failures)))
    if died := [arm for arm in arms if arm.outcome == "died"]:
        # The table above this message already gives each reason.
        advice = f"--resume tries {again} of them again" if again else ""
        by_reason: dict[str, list[str]] = {}
        for arm in died:
            by_reason.setdefault(arm.reason, []).append(f"{arm.target} {arm.case.label}")
        detail = "\n".join(f"{name_some(names)}: {reason}" for reason, names in by_reason.items())
        return ArmsDied(f"{len(died)} of {len(arms)} arms died", advice, detail=detail)
    if all(arm.outcome == "refused" for arm in arms):
        reasons = sorted({arm.reason for arm in arms})
        return NothingSelected("no version can run what was selected:\n" + "\n".join(reasons))
    return None
