"""The A/A probe, with real processes: what it finds, whom it names, and what it says when a process of it dies."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.doctor import aa_probe
from orchestrator.doctor.aa_probe import Neighbour, Probe, count_processes, find_busiest_processes, probe_rounds
from orchestrator.doctor.noise import find_interval
from orchestrator.engines.worker import channel
from orchestrator.errors import EnvironmentFailed, UsageError


@pytest.fixture(scope="module")
def found() -> Probe:
    # As many rounds as there have to be at least take less.
    return probe_rounds(0.1, None)


@pytest.fixture
def body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts another program in the place of the one that is timed."""

    def take(program: str) -> None:
        path = tmp_path / "body.py"
        path.write_text(program)
        monkeypatch.setattr(aa_probe, "BODY", path)

    return take


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[str]]:
    """A process with a name that takes some care to read."""
    program = "open('/proc/self/comm', 'w').write('a) R (b'); print('named', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "named\n"
        yield process
        process.kill()


def test_it_makes_three_rounds_at_least_and_measures_both_arms(found: Probe):
    assert found.estimate.rounds >= aa_probe.FEWEST_ROUNDS
    assert all(0 < milliseconds < math.inf for milliseconds in found.call_ms)
    assert found.seconds > 0


def test_its_interval_lies_around_its_estimate(found: Probe):
    low, high = find_interval(found.estimate)
    assert found.estimate.spread >= 0
    assert low <= math.exp(found.estimate.theta) <= high


def test_what_others_did_meanwhile_is_counted(found: Probe):
    assert found.meanwhile is not None
    assert 0 <= found.meanwhile.foreign_cores <= (os.cpu_count() or 1)
    assert found.meanwhile.steal_share >= 0


def test_its_processes_stay_on_the_cpus_that_it_is_given(body, tmp_path: Path):
    cpu = max(os.sched_getaffinity(0))
    seen = tmp_path / "seen"
    body(
        f"import os, runpy\nrunpy.run_path({str(aa_probe.BODY)!r}, run_name='__main__')\n"
        f"print(sorted(os.sched_getaffinity(0)), file=open({str(seen)!r}, 'a'))"
    )
    assert probe_rounds(0.0, (cpu,)).cpus == (cpu,)
    assert set(seen.read_text().splitlines()) == {f"[{cpu}]"}


def test_a_cpu_that_is_not_there_is_a_usage_error_that_names_those_that_are():
    with pytest.raises(
        UsageError, match=f"CPU 100000 cannot be used here; those that can are .*{os.sched_getaffinity(0).pop()}"
    ):
        probe_rounds(0.0, (100000,))


@pytest.mark.parametrize(
    "program",
    [
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; print('ready', flush=True); input(); os.kill(os.getpid(), signal.SIGKILL)",
    ],
    ids=["at its start", "at its first burst"],
)
def test_a_process_that_dies_ends_the_probe_and_the_error_says_how(body, program: str):
    body(program)
    with pytest.raises(EnvironmentFailed, match=r"a process of the probe died: killed by SIGKILL .* probe again"):
        probe_rounds(2.0, None)


def test_a_process_that_gives_no_answer_ends_the_probe_and_itself(
    body, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(aa_probe, "ANSWER_S", 1.0)
    monkeypatch.setattr(channel, "EXIT_S", 0.1)
    seen = tmp_path / "seen"
    body(f"import os, time; print(os.getpid(), file=open({str(seen)!r}, 'a')); time.sleep(600)")
    with pytest.raises(EnvironmentFailed, match="gave no answer for 1 s"):
        probe_rounds(2.0, None)
    for pid in map(int, seen.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_process_that_cannot_be_started_is_an_error_with_its_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(EnvironmentFailed, match="No such file"):
        probe_rounds(2.0, None)


def test_a_process_is_read_whatever_its_name(stranger: subprocess.Popen[str]):
    names = {pid: name for (pid, _), (name, _) in count_processes().items()}
    assert names[stranger.pid] == "a) R (b"
    assert os.getpid() in names


def test_the_two_busiest_are_named_with_their_share_of_a_core():
    before = {(10, 1): ("cc", 5.0), (11, 1): ("idle", 9.0), (12, 1): ("ld", 1.0)}
    after = {(10, 1): ("cc", 7.0), (11, 1): ("idle", 9.01), (12, 1): ("ld", 4.0), (13, 7): ("new", 1.0)}
    assert find_busiest_processes(before, after, 4.0) == (Neighbour(12, "ld", 0.75), Neighbour(10, "cc", 0.5))


def test_a_pid_that_was_given_out_again_is_another_process():
    assert find_busiest_processes({(10, 1): ("old", 50.0)}, {(10, 2): ("young", 2.0)}, 4.0) == (
        Neighbour(10, "young", 0.5),
    )


def test_this_process_is_nobodys_neighbour():
    assert find_busiest_processes({}, {(os.getpid(), 1): ("python", 4.0)}, 4.0) == ()
