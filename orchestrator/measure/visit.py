"""One visit of the cases that are compared with each other: all arms open side by side, and their bursts take turns."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.contract import PILOT_ROUND
from orchestrator.engines import ENGINES
from orchestrator.machine.host import DisturbanceMonitor, describe_foreign_gpu_process
from orchestrator.measure.capacity import Capacity
from orchestrator.measure.replicate import REPEATED, LiveReplicate, Replicates
from orchestrator.measure.session import Session
from orchestrator.measure.starting import SLOW_START_TIMEOUT_S
from orchestrator.measure.workers import Workers
from orchestrator.metrics import METRICS
from orchestrator.model import Arm, ArmKey, Case, Disturbed, Load, Plan, Target, Watched
from orchestrator.plan.order import divide_sittings, interleave
from orchestrator.results.past import Progress
from orchestrator.stats.calibrate import BURST_S, ONCE, Effort, Pilot, first_effort

Group = tuple[Case, ...]


@dataclass
class TimedArm:
    """The work of an arm's replicates in a visit; there are several if the visit had several sittings."""

    replicates: tuple[int, ...]
    effort: Effort
    open_s: float
    # These are the bursts of the first replicate.
    bursts_ns: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def pilot(self) -> Pilot:
        return Pilot(self.open_s, tuple(self.bursts_ns))


@dataclass(frozen=True)
class Visit:
    """The result of a visit: what each arm did that was measured to its end, and what disturbed the bursts."""

    timed: Mapping[Arm, TimedArm]
    cause: str
    seconds: float

    @property
    def open_s(self) -> float:
        """The seconds until all of its arms had built and made their first calls."""
        return sum(timed.open_s for timed in self.timed.values())

    @property
    def is_divided(self) -> bool:
        """Whether not all arms were open at once."""
        return any(len(timed.replicates) > 1 for timed in self.timed.values())

    @property
    def lacks_arm(self) -> bool:
        """Whether an arm died that is measured again."""
        return self.cause in REPEATED

    def describe_disturbance(self, case: Case, number: int, *, redone: bool) -> Disturbed:
        of_case = [timed for arm, timed in self.timed.items() if arm.case == case]
        replicates = tuple(number for timed in of_case for number in timed.replicates)
        return Disturbed(case=case.label, round=number, replicates=replicates, cause=self.cause, redone=redone)


@dataclass(frozen=True)
class Visitor:
    """Opens, times and closes the replicates of a visit."""

    session: Session
    workers: Workers
    progress: Progress
    patient: frozenset[str]
    capacity: Capacity

    @property
    def plan(self) -> Plan:
        return self.session.plan

    @property
    def least_burst_s(self) -> float:
        """The time for which a burst lasts at least, if one of the metrics of the run needs it to."""
        return max((METRICS[metric].least_burst_s for metric in self.plan.metrics), default=0.0)

    @property
    def replicates(self) -> Replicates:
        return Replicates(self.session, self.workers, self.progress)

    def visit(self, order: Sequence[Arm], number: int, efforts: Mapping[ArmKey, Effort] | None = None) -> Visit:
        """Measure these arms, side by side unless only one may hold the GPU, or not all of them fit.

        Without efforts, the visit is a pilot: the time of an arm's second call suggests how many calls it makes.
        """
        begun, repeats = time.monotonic(), len(self.progress.repeats)
        timed: dict[Arm, TimedArm] = {}
        causes = []
        # `results` recognises the replicates of a sitting by their numbers and positions.
        sittings = [(0, sitting) for sitting in divide_sittings(order, self.plan.pairs, self.capacity.fits)]
        if self.plan.exclusive:
            sittings = [(position, [arm]) for position, arm in enumerate(order)]
        for first, together in sittings:
            of_these, cause = self._measure_together(together, number, first, efforts)
            for arm, each in of_these.items():
                before = timed.get(arm)
                timed[arm] = replace(before, replicates=before.replicates + each.replicates) if before else each
            causes += [cause] if cause else []
        causes = self.progress.repeats[repeats:] + causes
        return Visit(timed, next(iter(causes), ""), time.monotonic() - begun)

    def visit_once(self, order: Sequence[Arm], number: int) -> float:
        """Let these arms make their first calls, one arm after the other; return the seconds that it took."""
        begun = time.monotonic()
        for position, arm in enumerate(order):
            if arm.key not in self.progress.ended:
                self.session.view.measuring(arm.target, arm.case, number)
                replicate = self.replicates.open(arm, number, position=position, once=True)
                if replicate:
                    replicate.close()
        return time.monotonic() - begun

    def _measure_together(
        self, order: Sequence[Arm], number: int, first: int, efforts: Mapping[ArmKey, Effort] | None
    ) -> tuple[dict[Arm, TimedArm], str]:
        """Measure these arms with all of them open at once and their bursts alternating.

        `first` is the position of the first arm in the visit.
        """
        live: dict[Arm, LiveReplicate] = {}
        timed: dict[Arm, TimedArm] = {}
        # Nothing of this run is on the GPU before the first replicate is opened and after the last is closed.
        stranger = describe_foreign_gpu_process(self._gpus)
        for position, arm in enumerate(order, first):
            if arm.key in self.progress.ended:
                # This arm ended in an earlier sitting.
                continue
            self.session.view.measuring(arm.target, arm.case, number)
            effort = efforts[arm.key] if efforts is not None else None
            begun = time.monotonic()
            replicate = self.replicates.open(arm, number, position=position, warmup=effort.warmup if effort else 0)
            if replicate is None:
                continue
            if effort is None:
                patient = arm.case.label in self.patient
                effort = ONCE if self.plan.program else first_effort(replicate.second_ns / 1e9, patient=patient)
            live[arm], timed[arm] = replicate, TimedArm((replicate.number,), effort, time.monotonic() - begun)
        opened = [arm for arm in order if arm in live]
        cause = self._bursts(opened, number, live, timed)
        for arm, replicate in live.items():
            if not replicate.close():
                timed.pop(arm, None)
        return timed, cause or stranger or describe_foreign_gpu_process(self._gpus)

    @property
    def _gpus(self) -> Collection[str] | None:
        """The keys of the GPUs to watch; None on a CPU."""
        return self.plan.gpus if self.plan.device == "gpu" else None

    def _bursts(
        self, order: Sequence[Arm], number: int, live: dict[Arm, LiveReplicate], timed: dict[Arm, TimedArm]
    ) -> str:
        """Let the bursts of all arms take turns over the visit; return what disturbed them."""
        witness, own_ns = self._witness(order), 0
        for arm in interleave(order, lambda arm: timed[arm].effort.bursts):
            if arm not in live:
                continue
            burst = live[arm].burst(timed[arm].effort.calls, max(BURST_S, self.least_burst_s))
            witness.look()
            if burst is None:
                del live[arm], timed[arm]
                continue
            own_ns += burst.cpu_ns
            timed[arm].bursts_ns.append(burst.walls_ns)
        meanwhile = witness.meanwhile(own_ns / 1e9)
        cases = tuple(dict.fromkeys(arm.case.label for arm in order))
        if meanwhile:
            load = Load(
                cases=cases,
                round=number,
                foreign=meanwhile.foreign_cores,
                steal=meanwhile.steal_share,
                cpus=meanwhile.cpus,
                idle=meanwhile.idle_share,
                waiting=meanwhile.waiting_share,
            )
            self.session.folder.record(load)
        if spans := witness.spans():
            self.session.folder.record(Watched(cases=cases, round=number, gpus=spans))
        return witness.disturbance(meanwhile)

    def _witness(self, order: Iterable[Arm]) -> DisturbanceMonitor:
        # Containers are the engine's children, which this process's affinity does not bind.
        cpus = self.plan.cpus or (None if ENGINES[self.plan.engine].detached else os.sched_getaffinity(0))
        clients = [self.workers.client(target) for target in {target for _, target in order}]
        groups = [client.pid for client in clients if client and client.pid]
        return DisturbanceMonitor.begin(cpus, self._gpus, groups)


def compile_gpu_code(
    visitor: Visitor, numbers: Collection[str], cases: Sequence[Case], is_closed: Callable[[ArmKey], bool]
) -> None:
    """Open a replicate of each case in the versions with these numbers, so that the driver compiles its code once.

    The first one takes longest. A newer CUDA loads code only when it is called, so each case may need more code.
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
            # A burst compiles the code that only its calls run, and no replicate counts without a burst.
            if replicate and replicate.burst(1):
                replicate.close()
            elif time.monotonic() - opened > visitor.plan.timeout_s:
                # A deadline that was missed once will be missed again.
                break
        visitor.session.view.say(f"{number}: its GPU code is there after {time.monotonic() - begun:.0f} s")
