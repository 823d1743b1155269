"""The first calls of versions that have no code for the GPU: the driver compiles it, before any clock runs."""

import time
from collections.abc import Callable, Collection, Sequence

from orchestrator.contract import PILOT_ROUND
from orchestrator.measure.visit import Visitor
from orchestrator.measure.workers import SLOW_START_TIMEOUT_S
from orchestrator.model import Arm, ArmKey, Case, Target


def make_gpu_code(
    visitor: Visitor, numbers: Collection[str], cases: Sequence[Case], is_closed: Callable[[ArmKey], bool]
) -> None:
    """Open a replicate of each case in the versions with these numbers, so that the driver compiles its code once.

    The first one takes longest. A newer CUDA loads code only where it is called, so what other cases call is made then.
    """
    for number in sorted(numbers):
        visitor.session.view.say(f"{number}: its GPU code is made first, which takes minutes unless it was made before")
        begun = time.monotonic()
        for case in cases:
            arm = Arm(case, Target(number))
            if is_closed(arm.key):
                continue
            opened = time.monotonic()
            replicate = visitor.replicates.open(arm, PILOT_ROUND, position=0, timeout_s=SLOW_START_TIMEOUT_S)
            # Also what only calls in bursts run has to be made, and no replicate counts without one.
            if replicate and replicate.burst(1):
                replicate.close()
            elif time.monotonic() - opened > visitor.plan.timeout_s:
                # A deadline that was missed once will be missed again.
                break
        visitor.session.view.say(f"{number}: its GPU code is there after {time.monotonic() - begun:.0f} s")
