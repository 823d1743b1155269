"""However a workload ends, the worker says which of the three outcomes it was and measures the next replicate."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.worker.client import Burst, Closed, Died, Opened, Refused, WorkerDied
from orchestrator.results import replicates, streams
from tests.support.bench import PATIENCE_S, RUN, Bench

# Where it happens, and what happens there.
PLACES = {
    "import": "{action}\ndef build(tf, params): pass",
    "refuse": "def refuse(tf, params):\n    {action}\ndef build(tf, params): pass",
    "build": "def build(tf, params):\n    {action}",
    "the first call": "def build(tf, params):\n    def step():\n        {action}\n    return step",
}
# `how` and the reason, as Died tells them.
ENDS = {
    "asserts": ("assert False, 'it ran'", "asserted", "AssertionError: it ran (raised in {stage})"),
    "raises": ("raise RuntimeError('on purpose')", "raised", "RuntimeError: on purpose (raised in {stage})"),
    "exits": ("__import__('sys').exit(0)", "raised", "SystemExit: 0 (raised in {stage})"),
    "exits at once": ("__import__('os')._exit(3)", "exit", "ended with exit code 3"),
    "is killed": (
        "import os; os.kill(os.getpid(), 9)",
        "signal",
        "killed by SIGKILL; often the kernel, out of memory",
    ),
    "crashes": ("import os; os.kill(os.getpid(), 11)", "signal", "killed by SIGSEGV"),
}
STAGES = {
    "import": "import, at dying.py:1", "refuse": "build, at dying.py:2", "build": "build, at dying.py:2",
    "the first call": "a call, at dying.py:3",
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("end", ENDS)
def test_a_workload_that_dies_while_it_is_opened(veteran: Bench, place: str, end: str):
    action, how, reason = ENDS[end]
    veteran.workload("dying", PLACES[place].format(action=action))
    number, died = veteran.open("dying")
    assert isinstance(died, Died)
    assert (died.how, died.reason) == (how, reason.format(stage=STAGES[place]))
    assert f"no replicate {number} is open" in veteran.ask("close", replicate=number, timeout_s=1.0)["message"]
    veteran.measure()


# Calls 1 to 3 are the first, the second and the warm-up: the fourth is the first of a burst.
IN_A_BURST = """
    def build(tf, params):
        calls = []

        def step():
            calls.append(None)
            if len(calls) > 3:
                print("about to end")
                {action}

        return step
"""


@pytest.mark.parametrize("end", ENDS)
def test_a_workload_that_dies_in_a_burst(veteran: Bench, end: str):
    action, how, reason = ENDS[end]
    veteran.workload("dying", IN_A_BURST.format(action=action))
    number, opened = veteran.open("dying")
    assert isinstance(opened, Opened)
    died = veteran.burst(number)
    assert isinstance(died, Died)
    assert (died.how, re.sub(r", at dying\.py:\d+", "", died.reason)) == (how, reason.format(stage="a call"))
    assert died.log.startswith("about to end\n")
    veteran.measure()


def test_what_was_raised_is_shown_with_its_traceback(veteran: Bench):
    veteran.workload("dying", "def build(tf, params):\n    raise RuntimeError('on purpose')")
    _, died = veteran.open("dying")
    assert isinstance(died, Died)
    assert "Traceback (most recent call last)" in died.log
    assert "dying.py" in died.log


HANGING = """
    import time

    def build(tf, params):
        def step():
            if params["hang"] == str(len(calls)):
                time.sleep(600)
            calls.append(None)

        calls = []
        return step
"""


def test_a_workload_that_hangs_while_it_is_opened_is_ended_at_its_deadline(veteran: Bench):
    veteran.workload("hanging", HANGING)
    _, died = veteran.open("hanging", {"hang": "0"}, timeout_s=0.2)
    assert isinstance(died, Died)
    assert (died.how, died.reason) == ("timeout", "no answer within 0.2 s; ended")
    veteran.measure()


def test_a_workload_that_hangs_in_a_burst_is_ended_at_its_deadline(veteran: Bench):
    veteran.workload("hanging", HANGING)
    number, _ = veteran.open("hanging", {"hang": "4"})
    died = veteran.burst(number, timeout_s=0.2)
    assert isinstance(died, Died)
    assert died.how == "timeout"
    veteran.measure()


@pytest.mark.parametrize(
    "source",
    [
        "def refuse(tf, params): return 'no such op here'\ndef build(tf, params): raise AssertionError",
        "from workloads.compat import Refused\ndef build(tf, params): raise Refused('no such op here')",
    ],
    ids=["refuse returns a reason", "build raises Refused"],
)
def test_a_refusal_is_a_reason_and_not_a_death(veteran: Bench, source: str):
    veteran.workload("refusing", source)
    number, answer = veteran.open("refusing")
    assert answer == Refused("no such op here")
    assert f"no replicate {number} is open" in veteran.ask("close", replicate=number, timeout_s=1.0)["message"]
    veteran.measure()


@pytest.mark.parametrize("steps", ["0", "-1", "2.5", "'many'", "None"])
def test_steps_that_cannot_be_divided_by_are_the_workloads_death_alone(veteran: Bench, steps: str):
    """Neither the worker nor the other rows of its stream may pay for a slip in a user's file."""
    veteran.workload(
        "slipping", f"def build(tf, params):\n    step = lambda: None\n    step.steps = {steps}\n    return step"
    )
    _, died = veteran.open("slipping")
    assert isinstance(died, Died)
    assert "steps" in died.reason
    veteran.measure()


def test_a_build_that_returns_no_call_is_told_what_to_return(veteran: Bench):
    veteran.workload("silent", "def build(tf, params):\n    lambda: None")
    _, died = veteran.open("silent")
    assert isinstance(died, Died)
    assert "build() returned NoneType; it must return the function to measure (raised in build" in died.reason
    veteran.measure()


CHATTY = """
    import os
    import subprocess

    def build(tf, params):
        def step():
            print("printed " * 100)
            os.write(1, b"written " * 100)
            subprocess.check_call(["echo", "echoed"])
            os.write(2, b"complained\\n")

        return step
"""


def test_what_a_workload_prints_goes_to_the_log_and_never_into_the_protocol(bench: Bench):
    """Through Python, through the descriptor and from a child of its own."""
    bench.workload("chatty", CHATTY)
    bench.measure("chatty")
    assert bench.client.quit()
    log = bench.log.read_text()
    calls = log.count("echoed\n")
    assert calls >= 6, "the timed ones, and those that lead in"
    assert log.count("printed") == log.count("written") == calls * 100
    assert log.count("complained\n") == calls


def test_the_log_of_a_death_is_its_end_and_no_longer_than_a_screen(veteran: Bench):
    veteran.workload("chatty", "def build(tf, params):\n    print('x' * 100000)\n    print('the end')\n    1 / 0")
    _, died = veteran.open("chatty")
    assert isinstance(died, Died)
    assert "the end\nTraceback" in died.log
    assert len(died.log) <= 4000


def test_the_death_of_one_replicate_leaves_another_that_is_open(veteran: Bench):
    veteran.workload("dying", IN_A_BURST.format(action="import os; os.kill(os.getpid(), 9)"))
    (living, _), (dying, _) = veteran.open("good"), veteran.open("dying")
    assert isinstance(veteran.burst(living), Burst)
    assert isinstance(veteran.burst(dying), Died)
    assert isinstance(veteran.burst(living), Burst)
    assert veteran.close(living) == Closed(rows=10)


def test_a_replicate_dies_with_its_own_pipe_though_a_later_one_was_forked_from_the_same_worker(veteran: Bench):
    """A pipe end inherited by the later one would hide the earlier one's death until its deadline."""
    veteran.workload("dying", IN_A_BURST.format(action="import os; os._exit(3)"))
    (dying, _), (living, _) = veteran.open("dying"), veteran.open("good")
    died = veteran.burst(dying)
    assert isinstance(died, Died)
    assert died.how == "exit"
    assert isinstance(veteran.close(living), Closed)


TELLING = """
    import os
    import time

    def build(tf, params):
        calls = []

        def step():
            calls.append(None)
            if len(calls) > 3:
                open(params["file"], "w").close()
                time.sleep(600)

        return step
"""


def test_a_worker_that_is_killed_in_a_burst_leaves_every_replicate_that_it_had_closed(bench: Bench, tmp_path: Path):
    """A kill loses the replicate in flight and no more."""
    closed = [bench.measure(), bench.measure()]
    bench.workload("telling", TELLING)
    sign = tmp_path / "in the burst"
    flying, _ = bench.open("telling", {"file": str(sign)})
    bench.channel.send(f'{{"kind":"burst","replicate":{flying},"calls":1,"timeout_s":600,"least_s":0}}\n')
    while not sign.exists():
        time.sleep(0.01)
    os.kill(bench.channel.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="killed by SIGKILL"):
        bench.client.gpus(PATIENCE_S)
    loaded = replicates.load_replicates([streams.Stream.at(bench.stream)], RUN)
    assert [replicate.number for replicate in loaded.replicates] == closed
    assert loaded.broken == ()


def test_an_error_text_that_is_no_utf8_costs_its_replicate_alone(veteran: Bench):
    source = "import os\ndef build(tf, params):\n    raise ValueError('cannot read ' + os.fsdecode(b'caf\\xe9.npy'))"
    veteran.workload("dying", source)
    _, died = veteran.open("dying")
    assert isinstance(died, Died)
    assert (died.how, died.reason) == ("raised", "ValueError: cannot read caf?.npy (raised in build, at dying.py:3)")
    veteran.measure()


# Written by the workload into its own pipe to the worker, before the replicate answers.
LIES = {
    "no JSON": "b'hello'",
    "no UTF-8": "b'\\xff\\xfe'",
    "nested without end": "b'[' * 100000",
    "no object": "b'[1]'",
    "the end of the worker": """b'{"kind":"bye"}'""",
    "a number that is true": """b'{"kind":"refused","replicate":true,"reason":"x"}'""",
    "no reason": """b'{"kind":"died","replicate":%d,"how":"raised"}' % n""",
    "one key more": """b'{"kind":"refused","replicate":%d,"reason":"x","more":1}' % n""",
    "another's replicate": """b'{"kind":"opened","replicate":999,"build_ns":1,"first_ns":1,"second_ns":1,"steps":1}'""",
    "impossible times": """b'{"kind":"opened","replicate":%d,"build_ns":1,"first_ns":-1,"second_ns":1,"steps":1}'%n""",
}
LIE = """
    import gc, os, stat

    def build(tf, params):
        [replicate] = [one for one in gc.get_objects() if type(one).__name__ == "Replicate"]
        n = replicate.order["replicate"]
        for fd in range(3, 64):
            try:
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    os.write(fd, {lie} + b"\\n")
            except OSError:
                pass
        return lambda: 1.0
"""


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_replicate_that_lies_costs_itself_alone(veteran: Bench, lie: str):
    veteran.workload("lying", LIE.format(lie=lie))
    _, died = veteran.open("lying")
    assert isinstance(died, Died)
    assert died.how == "contract"
    veteran.measure()


def test_rows_that_cannot_be_written_cost_their_replicate_alone(veteran: Bench):
    veteran.workload(
        "lying",
        """
        import gc

        def build(tf, params):
            [replicate] = [one for one in gc.get_objects() if type(one).__name__ == "Replicate"]
            replicate.device = "caf\\udce9"
            real = replicate.calls.columns
            def step():
                real["wall_ns"][0] = "long"
                return 1.0
            return step
        """,
    )
    number, opened = veteran.open("lying")
    assert isinstance(opened, Opened)
    veteran.burst(number)
    died = veteran.close(number)
    assert isinstance(died, Died)
    assert died.how == "results"
    assert "its rows could not be written" in died.reason
    veteran.measure()


def test_a_workload_that_closes_its_streams_and_exits_does_not_come_back_to_the_worker(veteran: Bench):
    """As it would with an exception of its last flush, whose traceback its log would hold."""
    source = "import sys\ndef build(tf, params):\n    sys.stdout.close()\n    sys.stderr.close()\n    sys.exit(3)"
    veteran.workload("closing", source)
    _, died = veteran.open("closing")
    assert died == Died("raised", "SystemExit: 3 (raised in build, at closing.py:5)", "")
    veteran.measure()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 128 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    size = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    done = subprocess.run(size, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no right to mount: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all the room that there is; the file that has it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return filler


def test_a_disk_that_is_full_costs_the_replicates_of_that_time_and_no_others(fresh: Bench, small: Path):
    """Neither the worker nor its stream: what comes later is read behind what came before."""
    fresh.stream = small / "results.arrow"
    fresh.hello()
    before = [fresh.measure() for _ in range(3)]
    filler = fill(small)
    died = []
    while not died:
        number, opened = fresh.open("good")
        assert isinstance(opened, Opened)
        fresh.burst(number)
        answer = fresh.close(number)
        if isinstance(answer, Died):
            died = [number]
            assert answer.how == "results"
            assert "No space left on device" in answer.reason
        else:
            before.append(number)
    whole = replicates.load_replicates([streams.Stream.at(fresh.stream)], RUN)
    assert [replicate.number for replicate in whole.replicates] == before
    filler.unlink()
    after = fresh.measure()
    assert fresh.client.quit()
    loaded = replicates.load_replicates([streams.Stream.at(fresh.stream)], RUN)
    # The rows of the one that died come with those after it; the journal says that they do not count.
    assert [replicate.number for replicate in loaded.replicates] == [*before, *died, after]
    assert (loaded.broken, loaded.problems) == ((), ())


def test_a_log_that_cannot_be_written_costs_lines_and_not_the_worker(tmp_path: Path, small: Path):
    """The log of a worker in a virtual environment is its stderr."""
    fill(small)
    bench = Bench(tmp_path, log=small / "worker.log")
    bench.hello()
    bench.workload("chatty", "def build(tf, params):\n    print('x' * 100000)\n    1 / 0")
    _, died = bench.open("chatty")
    assert isinstance(died, Died)
    assert died.how == "raised"
    bench.measure()
    bench.channel.close()
