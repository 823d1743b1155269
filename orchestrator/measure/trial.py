"""A trial of workloads: each case is built once in each target and called a few times, and nothing is judged."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from orchestrator.engines.worker.client import Burst, Died, Opened, Refused, WorkerDied
from orchestrator.measure.failures import advise_package
from orchestrator.measure.session import make_manifest, open_session, pin_workloads, prepare_environments
from orchestrator.measure.workers import Workers, employ
from orchestrator.model import Arm, Case, Plan, Target
from orchestrator.plan.request import PlannedRun
from orchestrator.terminal.durations import format_time
from orchestrator.terminal.view import View

# Shorter calls cannot be timed one by one, and few longer calls fit into a budget.
SHORT_NS, LONG_NS = 5_000, 30 * 10**9
# A busy machine may delay any call. If the second took less than this, some more are made, and the shortest counts.
REPEATED_NS, REPEATED = 10**8, 8


@dataclass(frozen=True, kw_only=True)
class TriedArm:
    """The result of an arm: the times of its build and of its first two calls, or why it has none."""

    case: Case
    target: Target
    outcome: Literal["ran", "refused", "died"]
    build_ns: int | None = None
    first_ns: int | None = None
    second_ns: int | None = None
    # The shortest call after the first took this long.
    least_ns: int | None = None
    steps: int = 1
    # This describes the type and the shape of the first result.
    output: str = ""
    reason: str = ""

    @property
    def note(self) -> str:
        """A note about what is wrong with the arm, or may be."""
        if self.least_ns is None:
            return self.reason
        if self.least_ns < SHORT_NS:
            return (
                f"a call of {format_time(self.least_ns / 1e6)} is too short to be timed: let it do more steps, and "
                "set step.steps"
            )
        if self.least_ns > LONG_NS:
            return "few calls of this length fit into a budget: let a call do less"
        return f"{self.steps} steps of {format_time(self.least_ns / self.steps / 1e6)}" if self.steps > 1 else ""


def try_workloads(planned: PlannedRun, view: View) -> list[TriedArm]:
    """Try every case in every target; all that this writes is removed."""
    tried: list[TriedArm] = []
    with (
        TemporaryDirectory(prefix="tfcompare-") as scratch,
        open_session(planned, Path(scratch) / "run", view) as opened,
    ):
        opened = pin_workloads(opened)
        session = prepare_environments(opened)
        session.folder.write_manifest(make_manifest(opened.planned, session.environments))
        with employ(session) as employed:
            employed.start()
            for number, arm in enumerate(session.plan.arms(), 1):
                view.preparing(str(arm.target), f"trying {arm.case.label}")
                tried.append(_try_one(session.plan, employed.workers, arm, number))
        if employed.error:
            raise employed.error
    return tried


def _try_one(plan: Plan, workers: Workers, arm: Arm, number: int) -> TriedArm:
    case, target = arm
    worker = workers.acquire(target)
    if worker is None:
        return TriedArm(case=case, target=target, outcome="died", reason=workers.describe_loss(target))
    try:
        answer = worker.open(
            case, replicate=number, round=1, position=0, seed=plan.seed, warmup=0, timeout_s=plan.timeout_s
        )
        repeated: Burst | Died = Burst((), 0)
        if isinstance(answer, Opened):
            if answer.second_ns < REPEATED_NS:
                repeated = worker.burst(number, REPEATED, plan.timeout_s)
            if isinstance(repeated, Burst):
                worker.close_replicate(number, plan.timeout_s)
            workers.release(target)
    except WorkerDied as death:
        workers.restart(target)
        return TriedArm(case=case, target=target, outcome="died", reason=f"its worker died: {death}")
    if not isinstance(answer, Opened):
        outcome: Literal["refused", "died"] = "refused" if isinstance(answer, Refused) else "died"
        return TriedArm(case=case, target=target, outcome=outcome, reason=advise_package(answer.reason))
    if isinstance(repeated, Died):
        return TriedArm(case=case, target=target, outcome="died", reason=advise_package(repeated.reason))
    return TriedArm(
        case=case,
        target=target,
        outcome="ran",
        build_ns=answer.build_ns,
        first_ns=answer.first_ns,
        second_ns=answer.second_ns,
        least_ns=min((answer.second_ns, *repeated.walls_ns)),
        steps=answer.steps,
        output=answer.output,
    )
