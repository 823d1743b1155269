"""The workers of a run: one resident worker per version, restarted if it dies, or a fresh one per replicate."""

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.catalog.gpu_support import NO_CARDS, Fitting
from orchestrator.engines import Environment, WorkerPlace
from orchestrator.engines.worker.channel import ChannelClosed
from orchestrator.engines.worker.client import Ready, SeenGpu, WorkerClient, WorkerDied
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.machine.gpu import Gpu
from orchestrator.model import Lost, Plan, number_of
from orchestrator.results.rundir import RunDir
from orchestrator.results.streams import Stream

START_TIMEOUT_S = 180.0
# While a driver makes a version's code for its card: half an hour was reported, and an hour and a half for four cards.
SLOW_START_TIMEOUT_S = 7200.0
# A version whose worker dies this often is not measured any further: its machine or its TensorFlow is broken.
MOST_DEATHS = 3
# The usual few versions all start at once.
FEWEST_STARTING = 4
# Of a log, in bytes and in letters: its end is enough to see what a worker said last.
LOG_END, LONGEST_LINE = 4096, 300


@dataclass
class Member:
    environment: Environment
    parts: int
    isolated: bool
    client: WorkerClient | None = None
    stream: Stream | None = None
    started: bool = False
    deaths: int = 0
    lost: bool = False


class Crew:
    def __init__(
        self,
        plan: Plan,
        environments: dict[str, Environment],
        run: RunDir,
        own: Path | None,
        say: Callable[[str], None],
        isolated: Collection[str] = (),
        fitting: Fitting = NO_CARDS,
    ) -> None:
        self._plan = plan
        self._run = run
        self._own = own
        self._say = say
        self._fitting = fitting
        parts = run.parts()
        self._members = {
            version: Member(environment, parts[version], isolated=version in isolated)
            for version, environment in environments.items()
        }

    def versions(self) -> list[str]:
        return [version for version, member in self._members.items() if not member.lost]

    def client(self, version: str) -> WorkerClient | None:
        member = self._members.get(version)
        return member.client if member else None

    def engage(self, version: str) -> WorkerClient | None:
        """Return the worker for a new replicate; with one worker per replicate, start it first."""
        member = self._members.get(version)
        if member and member.isolated and not member.client and not member.lost:
            self._start(version)
        return self.client(version)

    def release(self, version: str) -> None:
        """Finish a replicate. With one worker per replicate, this also stops the worker."""
        if self._members[version].isolated:
            self._leave(self._members[version])

    def start_all(self) -> dict[str, Ready]:
        """Start every worker and return those that are ready; a failed start costs only its own version."""
        if self._plan.exclusive:
            return self._start_in_turn()
        # An executor, whose end an interrupt waits for: a worker that is half started could not be ended. So many at
        # once that each imports TensorFlow within its deadline, whatever the number of versions.
        usable = len(self._plan.cpus or os.sched_getaffinity(0))
        with ThreadPoolExecutor(min(len(self._members), max(FEWEST_STARTING, usable)) or 1) as pool:
            started = dict(zip(self._members, pool.map(self._start, self._members), strict=True))
        return {version: ready for version, ready in started.items() if ready}

    def _start_in_turn(self) -> dict[str, Ready]:
        """Start each worker once to check that it can start; each ends before the next one begins."""
        started = {}
        for version, member in self._members.items():
            if ready := self._start(version):
                started[version] = ready
                self._leave(member)
        return started

    def _start(self, version: str) -> Ready | None:
        member = self._members[version]
        member.parts += 1
        member.stream = stream = self._run.stream(version, member.parts)
        place = WorkerPlace(
            run=self._plan.run,
            results=self._run.place(version, member.parts),
            log=self._run.logs / f"worker-{version}.log",
            own_workloads=self._own,
            large=self._plan.large,
        )
        client = None
        try:
            started = member.environment.start(place, stream.path)
            client = WorkerClient(started.channel, version)
            ready = client.hello(
                run=self._plan.run,
                device=self._plan.device,
                threads=self._plan.threads,
                fork=not member.isolated,
                folders=started.folders,
                results=started.results,
                timeout_s=START_TIMEOUT_S,
            )
            if self._plan.device == "gpu":
                self._require_gpu(client)
        except (WorkerDied, EnvironmentFailed) as error:
            if client:
                client.channel.close()
            self._settle(member)
            said = last_line(place.log) if isinstance(error.__cause__, ChannelClosed) else ""
            self._not_started(version, f"{error}{f' ({said})' if said else ''}; see {place.log}")
            return None
        except BaseException:
            if client:
                client.channel.close()
            raise
        member.client = client
        member.started = True
        return ready

    def _not_started(self, version: str, reason: str) -> None:
        """Handle a failed start.

        With one worker per replicate, a version that has started before loses only that replicate.
        """
        member = self._members[version]
        if member.isolated and member.started:
            member.deaths += 1
            if member.deaths < MOST_DEATHS:
                self._say(f"{version}: a worker did not start: {reason}")
                return
        self.lose(version, "start", reason)

    def _require_gpu(self, client: WorkerClient) -> None:
        """Raise EngineUnavailable unless TensorFlow itself sees the GPUs that were requested for the run."""
        version = number_of(client.version)
        slow = version in self._fitting.slow_starts
        seen = client.gpus(SLOW_START_TIMEOUT_S if slow else START_TIMEOUT_S)
        if wrong := misfit(self._fitting.cards, seen):
            raise EngineUnavailable(
                f"--gpu: TensorFlow {client.version} {wrong}. Check `nvidia-smi` on this machine, see whether "
                "`tfcompare doctor --gpu` finds something, try another --gpu-request, or leave --gpu out"
            )

    def lose(self, version: str, stage: str, reason: str) -> None:
        self._members[version].lost = True
        self._run.record(Lost(version=version, stage=stage, reason=reason))
        self._say(f"{version} is lost ({stage}): {reason}")

    def bury(self, version: str) -> None:
        """Clean up after a worker's death: keep what it wrote and, if it was a resident, start a replacement."""
        member = self._members[version]
        if member.client:
            member.client.channel.close()
        self._settle(member)
        if member.isolated:
            return
        member.deaths += 1
        if member.deaths >= MOST_DEATHS:
            self.lose(version, "worker", f"it died {member.deaths} times")
            return
        self._say(f"{version}: starting another worker")
        self._start(version)

    def dismiss(self) -> None:
        """Ask every worker to quit, and keep what each wrote."""
        with ThreadPoolExecutor(len(self._members) or 1) as pool:
            list(pool.map(self._leave, self._members.values()))

    def _leave(self, member: Member) -> None:
        if member.client:
            member.client.quit()
        self._settle(member)

    def kill(self) -> None:
        """End every worker at once."""
        for member in self._members.values():
            if member.client:
                member.client.channel.close()
            self._settle(member)

    def _settle(self, member: Member) -> None:
        """Move an ended worker's stream out of the folder it could write to, however the worker ended."""
        member.client = None
        if member.stream:
            self._run.settle(member.stream)
            member.stream = None

    def part(self, version: str) -> int:
        """Return the number of the version's worker, or of its last one if none runs now."""
        return self._members[version].parts


def last_line(log: Path) -> str:
    """Return the last line that a worker logged before it ended without an answer.

    After a traceback or an abort, this line is the cause.
    """
    with suppress(OSError), log.open("rb") as handle:
        handle.seek(max(0, log.stat().st_size - LOG_END))
        lines = handle.read().decode("utf-8", "replace").splitlines()
        return next((line.strip()[:LONGEST_LINE] for line in reversed(lines) if line.strip()), "")
    return ""


def misfit(asked: Sequence[Gpu], seen: Sequence[SeenGpu]) -> str:
    """Describe how the GPUs that TensorFlow sees differ from those requested; return '' if they match.

    If no particular card was requested, any card will do.
    """
    if not seen:
        return "sees no GPU inside its container" + (f", where {_listed(asked)} was asked for" if asked else "")
    unlike = len(seen) != len(asked) or not _alike(asked, seen)
    if asked and unlike:
        return f"sees {', '.join(map(str, seen))} inside its container, where {_listed(asked)} was asked for"
    return ""


def _alike(asked: Sequence[Gpu], seen: Sequence[SeenGpu]) -> bool:
    """Return whether the same cards were requested and seen, in any order.

    CUDA lists the fastest card first, and the driver lists cards by slot.
    """
    left = list(seen)
    for card in asked:
        same = next((gpu for gpu in left if _same(card, gpu)), None)
        if same is None:
            return False
        left.remove(same)
    return True


def _same(card: Gpu, gpu: SeenGpu) -> bool:
    if card.capability and gpu.capability and card.capability != gpu.capability:
        return False
    # A slice of a card has the card's name and more; older drivers left out the maker's.
    mine, its = (card.name or "").removeprefix("NVIDIA "), gpu.name.removeprefix("NVIDIA ")
    return not mine or not its or mine in its or its in mine


def _listed(cards: Sequence[Gpu]) -> str:
    return ", ".join(
        f"{card.title} {card.key}" + (f" (compute capability {card.capability})" if card.capability else "")
        for card in cards
    )
