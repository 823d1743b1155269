"""The workers of a run: one resident worker per version, new in every round, or a fresh one per replicate."""

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir

from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator import interrupts
from orchestrator.engines import ENGINES, Environment, WorkerPaths
from orchestrator.engines.worker.channel import ChannelClosed
from orchestrator.engines.worker.client import Ready, SeenGpu, WorkerClient, WorkerDied
from orchestrator.errors import EngineUnavailable, EnvironmentFailed, Interrupted, TfCompareError
from orchestrator.files import read_last_line
from orchestrator.machine.evidence import MemoryMark
from orchestrator.machine.gpu import Gpu
from orchestrator.measure.failures import OTHER_TENSORFLOW, Scene, classify_start
from orchestrator.measure.session import Session
from orchestrator.model import DeathCause, Lost, Strays, Target
from orchestrator.plan.order import seed_of_round
from orchestrator.results.evaluation import FIRST_ROUND
from orchestrator.results.streams import Stream
from orchestrator.terminal.text import escape_unprintable

START_TIMEOUT_S = 180.0
# While a driver makes a version's code for its GPU: half an hour was reported, and an hour and a half for four GPUs.
SLOW_START_TIMEOUT_S = 7200.0
# A version whose worker dies this often is not measured any further: its machine or its TensorFlow is broken.
MOST_DEATHS = 3
# The usual few versions all start at once.
FEWEST_STARTING = 4
# The last line of a worker's log if it had to end processes; workloads/processes.py writes it.
STRAYS = re.compile(r"tfcompare: workloads left processes running, which were ended: (\d{1,6})")

POST = re.compile(r"\.post\d+")


@dataclass
class WorkerSlot:
    environment: Environment
    parts: int
    isolated: bool
    client: WorkerClient | None = None
    # One that has not yet said that it is ready.
    starting: WorkerClient | None = None
    stream: Stream | None = None
    # Where the log of this worker begins in the log of its version.
    log_begin: int = 0
    # The case that has filled the scratch folder of this worker's container.
    filler: str = ""
    started: bool = False
    deaths: int = 0
    lost: bool = False
    # Why its TensorFlow has not the GPUs of the run, or ''.
    blind: str = ""


class Workers:
    def __init__(self, session: Session, isolated: Collection[Target] | None = None) -> None:
        """Take the versions that get one worker per replicate; by default the plan says which."""
        self._plan = session.plan
        self._run = session.folder
        self._own = session.own_workloads
        self._layers = session.layers
        self._say = session.view.say
        self._fitting = session.fitting
        # Workers of a detached engine have their scratch folder, and a limit of memory, in their containers.
        self.limited = ENGINES[session.plan.engine].detached
        folders = (session.folder.path,) if self.limited else (session.folder.path, Path(gettempdir()))
        self.scene = Scene(folders, session.plan.gpus if session.plan.device == "gpu" else ())
        if isolated is None:
            isolated = () if session.plan.isolation == "fork" else session.environments
        self._round = FIRST_ROUND
        # Whether starts are given up.
        self._giving_up = False
        # Taken once, by the first worker whose workloads left processes running.
        self._first_strays = threading.Lock()
        # The seconds that the resident workers last took to start.
        self.start_s = 0.0
        parts = session.folder.worker_output.parts()
        self._slots = {
            target: WorkerSlot(environment, parts[target], isolated=target in isolated)
            for target, environment in session.environments.items()
        }

    def targets(self) -> list[Target]:
        return [target for target, slot in self._slots.items() if not slot.lost]

    def client(self, target: Target) -> WorkerClient | None:
        slot = self._slots.get(target)
        return slot.client if slot else None

    def describe_loss(self, target: Target) -> str:
        """Return why the version has no worker any more, as the journal has it."""
        lost = [entry for entry in self._run.entries() if isinstance(entry, Lost) and entry.target == target]
        return "; ".join(f"{entry.stage}: {entry.reason}" for entry in lost[-1:])

    def mark_memory(self, pid: int | None) -> MemoryMark:
        """Return this moment; a detached engine whose processes have no number here runs on another machine."""
        return MemoryMark.now(pid) if pid or not self.limited else MemoryMark.elsewhere()

    def filler(self, target: Target) -> str:
        """Return which case has filled the scratch folder of the version's container, or ''."""
        return self._slots[target].filler

    def note_filler(self, target: Target, case: str) -> None:
        """Note that a case found this folder full; the first one that does is the one that has filled it."""
        slot = self._slots[target]
        slot.filler = slot.filler or case

    def is_isolated(self, target: Target) -> bool:
        return self._slots[target].isolated

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
        started = self._start_in_turn() if self._plan.exclusive else self._start_together(self._slots, self._start)
        self._require_sight()
        return started

    def renew(self, targets: Collection[Target], number: int) -> None:
        """Replace the resident workers of these versions for this round.

        A worker's address layout and its order of hashes are luck that all its replicates share. With new workers in
        every round, the differences between rounds have that luck in them, and so do intervals.
        """
        self._round = number
        resident = [target for target in self.targets() if target in targets and not self._slots[target].isolated]
        self._end_all(_quit, resident)
        self._start_together(resident, self._start)
        self._require_sight()

    def _require_sight(self) -> None:
        """Raise EngineUnavailable if no version sees the GPUs of the run: then the machine is the cause."""
        blind = [slot.blind for slot in self._slots.values() if slot.blind]
        if blind and len(blind) == len(self._slots):
            raise EngineUnavailable(blind[0])

    def _start_together(
        self, targets: Collection[Target], start: Callable[[Target], Ready | None]
    ) -> dict[Target, Ready]:
        begun = time.monotonic()
        # An executor, whose end an interrupt waits for: no worker is started after all others were ended. Only as many
        # at once as can each import TensorFlow within the deadline, whatever the number of versions.
        usable = len(self._plan.cpus or os.sched_getaffinity(0))
        with ThreadPoolExecutor(min(len(targets), max(FEWEST_STARTING, usable)) or 1) as pool:
            try:
                started = dict(zip(targets, pool.map(start, targets), strict=True))
            except BaseException:
                self._give_up_starts()
                raise
        if not all(self._slots[target].isolated for target in targets):
            self.start_s = time.monotonic() - begun
        return {target: ready for target, ready in started.items() if ready}

    def _give_up_starts(self) -> None:
        """End the workers that are being started, so that the threads that wait for them end."""
        self._giving_up = True
        for slot in self._slots.values():
            if client := slot.starting:
                client.channel.close()

    def _start_in_turn(self) -> dict[Target, Ready]:
        """Start each worker once to check that it can start; each ends before the next one begins."""
        started = {}
        for target, slot in self._slots.items():
            if ready := self._start(target):
                started[target] = ready
                self._leave(slot)
        return started

    def _start(self, target: Target) -> Ready | None:
        slot = self._slots[target]
        slot.parts += 1
        slot.filler = ""
        slot.stream = stream = self._run.worker_output.stream(target, slot.parts)
        paths = WorkerPaths(
            run=self._plan.run,
            results=self._run.worker_output.create_results_folder(target, slot.parts),
            log=self._run.worker_output.create_worker_log(target),
            own_workloads=self._own,
            seed=seed_of_round(self._plan.seed, self._round),
            large=self._plan.large,
            workers=1 if self._plan.exclusive else len(self._slots),
            layers=self._layers.get(target, {}),
        )
        slot.log_begin = paths.log.stat().st_size if paths.log.exists() else 0
        client, memory = None, self.mark_memory(None)
        try:
            started = slot.environment.start(paths, stream.path)
            slot.starting = client = WorkerClient(started.channel, target)
            if self._giving_up:
                raise WorkerDied("interrupted")
            ready = client.hello(
                run=self._plan.run,
                device=self._plan.device,
                gpus=(len(self._fitting.gpus) or 1) if self._plan.device == "gpu" else 0,
                threads=self._plan.threads,
                fork=not slot.isolated,
                folders=started.folders,
                results=started.results,
                timeout_s=START_TIMEOUT_S,
            )
            stated = str(ready.facts.get("tensorflow") or "no number")
            if started.tensorflow and not _is_same_release(stated, started.tensorflow):
                raise WorkerDied(
                    f"{OTHER_TENSORFLOW}: its TensorFlow states {stated}, and {target} is {started.tensorflow}; "
                    f"{started.remedy}"
                )
            # A GPU can be lost between two rounds. Where each replicate has its own worker, checking all of them would
            # take too long.
            if self._plan.device == "gpu" and not (slot.started and slot.isolated):
                slot.blind = self._find_blindness(client)
                if slot.blind:
                    raise WorkerDied(slot.blind)
        except (WorkerDied, EnvironmentFailed) as error:
            if client:
                client.channel.close()
            self._settle(slot)
            if self._giving_up:
                return None
            last_line = read_last_line(paths.log) if isinstance(error.__cause__, ChannelClosed) else ""
            log = f"; see {paths.log}" if paths.log.exists() else ""
            reason = f"{error}{f' ({last_line})' if last_line else ''}"
            evidence = self.scene.examine(memory)
            failure = classify_start(reason, evidence, limited=self.limited, blind=bool(slot.blind))
            self._not_started(target, replace(failure, reason=f"{failure.reason}{log}"))
            return None
        except BaseException:
            if client:
                client.channel.close()
            raise
        finally:
            slot.starting = None
        slot.client = client
        slot.started = True
        return ready

    def _not_started(self, target: Target, failure: DeathCause) -> None:
        """Handle a failed start: a version that has started before loses only the replicates of that worker."""
        slot = self._slots[target]
        if slot.started and failure.kind != "contract":
            slot.deaths += 1
            if slot.deaths < MOST_DEATHS:
                self._say(f"{target}: a worker did not start: {escape_unprintable(failure.reason)}")
                return
        self.lose(target, "start", failure)

    def _find_blindness(self, client: WorkerClient) -> str:
        """Return why TensorFlow itself does not see the GPUs that were requested for the run, or ''."""
        slow = client.target.name in self._fitting.slow_starts
        seen = client.gpus(SLOW_START_TIMEOUT_S if slow else START_TIMEOUT_S)
        wrong = misfit(self._fitting.gpus, seen.gpus, "inside its container" if self.limited else "in its environment")
        if not wrong:
            return ""
        cause = str(seen.driver)
        other_request = "try another --gpu-request, " if self.limited else ""
        hint = cause or (
            "check `nvidia-smi` on this machine, see whether `tfcompare doctor --gpu` finds something, "
            f"{other_request}or leave --gpu out"
        )
        return f"--gpu: TensorFlow {client.target} {wrong}; {hint}"

    def lose(self, target: Target, stage: str, failure: DeathCause) -> None:
        self._slots[target].lost = True
        self._run.record(
            Lost(target=target, stage=stage, reason=failure.reason, failure=failure.kind, external=failure.external)
        )
        self._say(f"{target} is lost ({stage}): {escape_unprintable(failure.reason)}")

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
        self._say(f"{target}: starting another worker")
        self._start(target)

    def stop(self) -> None:
        """Ask every worker to quit, and keep what each wrote."""
        self._end_all(_quit, self._slots)

    def kill(self) -> None:
        """End every worker at once."""
        self._end_all(_kill, self._slots)

    def _end_all(self, end: Callable[[WorkerSlot], None], targets: Collection[Target]) -> None:
        """End these workers at once, but settle what they wrote one after another, for that takes memory."""
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
            self._say(f"{target}: workloads left processes running, which were ended: {line[1]}")

    def sync(self, number: int) -> None:
        """Write what a round has measured through to the disk, and say whose results are gone."""
        for target, slot in self._slots.items():
            if slot.stream and not os.path.lexists(slot.stream.path):
                self._say(f"warning: the results of {target} were removed: what it measured in round {number} is lost")
        self._run.sync()

    def part(self, target: Target) -> int:
        """Return the number of the version's worker, or of its last one if none runs now."""
        return self._slots[target].parts


@dataclass
class Employed:
    """The workers of a run while it needs them, and the error that ended their work early."""

    session: Session
    workers: Workers
    error: TfCompareError | None = None

    def start(self, number: int = FIRST_ROUND) -> dict[Target, Ready]:
        """Start all of them for this round, and note in the manifest what those that are ready say of themselves."""
        for target in self.session.environments:
            self.session.view.preparing(str(target), "starting its worker")
        ready = self.workers.start_all(number)
        manifest = self.session.folder.read_manifest()
        facts = {target: answer.facts for target, answer in ready.items()}
        self.session.folder.write_manifest(replace(manifest, workers={**manifest.workers, **facts}))
        return ready


def _nothing_else(employed: Employed) -> None:
    pass


@contextmanager
def employ(session: Session, at_end: Callable[[Employed], None] = _nothing_else) -> Iterator[Employed]:
    """Yield the workers of a run, and end them whatever happens; `at_end` follows, and no interrupt comes between."""
    employed = Employed(session, Workers(session))
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
            at_end(employed)


def misfit(requested: Sequence[Gpu], seen: Sequence[SeenGpu], place: str) -> str:
    """Describe how the GPUs that TensorFlow sees differ from those requested; return '' if they match.

    If no particular GPU was requested, any GPU will do.
    """
    if not seen:
        where = f", where {_describe_gpus(requested)} was asked for" if requested else ""
        return f"sees no GPU {place}{where}"
    unlike = len(seen) != len(requested) or not _alike(requested, seen)
    if requested and unlike:
        return f"sees {', '.join(map(str, seen))} {place}, where {_describe_gpus(requested)} was asked for"
    return ""


def _alike(requested: Sequence[Gpu], seen: Sequence[SeenGpu]) -> bool:
    """Return whether the same GPUs were requested and seen, in any order.

    CUDA lists the fastest GPU first, and the driver lists GPUs by slot.
    """
    unmatched = list(seen)
    for gpu in requested:
        same = next((candidate for candidate in unmatched if _same(gpu, candidate)), None)
        if same is None:
            return False
        unmatched.remove(same)
    return True


def _same(gpu: Gpu, candidate: SeenGpu) -> bool:
    if gpu.capability and candidate.capability and gpu.capability != candidate.capability:
        return False
    # A slice of a GPU has the GPU's name and more; older drivers left out the maker's.
    mine, its = (gpu.name or "").removeprefix("NVIDIA "), candidate.name.removeprefix("NVIDIA ")
    return not mine or not its or mine in its or its in mine


def _describe_gpus(gpus: Sequence[Gpu]) -> str:
    return ", ".join(
        f"{gpu.title} {gpu.key}" + (f" (compute capability {gpu.capability})" if gpu.capability else "") for gpu in gpus
    )


def _quit(slot: WorkerSlot) -> None:
    if slot.client:
        slot.client.quit()


def _kill(slot: WorkerSlot) -> None:
    if slot.client:
        slot.client.channel.close()


def _is_same_release(stated: str, expected: str) -> bool:
    """Return whether two numbers are of the same release.

    Makers add to them: NVIDIA `+nv23.3`, and a wheel that was packed again has a `.post1` of which TensorFlow knows
    nothing.
    """
    try:
        one, other = (Number(POST.sub("", Number(text).public)) for text in (stated, expected))
    except InvalidVersion:
        return stated.startswith(expected)
    return one == other
