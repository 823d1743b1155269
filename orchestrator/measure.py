"""The measuring itself: a pilot that calibrates, then rounds in which all arms of a case stand side by side."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.crew import Crew
from orchestrator.engines.client import Closed, Died, Opened, Refused, WorkerDied
from orchestrator.model import Calibrated, Case, Comparison, Ended, Plan
from orchestrator.plan import round_order
from orchestrator.progress import View
from orchestrator.rundir import RunDir
from workloads.contract import PILOT_ROUND

PILOT_WARMUP = 3
BURSTS = 2
# Long enough that a reading of the clock and a line through a pipe do not count, short enough that a noisy
# second hits all arms.
BURST_S = 0.08
FEWEST_CALLS, MOST_CALLS = 3, 50
BURST_TIMEOUT_S = 60.0

Judge = Callable[[], Comparison]


@dataclass
class Measurement:
    plan: Plan
    crew: Crew
    run: RunDir
    view: View
    judge: Judge
    calibration: dict[str, Calibrated] = field(default_factory=dict)
    ended: set[tuple[str, str]] = field(default_factory=set)
    replicates: int = 0
    started: float = field(default_factory=time.monotonic)

    def measure(self) -> str:
        """Runs to the end of the plan; what it returns, if anything, is a sentence on why it ended early."""
        for case in self.plan.cases:
            self._pilot(case)
        open_cases = [case for case in self.plan.cases if self._alive(case)]
        took = 0.0
        for number in range(1, self.plan.looks[-1] + 1):
            if not open_cases:
                return ""
            if number > 2 and self.plan.budget_s and self._elapsed() + took > self.plan.budget_s:
                return f"the budget of {self.plan.budget_s:.0f} s ended the run after {number - 1} rounds"
            begun = time.monotonic()
            order = random.Random(f"{self.plan.seed}/{number}").sample(open_cases, len(open_cases))
            for case in order:
                self._visit(case, number)
            took = time.monotonic() - begun
            self.view.round_done(number, self.plan.looks[-1], len(open_cases), took, self._left(took, number))
            open_cases = [case for case in open_cases if self._alive(case)]
            if number in self.plan.looks:
                open_cases = self._undecided(open_cases)
        return ""

    def _elapsed(self) -> float:
        return time.monotonic() - self.started

    def _left(self, took: float, number: int) -> float:
        """At most: cases leave the rotation as their verdicts come in."""
        rounds = (self.plan.looks[-1] - number) * took
        return min(rounds, self.plan.budget_s - self._elapsed()) if self.plan.budget_s else rounds

    def _alive(self, case: Case) -> list[str]:
        return [
            version
            for version in self.crew.versions()
            if version in self.plan.versions and (case.label, version) not in self.ended
        ]

    def _undecided(self, cases: list[Case]) -> list[Case]:
        """The cases with a contrast that more rounds could still decide."""
        going = set(self.crew.versions())
        wanted = {
            label
            for contrast in self.judge().contrasts
            if contrast.verdict == "inconclusive"
            and all(arm not in self.ended and arm[1] in going for arm in contrast.pair.arms)
            for label, _ in contrast.pair.arms
        }
        return [case for case in cases if case.label in wanted]

    def _pilot(self, case: Case) -> None:
        slowest = 0.0
        for position, version in enumerate(self._alive(case)):
            self.view.measuring(version, case, PILOT_ROUND)
            replicate = self._open(case, version, PILOT_ROUND, position, PILOT_WARMUP)
            if replicate is None:
                continue
            number, opened = replicate
            calls = _fitting(opened.warm_ns)
            median_ns = self._burst(case, version, PILOT_ROUND, number, calls)
            if median_ns is not None and self._close(case, version, PILOT_ROUND, number):
                slowest = max(slowest, float(median_ns))
        calibrated = Calibrated(case=case.label, warmup=PILOT_WARMUP, bursts=BURSTS, calls=_fitting(slowest))
        self.calibration[case.label] = calibrated
        self.run.record(calibrated)

    def _visit(self, case: Case, number: int) -> None:
        """One round of a case: all its arms open at once, their bursts alternating forth and back."""
        calibrated = self.calibration[case.label]
        order = round_order(self._alive(case), self.plan.seed, case.label, number)
        replicates: dict[str, int] = {}
        for position, version in enumerate(order):
            self.view.measuring(version, case, number)
            if replicate := self._open(case, version, number, position, calibrated.warmup):
                replicates[version] = replicate[0]
        for burst in range(calibrated.bursts):
            for version in order if burst % 2 == 0 else order[::-1]:
                if version in replicates:
                    done = self._burst(case, version, number, replicates[version], calibrated.calls)
                    if done is None:
                        del replicates[version]
        for version, replicate_number in replicates.items():
            self._close(case, version, number, replicate_number)

    def _open(self, case: Case, version: str, number: int, position: int, warmup: int) -> tuple[int, Opened] | None:
        client = self.crew.client(version)
        if client is None:
            return None
        self.replicates += 1
        try:
            answer = client.open(
                case, replicate=self.replicates, round=number, position=position,
                seed=self.plan.seed, warmup=warmup, timeout_s=self.plan.timeout_s,
            )  # fmt: skip
        except WorkerDied as death:
            self._worker_died(case, version, number, self.replicates, death)
            return None
        if isinstance(answer, Opened):
            return self.replicates, answer
        self._end(case, version, number, self.replicates, answer)
        return None

    def _burst(self, case: Case, version: str, number: int, replicate: int, calls: int) -> int | None:
        client = self.crew.client(version)
        if client is None:
            return None
        try:
            answer = client.burst(replicate, calls, max(BURST_TIMEOUT_S, self.plan.timeout_s))
        except WorkerDied as death:
            self._worker_died(case, version, number, replicate, death)
            return None
        if isinstance(answer, Died):
            self._end(case, version, number, replicate, answer)
            return None
        return answer

    def _close(self, case: Case, version: str, number: int, replicate: int) -> bool:
        client = self.crew.client(version)
        if client is None:
            return False
        try:
            answer = client.close_replicate(replicate, BURST_TIMEOUT_S)
        except WorkerDied as death:
            self._worker_died(case, version, number, replicate, death)
            return False
        self._end(case, version, number, replicate, answer)
        return isinstance(answer, Closed)

    def _worker_died(self, case: Case, version: str, number: int, replicate: int, death: WorkerDied) -> None:
        self._end(case, version, number, replicate, Died("worker", f"its worker died: {death}"))
        self.crew.bury(version)

    def _end(self, case: Case, version: str, number: int, replicate: int, answer: Closed | Refused | Died) -> None:
        """Journals how a replicate ended; an arm that refused or died is not tried again in this run."""
        if isinstance(answer, Closed):
            ended = Ended(version=version, case=case.label, round=number, replicate=replicate, outcome="measured")
        elif isinstance(answer, Refused):
            ended = Ended(
                version=version, case=case.label, round=number, replicate=replicate, outcome="refused",
                reason=answer.reason,
            )  # fmt: skip
        else:
            ended = Ended(
                version=version, case=case.label, round=number, replicate=replicate, outcome="died",
                how=answer.how, reason=answer.reason, log=answer.log,
            )  # fmt: skip
        self.run.record(ended)
        if ended.outcome != "measured":
            self.ended.add((case.label, version))
            self.view.say(f"{version} {ended.outcome} {case.label}: {ended.reason}")


def _fitting(call_ns: float) -> int:
    """How many calls of this length make a burst."""
    return min(MOST_CALLS, max(FEWEST_CALLS, math.ceil(BURST_S * 1e9 / max(call_ns, 1.0))))
