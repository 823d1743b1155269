"""The first signal interrupts, those that follow at once do nothing, and none interrupts a clean-up."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from orchestrator import interrupts
from tests.support.processes import wait_for_end

INT = signal.SIGINT


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_signals_that_follow_at_once_are_the_same_one(clock: list[float]):
    made = interrupts._Interrupts()
    with pytest.raises(KeyboardInterrupt):
        made.handle(INT, None)
    clock[0] += interrupts.AGAIN_S / 2
    made.handle(INT, None)
    clock[0] += interrupts.AGAIN_S
    with pytest.raises(KeyboardInterrupt):
        made.handle(INT, None)


@pytest.mark.usefixtures("clock")
def test_a_clean_up_is_not_interrupted_however_often_it_is_asked_for(clock: list[float]):
    made = interrupts._Interrupts()
    with pytest.raises(KeyboardInterrupt):
        made.handle(INT, None)
    clock[0] += 10 * interrupts.AGAIN_S
    with made.hold():
        with made.hold():
            made.handle(INT, None)
        made.handle(INT, None)
    clock[0] += 10 * interrupts.AGAIN_S
    with made.hold():
        pass


@pytest.mark.usefixtures("clock")
def test_a_first_signal_during_a_clean_up_is_obeyed_after_it():
    made, done = interrupts._Interrupts(), []

    def clean_up() -> None:
        with made.hold():
            made.handle(INT, None)
            done.append("cleaned")

    with pytest.raises(KeyboardInterrupt):
        clean_up()
    assert done == ["cleaned"]
    with made.hold():
        pass


@pytest.mark.usefixtures("clock")
def test_an_error_in_a_clean_up_is_not_lost_in_an_interrupt():
    made = interrupts._Interrupts()

    def clean_up() -> None:
        with made.hold():
            made.handle(INT, None)
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        clean_up()
    with made.hold():
        pass


SCRIPT = """
import signal
from orchestrator import interrupts
interrupts.catch_signals()
for number in interrupts.NUMBERS:
    print(signal.getsignal(number) is signal.SIG_IGN)
"""


def test_what_the_caller_ignores_stays_ignored():
    def called(ignore: tuple[int, ...]) -> list[str]:
        code = f"import signal\nfor number in {ignore!r}:\n    signal.signal(number, signal.SIG_IGN)\n{SCRIPT}"
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert called((1,)) == ["False", "False", "True"], "as with nohup"
    assert called((2, 3)) == ["True", "False", "False"], "as in the background of a shell"


# The main thread waits for what nobody releases; the signal goes to another thread, as the kernel may decide.
ELSEWHERE = """
import signal, threading
from orchestrator import interrupts
interrupts.catch_signals()
interrupts.catch_signals()
lock = threading.Lock()
lock.acquire()
hit = lambda: signal.pthread_kill(threading.get_ident(), signal.{name})
threading.Timer(0.3, hit).start()
try:
    lock.acquire()
except KeyboardInterrupt:
    print("noticed")
try:
    # It was passed on to the main thread, where it is the same signal and no second one.
    threading.Event().wait(4 * interrupts.NOTICE_S)
    print("once")
except KeyboardInterrupt:
    print("twice")
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_another_thread_gets_is_noticed_by_the_main_thread(name: str):
    program = ELSEWHERE.format(name=name)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "noticed\nonce\n", "")


def test_a_signal_of_somebody_elses_is_not_passed_on():
    program = ELSEWHERE.format(name="SIGTERM").replace(
        "lock = ", "signal.signal(signal.SIGTERM, lambda number, frame: None)\nlock = "
    )
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=2)


# It says its number and that of a program that it starts.
BOUND = """
import signal, subprocess, sys, time
from orchestrator import interrupts
interrupts.end_with_stdin()
program = subprocess.Popen(["sh", "-c", "cat; echo $$; exec sleep 600"], stdout=subprocess.PIPE, text=True)
{}
try:
    print(program.pid, program.stdout.readline(), end="", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    program.kill()
    print("interrupted")
"""
OBEDIENT = BOUND.format("interrupts.catch_signals()")
DEAF = BOUND.format("signal.signal(signal.SIGTERM, signal.SIG_IGN); interrupts.POLITE_S = 0.2")
HOLDS = """
import subprocess, sys, time
with subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, start_new_session=True) as process:
    print(process.pid, flush=True)
    time.sleep(600)
"""


def start(program: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def bound(request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[str]"]:
    """A process that ends with its stdin, and that has started a program, which has found its own stdin to be empty."""
    with start(request.param) as process:
        assert process.stdout
        pid, seen = process.stdout.readline().split()
        assert pid == seen, "the program reads nothing, and does not wait for anything to read"
        yield process
        wait_for_end(int(pid))


@pytest.mark.parametrize("bound", [OBEDIENT], indirect=True)
def test_a_process_ends_as_if_interrupted_once_its_stdin_is_closed(bound: "subprocess.Popen[str]"):
    assert bound.communicate(timeout=60)[0] == "interrupted\n"
    assert bound.returncode == 0


@pytest.mark.parametrize("bound", [DEAF], indirect=True)
def test_one_that_hangs_then_is_killed_with_what_it_has_started(bound: "subprocess.Popen[str]"):
    assert bound.communicate(timeout=60)[0] == ""
    assert bound.returncode == -signal.SIGKILL


@pytest.mark.parametrize("program", [OBEDIENT, DEAF])
def test_a_process_ends_with_one_that_was_killed(program: str):
    with start(HOLDS, program) as holder:
        assert holder.stdout
        pid = int(holder.stdout.readline())
        # It may just be about to begin.
        holder.kill()
        wait_for_end(pid)


def test_a_process_whose_starter_was_killed_before_it_began_ends_at_once():
    code = "from orchestrator import interrupts\ninterrupts.end_with_stdin()\nimport time\ntime.sleep(600)"
    done = subprocess.run([sys.executable, "-c", code], input="", text=True, timeout=60, start_new_session=True)
    assert done.returncode == -signal.SIGTERM


def test_a_process_that_hears_nothing_for_too_long_ends_as_if_interrupted():
    with start(OBEDIENT.replace("end_with_stdin()", "end_with_stdin(2.0)")) as process:
        assert process.stdin
        assert process.stdout
        program, _ = process.stdout.readline().split()
        # What it hears keeps it going.
        for _ in range(15):
            time.sleep(0.2)
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.poll() is None
        assert process.wait(60) == 0
        assert process.stdout.read() == "interrupted\n"
        wait_for_end(int(program))
