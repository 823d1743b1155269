"""The start of a worker: its greeting, its TensorFlow and its GPUs, and why one did not start."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator.engines import Environment, WorkerPaths
from orchestrator.engines.worker.channel import ChannelClosed
from orchestrator.engines.worker.client import Ready, VisibleGpu, WorkerClient, WorkerDied
from orchestrator.errors import EnvironmentFailed
from orchestrator.files import read_last_line
from orchestrator.machine.evidence import MemoryMark
from orchestrator.machine.gpu import Gpu
from orchestrator.measure.failures import OTHER_TENSORFLOW, Scene, classify_start
from orchestrator.measure.session import Session, list_data
from orchestrator.model import DeathCause, Target
from orchestrator.plan.order import seed_of_round
from orchestrator.results.streams import Stream

START_TIMEOUT_S = 180.0
# A driver may first have to compile a version's GPU code: half an hour was reported, and 90 minutes for four GPUs.
SLOW_START_TIMEOUT_S = 7200.0
POST = re.compile(r"\.post\d+")


@dataclass
class WorkerSlot:
    """The state of a version's worker, and of those before it."""

    target: Target
    environment: Environment
    # This is the number of its worker, or of the last one if none runs now.
    parts: int
    isolated: bool
    client: WorkerClient | None = None
    # This worker has not yet reported that it is ready.
    starting: WorkerClient | None = None
    stream: Stream | None = None
    # The log of this worker begins at this byte in the log of its version.
    log_begin: int = 0
    # This case has filled the scratch folder of this worker's container.
    filler: str = ""
    started: bool = False
    deaths: int = 0
    lost: bool = False
    # This says why its TensorFlow does not see the GPUs of the run; it is '' if it does.
    blind: str = ""


class NotStarted(Exception):
    def __init__(self, failure: DeathCause) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class WorkerStarter:
    def __init__(self, session: Session, slots: Collection[WorkerSlot], scene: Scene, *, detached: bool) -> None:
        self._session = session
        self._slots = slots
        self._scene = scene
        # Workers of a detached engine have a memory limit in their containers.
        self._detached = detached
        # If this is true, no worker is started any more.
        self.giving_up = False

    def give_up(self) -> None:
        """End the workers that are being started, so that the threads that wait for them end."""
        self.giving_up = True
        for slot in self._slots:
            if client := slot.starting:
                client.channel.close()

    def start(self, slot: WorkerSlot, number: int) -> Ready:
        """Start a worker for this round; raise NotStarted if it does not start as planned."""
        plan, output = self._session.plan, self._session.folder.worker_output
        slot.parts += 1
        slot.filler = ""
        slot.stream = stream = output.stream(slot.target, slot.parts)
        revised = self._session.revisions.get(slot.target.name)
        paths = WorkerPaths(
            run=plan.run,
            results=output.create_results_folder(slot.target, slot.parts),
            log=output.create_worker_log(slot.target),
            own_workloads=revised or self._session.own_workloads,
            xla_code=output.create_xla_folder(slot.target) if plan.keeps_xla_code else None,
            seed=seed_of_round(plan.seed, number),
            large=list_data(plan) if revised else plan.large,
            workers=1 if plan.exclusive else len(self._slots),
            layers=self._session.layers.get(slot.target, {}),
        )
        slot.log_begin = paths.log.stat().st_size if paths.log.exists() else 0
        client, memory = None, MemoryMark.elsewhere() if self._detached else MemoryMark.now(None)
        try:
            started = slot.environment.start(paths, stream.path)
            slot.starting = client = WorkerClient(started.channel, slot.target)
            if self.giving_up:
                raise WorkerDied("interrupted")
            ready = client.hello(
                run=plan.run,
                device=plan.device,
                gpus=(len(self._session.fitting.gpus) or 1) if plan.device == "gpu" else 0,
                threads=plan.threads,
                fork=not slot.isolated,
                untuned=plan.untuned_datasets,
                folders=started.folders,
                results=started.results,
                timeout_s=START_TIMEOUT_S,
            )
            stated = str(ready.facts.get("tensorflow") or "no number")
            if started.tensorflow and not _is_same_release(stated, started.tensorflow):
                raise WorkerDied(
                    f"{OTHER_TENSORFLOW}: its TensorFlow states {stated}, and {slot.target} is {started.tensorflow}; "
                    f"{started.remedy}"
                )
            # A GPU can be lost between two rounds. If each replicate has its own worker, checking all of them would
            # take too long.
            if plan.device == "gpu" and not (slot.started and slot.isolated):
                slot.blind = self._find_blindness(client)
                if slot.blind:
                    raise WorkerDied(slot.blind)
        except (WorkerDied, EnvironmentFailed) as error:
            if client:
                client.channel.close()
            last_line = read_last_line(paths.log) if isinstance(error.__cause__, ChannelClosed) else ""
            reason = f"{error}{f' ({last_line})' if last_line else ''}"
            evidence = self._scene.examine(memory)
            failure = classify_start(reason, evidence, limited=self._detached, blind=bool(slot.blind))
            log = f"; see {paths.log}" if paths.log.exists() else ""
            raise NotStarted(replace(failure, reason=f"{failure.reason}{log}")) from error
        except BaseException:
            if client:
                client.channel.close()
            raise
        finally:
            slot.starting = None
        slot.client = client
        slot.started = True
        return ready

    def _find_blindness(self, client: WorkerClient) -> str:
        """Return why TensorFlow itself does not see the GPUs that were requested for the run, or ''."""
        slow = client.target.name in self._session.fitting.slow_starts
        seen = client.gpus(SLOW_START_TIMEOUT_S if slow else START_TIMEOUT_S)
        place = "inside its container" if self._detached else "in its environment"
        wrong = misfit(self._session.fitting.gpus, seen.gpus, place)
        if not wrong:
            return ""
        cause = str(seen.driver)
        other_request = "try another --gpu-request, " if self._detached else ""
        hint = cause or (
            "check `nvidia-smi` on this machine, see whether `tfcompare doctor --gpu` finds something, "
            f"{other_request}or leave --gpu out"
        )
        return f"--gpu: TensorFlow {client.target} {wrong}; {hint}"


def misfit(requested: Sequence[Gpu], seen: Sequence[VisibleGpu], place: str) -> str:
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


def _alike(requested: Sequence[Gpu], seen: Sequence[VisibleGpu]) -> bool:
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


def _same(gpu: Gpu, candidate: VisibleGpu) -> bool:
    if gpu.capability and candidate.capability and gpu.capability != candidate.capability:
        return False
    # A slice of a GPU has the GPU's name and more; older drivers left out the maker's.
    mine, its = (gpu.name or "").removeprefix("NVIDIA "), candidate.name.removeprefix("NVIDIA ")
    return not mine or not its or mine in its or its in mine


def _describe_gpus(gpus: Sequence[Gpu]) -> str:
    return ", ".join(
        f"{gpu.title} {gpu.key}" + (f" (compute capability {gpu.capability})" if gpu.capability else "") for gpu in gpus
    )


def _is_same_release(stated: str, expected: str) -> bool:
    """Return whether two numbers are of the same release.

    NVIDIA adds a suffix such as `+nv23.3`, and a repackaged wheel has a `.post1` that TensorFlow does not know about.
    """
    try:
        one, other = (Number(POST.sub("", Number(text).public)) for text in (stated, expected))
    except InvalidVersion:
        return stated.startswith(expected)
    return one == other
