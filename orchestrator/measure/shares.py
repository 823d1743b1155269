"""Profiles the arms of which a claim says that a function takes a share of their time."""

from collections import defaultdict
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from orchestrator.engines.worker.client import Died, Refused, WorkerDied
from orchestrator.measure.replicate import Progress
from orchestrator.measure.session import Session
from orchestrator.measure.workers import Workers
from orchestrator.model import Arm, ArmKey, Plan, Shares
from orchestrator.model.profile import Profile
from orchestrator.options import PROFILED_CALLS

PROFILE = TypeAdapter(Profile)


def measure_shares(run: Session, workers: Workers, progress: Progress) -> None:
    """Profile each of these arms once, unless the run did so before, and record the shares."""
    done = {ArmKey(entry.case, entry.target) for entry in run.folder.entries() if isinstance(entry, Shares)}
    arms = {arm.key: arm for arm in run.plan.arms()}
    for key, functions in functions_to_profile(run.plan).items():
        if key not in done:
            progress.replicates += 1
            answer = _profile(run.plan, workers, arms[key], progress.replicates)
            reason = answer if isinstance(answer, str) else ""
            shares = {} if isinstance(answer, str) else {name: answer.share(name) for name in sorted(functions)}
            run.folder.record(Shares(case=key.case, target=key.target, shares=shares, reason=reason))


def functions_to_profile(plan: Plan) -> Mapping[ArmKey, set[str]]:
    """Return the functions that claims which this device can test speak of, by arm."""
    functions: dict[ArmKey, set[str]] = defaultdict(set)
    for claim in plan.claims:
        if plan.device in claim.devices:
            for share in claim.shares:
                functions[share.arm].add(share.function)
    return functions


def _profile(plan: Plan, workers: Workers, arm: Arm, number: int) -> Profile | str:
    """Return the profile of an arm, or why there is none."""
    worker = workers.acquire(arm.target)
    if worker is None:
        return f"{arm.target} has no worker"
    try:
        answer = worker.profile(
            arm.case, replicate=number, calls=PROFILED_CALLS, seed=plan.seed, timeout_s=plan.timeout_s
        )
        return answer.reason if isinstance(answer, Refused | Died) else PROFILE.validate_python(answer)
    except WorkerDied as death:
        workers.restart(arm.target)
        return f"its worker died: {death}"
    except ValidationError as error:
        return f"its worker sent no profile: {error.errors()[0]['msg']}"
