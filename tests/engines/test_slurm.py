"""Two shards as tasks of a real Slurm on this machine, and one run made of both."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from orchestrator.results.run import load_run
from tests.conftest import run_command
from tests.support.fleets import free_port
from tests.support.processes import PATIENCE_S

DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# What docs/several-machines.md gives to sbatch, as a step of two tasks.
TASK = """
exec {command} run --versions 1.14,2.0 --engine venv --workload-dir {own} --rounds 2 \\
    --shard $((SLURM_PROCID + 1))/$SLURM_NTASKS --output {folder}/shard-$SLURM_PROCID
"""
WORKLOAD = """
'''Sleeps.'''
import time
PARAMS = {"size": ("1", "2", "3", "4")}

def build(tf, params):
    return lambda: time.sleep(0.002)
"""


def find_daemon(name: str) -> str:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or ""


@pytest.fixture(scope="module")
def slurm() -> Iterator[dict[str, str]]:
    """The variable by which commands find a controller and a node that run here."""
    if not all(map(find_daemon, DAEMONS)) or os.getuid():
        pytest.skip("no Slurm: it takes slurm-wlm and root")
    folder = Path(mkdtemp(prefix="slurm-", dir="/tmp"))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    config = CONFIG.format(
        host=socket.gethostname(), folder=folder, port=free_port(), node_port=free_port(), cpus=os.cpu_count()
    )
    (folder / "slurm.conf").write_text(config)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    env = {"SLURM_CONF": str(folder / "slurm.conf")}
    names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    flags = [f"--{flag}={folder}/munge.{end}" for flag, end in names.items()]
    try:
        subprocess.run([find_daemon("munged"), "--force", *flags], check=True)
        for name in ("slurmctld", "slurmd"):
            subprocess.run([find_daemon(name), "-f", env["SLURM_CONF"]], check=True)
        until = time.monotonic() + PATIENCE_S
        while "idle" not in run_command("sinfo", env=env).stdout:
            assert time.monotonic() < until, (folder / "slurmctld.log").read_text()
            time.sleep(0.2)
        yield env
    finally:
        for file in ("slurmd.pid", "slurmctld.pid", "munge.pid"):
            with suppress(OSError, ValueError):
                os.kill(int((folder / file).read_text()), 15)
        shutil.rmtree(folder, ignore_errors=True)


def test_two_tasks_measure_a_shard_each(
    slurm: dict[str, str], tfcompare: str, stub_cache: dict[str, str], tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "own.py").write_text(WORKLOAD)
    task = TASK.format(command=tfcompare, own=own, folder=tmp_path)
    done = run_command("srun", "--ntasks=2", "bash", "-c", task, env={**slurm, **stub_cache})
    assert done.returncode == 0, done.stderr
    merged = run_command(tfcompare, "merge", tmp_path / "shard-0", tmp_path / "shard-1", "--output", tmp_path / "whole")
    assert merged.returncode == 0, merged.stderr
    whole = load_run(tmp_path / "whole")
    assert sorted(case.label for case in whole.plan.cases) == [f"own[size={size}]" for size in range(1, 5)]
    assert {arm.outcome for arm in whole.arms} == {"measured"}
    assert len(whole.arms) == 8
