"""A fleet that is reached over a real ssh, on this machine and on one behind a network.

That one is this machine again, with an address, a loopback and ports that no other has. Its lines are those of any
Ubuntu: nothing of tfcompare runs there before a run wants it.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from orchestrator.results.run import load_run
from tests.conftest import run_command
from tests.support.fleets import below
from tests.support.live_runs import until
from tests.support.networks import FAR, find_tool, second_network
from tests.support.processes import PATIENCE_S, read_pids, wait_for_end

# As the kernel writes it.
LISTENING = "0A"
CONFIG = """
ListenAddress {far}
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PidFile {folder}/pid
UsePAM no
SetEnv TFCOMPARE_HOST=far {variables}
"""
WORKLOAD = """
'''Sleeps.'''
import time
PARAMS = {"size": ("1", "2")}

def build(tf, params):
    return lambda: time.sleep(0.002)
"""
LOGIN = "a-login-of-the-index"


@pytest.fixture(scope="module")
def network() -> Iterator[list[str]]:
    with second_network() as inside:
        yield inside


@pytest.fixture(scope="module")
def ssh(stub_cache: dict[str, str], network: list[str]) -> Iterator[str]:
    """The command that reaches a server which runs behind the network."""
    server = find_tool("sshd")
    if not server:
        pytest.skip("no ssh: it takes openssh-server")
    folder = Path(mkdtemp(prefix="ssh-", dir="/tmp"))
    for name in ("key", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    # There the machine has its own folder of data, so that what it needs has to be sent to it.
    variables = {**stub_cache, "TFCOMPARE_DATA": str(folder / "data")}
    listed = " ".join(f"{name}={value}" for name, value in variables.items())
    (folder / "config").write_text(CONFIG.format(far=FAR, folder=folder, variables=listed))
    Path("/run/sshd").mkdir(exist_ok=True)
    subprocess.run([*network, server, "-f", folder / "config"], check=True)
    [pid] = read_pids(folder / "pid")
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    try:
        yield f"ssh -i {folder / 'key'} {options}"
    finally:
        os.kill(pid, 15)
        wait_for_end(pid)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class FleetOverSsh:
    """The command, with a separate folder for a fleet's data."""

    command: str
    ssh: str
    folder: Path
    env: dict[str, str]

    def call(self, *words: str | Path, timeout: float = 600) -> "subprocess.CompletedProcess[str]":
        return run_command(self.command, *words, env=self.env, timeout=timeout)

    def up(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.call("fleet", "up", *words, "--ssh", self.ssh)

    @property
    def kept(self) -> Path:
        return self.folder / "data" / "tfcompare" / "fleet"

    def measure(self, out: str, *words: str | Path) -> "subprocess.Popen[str]":
        own = self.folder / "own"
        own.mkdir(exist_ok=True)
        (own / "own.py").write_text(WORKLOAD)
        return subprocess.Popen(
            [
                self.command, "run", "--versions", "1.14,2.0", "--engine", "venv", "--workload-folder", own,
                "--on", "auto", "--output", self.folder / out, *words,
            ],
            env={**os.environ, **self.env}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip


@pytest.fixture
def fleet(ssh: str, tfcompare: str, stub_cache: dict[str, str], tmp_path: Path) -> FleetOverSsh:
    env = {**stub_cache, "TFCOMPARE_DATA": str(tmp_path / "data"), "TFCOMPARE_HOST": "here"}
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
        env[name] = ""
    return FleetOverSsh(tfcompare, ssh, tmp_path, env)


def list_far(what: str = "orchestrator.fleet") -> list[int]:
    """Return the processes of the far machine whose command line has these words."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and b"TFCOMPARE_HOST=far\0" in (folder / "environ").read_bytes():
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found += [int(folder.name)] if what in line else []
    return found


def list_listening(pids: list[int]) -> set[str]:
    """The addresses at which these processes, and those below them, listen."""
    everything = [*pids, *(child for pid in pids for child in below(pid))]
    sockets = set()
    for pid in everything:
        with suppress(OSError):
            sockets |= {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError):
            for line in Path(f"/proc/{pids[0]}/net", table).read_text().splitlines()[1:]:
                words = line.split()
                if (words[3] == LISTENING or table.startswith("udp")) and f"socket:[{words[9]}]" in sockets:
                    found.add(words[1])
    return found


def kept_so_far(run: Path) -> int:
    return len(list(run.glob("unused/*/plan.json")))


def test_a_machine_runs_and_opens_nothing_but_what_a_run_wants(fleet: FleetOverSsh) -> None:
    up = fleet.up(FAR)
    assert up.returncode == 0, up.stderr
    assert up.stdout == "tfcompare run --on auto\n"
    assert f"{FAR}: ready (host={FAR})" in up.stderr
    assert list_far() == []
    with fleet.measure("run", "--rounds", "12", "--index-url", f"http://me:{LOGIN}@127.0.0.1:9/simple") as driver:
        until(lambda: bool(list_far("orchestrator.fleet.measure")), driver)
        pids = list_far("orchestrator.fleet.measure")
        until(lambda: kept_so_far(fleet.folder / "run") > 0, driver)
        # Ssh is the only way in, and no argument that every user can read has a login.
        assert list_listening(pids) == set()
        for pid in (*pids, *below(driver.pid)):
            with suppress(OSError):
                assert LOGIN.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        _, stderr = driver.communicate(timeout=PATIENCE_S * 3)
    assert driver.returncode == 0, stderr
    assert list_far() == []
    down = fleet.call("fleet", "down")
    assert down.returncode == 0, down.stderr
    assert not (fleet.kept / "fleet.json").exists()
    assert "no fleet is stored" in fleet.call("fleet", "down").stderr


@pytest.mark.long
def test_two_machines_measure_and_one_that_loses_its_process_begins_again(fleet: FleetOverSsh) -> None:
    up = fleet.up("localhost", FAR, "nowhere.invalid", "--label", f"{FAR}:gpu=a100")
    assert up.returncode == 0, up.stderr
    assert f"{FAR}: ready (host={FAR},gpu=a100)" in up.stderr
    # What cannot be reached costs itself alone.
    assert "warning: nowhere.invalid: " in up.stderr
    state: dict[str, Any] = json.loads((fleet.kept / "fleet.json").read_text())
    assert [machine["host"] for machine in state["machines"]] == ["localhost", FAR]
    status = fleet.call("fleet", "status")
    assert status.returncode == 0, status.stderr
    assert FAR in status.stdout
    with fleet.measure("run", "--rounds", "2") as driver:
        _, stderr = driver.communicate(timeout=PATIENCE_S * 3)
    assert driver.returncode == 0, stderr
    assert "warning" not in stderr
    assert {arm.outcome for arm in load_run(fleet.folder / "run").arms} == {"measured"}
    with fleet.measure("second", "--rounds", "20") as driver:
        until(lambda: kept_so_far(fleet.folder / "second") == 2, driver)
        for pid in list_far("orchestrator.fleet.measure"):
            os.kill(pid, signal.SIGKILL)
        _, stderr = driver.communicate(timeout=PATIENCE_S * 3)
    assert driver.returncode == 0, stderr
    assert "begins again at its first round: " in stderr
    # The machine itself was there all the while.
    assert f"{FAR} is gone" not in stderr
    assert {arm.outcome for arm in load_run(fleet.folder / "second").arms} == {"measured"}


@pytest.mark.long
def test_a_network_that_is_gone_without_a_word_ends_the_unit_on_both_sides(fleet: FleetOverSsh) -> None:
    assert fleet.up("localhost", FAR).returncode == 0
    cable = f"near{os.getpid()}"
    with fleet.measure("run", "--rounds", "200", "--budget", "5m") as driver:
        until(lambda: kept_so_far(fleet.folder / "run") == 2, driver)
        pids = list_far("orchestrator.fleet.measure")
        assert pids
        subprocess.run([find_tool("ip"), "link", "set", cable, "down"], check=True)
        try:
            # It hears nothing for half a minute, frees what it holds, and ends.
            wait_for_end(*pids)
        finally:
            subprocess.run([find_tool("ip"), "link", "set", cable, "up"], check=True)
        driver.send_signal(signal.SIGINT)
        _, stderr = driver.communicate(timeout=PATIENCE_S * 3)
    assert driver.returncode == 130, stderr
    assert "begins again at its first round: " in stderr
    begun = time.monotonic()
    while list_far():
        assert time.monotonic() - begun < PATIENCE_S
        time.sleep(0.1)


@pytest.mark.long
def test_a_command_that_is_killed_leaves_nothing_behind(fleet: FleetOverSsh) -> None:
    assert fleet.up(FAR).returncode == 0
    with fleet.measure("run", "--rounds", "20") as driver:
        until(lambda: kept_so_far(fleet.folder / "run") == 1, driver)
        pids = list_far("orchestrator.fleet.measure")
        driver.kill()
        driver.wait()
        wait_for_end(*pids)
    done = fleet.call("run", "--resume", fleet.folder / "run", "--on", "auto")
    assert done.returncode == 0, done.stderr
    assert {arm.outcome for arm in load_run(fleet.folder / "run").arms} == {"measured"}
