"""A real Slurm on this machine: shards that are put together, and a fleet of the nodes of a job."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from orchestrator.results.run import Run, load_run
from tests.conftest import run_command
from tests.support.fleets import free_port
from tests.support.networks import FAR, NEAR, find_tool, second_network
from tests.support.processes import PATIENCE_S

DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIG = """
ClusterName=test
SlurmctldHost={host}({address})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
TaskProlog={folder}/prolog
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# Nodes here share a machine, and each has its name.
PROLOG = """#!/bin/sh
echo "export TFCOMPARE_HOST=$SLURMD_NODENAME"
"""
# What docs/several-machines.md gives to sbatch, as a step of two tasks.
TASK = """
exec {command} run --versions 1.14,2.0 --engine venv --workload-folder {own} --rounds 2 \\
    --shard $((SLURM_PROCID + 1))/$SLURM_NTASKS --output {folder}/shard-$SLURM_PROCID
"""
WORKLOAD = """
'''Sleeps.'''
import time
PARAMS = {"size": ("1", "2", "3", "4")}

def build(tf, params):
    return lambda: time.sleep(0.002)
"""


NODE = "NodeName={name} NodeAddr={address} CPUs={cpus} State=UNKNOWN"
# What docs/fleet.md gives to sbatch.
FLEET = """
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH={folder}/token RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0
srun ray symmetric-run --address "{head}" --min-nodes 2 --num-cpus=1 --resources='{{"bench_slot": 1}}' \\
    --disable-usage-stats -- \\
    tfcompare run --versions 1.14,2.0 --engine venv --workload-folder {own} --rounds 2 --on auto --output {folder}/whole
"""


@contextmanager
def slurm(nodes: dict[str, tuple[str, list[str]]]) -> Iterator[dict[str, str]]:
    """Start a controller and nodes: each has a name, an address, and the words that call a command there."""
    folder = Path(mkdtemp(prefix="slurm-", dir="/tmp"))
    (folder / "state").mkdir()
    listed = [NODE.format(name=name, address=address, cpus=os.cpu_count()) for name, (address, _) in nodes.items()]
    host = socket.gethostname()
    config = CONFIG.format(
        host=host, address=nodes[host][0], folder=folder, port=free_port(), node_port=free_port(),
        nodes="\n".join(listed),
    )  # fmt: skip
    (folder / "slurm.conf").write_text(config)
    (folder / "prolog").write_text(PROLOG)
    (folder / "prolog").chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    env = {"SLURM_CONF": str(folder / "slurm.conf")}
    names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    flags = [f"--{flag}={folder}/munge.{end}" for flag, end in names.items()]
    with ExitStack() as held:
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        held.callback(end, folder / "munge.pid")
        subprocess.run([find_tool("munged"), "--force", *flags], check=True)
        held.callback(end, folder / "slurmctld.pid")
        subprocess.run([find_tool("slurmctld"), "-f", env["SLURM_CONF"]], check=True)
        for name, (_, words) in nodes.items():
            (folder / f"spool-{name}").mkdir()
            # It stays in the foreground, so that it ends with its namespaces.
            node = subprocess.Popen([*words, find_tool("slurmd"), "-D", "-f", env["SLURM_CONF"]])
            held.callback(stop, node)
        until = time.monotonic() + PATIENCE_S
        while run_command("sinfo", "--noheader", "--format=%D%t", env=env).stdout.strip() != f"{len(nodes)}idle":
            assert time.monotonic() < until, (folder / "slurmctld.log").read_text()
            time.sleep(0.2)
        yield env


def stop(node: "subprocess.Popen[bytes]") -> None:
    """End a node; what stands for a machine goes with all that runs on it."""
    node.terminate()
    with suppress(subprocess.TimeoutExpired):
        node.wait(10)
    node.kill()
    node.wait()


def end(file: Path) -> None:
    with suppress(OSError, ValueError):
        os.kill(int(file.read_text()), 15)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    if not all(map(find_tool, DAEMONS)) or os.getuid():
        pytest.skip("no Slurm: it takes slurm-wlm and root")
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "own.py").write_text(WORKLOAD)
    return folder


def check_whole(path: Path) -> Run:
    whole = load_run(path)
    assert sorted(case.label for case in whole.plan.cases) == [f"own[size={size}]" for size in range(1, 5)]
    assert {arm.outcome for arm in whole.arms} == {"measured"}
    assert len(whole.arms) == 8
    return whole


def test_two_tasks_measure_a_shard_each(own: Path, tfcompare: str, stub_cache: dict[str, str], tmp_path: Path) -> None:
    task = TASK.format(command=tfcompare, own=own, folder=tmp_path)
    with slurm({socket.gethostname(): ("127.0.0.1", [])}) as env:
        done = run_command("srun", "--ntasks=2", "bash", "-c", task, env={**env, **stub_cache})
    assert done.returncode == 0, done.stderr
    merged = run_command(tfcompare, "merge", tmp_path / "shard-0", tmp_path / "shard-1", "--output", tmp_path / "whole")
    assert merged.returncode == 0, merged.stderr
    check_whole(tmp_path / "whole")


@pytest.mark.long
def test_the_nodes_of_a_job_are_a_fleet(own: Path, tfcompare: str, stub_cache: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    (tmp_path / "token").write_text(secrets.token_hex(32))
    script = tmp_path / "job"
    script.write_text(f"#!/bin/bash\n{FLEET.format(folder=tmp_path, own=own, head=f'{NEAR}:{free_port()}')}")
    path = f"{Path(tfcompare).parent}:{os.environ['PATH']}"
    with second_network() as inside:
        # A machine has a name, and sees only its own processes, of which the first one outlives the others.
        apart = ["unshare", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child"]
        near = [*apart, "sh", "-c", '"$@"; true', "sh"]
        far = [*apart, *inside, "sh", "-c", 'hostname far; "$@"; true', "sh"]
        nodes = {socket.gethostname(): (NEAR, near), "far": (FAR, far)}
        with slurm(nodes) as env:
            words = ("sbatch", "--wait", "--nodes=2", "--ntasks-per-node=1", "--exclusive", f"--output={tmp_path}/log")
            done = run_command(*words, script, env={**env, **stub_cache, "PATH": path})
            said = (tmp_path / "log").read_text()
    assert done.returncode == 0, said
    whole = check_whole(tmp_path / "whole")
    assert len(whole.manifest.hosts) == 2, said
