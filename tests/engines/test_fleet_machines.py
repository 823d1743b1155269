"""A fleet that the command starts over a real ssh, on this machine and, by another name, on this machine again."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from orchestrator.results.run import load_run
from tests.conftest import run_command
from tests.support.fleets import below, free_port
from tests.support.processes import is_running, read_pids, wait_for_end

pytest.importorskip("ray")

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


@pytest.mark.long
def test_a_fleet_is_started_measures_and_is_ended(
    ssh: str, tfcompare: str, stub_cache: dict[str, str], tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "own.py").write_text(WORKLOAD)
    env = {**stub_cache, "TFCOMPARE_DATA": str(tmp_path / "data"), "TFCOMPARE_HOST": ""}
    up = run_command(
        tfcompare, "fleet", "up", "localhost", "127.0.0.1", "nowhere.invalid", "--label", "127.0.0.1:gpu=a100",
        "--ssh", ssh, env=env,
    )  # fmt: skip
    kept = tmp_path / "data" / "tfcompare" / "fleet"
    try:
        assert up.returncode == 0, up.stderr
        assert "127.0.0.1: ready (host=127.0.0.1,gpu=a100)" in up.stderr
        # What cannot be reached costs itself alone.
        assert "warning: nowhere.invalid: " in up.stderr
        pids = [machine["pid"] for machine in json.loads((kept / "fleet.json").read_text())["machines"]]
        assert len(pids) == 3
        everything = [*pids, *(child for pid in pids for child in below(pid))]
        # Neither the token nor a way to it is among the arguments that every user can read.
        token = (kept / "token").read_text()
        assert (kept / "token").stat().st_mode & 0o777 == 0o600
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in everything if is_running(pid)]
        assert not any(token.encode() in line for line in lines)
        again = run_command(tfcompare, "fleet", "up", "localhost", env=env)
        assert again.returncode == 2
        assert "there is a fleet already" in again.stderr
        status = run_command(tfcompare, "fleet", "status", env=env)
        assert status.returncode == 0, status.stderr
        assert "127.0.0.1" in status.stdout
        done = run_command(
            tfcompare, "run", "--versions", "1.14,2.0", "--engine", "venv", "--workload-dir", own, "--rounds", "2",
            "--on", "auto", "--output", tmp_path / "run", env=env,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr
        assert {arm.outcome for arm in load_run(tmp_path / "run").arms} == {"measured"}
    finally:
        down = run_command(tfcompare, "fleet", "down", env=env)
    assert down.returncode == 0, down.stderr
    wait_for_end(*everything)
    assert not (kept / "fleet.json").exists()
    assert "there is no fleet" in run_command(tfcompare, "fleet", "down", env=env).stderr
    gone = run_command(tfcompare, "fleet", "status", env=env)
    assert gone.returncode == 4
    assert "this machine belongs to no cluster" in gone.stderr
