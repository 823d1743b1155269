"""A fleet that the command starts over a real ssh, on this machine and on one behind a network.

That one is this machine again, with an address, a loopback and ports that no other has.
"""

import json
import os
import shutil
import signal
import socket
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
from tests.support.live_runs import PATIENCE_S, until
from tests.support.networks import FAR, find_tool, second_network
from tests.support.processes import is_running, read_pids, wait_for_end

pytest.importorskip("ray")

# As the kernel writes them.
LISTENING = "0A"
LOOPBACKS = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
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

    @property
    def machines(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.kept / "fleet.json").read_text())["machines"]
        return found

    def list_processes(self) -> list[int]:
        """All processes of the fleet, first those that `down` ends."""
        pids = [machine["pid"] for machine in self.machines]
        return [*pids, *(child for pid in pids for child in below(pid))]


@pytest.fixture
def fleet(ssh: str, tfcompare: str, stub_cache: dict[str, str], tmp_path: Path) -> Iterator[FleetOverSsh]:
    """Ends the fleet that the test has started, if there is one."""
    env = {**stub_cache, "TFCOMPARE_DATA": str(tmp_path / "data"), "TFCOMPARE_HOST": ""}
    fleet = FleetOverSsh(tfcompare, ssh, tmp_path, env)
    yield fleet
    if (fleet.kept / "fleet.json").exists():
        fleet.call("fleet", "down")


def list_listening(pids: list[int]) -> set[tuple[str, int]]:
    """The addresses, as the kernel writes them, and the ports at which these processes listen."""
    sockets = {os.readlink(file) for pid in pids for file in list_descriptors(pid)}
    found = set()
    for table in ("tcp", "tcp6"):
        # All of them are on one network.
        for line in Path(f"/proc/{pids[0]}/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and f"socket:[{words[9]}]" in sockets:
                address, _, port = words[1].partition(":")
                found.add((address, int(port, 16)))
    return found


def wait_for_port(fleet: FleetOverSsh) -> set[tuple[str, int]]:
    """Return where a fleet's processes listen, once the port for orders is among them."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = list_listening(fleet.list_processes())
        if fleet.machines[0]["port"] in {port for _, port in found}:
            return found
        assert time.monotonic() < end, found
        time.sleep(0.2)


def is_reached(address: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((address, port), 5):
        return True
    return False


def list_descriptors(pid: int) -> list[Path]:
    try:
        return [file for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()]
    except FileNotFoundError:
        return []


def test_nothing_of_a_fleet_listens_beyond_its_machine_and_nobody_reads_its_token(fleet: FleetOverSsh) -> None:
    up = fleet.up(FAR)
    assert up.returncode == 0, up.stderr
    assert up.stdout == "tfcompare run --on auto\n"
    listening = wait_for_port(fleet)
    assert {address for address, _ in listening} <= LOOPBACKS
    # Ssh is the only way in from here.
    assert not any(is_reached(FAR, port) for _, port in listening)
    assert is_reached(FAR, 22)
    # Neither the token nor a way to it is among the arguments that every user can read.
    everything = fleet.list_processes()
    assert len(everything) > 3
    token = (fleet.kept / "token").read_text()
    assert (fleet.kept / "token").stat().st_mode & 0o777 == 0o600
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in everything if is_running(pid)]
    assert not any(token.encode() in line for line in lines)
    down = fleet.call("fleet", "down")
    assert down.returncode == 0, down.stderr
    wait_for_end(*everything)
    assert not (fleet.kept / "fleet.json").exists()
    assert "there is no fleet" in fleet.call("fleet", "down").stderr


@pytest.mark.long
def test_a_fleet_is_started_measures_and_is_ended(fleet: FleetOverSsh, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "own.py").write_text(WORKLOAD)
    up = fleet.up("localhost", FAR, "nowhere.invalid", "--label", f"{FAR}:gpu=a100")
    assert up.returncode == 0, up.stderr
    assert f"{FAR}: ready (host={FAR},gpu=a100)" in up.stderr
    # What cannot be reached costs itself alone.
    assert "warning: nowhere.invalid: " in up.stderr
    assert len(fleet.machines) == 2
    everything = fleet.list_processes()
    again = fleet.up("localhost")
    assert again.returncode == 2
    assert "there is a fleet already" in again.stderr
    status = fleet.call("fleet", "status")
    assert status.returncode == 0, status.stderr
    assert FAR in status.stdout
    words = ("--versions", "1.14,2.0", "--engine", "venv", "--workload-folder", own, "--on", "auto")
    done = fleet.call("run", *words, "--rounds", "2", "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert {arm.outcome for arm in load_run(tmp_path / "run").arms} == {"measured"}
    # One of two machines dies, and its unit is measured by the other.
    [far] = [machine for machine in fleet.machines if machine["host"] == FAR]
    with subprocess.Popen(
        [fleet.command, "run", *words, "--rounds", "20", "--output", tmp_path / "second"],
        env={**os.environ, **fleet.env}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as driver:  # fmt: skip
        until(lambda: len(list((tmp_path / "second").glob("unused/*/plan.json"))) == 2, driver)
        for pid in (*below(far["pid"]), far["pid"]):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _, stderr = driver.communicate(timeout=PATIENCE_S)
    assert driver.returncode == 0, stderr
    assert "begins again at its first round: " in stderr
    assert {arm.outcome for arm in load_run(tmp_path / "second").arms} == {"measured"}
    left = fleet.call("fleet", "status")
    assert left.returncode == 0, left.stderr
    assert f"warning: {FAR}" in left.stderr
    down = fleet.call("fleet", "down")
    assert down.returncode == 0, down.stderr
    wait_for_end(*everything)
    gone = fleet.call("fleet", "status")
    assert gone.returncode == 4
    assert "this machine belongs to no cluster" in gone.stderr
