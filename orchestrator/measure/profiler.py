"""Profiles of a case in a version, which its worker makes."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from orchestrator.engines.worker.client import Died, Refused, WorkerDied
from orchestrator.measure.starting import SLOW_START_TIMEOUT_S
from orchestrator.measure.workers import Workers
from orchestrator.model import Case, Plan, Target
from orchestrator.model.profile import LayerOutput, Profile, ProfiledArm

PROFILE = TypeAdapter(Profile)
LAYERS = TypeAdapter(dict[Literal["layers"], tuple[LayerOutput, ...]])


@dataclass(frozen=True)
class Profiler:
    """Requests profiles from the workers of a run or, if `calls` is 0, what the layers of Keras return."""

    plan: Plan
    workers: Workers
    calls: int
    # The driver compiles the GPU code of the versions with these numbers in their first replicate.
    cold: set[str]
    # The reason of an arm that missed its deadline ends with this.
    hint: str = ""

    def profile(self, case: Case, target: Target, number: int) -> ProfiledArm:
        arm = self._profile(case, target, number)
        # A refused case has compiled nothing. A deadline that was missed once will be missed again.
        if arm.outcome != "refused":
            self.cold.discard(target.name)
        return arm

    def _profile(self, case: Case, target: Target, number: int) -> ProfiledArm:
        died = partial(ProfiledArm, case=case, target=target, outcome="died")
        worker = self.workers.acquire(target)
        if worker is None:
            return died(reason=self.workers.describe_loss(target))
        plan = self.plan
        timeout_s = max(plan.timeout_s, SLOW_START_TIMEOUT_S) if target.name in self.cold else plan.timeout_s
        try:
            answer = worker.profile(case, replicate=number, calls=self.calls, seed=plan.seed, timeout_s=timeout_s)
        except WorkerDied as death:
            self.workers.restart(target)
            return died(reason=f"its worker died: {death}")
        if isinstance(answer, Refused):
            return ProfiledArm(case=case, target=target, outcome="refused", reason=answer.reason)
        if isinstance(answer, Died):
            return died(reason=answer.reason + (self.hint if answer.how == "timeout" else ""), log=answer.log)
        profiled = partial(ProfiledArm, case=case, target=target, outcome="profiled")
        try:
            if self.calls:
                return profiled(profile=PROFILE.validate_python(answer))
            return profiled(layers=LAYERS.validate_python(answer)["layers"])
        except ValidationError as error:
            return died(reason=f"its worker sent no profile: {error.errors()[0]['msg']}")
