"""However a run is ended, nothing of it goes on: real commands and real workers, with a stub in place of TensorFlow."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import PATIENCE_S, read_pids, wait_for_end
from tests.support.stub_runs import Scene

# Each replicate notes its number and that of its worker.
ANNOUNCES = """
    import os, time

    def build(tf, params):
        with open(os.environ["TF_CPP_ANNOUNCE"], "a") as file:
            file.write("{}\\n{}\\n".format(os.getpid(), os.getppid()))

        def step():
            time.sleep(0.001)
        return step
"""
HANGS = ANNOUNCES.replace("time.sleep(0.001)", "time.sleep(600)")
HANGS_IN_BURST = """
    import time

    def build(tf, params):
        calls = []

        def step():
            calls.append(None)
            if len(calls) > 2:
                time.sleep(600)
        return step
"""
# The first replicate of all stops its worker, or the process that watches over that.
STOPS = """
    import os, signal, time

    def build(tf, params):
        mark = os.environ["TF_CPP_ANNOUNCE"]
        if not os.path.exists(mark):
            with open("/proc/%d/stat" % os.getppid()) as stat:
                above = int(stat.read().rpartition(")")[2].split()[1])
            with open(mark, "w") as file:
                file.write("%d\\n%d\\n%d\\n" % (os.getpid(), os.getppid(), above))
            os.kill({"worker": os.getppid(), "first": above}[os.environ["TF_CPP_WHICH"]], signal.SIGSTOP)
        return lambda: time.sleep(0.001)
"""
LEAVES = """
    import os, time

    def build(tf, params):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open(os.environ["TF_CPP_ANNOUNCE"], "a") as file:
                    file.write("{}\\n".format(os.getpid()))
                time.sleep(600)
            os._exit(0)
        os.wait()
        return lambda: time.sleep(0.001)
"""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    if made.announced.exists():
        wait_for_end(*map(int, made.announced.read_text().split()))


SIGNALS = [(signal.SIGINT, 1), (signal.SIGINT, 3), (signal.SIGTERM, 1), (signal.SIGHUP, 1), (signal.SIGHUP, 3)]


@pytest.mark.parametrize(("number", "times"), SIGNALS)
def test_a_run_that_is_ended_keeps_what_it_measured_and_leaves_nothing(
    scene: Scene, number: signal.Signals, times: int
):
    with scene.start(ANNOUNCES, "--rounds", "500") as process:
        # Two versions, a pilot and a round.
        read_pids(scene.announced, 12)
        for _ in range(times):
            process.send_signal(number)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert f"interrupted; what was measured before is kept: tfcompare report {scene.out}" in stderr
    assert {arm["outcome"] for arm in json.loads(stdout)["arms"]} == {"measured"}
    assert [entry["how"] for entry in scene.journal("finished")] == ["interrupted"]
    assert list(scene.temporary.iterdir()) == []


def test_a_run_that_is_ended_while_its_workers_start_loses_no_version(scene: Scene):
    slow = "import os, time\nopen(os.environ['TF_CPP_ANNOUNCE'], 'a').write('%d\\n' % os.getpid())\ntime.sleep(600)\n"
    package = scene.stub / "tensorflow" / "__init__.py"
    package.write_text(slow + package.read_text())
    with scene.start(ANNOUNCES, "--rounds", "500") as process:
        read_pids(scene.announced, 2)
        for _ in range(3):
            process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout) == (130, ""), stderr
    assert stderr.splitlines()[-1] == "tfcompare: interrupted"
    assert "lost" not in stderr
    assert scene.journal("lost") == []
    assert [entry["how"] for entry in scene.journal("finished")] == ["interrupted"]
    assert list(scene.temporary.iterdir()) == []


def test_nothing_of_a_killed_run_goes_on_and_the_next_one_removes_and_reports_its_remains(scene: Scene):
    """Though its replicates hang and have minutes left."""
    with scene.start(HANGS, "--rounds", "2") as process:
        pids = read_pids(scene.announced, 2)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    wait_for_end(*pids)
    left = list(scene.temporary.iterdir())
    assert len(left) == 2
    code, _, stderr = scene.run(ANNOUNCES, "--rounds", "2", out="next")
    assert code == 0
    line = f"removed what runs that were killed had left behind: 2 temporary folders in {scene.temporary}"
    assert stderr.splitlines().count(line) == 1
    assert list(scene.temporary.iterdir()) == []


def test_a_burst_that_hangs_is_ended_at_the_timeout_that_the_user_set(scene: Scene):
    code, answer, _ = scene.run(HANGS_IN_BURST, "--rounds", "2", "--timeout", "1s")
    assert code == 6
    assert {arm["reason"] for arm in answer["arms"]} == {"no answer within 1 s; ended (--timeout allows longer)"}


@pytest.mark.slow
@pytest.mark.parametrize("which", ["worker", "first"])
def test_a_worker_that_is_stopped_is_ended_and_costs_one_arm_at_most(
    scene: Scene, which: str, monkeypatch: pytest.MonkeyPatch
):
    """It neither answers nor ends, and obeys no signal but the one that kills."""
    monkeypatch.setenv("TF_CPP_WHICH", which)
    code, answer, stderr = scene.run(STOPS, "--rounds", "2", "--timeout", "1s")
    wait_for_end(*read_pids(scene.announced, 3))
    assert list(scene.temporary.iterdir()) == []
    dead = [arm for arm in answer["arms"] if arm["outcome"] != "measured"]
    if which == "first":
        # Its worker answers without it, and is ended with it.
        assert (code, dead) == (0, []), stderr
        return
    assert (code, len(dead)) == (6, 1), stderr
    assert dead[0]["reason"] == "its worker died: timeout: no answer to open within 11 s; ended"
    assert (dead[0]["failure"], dead[0]["external"]) == ("deadline", True)


def test_an_interrupt_while_a_call_hangs_ends_it_at_once(scene: Scene):
    with scene.start(HANGS, "--rounds", "2") as process:
        pids = read_pids(scene.announced, 2)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout) == (130, ""), stderr
    assert stderr.splitlines()[-1] == "tfcompare: interrupted"
    wait_for_end(*pids)
    assert [entry["how"] for entry in scene.journal("finished")] == ["interrupted"]
    assert list(scene.temporary.iterdir()) == []


def test_processes_that_workloads_leave_running_are_ended_journaled_and_said_once(scene: Scene):
    code, answer, stderr = scene.run(LEAVES, "--rounds", "2")
    assert code == 0
    pids = read_pids(scene.announced)
    entries = scene.journal("strays")
    assert sum(entry["count"] for entry in entries) == len(pids)
    assert {entry["target"] for entry in entries} == {"1.14.0", "2.0.0"}
    assert stderr.count("workloads left processes running, which were ended") == 1
    (warning,) = [warning for warning in answer["warnings"] if "running" in warning]
    assert warning == (
        "workloads left processes running, which were ended with their replicate: "
        + ", ".join(f"{sum(e['count'] for e in entries if e['target'] == v)} in {v}" for v in ("1.14.0", "2.0.0"))
    )
