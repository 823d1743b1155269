"""The host's end of the protocol: whatever comes instead of an answer is a dead worker, and a dead worker is ended."""

import pytest

from orchestrator import contract
from orchestrator.engines.worker.channel import ChannelClosed, ChannelTimeout
from orchestrator.engines.worker.client import (
    GRACE_S,
    Burst,
    Closed,
    Died,
    Opened,
    Refused,
    VisibleGpu,
    WorkerClient,
    WorkerDied,
)
from tests.support.builders import case, target

OPENED = {
    "kind": "opened", "replicate": 1, "build_ns": 1, "first_ns": 2, "second_ns": 3, "steps": 5, "items": 0,
    "output": "float32[2]", "threads": [0, 2],
}  # fmt: skip
DIED = {"kind": "died", "replicate": 1, "how": "exit", "reason": "ended with exit code 3", "log": "tail"}


class Tape:
    """A channel that answers with one line, or with one exception, whatever it is told."""

    def __init__(self, answer: dict | str | Exception) -> None:
        self._answer = answer
        self.told: list[dict] = []
        self.longest: list[int] = []
        self.waited: list[float] = []
        self.closed = 0

    def send(self, line: str, longest: int = contract.LONGEST_LINE) -> None:
        self.longest.append(longest)
        self.told.append(contract.decode(line, contract.COMMANDS))

    def receive(self, timeout_s: float) -> str:
        self.waited.append(timeout_s)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer if isinstance(self._answer, str) else contract.encode(self._answer)

    def close(self) -> None:
        self.closed += 1


def client(answer: dict | str | Exception) -> tuple[WorkerClient, Tape]:
    tape = Tape(answer)
    return WorkerClient(tape, target("2.0.0")), tape


def opening(of: WorkerClient) -> Opened | Refused | Died:
    return of.open(case("power", style="jit"), replicate=1, round=2, position=3, seed=4, warmup=5, timeout_s=6.0)


def test_an_order_carries_the_case_in_full():
    own, tape = client(OPENED)
    assert opening(own) == Opened(first_ns=2, second_ns=3, steps=5, threads=(0, 2), build_ns=1, output="float32[2]")
    assert tape.told == [
        {
            "kind": "open", "replicate": 1, "case": "power[style=jit]", "workload": "power", "params": {"style": "jit"},
            "program": {}, "round": 2, "position": 3, "seed": 4, "warmup": 5, "once": False, "count": [],
            "timeout_s": 6.0,
        }
    ]  # fmt: skip


def test_hello_speaks_this_contract():
    own, tape = client({"kind": "ready", "facts": {"python": "3.7.16"}, "import_ns": 7, "pid": 8})
    ready = own.hello(run="r", device="cpu", threads=None, folders=["/a"], results="/b", timeout_s=9)
    assert (ready.facts, ready.import_ns) == ({"python": "3.7.16"}, 7)
    (told,) = tape.told
    assert (told["protocol"], told["fingerprint"]) == (contract.PROTOCOL, contract.FINGERPRINT)
    assert (told["target"], told["threads"]) == ("2.0.0", [])


def test_the_host_waits_longer_than_the_worker_so_that_the_worker_can_tell():
    own, tape = client(OPENED)
    opening(own)
    assert tape.waited == [6.0 + GRACE_S]
    assert tape.longest == [contract.LONGEST_LINE]


def test_the_three_outcomes_of_an_order_are_three_types():
    assert opening(client({"kind": "refused", "replicate": 1, "reason": "no such op"})[0]) == Refused("no such op")
    died = Died("exit", "ended with exit code 3", "tail")
    own, tape = client(DIED)
    assert [opening(own), own.burst(1, 2, 3.0), own.close_replicate(1, 3.0)] == [died] * 3
    assert tape.closed == 0, "the worker of a dead replicate lives"
    assert client({"kind": "measured", "replicate": 1, "walls_ns": [9, 8], "cpu_ns": 7})[0].burst(1, 2, 3.0) == Burst(
        (9, 8), 7
    )
    assert client({"kind": "closed", "replicate": 1, "rows": 9})[0].close_replicate(1, 3.0) == Closed(9)


def test_a_profile_is_asked_for_in_full_and_comes_as_it_is_or_not_at_all():
    def profiling(of: WorkerClient) -> dict | Refused | Died:
        return of.profile(case("power", style="jit"), replicate=1, calls=20, seed=4, timeout_s=6.0)

    own, tape = client({"kind": "profiled", "replicate": 1, "profile": {"calls": 20}})
    assert profiling(own) == {"calls": 20}
    assert tape.longest == [contract.LONGEST_LARGE_LINE]
    assert tape.waited == [6.0 + GRACE_S]
    assert tape.told == [
        {
            "kind": "profile", "replicate": 1, "case": "power[style=jit]", "workload": "power",
            "params": {"style": "jit"}, "seed": 4, "calls": 20, "timeout_s": 6.0,
        }
    ]  # fmt: skip
    assert profiling(client({"kind": "refused", "replicate": 1, "reason": "no"})[0]) == Refused("no")
    assert profiling(client(DIED)[0]) == Died("exit", "ended with exit code 3", "tail")
    with pytest.raises(WorkerDied, match="closed instead of profiled"):
        profiling(client({"kind": "closed", "replicate": 1, "rows": 1})[0])


BROKEN = {
    "gone": (ChannelClosed("killed by SIGKILL"), "killed by SIGKILL", 0),
    "silent": (ChannelTimeout(), "timeout: no answer to open within 16 s; ended", 1),
    "babbling": ("Downloading data...\n", "broke the contract: not JSON: 'Downloading data", 1),
    "speaking another contract": ('{"kind":"paused"}\n', "broke the contract: unknown kind 'paused'", 1),
    "answering another question": ({"kind": "bye"}, "broke the contract: bye instead of opened", 1),
    "complaining": ({"kind": "error", "message": "open before hello"}, "error instead of opened: open before hello", 1),
}


@pytest.mark.parametrize(("answer", "words", "closed"), BROKEN.values(), ids=BROKEN)
def test_a_worker_is_dead_that_is(answer: dict | str | Exception, words: str, closed: int):
    own, tape = client(answer)
    with pytest.raises(WorkerDied, match=words):
        opening(own)
    assert tape.closed == closed


def test_a_worker_that_failed_to_start_says_at_what():
    own, _ = client({"kind": "failed", "stage": "import", "message": "ImportError: libcuda.so.1"})
    with pytest.raises(WorkerDied, match=r"^import failed: ImportError: libcuda\.so\.1$"):
        own.hello(run="r", device="cpu", threads=None, folders=[], results="", timeout_s=1)


def test_a_probe_that_ends_its_process_is_no_list_of_gpus():
    seen = {"kind": "probed", "gpus": [{"name": "H200", "capability": "9.0"}, {}], "driver": {}}
    assert client(seen)[0].gpus(1.0).gpus == (VisibleGpu("H200", "9.0"), VisibleGpu("", ""))
    with pytest.raises(WorkerDied, match="asking TensorFlow for its GPUs ended the process: ended with exit code 3"):
        client(DIED)[0].gpus(1.0)


@pytest.mark.parametrize(
    ("answer", "orderly"), [({"kind": "bye"}, True), (ChannelClosed("x"), False), (ChannelTimeout(), False)]
)
def test_leaving_tells_whether_it_was_in_order_and_always_ends_the_worker(answer: dict | Exception, orderly: bool):
    own, tape = client(answer)
    assert own.quit() is orderly
    assert tape.closed >= 1
