"""However much a replicate sends or prints, its worker keeps little of it; and it reaches no pipe but its own."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.worker.client import Burst, Closed, Died, Opened
from tests.support.bench import Bench

# Writes into its own pipe to the worker whatever comes; the other pipes that it has can only be read.
FLOOD = """
    import fcntl, os, stat

    def build(tf, params):
        def step():
            return 1.0

        [pipe] = [fd for fd in range(3, 64) if is_way_out(fd)]
        if params["when"] == "build":
            flood(pipe)
        return lambda: flood(pipe)

    def is_way_out(fd):
        try:
            return stat.S_ISFIFO(os.fstat(fd).st_mode) and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
        except OSError:
            return False

    def flood(pipe):
        while True:
            os.write(pipe, b"x" * 65536)
"""


@pytest.mark.parametrize("when", ["build", "call"])
def test_an_answer_without_end_costs_its_replicate_alone(veteran: Bench, when: str):
    veteran.workload("flood", FLOOD)
    _, died = veteran.open("flood", {"when": when})
    assert died == Died("contract", "its answer has more than 1 MiB; ended", "")
    veteran.measure()


def test_a_replicate_with_more_rows_than_fit_into_a_short_answer_is_measured(veteran: Bench):
    number, opened = veteran.open("good")
    assert isinstance(opened, Opened)
    bursts = 8
    for _ in range(bursts):
        assert isinstance(veteran.burst(number, calls=8000), Burst)
    assert veteran.close(number) == Closed(rows=bursts * 8000 + 4)


LOUD = """
    import os

    def build(tf, params):
        def step():
            for number in range(int(params["times"])):
                os.write(1, b"%07d " % number * 128)
            print("the end of it")

        return step
"""


def test_the_end_is_kept_of_what_a_replicate_prints(bench: Bench):
    """A mebibyte in each call: what stays in the log is 64 KiB."""
    bench.workload("loud", LOUD)
    bench.measure("loud", {"times": "1024"})
    assert bench.client.quit()
    log = bench.log.read_text()
    note, _, kept = log.partition("\n")
    assert note.startswith("[tfcompare left out ")
    assert note.endswith(" bytes that were printed before this]")
    assert len(kept) == 2**16
    assert kept.endswith("0001023 the end of it\n")


def test_what_is_printed_is_cut_while_a_replicate_runs(bench: Bench, tmp_path: Path):
    """The file has no name; its size is seen through the descriptor that the replicate prints to."""
    bench.workload(
        "watching",
        """
        import os, time

        def build(tf, params):
            seen = []

            def step():
                if not seen:
                    os.write(1, b"x" * 5 * 2 ** 20)
                    while os.fstat(1).st_size > 2 ** 20:
                        time.sleep(0.01)
                    seen.append(True)

            return step
        """,
    )
    bench.measure("watching")
    assert bench.client.quit()
    log = bench.log.read_text()
    left_out = 5 * 2**20 - 2**16
    assert log == f"[tfcompare left out {left_out} bytes that were printed before this]\n" + "x" * 2**16


def test_the_reason_of_a_death_is_the_end_of_what_was_printed(veteran: Bench):
    veteran.workload(
        "dying", "import os\ndef build(tf, params):\n    os.write(1, b'x' * 3 * 2 ** 20)\n    raise ValueError('here')"
    )
    _, died = veteran.open("dying")
    assert isinstance(died, Died)
    assert died.log.rstrip().endswith("ValueError: here")


# Looks at its worker as another process of the same user can: what it finds there, and whether it may use it.
PEEKING = """
    import ctypes, json, os

    def build(tf, params):
        worker = "/proc/{}/".format(os.getppid())
        found = {"worker": attempt(lambda: open_all(worker + "fd")), "memory": attempt(lambda: open(worker + "mem"))}
        found["own"] = attempt(lambda: open_all("/proc/self/fd"))
        found["environ"] = attempt(lambda: open("/proc/self/environ", "rb"))
        found["out"] = attempt(lambda: open("/dev/stdout", "a"))
        found["dumpable"] = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
        with open(params["file"], "w") as file:
            json.dump(found, file)
        return lambda: 1.0

    def open_all(folder):
        names = os.listdir(folder)
        return [os.readlink(folder + "/" + name) for name in names if os.path.lexists(folder + "/" + name)]

    def attempt(look):
        try:
            look()
        except OSError as error:
            return error.strerror
        return "yes"
"""


@pytest.fixture
def unprivileged(tmp_path: Path) -> Iterator[Bench]:
    """A worker that may look into no process by being root, as in a container."""
    without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
    if without and not shutil.which("setpriv"):
        pytest.skip("no setpriv: root may look into every process")
    bench = Bench(tmp_path, before=without)
    bench.hello()
    yield bench
    bench.channel.close()


def test_a_replicate_has_no_way_into_its_worker_and_every_way_into_itself(unprivileged: Bench, tmp_path: Path):
    unprivileged.workload("peeking", PEEKING)
    _, opened = unprivileged.open("peeking", {"file": str(tmp_path / "seen")})
    assert isinstance(opened, Opened), opened
    assert (tmp_path / "seen").read_text() == (
        '{"worker": "Permission denied", "memory": "Permission denied", "own": "yes", "environ": "yes", "out": "yes", '
        '"dumpable": 1}'
    )
    unprivileged.measure()
