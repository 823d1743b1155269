"""A fleet that the command starts over a real ssh, on this machine and, by another name, on this machine again."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest

from orchestrator.results.run import load_run
from tests.conftest import run_command
from tests.support.fleets import below, free_port
from tests.support.live_runs import PATIENCE_S, until
from tests.support.processes import is_running, read_pids, wait_for_end

pytest.importorskip("ray")

# As the kernel writes them.
LISTENING = "0A"
LOOPBACKS = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
CONFIG = """
Port {port}
ListenAddress 127.0.0.1
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
def ssh(stub_cache: dict[str, str]) -> Iterator[str]:
    """The command that reaches a server which runs here."""
    server = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if not server or os.getuid():
        pytest.skip("no ssh: it takes openssh-server and root")
    folder = Path(mkdtemp(prefix="ssh-", dir="/tmp"))
    for name in ("key", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    port = free_port()
    # There the machine has its own folder of data, so that what it needs has to be sent to it.
    variables = {**stub_cache, "TFCOMPARE_DATA": str(folder / "data")}
    listed = " ".join(f"{name}={value}" for name, value in variables.items())
    (folder / "config").write_text(CONFIG.format(port=port, folder=folder, variables=listed))
    Path("/run/sshd").mkdir(exist_ok=True)
    subprocess.run([server, "-f", folder / "config"], check=True)
    [pid] = read_pids(folder / "pid")
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    try:
        yield f"ssh -p {port} -i {folder / 'key'} {options}"
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
    def machines(self) -> list[dict[str, int]]:
        found: list[dict[str, int]] = json.loads((self.kept / "fleet.json").read_text())["machines"]
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


def list_listening(pids: list[int]) -> set[str]:
    """The addresses at which these processes listen, as the kernel writes them."""
    sockets = {os.readlink(file) for pid in pids for file in list_descriptors(pid)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and f"socket:[{words[9]}]" in sockets:
                found.add(words[1].partition(":")[0])
    return found


def list_descriptors(pid: int) -> list[Path]:
    try:
        return [file for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()]
    except FileNotFoundError:
        return []


def test_nothing_of_a_fleet_listens_beyond_its_machine_and_nobody_reads_its_token(fleet: FleetOverSsh) -> None:
    up = fleet.up("127.0.0.1")
    assert up.returncode == 0, up.stderr
    assert up.stdout == "tfcompare run --on auto\n"
    everything = fleet.list_processes()
    assert len(everything) > 3
    listening = list_listening(everything)
    assert listening
    assert listening <= LOOPBACKS
    # Neither the token nor a way to it is among the arguments that every user can read.
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
    up = fleet.up("localhost", "127.0.0.1", "nowhere.invalid", "--label", "127.0.0.1:gpu=a100")
    assert up.returncode == 0, up.stderr
    assert "127.0.0.1: ready (host=127.0.0.1,gpu=a100)" in up.stderr
    # What cannot be reached costs itself alone.
    assert "warning: nowhere.invalid: " in up.stderr
    assert len(fleet.machines) == 2
    everything = fleet.list_processes()
    again = fleet.up("localhost")
    assert again.returncode == 2
    assert "there is a fleet already" in again.stderr
    status = fleet.call("fleet", "status")
    assert status.returncode == 0, status.stderr
    assert "127.0.0.1" in status.stdout
    words = ("--versions", "1.14,2.0", "--engine", "venv", "--workload-dir", own, "--on", "auto")
    done = fleet.call("run", *words, "--rounds", "2", "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert {arm.outcome for arm in load_run(tmp_path / "run").arms} == {"measured"}
    # One of two machines dies, and its unit is measured by the other.
    _, far = fleet.machines
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
    assert "warning: 127.0.0.1" in left.stderr
    down = fleet.call("fleet", "down")
    assert down.returncode == 0, down.stderr
    wait_for_end(*everything)
    gone = fleet.call("fleet", "status")
    assert gone.returncode == 4
    assert "this machine belongs to no cluster" in gone.stderr
