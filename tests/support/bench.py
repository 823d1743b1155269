"""A real worker process under a stub TensorFlow, and a shelf for workload files. Also used by tools/golden.py."""

import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from textwrap import dedent
from typing import Any

from orchestrator import contract
from orchestrator.bundled import WORKLOADS
from orchestrator.engines.environment import worker_variables
from orchestrator.engines.worker.channel import ProcessChannel
from orchestrator.engines.worker.client import Burst, Closed, Died, Opened, Ready, Refused, WorkerClient
from orchestrator.engines.worker.events import Warned
from orchestrator.model import Case
from tests.support import stub
from tests.support.builders import target

# Long enough for a busy machine; no test waits for it to pass.
PATIENCE_S = 60.0
RUN = "20260102-030405-abcd"

# One call of two steps: traced once, and its output depends on the seed alone.
GOOD = """
    import numpy

    def build(tf, params):
        drawn = numpy.random.rand(3)

        def step():
            return traced(drawn)

        traced = tf.function(tf.constant)
        step.steps = 2
        return step
"""


class Bench:
    def __init__(
        self,
        folder: Path,
        python: str | Path = sys.executable,
        before: Sequence[str] = (),
        log: Path | None = None,
        own: Mapping[str, str] | None = None,
    ) -> None:
        """Start a worker; `before` is a program that starts it with other rights, `own` are more variables."""
        self.folder = folder
        self.workloads = folder / "workloads"
        self.workloads.mkdir()
        self.stream = folder / "results.arrow"
        self.log = log or folder / "worker.log"
        self._numbers = count(1)
        variables = {**worker_variables(own=own), "HOME": str(folder), "PYTHONPATH": str(stub.write(folder / "stub"))}
        self.channel = ProcessChannel([*before, str(python), str(WORKLOADS / "worker.py")], variables, self.log)
        self.client = WorkerClient(self.channel, target(stub.VERSION))
        self.workload("good", GOOD)

    def workload(self, name: str, source: str) -> None:
        (self.workloads / f"{name}.py").write_text(dedent(source))

    def say(self, line: str) -> dict[str, Any]:
        """One line as it stands, and the event that answers it."""
        self.channel.send(line)
        return contract.decode(self.channel.receive(PATIENCE_S), contract.EVENTS)

    def ask(self, kind: str, **values: Any) -> dict[str, Any]:
        return self.say(contract.encode({"kind": kind, **values}))

    def hello(
        self, *, run: str = RUN, threads: Sequence[int] = (), fork: bool = True, gpus: int = 0, untuned: bool = False
    ) -> Ready:
        return self.client.hello(
            run=run,
            device="gpu" if gpus else "cpu",
            gpus=gpus,
            threads=threads,
            fork=fork,
            untuned=untuned,
            folders=[str(self.workloads)],
            results=str(self.stream),
            timeout_s=PATIENCE_S,
        )

    def open(
        self, workload: str, params: dict[str, str] | None = None, *, round: int = 1, warmup: int = 1, seed: int = 1,
        timeout_s: float = PATIENCE_S, program: Sequence[str] = (), large: Sequence[str] = (), once: bool = False,
        count: Sequence[str] = (),
    ) -> tuple[int, Opened | Refused | Died]:  # fmt: skip
        """The new replicate's number, and what came of opening it."""
        number = next(self._numbers)
        case = Case(workload, tuple((params or {}).items()))
        answer = self.client.open(
            case, replicate=number, round=round, position=0, seed=seed, warmup=warmup, timeout_s=timeout_s,
            program=program, large=large, once=once, count=count,
        )  # fmt: skip
        return number, answer

    def warn(
        self, workload: str, params: dict[str, str] | None = None, *, program: Sequence[str] = (),
        timeout_s: float = PATIENCE_S,
    ) -> tuple[Warned, ...] | Refused | Died:  # fmt: skip
        case = Case(workload, tuple((params or {}).items()))
        return self.client.warn(
            case, replicate=next(self._numbers), seed=1, timeout_s=timeout_s, program=program, large=()
        )

    def burst(
        self, replicate: int, calls: int = 3, timeout_s: float = PATIENCE_S, least_s: float = 0.0
    ) -> Burst | Died:
        return self.client.burst(replicate, calls, timeout_s, least_s)

    def close(self, replicate: int) -> Closed | Died:
        return self.client.close_replicate(replicate, PATIENCE_S)

    def measure(self, workload: str = "good", params: dict[str, str] | None = None, *, round: int = 1) -> int:
        """A replicate from its opening to its rows in the stream: proves that the worker is alive and well."""
        number, opened = self.open(workload, params, round=round)
        assert isinstance(opened, Opened), opened
        assert isinstance(self.burst(number), Burst)
        assert self.close(number) == Closed(rows=7)
        return number
