"""Containers end with the run that made them, however it ends, and no run touches another's."""

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
import pytest

from orchestrator.engines import WorkerPaths
from orchestrator.engines.docker import container
from orchestrator.engines.docker.engine import DockerEnvironment
from orchestrator.engines.worker.client import WorkerClient
from orchestrator.machine.host import sum_cpu_time
from orchestrator.model import Case
from tests.conftest import run_command
from tests.engines.docker.conftest import MakeEngine, Start, containers, run_here, until, with_memory
from tests.support.builders import target

ENDLESS = ("--rounds", "1000", "--case", "naps")
SHORT = ("--rounds", "3", "--case", "naps", "--format", "json", "--quiet")
# No look decides within such a margin, so a run takes as long as its test.
UNDECIDED = ("--margin", "0.01")
HANGING = ("--rounds", "1000", "--case", "hangs")


def report(tfcompare: str, run: Path) -> dict[str, Any]:
    done = run_command(tfcompare, "report", run, "--format", "json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def outcomes(answer: dict[str, Any]) -> dict[tuple[str, str], str]:
    """By (parameter, version): one workload is measured here."""
    return {(arm["params"]["which"], arm["target"]): arm["outcome"] for arm in answer["arms"]}


def hangs(client: docker.DockerClient, run: Path) -> bool:
    """Whether a workload of this run has said that it hangs."""
    for entry in containers(client, run):
        if entry["Labels"]["tfcompare.version"] == "2.0.0":
            # It may end meanwhile.
            with suppress(docker.errors.APIError):
                look = client.api.exec_create(entry["Id"], ["test", "-e", "/tmp/hangs"])["Id"]
                client.api.exec_start(look)
                return bool(client.api.exec_inspect(look)["ExitCode"] == 0)
    return False


@pytest.mark.parametrize(
    ("number", "times"),
    [
        (signal.SIGINT, 3),
        (signal.SIGTERM, 1),
        pytest.param(signal.SIGINT, 1, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, 1, marks=pytest.mark.long),
    ],
)
def test_signal_ends_the_containers_and_keeps_the_results(
    client: docker.DockerClient, tfcompare: str, start: Start, number: signal.Signals, times: int
) -> None:
    going = start(*ENDLESS)
    going.until_measuring()
    assert len(containers(client, going.out)) == 2
    for _ in range(times):
        going.process.send_signal(number)
    code, stdout, stderr = going.end()
    assert code == 130, stderr
    assert '"kind":"finished"' in (going.out / "journal.jsonl").read_text()
    assert "interrupted" in stdout
    assert f"what was measured before is kept: tfcompare report {going.out}" in stderr
    assert "Traceback" not in stderr
    assert containers(client, going.out) == []
    arms = report(tfcompare, going.out)["arms"]
    assert "measured" in {arm["outcome"] for arm in arms}
    assert max(arm["rounds"] for arm in arms) >= 1


def test_an_interrupt_does_not_wait_for_a_call_that_hangs(client: docker.DockerClient, start: Start) -> None:
    """The call would go on for ten minutes, and no test waits that long."""
    going = start(*HANGING)
    until(lambda: hangs(client, going.out), "a call that hangs")
    going.process.send_signal(signal.SIGINT)
    code, _, stderr = going.end()
    assert (code, "interrupted" in stderr, "Traceback" in stderr) == (130, True, False), stderr
    assert '"kind":"finished"' in (going.out / "journal.jsonl").read_text()
    assert containers(client, going.out) == []


def test_the_next_run_removes_what_a_run_that_was_killed_while_a_call_hung_has_left(
    client: docker.DockerClient, start: Start
) -> None:
    going = start(*HANGING)
    until(lambda: hangs(client, going.out), "a call that hangs")
    going.process.kill()
    going.process.wait()
    until(lambda: {entry["State"] for entry in containers(client, going.out)} == {"exited"}, "the workers to end")
    following = start("--rounds", "2", "--case", "naps[which=first]", name="following")
    code, _, stderr = following.end()
    assert code == 0, stderr
    assert "removed what runs that were killed had left behind: 2 containers\n" in stderr
    assert containers(client, going.out) == containers(client, following.out) == []


def test_killed_run_leaves_containers_that_end_by_themselves_and_are_swept_by_the_next(
    client: docker.DockerClient, tfcompare: str, start: Start, engine: MakeEngine
) -> None:
    going, other = start(*ENDLESS), start(*ENDLESS, *UNDECIDED, name="other")
    going.until_measuring()
    other.until_measuring()
    engine().sweep()
    assert [len(containers(client, run.out)) for run in (going, other)] == [2, 2], "both runs live"

    going.process.kill()
    going.process.wait()
    # A run of a test beside this one may sweep them first.
    until(lambda: {entry["State"] for entry in containers(client, going.out)} <= {"exited"}, "the workers to end")
    assert all(entry["Status"].startswith("Exited (0)") for entry in containers(client, going.out))
    answer = report(tfcompare, going.out)
    assert "measured" in {arm["outcome"] for arm in answer["arms"]}

    left = containers(client, going.out)
    assert engine().sweep() in ([f"{len(left)} containers"], [])
    assert containers(client, going.out) == []
    assert [entry["State"] for entry in containers(client, other.out)] == ["running", "running"]
    assert other.process.poll() is None


@pytest.mark.parametrize(
    ("owner", "state", "swept"),
    [
        ("another-machine/pid:[1]:1:1", "running", False),
        ("another-machine/pid:[1]:1:1", "exited", True),
        ("nonsense", "running", False),
    ],
)
def test_container_of_an_owner_that_cannot_be_seen_is_swept_when_it_has_ended(
    client: docker.DockerClient,
    stubs: dict[str, DockerEnvironment],
    engine: MakeEngine,
    owner: str,
    state: str,
    swept: bool,
) -> None:
    command = ["sleep", "100"] if state == "running" else ["true"]
    made = client.api.create_container(
        stubs["1.14.0"].facts.identity,
        command,
        labels={container.OWNER_LABEL: owner},
        host_config=client.api.create_host_config(network_mode="none"),
    )["Id"]
    try:
        client.api.start(made)
        until(lambda: client.api.inspect_container(made)["State"]["Status"] == state, state)
        engine().sweep()
        left = {entry["Id"] for entry in client.api.containers(all=True)}
        assert (made not in left) == swept
    finally:
        container.remove_container(client.api, made)


def test_owner_that_is_a_zombie_is_gone() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    try:
        here, uid, _, _ = container.owner().rsplit(":", 3)
        until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z", "a zombie")
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        assert container.is_abandoned(f"{here}:{uid}:{pid}:{started}", "running")
        assert not container.is_abandoned(container.owner(), "running")
    finally:
        os.waitpid(pid, 0)


@pytest.mark.parametrize("told", [True, False], ids=["told to quit", "left alone"])
def test_worker_ends_in_order(
    client: docker.DockerClient, stubs: dict[str, DockerEnvironment], tmp_path: Path, told: bool
) -> None:
    """Not killed, or the end of its stream would be a matter of luck."""
    run = f"orderly-{tmp_path}"
    paths = WorkerPaths(run=run, results=tmp_path, log=tmp_path / "log", own_workloads=None)
    started = stubs["1.14.0"].start(paths, tmp_path / "stream.arrow")
    worker = WorkerClient(started.channel, target("1.14.0"))
    worker.hello(run=run, device="cpu", threads=None, folders=started.folders, results=started.results, timeout_s=60)
    if told:
        assert worker.quit()
    else:
        started.channel.close()
    # Read from the engine's memory, up to now.
    happened = list(
        client.api.events(
            since=0, until=int(time.time()) + 1, filters={"label": f"{container.RUN_LABEL}={run}"}, decode=True
        )
    )
    assert [event["Action"] for event in happened] == ["create", "attach", "start", "die", "destroy"]
    assert happened[3]["Actor"]["Attributes"]["exitCode"] == "0"


def test_worker_killed_in_the_middle_costs_a_repeated_visit(
    client: docker.DockerClient, tfcompare: str, start: Start
) -> None:
    going = start(*SHORT)
    going.until_measuring()
    [victim] = [entry for entry in containers(client, going.out) if entry["Labels"]["tfcompare.version"] == "2.0.0"]
    client.api.kill(victim["Id"])
    code, stdout, stderr = going.end()
    assert code == 0, stderr
    answer = json.loads(stdout)
    assert answer == report(tfcompare, going.out)
    assert set(outcomes(answer).values()) == {"measured"}
    entries = map(json.loads, (going.out / "journal.jsonl").read_text().splitlines())
    [died] = [entry for entry in entries if entry["kind"] == "ended" and entry.get("how") == "worker"]
    assert died["target"] == "2.0.0"
    assert died["reason"].startswith("its worker died: killed by SIGKILL")
    assert (died["failure"], died["external"]) == ("signal", True)
    assert containers(client, going.out) == []


def test_a_worker_whose_container_is_paused_is_noticed_at_the_deadline(
    client: docker.DockerClient, start: Start
) -> None:
    going = start(*SHORT, "--timeout", "3s")
    going.until_measuring()
    [victim] = [entry for entry in containers(client, going.out) if entry["Labels"]["tfcompare.version"] == "2.0.0"]
    client.api.pause(victim["Id"])
    code, stdout, stderr = going.end()
    assert code == 6, stderr
    answer = json.loads(stdout)
    [dead] = [arm for arm in answer["arms"] if arm["outcome"] == "died"]
    assert (dead["target"], dead["failure"], dead["external"]) == ("2.0.0", "deadline", True)
    assert dead["reason"].startswith("its worker died: timeout: no answer to ")
    assert sorted(outcomes(answer).values()) == ["died", "measured", "measured", "measured"]
    assert stderr.count(dead["reason"]) == 1
    assert "Traceback" not in stderr
    assert containers(client, going.out) == []


def test_worker_whose_container_is_removed_is_told_so(
    client: docker.DockerClient, stubs: dict[str, DockerEnvironment], tmp_path: Path
) -> None:
    paths = WorkerPaths(run="removed", results=tmp_path, log=tmp_path / "log", own_workloads=None)
    channel = stubs["1.14.0"].start(paths, tmp_path / "stream.arrow").channel
    [entry] = client.api.containers(filters={"label": f"{container.RUN_LABEL}=removed"})
    client.api.remove_container(entry["Id"], force=True)
    with pytest.raises(container.ChannelClosed, match=r"its container was removed|killed by SIGKILL"):
        channel.receive(30)
    channel.close()


def test_case_that_runs_out_of_memory_is_a_row_that_says_so(
    client: docker.DockerClient, stub_base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_memory(client, 1 << 29, monkeypatch)
    done = run_here(stub_base, tmp_path / "run", "hungry", "naps[which=first]")
    arms = {(arm.case.workload, arm.target): arm for arm in done.evaluation.arms}
    for version in ("1.14.0", "2.0.0"):
        assert arms["hungry", version].outcome == "died"
        assert "out of memory" in arms["hungry", version].reason
        assert (arms["hungry", version].failure, arms["hungry", version].external) == ("memory", False)
        assert arms["naps", version].outcome == "measured"
    assert done.error is not None
    assert done.error.exit_code == 6
    assert containers(client, done.path) == []


@pytest.mark.usefixtures("environments")
def test_worker_that_runs_out_of_memory_says_so(
    client: docker.DockerClient, docker_base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_memory(client, 64 << 20, monkeypatch)
    done = run_here(docker_base, tmp_path / "run", "naps[which=first]")
    assert [arm.outcome for arm in done.evaluation.arms] == ["died", "died"]
    for arm in done.evaluation.arms:
        assert arm.reason.startswith("start: out of memory: the container's limit was reached")
        assert (arm.failure, arm.external) == ("memory", False)
    assert done.error is not None
    assert done.error.exit_code == 6
    assert containers(client, done.path) == []


BURNS = """
import time

def build(tf, params):
    def step():
        until = time.process_time() + 0.3
        while time.process_time() < until:
            pass
    return step
"""


def test_what_a_worker_in_a_container_spends_is_its_own_and_not_foreign_load(
    stubs: dict[str, DockerEnvironment], tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "burns.py").write_text(BURNS)
    paths = WorkerPaths(run=f"burns-{tmp_path}", results=tmp_path, log=tmp_path / "log", own_workloads=mine)
    started = stubs["1.14.0"].start(paths, tmp_path / "stream.arrow")
    worker = WorkerClient(started.channel, target("1.14.0"))
    try:
        worker.hello(
            run=paths.run, device="cpu", threads=None, folders=started.folders, results=started.results, timeout_s=60
        )
        assert worker.pid is not None
        before = sum_cpu_time([worker.pid])
        worker.open(Case("burns", ()), replicate=1, round=1, position=0, seed=1, warmup=0, timeout_s=60)
        worker.burst(1, 3, 60)
        assert sum_cpu_time([worker.pid]) - before > 0.3 * 5
    finally:
        worker.quit()
