"""Nothing that a workload starts outlives its replicate or its worker, and no death of a replicate goes unnoticed."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.worker.client import Closed, Died, Opened, Refused, WorkerDied
from orchestrator.files import read_last_line
from tests.support.bench import Bench
from tests.support.processes import is_running, read_pids, wait_for_end

# Processes note their numbers in a file.
NOTE = """
    import os, signal, sys, time

    def note(params):
        with open(params["file"], "a") as file:
            file.write("{}\\n".format(os.getpid()))

    def wait_for_notes(params, count):
        # The file is there before a number is in it.
        while not os.path.exists(params["file"]) or open(params["file"]).read().count("\\n") < count:
            time.sleep(0.001)

    def sleep_in_child(params, leaves=False):
        if os.fork() == 0:
            if leaves:
                os.setsid()
                if os.fork() != 0:
                    os._exit(0)
            note(params)
            time.sleep(600)
            os._exit(0)
        if leaves:
            os.wait()

"""
LEAVES = (
    NOTE
    + """
    def build(tf, params):
        sleep_in_child(params, leaves=True)
        return lambda: 1.0
"""
)
ORPHANS = (
    NOTE
    + """
    def build(tf, params):
        sleep_in_child(params)
        wait_for_notes(params, 1)
        os.kill(os.getpid(), signal.SIGKILL)
"""
)
CLOSES = (
    NOTE
    + """
    def build(tf, params):
        note(params)
        os.closerange(3, 256)
        time.sleep(600)
"""
)
HANGS = (
    NOTE
    + """
    def build(tf, params):
        sleep_in_child(params, leaves=True)
        note(params)
        time.sleep(600)
"""
)
# Twenty pairs of processes, each in a session of its own: whichever of a pair is killed alone, the other replaces it at
# once. After `most` starts no more are started.
HYDRA = (
    NOTE
    + """
    def build(tf, params):
        for _ in range(20):
            if os.fork() == 0:
                watch(params)
        wait_for_notes(params, 20)
        return lambda: 1.0

    def watch(params):
        while True:
            if os.getpgrp() != os.getpid():
                os.setsid()
                note(params)
            first = os.getpid()
            other = start(params)
            if other == 0:
                # The other of the pair, which takes over if the first is gone.
                os.setsid()
                note(params)
                while os.getppid() == first:
                    time.sleep(0.0005)
            else:
                os.waitpid(other, 0)

    def start(params):
        while os.stat(params["file"]).st_size > int(params["most"]) * 6:
            time.sleep(1)
        return os.fork()
"""
)
KILLS_ALL_ABOVE = (
    NOTE
    + """
    def build(tf, params):
        sleep_in_child(params, leaves=True)
        wait_for_notes(params, 1)
        with open("/proc/%d/stat" % os.getppid()) as stat:
            first = int(stat.read().rpartition(")")[2].split()[1])
        os.kill(first, signal.SIGKILL)
        time.sleep(600)
"""
)
KILLS_ITS_WORKER = (
    NOTE
    + """
    def build(tf, params):
        note(params)
        sleep_in_child(params, leaves=True)
        wait_for_notes(params, 2)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
"""
)


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    return tmp_path / "pids"


def test_a_process_that_left_its_session_ends_with_its_replicate(bench: Bench, pids: Path):
    bench.workload("leaves", LEAVES)
    first, _ = bench.open("leaves", {"file": str(pids)})
    second, _ = bench.open("leaves", {"file": str(pids)})
    one, other = read_pids(pids, 2)
    bench.burst(first)
    bench.burst(second)
    assert bench.close(first) == Closed(rows=7)
    assert not is_running(one)
    assert is_running(other), "its replicate is still open"
    assert bench.close(second) == Closed(rows=7)
    assert not is_running(other)
    bench.measure()
    assert bench.client.quit()
    assert read_last_line(bench.log) == "tfcompare: workloads left processes running, which were ended: 2"


def test_processes_that_replace_each_other_end_with_their_replicate(bench: Bench, pids: Path):
    """One after the other, they would never end: whoever lives on starts those that were killed again."""
    bench.workload("hydra", HYDRA)
    number, opened = bench.open("hydra", {"file": str(pids), "most": "3000"})
    assert isinstance(opened, Opened), opened
    bench.burst(number)
    assert bench.close(number) == Closed(rows=7)
    started = read_pids(pids, 20)
    assert not any(map(is_running, started))
    assert len(started) < 300, "as many as it liked"
    bench.measure()


@pytest.mark.parametrize("grouped", [True, False], ids=["in a cgroup", "without one"])
def test_nothing_outlives_a_worker_whose_first_process_is_killed(
    tmp_path: Path, pids: Path, grouped: bool, monkeypatch: pytest.MonkeyPatch
):
    """The process that would have ended what left its session is gone, and so is the worker with it."""
    if not grouped:
        monkeypatch.setattr("orchestrator.engines.worker.cgroup.find_parents", lambda root: [])
    bench = Bench(tmp_path)
    bench.hello()
    bench.workload("kills", KILLS_ALL_ABOVE)
    with pytest.raises(WorkerDied, match="killed by SIGKILL"):
        bench.open("kills", {"file": str(pids)})
    bench.channel.close()
    wait_for_end(*read_pids(pids), bench.channel.pid)


def test_a_worker_that_has_ended_nothing_says_nothing(bench: Bench):
    bench.measure()
    assert bench.client.quit()
    assert "tfcompare:" not in bench.log.read_text()


def test_a_replicate_that_is_killed_is_noticed_though_its_child_holds_the_pipe(bench: Bench, pids: Path):
    bench.workload("orphans", ORPHANS)
    _, died = bench.open("orphans", {"file": str(pids)})
    assert isinstance(died, Died)
    assert (died.how, died.reason) == ("signal", "killed by SIGKILL; often the kernel, out of memory")
    assert not is_running(*read_pids(pids))
    bench.measure()


def test_a_replicate_that_closes_its_descriptors_and_hangs_costs_itself_alone(bench: Bench, pids: Path):
    bench.workload("closes", CLOSES)
    for _ in range(3):
        _, died = bench.open("closes", {"file": str(pids)})
        assert isinstance(died, Died)
        assert (died.how, died.reason) == ("closed", "it closed its pipe to the worker and did not end; ended")
    assert not any(map(is_running, read_pids(pids, 3)))
    bench.measure()


def test_a_replicate_that_is_stopped_is_ended_at_its_deadline(veteran: Bench):
    veteran.workload("stops", "import os\ndef build(tf, params):\n    os.kill(os.getpid(), 19)")
    _, died = veteran.open("stops", timeout_s=0.5)
    assert isinstance(died, Died)
    assert (died.how, died.reason) == ("timeout", "no answer within 0.5 s; ended")
    veteran.measure()


def test_nothing_outlives_a_worker_that_is_killed(bench: Bench, pids: Path):
    """Not its replicate, nor what that has started, though both are in a session of their own or asleep."""
    bench.workload("kills", KILLS_ITS_WORKER)
    with pytest.raises(WorkerDied, match="killed by SIGKILL"):
        bench.open("kills", {"file": str(pids)})
    wait_for_end(*read_pids(pids, 2), bench.channel.pid)
    assert read_last_line(bench.log) == "tfcompare: workloads left processes running, which were ended: 1"


def send_open(bench: Bench, workload: str, pids: Path) -> None:
    bench.workload(workload, HANGS)
    bench.channel.send(
        f'{{"kind":"open","replicate":1,"case":"x","workload":"{workload}","params":{{"file":"{pids}"}},"round":1,'
        '"program":{},"position":0,"seed":1,"warmup":0,"once":false,"count":[],"timeout_s":600}\n'
    )


def test_nothing_outlives_a_host_that_is_gone_while_a_replicate_hangs(bench: Bench, pids: Path):
    send_open(bench, "hangs", pids)
    running = read_pids(pids, 2)
    # All that a worker notices of a host that was killed.
    bench.channel._stdin.close()
    wait_for_end(*running, bench.channel.pid)


@pytest.mark.parametrize("fork", [True, False])
def test_nothing_outlives_a_worker_that_is_closed_while_it_hangs(
    fresh: Bench, pids: Path, fork: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("orchestrator.engines.worker.channel.EXIT_S", 0.1)
    fresh.hello(fork=fork)
    send_open(fresh, "hangs", pids)
    running = read_pids(pids, 2)
    fresh.channel.close()
    wait_for_end(*running, fresh.channel.pid)


@pytest.mark.skipif(os.getuid() != 0, reason="not root: others may not look into a worker")
def test_a_fork_that_is_refused_costs_its_replicate_alone(bench: Bench, pids: Path):
    bench.workload("notes", NOTE.replace("getpid", "getppid") + "\n    def build(tf, params):\n        note(params)")
    bench.open("notes", {"file": str(pids)})
    (worker,) = read_pids(pids)
    limits = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    held = len(list(Path(f"/proc/{worker}/fd").iterdir()))
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (held + 2, limits[1]))
    for _ in range(2):
        _, died = bench.open("good")
        assert died == Died("fork", "no process could be started for it: Too many open files")
    resource.prlimit(worker, resource.RLIMIT_NOFILE, limits)
    assert len(list(Path(f"/proc/{worker}/fd").iterdir())) == held, "what was opened meanwhile is closed"
    bench.measure()


@pytest.fixture
def _few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard - 1, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_few_descriptors")
def test_a_worker_may_open_what_is_allowed_and_a_replicate_what_its_user_set(tmp_path: Path):
    source = """
        import resource

        def refuse(tf, params):
            with open("/proc/{}/limits".format(__import__("os").getppid())) as limits:
                (worker,) = [line.split()[3] for line in limits if line.startswith("Max open files")]
            return "{} {}".format(worker, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    bench = Bench(tmp_path)
    bench.workload("limits", source)
    bench.hello()
    assert bench.open("limits")[1] == Refused(f"{max(soft, min(hard, 65536))} {soft}")
    bench.channel.close()


def test_many_replicates_are_open_at_once(bench: Bench):
    """With more descriptors than the 1024 of `select`, of which each replicate takes three."""
    opened = [bench.open("good") for _ in range(350)]
    assert all(isinstance(answer, Opened) for _, answer in opened)
    for number, _ in opened[-3:]:
        bench.burst(number)
        assert bench.close(number) == Closed(rows=7)
