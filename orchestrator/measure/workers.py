"""The workers of a run: one resident worker per version, new in every round, or a fresh one per replicate."""

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir

from orchestrator import interrupts
from orchestrator.engines import ENGINES
from orchestrator.engines.worker.client import Ready, WorkerClient
from orchestrator.errors import EngineUnavailable, Interrupted, TfCompareError
from orchestrator.files import read_last_line
from orchestrator.machine.evidence import MemoryMark
from orchestrator.measure.failures import Scene
from orchestrator.measure.session import Session
from orchestrator.measure.starting import NotStarted, WorkerSlot, WorkerStarter
from orchestrator.model import DeathCause, Lost, Strays, Target
from orchestrator.results.evaluation import FIRST_ROUND
from orchestrator.results.streams import Stream
from orchestrator.terminal.text import escape_unprintable

# A version whose worker dies this often is not measured any further: its machine or its TensorFlow is broken.
MOST_DEATHS = 3
# At least this many workers may start at once, which is enough for the usual few versions.
FEWEST_STARTING = 4
# workloads/processes.py writes this as the last line of a worker's log if it had to end processes.
STRAYS = re.compile(r"tfcompare: workloads left processes running, which were ended: (\d{1,6})")


class Workers:
    def __init__(self, session: Session, isolated: Collection[Target] | None = None) -> None:
        """Take the versions that get one worker per replicate; by default the plan says which."""
        self._plan = session.plan
        self._run = session.folder
        self._view = session.view
        # Workers of a detached engine have their scratch folder and a memory limit in their containers.
        self.limited = ENGINES[session.plan.engine].detached
        folders = (session.folder.path,) if self.limited else (session.folder.path, Path(gettempdir()))
        self.scene = Scene(folders, session.plan.gpus if session.plan.device == "gpu" else ())
        if isolated is None:
            isolated = () if session.plan.isolation == "fork" else session.environments
        self._round = FIRST_ROUND
        # The first worker whose workloads left processes running takes this, and it is never released.
        self._first_strays = threading.Lock()
        # The resident workers last took this many seconds to start.
        self.start_s = 0.0
        parts = session.folder.worker_output.parts()
        self._slots = {
            target: WorkerSlot(target, environment, parts[target], isolated=target in isolated)
            for target, environment in session.environments.items()
        }
        self._starter = WorkerStarter(session, self._slots.values(), self.scene, detached=self.limited)

    def targets(self) -> list[Target]:
        return [target for target, slot in self._slots.items() if not slot.lost]

    def client(self, target: Target) -> WorkerClient | None:
        slot = self._slots.get(target)
        return slot.client if slot else None

    def describe_loss(self, target: Target) -> str:
        """Return why the version has no worker any more, according to the journal."""
        lost = [entry for entry in self._run.entries() if isinstance(entry, Lost) and entry.target == target]
        return "; ".join(f"{entry.stage}: {entry.reason}" for entry in lost[-1:])

    def mark_memory(self, pid: int | None) -> MemoryMark:
        """Return a mark of this moment; a detached engine whose processes have no pid here runs on another machine."""
        return MemoryMark.now(pid) if pid or not self.limited else MemoryMark.elsewhere()

    def slot(self, target: Target) -> WorkerSlot:
        return self._slots[target]

    def acquire(self, target: Target) -> WorkerClient | None:
        """Return the worker for a new replicate; with one worker per replicate, start it first."""
        slot = self._slots.get(target)
        if slot and slot.isolated and not slot.client and not slot.lost:
            self._start(target)
        return self.client(target)

    def release(self, target: Target) -> None:
        """Finish a replicate. With one worker per replicate, this also stops the worker."""
        if self._slots[target].isolated:
            self._leave(self._slots[target])

    def start_all(self, number: int = FIRST_ROUND) -> dict[Target, Ready]:
        """Start every worker for this round and return those that are ready.

        A failed start costs only its own version.
        """
        self._round = number
        started = {}
        if not self._plan.exclusive:
            started = self._start_together(self._slots)
        else:
            # This only checks that each worker can start, so each ends before the next one begins.
            for target, slot in self._slots.items():
                if ready := self._start(target):
                    started[target] = ready
                    self._leave(slot)
        self._require_sight()
        return started

    def renew(self, targets: Collection[Target], number: int) -> None:
        """Replace the resident workers of these versions for this round.

        A worker's address layout and its hash order are random, and all its replicates share them. With new workers in
        every round, they vary between rounds, and so intervals include their effect.
        """
        self._round = number
        resident = [target for target in self.targets() if target in targets and not self._slots[target].isolated]
        self._end_all(_quit, resident)
        self._start_together(resident)
        self._require_sight()

    def _require_sight(self) -> None:
        """Raise EngineUnavailable if no version sees the GPUs of the run: then the machine is the cause."""
        blind = [slot.blind for slot in self._slots.values() if slot.blind]
        if blind and len(blind) == len(self._slots):
            raise EngineUnavailable(blind[0])

    def _start_together(self, targets: Collection[Target]) -> dict[Target, Ready]:
        begun = time.monotonic()
        # An interrupt waits for the end of the executor, so no worker is started after all others were ended. The
        # number of threads is limited, so that each worker can import TensorFlow within the deadline.
        usable = len(self._plan.cpus or os.sched_getaffinity(0))
        with ThreadPoolExecutor(min(len(targets), max(FEWEST_STARTING, usable)) or 1) as pool:
            try:
                started = dict(zip(targets, pool.map(self._start, targets), strict=True))
            except BaseException:
                self._starter.give_up()
                raise
        if not all(self._slots[target].isolated for target in targets):
            self.start_s = time.monotonic() - begun
        return {target: ready for target, ready in started.items() if ready}

    def _start(self, target: Target) -> Ready | None:
        slot = self._slots[target]
        try:
            return self._starter.start(slot, self._round)
        except NotStarted as error:
            self._settle(slot)
            if not self._starter.giving_up:
                self._not_started(target, error.failure)
            return None

    def _not_started(self, target: Target, failure: DeathCause) -> None:
        """Handle a failed start: a version that has started before loses only the replicates of that worker."""
        slot = self._slots[target]
        if slot.started and failure.kind != "contract":
            slot.deaths += 1
            if slot.deaths < MOST_DEATHS:
                self._view.say(f"{target}: a worker did not start: {escape_unprintable(failure.reason)}")
                return
        self.lose(target, "start", failure)

    def lose(self, target: Target, stage: str, failure: DeathCause) -> None:
        self._slots[target].lost = True
        self._run.record(
            Lost(target=target, stage=stage, reason=failure.reason, failure=failure.kind, external=failure.external)
        )
        self._view.say(f"{target} is lost ({stage}): {escape_unprintable(failure.reason)}")

    def restart(self, target: Target, failure: DeathCause | None = None, *, counts: bool = True) -> None:
        """Clean up after a worker's death: keep what it wrote and, if it was a resident, start a replacement.

        `counts` says whether the death brings its version nearer to being lost.
        """
        slot = self._slots[target]
        if slot.client:
            slot.client.channel.close()
        self._settle(slot)
        if slot.isolated:
            return
        slot.deaths += counts
        if slot.deaths >= MOST_DEATHS:
            last = failure or DeathCause("worker", "", external=True)
            reason = f"it died {slot.deaths} times"
            self.lose(target, "worker", DeathCause(last.kind, reason, last.external))
            return
        self._view.say(f"{target}: starting another worker")
        self._start(target)

    def stop(self) -> None:
        """Ask every worker to quit, and keep what each wrote."""
        self._end_all(_quit, self._slots)

    def kill(self) -> None:
        """End every worker at once."""
        self._end_all(_kill, self._slots)

    def _end_all(self, end: Callable[[WorkerSlot], None], targets: Collection[Target]) -> None:
        """End these workers at once, but settle what they wrote one after another, because that takes memory."""
        slots = [self._slots[target] for target in targets]
        with ThreadPoolExecutor(len(slots) or 1) as pool:
            list(pool.map(end, slots))
        for slot in slots:
            self._settle(slot)

    def _leave(self, slot: WorkerSlot) -> None:
        _quit(slot)
        self._settle(slot)

    def _settle(self, slot: WorkerSlot) -> None:
        """Move an ended worker's stream out of the folder it could write to, however the worker ended."""
        slot.client = None
        if slot.stream:
            self._run.worker_output.settle(slot.stream)
            self._report_strays(slot, slot.stream)
            slot.stream = None

    def _report_strays(self, slot: WorkerSlot, stream: Stream) -> None:
        """Journal what workloads left running, and say so for the first of them."""
        target = stream.target
        assert target
        line = STRAYS.fullmatch(read_last_line(self._run.logs / f"worker-{target}.log", slot.log_begin))
        if line is None:
            return
        self._run.record(Strays(target=target, part=stream.part, count=int(line[1])))
        if self._first_strays.acquire(blocking=False):
            self._view.say(f"{target}: workloads left processes running, which were ended: {line[1]}")

    def sync(self, number: int) -> None:
        """Flush what a round has measured to the disk, and name the versions whose results are gone."""
        for target, slot in self._slots.items():
            if slot.stream and not os.path.lexists(slot.stream.path):
                lost = f"what it measured in round {number} is lost"
                self._view.say(f"warning: the results of {target} were removed: {lost}")
        self._run.sync()


@dataclass
class RunningWorkers:
    """The workers of a run while it needs them, and the error that ended their work early."""

    session: Session
    workers: Workers
    error: TfCompareError | None = None

    def start(self, number: int = FIRST_ROUND) -> dict[Target, Ready]:
        """Start all workers for this round, and record in the manifest what those that are ready state."""
        for target in self.session.environments:
            self.session.view.preparing(str(target), "starting its worker")
        ready = self.workers.start_all(number)
        manifest = self.session.folder.read_manifest()
        facts = {target: answer.facts for target, answer in ready.items()}
        self.session.folder.write_manifest(replace(manifest, workers={**manifest.workers, **facts}))
        return ready


@contextmanager
def employ(
    session: Session, at_end: Callable[[RunningWorkers], object] = lambda employed: None
) -> Iterator[RunningWorkers]:
    """Yield the workers of a run, and end them whatever happens; then call `at_end`, with interrupts held back."""
    employed = RunningWorkers(session, Workers(session))
    output = session.folder.worker_output
    output.remove_xla_code()
    try:
        yield employed
        employed.workers.stop()
    except EngineUnavailable as gone:
        employed.error = gone
    except KeyboardInterrupt:
        employed.error = Interrupted("interrupted")
    finally:
        with interrupts.hold():
            employed.workers.kill()
            output.remove_xla_code()
            at_end(employed)


def _quit(slot: WorkerSlot) -> None:
    if slot.client:
        slot.client.quit()


def _kill(slot: WorkerSlot) -> None:
    if slot.client:
        slot.client.channel.close()
