"""The workers of a run: a resident one a version, started again after a death; or a fresh one a replicate."""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from orchestrator.engines import Environment, WorkerPlace
from orchestrator.engines.client import Ready, WorkerClient, WorkerDied
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.model import Lost, Plan
from orchestrator.results import compact
from orchestrator.rundir import RunDir

START_TIMEOUT_S = 180.0
# A version whose worker dies this often is not measured any further: its machine or its TensorFlow is broken.
MOST_DEATHS = 3


@dataclass
class Member:
    environment: Environment
    parts: int
    isolated: bool
    client: WorkerClient | None = None
    stream: Path | None = None
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
    ) -> None:
        self._plan = plan
        self._run = run
        self._own = own
        self._say = say
        self._members = {
            version: Member(environment, run.parts(version), isolated=version in isolated)
            for version, environment in environments.items()
        }

    def versions(self) -> list[str]:
        return [version for version, member in self._members.items() if not member.lost]

    def client(self, version: str) -> WorkerClient | None:
        member = self._members.get(version)
        return member.client if member else None

    def engage(self, version: str) -> WorkerClient | None:
        """The worker that a new replicate goes to."""
        member = self._members.get(version)
        if member and member.isolated and not member.client and not member.lost:
            self._start(version)
        return self.client(version)

    def release(self, version: str) -> None:
        """After a replicate's end: a worker that was the replicate's own leaves with it."""
        if self._members[version].isolated:
            self._leave(self._members[version])

    def start_all(self) -> dict[str, Ready]:
        """Every worker that comes up; one that does not costs its version only."""
        # An executor, whose end an interrupt waits for: a worker that is half started could not be ended.
        with ThreadPoolExecutor(len(self._members) or 1) as pool:
            started = dict(zip(self._members, pool.map(self._start, self._members), strict=True))
        return {version: ready for version, ready in started.items() if ready}

    def _start(self, version: str) -> Ready | None:
        member = self._members[version]
        member.parts += 1
        stream = self._run.stream(version, member.parts)
        place = WorkerPlace(
            run=self._plan.run,
            results=self._run.results,
            log=self._run.logs / f"worker-{version}.log",
            own_workloads=self._own,
        )
        client = None
        try:
            started = member.environment.start(place, stream)
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
            self.lose(version, "start", f"{error}; see {place.log}")
            return None
        except BaseException:
            if client:
                client.channel.close()
            raise
        member.client, member.stream = client, stream
        return ready

    def _require_gpu(self, client: WorkerClient) -> None:
        if not client.gpus(START_TIMEOUT_S):
            raise EngineUnavailable(
                f"--gpu: TensorFlow {client.version} sees no GPU inside its container. Check `nvidia-smi` on this "
                "machine and the driver against `tfcompare list versions`, or leave --gpu out"
            )

    def lose(self, version: str, stage: str, reason: str) -> None:
        self._members[version].lost = True
        self._run.record(Lost(version=version, stage=stage, reason=reason))
        self._say(f"{version} is lost ({stage}): {reason}")

    def bury(self, version: str) -> None:
        """After a worker's death: keeps what it wrote and, if it was a resident, starts another in its place."""
        member = self._members[version]
        if member.client:
            member.client.channel.close()
        member.client = None
        if member.isolated:
            return
        member.deaths += 1
        if member.deaths >= MOST_DEATHS:
            self.lose(version, "worker", f"it died {member.deaths} times")
            return
        self._say(f"{version}: starting another worker")
        self._start(version)

    def dismiss(self) -> None:
        """Ends every worker."""
        with ThreadPoolExecutor(len(self._members) or 1) as pool:
            list(pool.map(self._leave, self._members.values()))

    def _leave(self, member: Member) -> None:
        """A stream that its worker closed in order gets its final name and form."""
        if member.client and member.client.quit() and member.stream:
            settled = self._run.settle(member.stream)
            if settled and not member.isolated:
                compact(settled, self._plan.run)
        member.client = None

    def kill(self) -> None:
        """Ends every worker at once."""
        for member in self._members.values():
            if member.client:
                member.client.channel.close()
