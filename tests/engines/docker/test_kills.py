"""Kills at random points of a run on Docker: of the host, a container, a replicate inside one, and the engine."""

import random
import time
from contextlib import closing
from pathlib import Path

import docker
import pytest

from tests.engines.docker.conftest import OWN, PrivateEngine, Start, containers
from tests.soak.kills import ENDINGS, FIRST, KILLS, check_killed_night, check_resumed, kill

VICTIMS = ("host", "container", "replicate")
# A run of these flags takes about as long on an idle machine; a later kill finds nothing to kill, which counts as well.
LONGEST_S = 15.0
MEASURE = ("--rounds", "4", "--case", "naps", "--quiet")


def victim_of(kind: str, host: int, client: docker.DockerClient, run: Path, draw: random.Random) -> int | None:
    """A process of this machine: that of a container is its worker, whose children are replicates."""
    if kind == "host":
        return host
    processes = []
    for container in containers(client, run):
        if container["State"] == "running":
            top = client.api.top(container["Id"], "-eo pid,ppid,args")["Processes"]
            workers = {row[0] for row in top if row[1] not in {other[0] for other in top}}
            processes += [row[0] for row in top if (row[0] in workers) == (kind == "container")]
    return int(draw.choice(processes)) if processes else None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(3, KILLS // 10)))
def test_nothing_is_lost_doubled_or_left(
    tfcompare: str, stub_base: str, client: docker.DockerClient, start: Start, seed: int
) -> None:
    draw = random.Random(seed)
    kind, moment_s = draw.choice(VICTIMS), draw.uniform(1, LONGEST_S)
    going = start(*MEASURE)
    time.sleep(moment_s)
    victim = victim_of(kind, going.process.pid, client, going.out, draw)
    kill(victim)
    code, _, stderr = going.end()
    print(f"seed {seed}: {kind} {victim} after {moment_s:.2f} s; exit code {code}")
    assert code in ENDINGS, stderr
    assert "Traceback" not in stderr
    if (going.out / "plan.json").exists():
        check_resumed(going.out, tfcompare, {}, "--base", stub_base)
        assert containers(client, going.out) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(1, KILLS // 20)))
def test_no_night_measures_beside_one_that_was_killed(
    tfcompare: str, stub_base: str, client: docker.DockerClient, tmp_path: Path, seed: int
) -> None:
    history = tmp_path / "history"
    argv = [
        tfcompare, "nightly", "run", "--versions", "1.14,2.0", "--engine", "docker", "--base", stub_base,
        "--workload-folder", str(OWN), *MEASURE, "--backfill", "0", "--history", str(history),
    ]  # fmt: skip
    env = {"TFCOMPARE_DATA": str(tmp_path / "data")}
    for run in check_killed_night(argv, history, env, seed, LONGEST_S):
        if (run / "plan.json").exists():
            check_resumed(run, tfcompare, env, "--base", stub_base)
    assert [containers(client, run) for run in (history / "runs").iterdir() if containers(client, run)] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(1, KILLS // 20)))
def test_a_run_is_continued_after_its_engine_was_killed(
    tfcompare: str, stub_base: str, private_stubs: PrivateEngine, start: Start, seed: int
) -> None:
    draw = random.Random(seed)
    going = start(*MEASURE, "--rounds", "1000", env=private_stubs.env)
    try:
        going.until_measuring()
        time.sleep(draw.uniform(0, 5))
        private_stubs.kill()
        code, _, stderr = going.end()
    finally:
        private_stubs.kill()
        private_stubs.start()
    assert code == 4, stderr
    assert "Traceback" not in stderr
    check_resumed(going.out, tfcompare, private_stubs.env, "--base", stub_base)
    with closing(private_stubs.client()) as own:
        assert containers(own, going.out) == []
