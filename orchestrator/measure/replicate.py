"""One replicate, from its opening in a worker to the line in the journal that says how it ended."""

from dataclasses import dataclass
from typing import Any

from orchestrator import contract
from orchestrator.engines.worker.client import Burst, Closed, Died, Opened, Refused, WorkerClient, WorkerDied
from orchestrator.machine.evidence import MemoryMark
from orchestrator.measure.failures import Death, classify, lacks_scratch
from orchestrator.measure.session import Session
from orchestrator.measure.workers import Workers
from orchestrator.model import BESIDE, Arm, DeathCause, Ended
from orchestrator.model.failures import describe_failure
from orchestrator.plan.order import seed_of_round
from orchestrator.results.past import Progress
from orchestrator.terminal.text import escape_unprintable

LONGER = " (--timeout allows longer)"
# A replicate that died for one of these reasons is measured again in this run.
GPU_LOST = "a replicate did not find its GPU"
KILLED = "a replicate or its worker was killed from outside"
REPEATED = frozenset({GPU_LOST, KILLED})


@dataclass(frozen=True)
class Replicates:
    """Opens replicates in the workers of a run, and numbers them in this order."""

    session: Session
    workers: Workers
    progress: Progress

    def open(
        self, arm: Arm, round: int, *, position: int, warmup: int = 0, once: bool = False,
        timeout_s: float | None = None,
    ) -> "LiveReplicate | None":  # fmt: skip
        """Open a replicate; return None if its worker is gone, or if it refused or died at once.

        If `once` is true, it makes only its first call.
        """
        case, target = arm
        worker = self.workers.acquire(target)
        if worker is None:
            return None
        self.progress.replicates += 1
        plan = self.session.plan
        memory = self.workers.mark_memory(worker.pid)
        replicate = LiveReplicate(self, arm, round, self.progress.replicates, worker, memory, once)
        try:
            answer = worker.open(
                case, replicate=replicate.number, round=round, position=position,
                seed=seed_of_round(plan.seed, round), warmup=warmup, once=once,
                timeout_s=timeout_s or plan.timeout_s, program=plan.program,
                large=[file.name for file in plan.large],
                count=[name for name in contract.COUNTED if name in plan.metrics],
            )  # fmt: skip
        except WorkerDied as death:
            replicate.lose_worker(death)
            return None
        if not isinstance(answer, Opened):
            replicate.stop(answer)
            return None
        replicate.second_ns, replicate.threads = answer.second_ns, answer.threads
        return replicate


@dataclass
class LiveReplicate:
    """A replicate that a worker holds open."""

    of: Replicates
    arm: Arm
    round: int
    number: int
    worker: WorkerClient
    # This marks the moment at which it was opened.
    memory: MemoryMark
    once: bool
    second_ns: int = 0
    threads: tuple[int, ...] = ()

    def burst(self, calls: int, least_s: float = 0.0) -> Burst | None:
        """Time some calls; return None if the replicate has ended."""
        if not self._is_held():
            return None
        try:
            answer = self.worker.burst(self.number, calls, self._timeout_s, least_s)
        except WorkerDied as death:
            self.lose_worker(death)
            return None
        if isinstance(answer, Died):
            self.stop(answer)
            return None
        return answer

    def close(self) -> bool:
        """Close the replicate; return whether all of its rows have arrived."""
        if not self._is_held():
            return False
        try:
            answer = self.worker.close_replicate(self.number, self._timeout_s)
        except WorkerDied as death:
            self.lose_worker(death)
            return False
        self.stop(answer)
        return isinstance(answer, Closed)

    @property
    def _timeout_s(self) -> float:
        return self.of.session.plan.timeout_s

    def _is_held(self) -> bool:
        """Return whether the worker still runs.

        If not, the replicate is journaled as ended, and its arm is measured again in the next round.
        """
        if self.of.workers.client(self.arm.target) is self.worker:
            return True
        self._record(outcome="died", how=BESIDE, reason="its worker died with another replicate")
        return False

    def lose_worker(self, death: WorkerDied) -> None:
        # The second death of an arm is no further evidence against its version.
        counts = self.arm.key not in self.of.progress.killed
        failure = self.end(Died("worker", f"its worker died: {death}"))
        self.of.workers.restart(self.arm.target, failure, counts=counts)

    def stop(self, answer: Closed | Refused | Died) -> None:
        """End the replicate, and replace its worker if it did not find its GPU."""
        failure = self.end(answer)
        if isinstance(answer, Died) and answer.how == contract.GPU_LOST:
            self.of.workers.restart(self.arm.target, failure)

    def end(self, answer: Closed | Refused | Died) -> DeathCause | None:
        """Journal how the replicate ended, and return what it died of.

        An arm that refused or died is not tried again in this run, unless the run is resumed, the arm did not find its
        GPU, or something killed it from outside for the first time.
        """
        case, target = self.arm
        if isinstance(answer, Closed):
            part = self.of.workers.slot(target).parts
            self._record(outcome="measured", part=part, rows=answer.rows, threads=self.threads or None)
            self.of.workers.release(target)
            return None
        failure, repeat = None, ""
        if isinstance(answer, Refused):
            ended = self._record(outcome="refused", reason=answer.reason)
        else:
            failure, record = self._examine(answer)
            log = "\n".join(filter(None, (answer.log, record)))
            kind = {"failure": failure.kind, "external": failure.external}
            ended = self._record(outcome="died", how=answer.how, reason=failure.reason, log=log, **kind)
            repeat = self._find_repeat(answer, failure)
        self.of.workers.release(target)
        if repeat:
            self.of.progress.repeats.append(repeat)
        else:
            self.of.progress.ended.add(self.arm.key)
        brackets = describe_failure(ended.failure, external=ended.external and not repeat)
        again = "; it is measured again" if repeat else ""
        reason = escape_unprintable(ended.reason)
        self.of.session.view.say(f"{target} {ended.outcome}{brackets} {case.label}: {reason}{again}")
        return failure

    def _find_repeat(self, died: Died, failure: DeathCause) -> str:
        """Return why the arm is measured again in this run, or ''; a kill from outside is a reason only once."""
        if died.how == contract.GPU_LOST:
            return GPU_LOST
        killed = self.of.progress.killed
        if not failure.external or failure.kind not in ("signal", "worker") or self.arm.key in killed:
            return ""
        killed.add(self.arm.key)
        return KILLED

    def _examine(self, died: Died) -> tuple[DeathCause, str]:
        """Return what the replicate died of, and what the kernel has recorded about it."""
        workers, slot = self.of.workers, self.of.workers.slot(self.arm.target)
        evidence = workers.scene.examine(self.memory)
        death = Death(
            how=died.how,
            reason=died.reason + (LONGER if died.how == "timeout" else ""),
            log=died.log,
            innocent=died.how == "worker" and not slot.isolated,
            limited=workers.limited,
            filler=slot.filler,
        )
        if lacks_scratch(death, evidence):
            # The first case that finds the folder full is the one that has filled it.
            slot.filler = slot.filler or self.arm.case.label
        return classify(death, evidence), evidence.record

    def _record(self, **how: Any) -> Ended:
        case, target = self.arm
        ended = Ended(
            target=target, case=case.label, round=self.round, replicate=self.number,
            once=self.once, **how,
        )  # fmt: skip
        self.of.session.folder.record(ended)
        return ended
