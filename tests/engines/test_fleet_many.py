"""Many cases on two nodes of a cluster that Ray's own tool for tests starts: all of them arrive, each once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import fleet
from orchestrator.results.run import load_run
from tests.conftest import ROOT, run_command

pytest.importorskip("ray")

COUNT = 40
VERSIONS = ("1.14", "2.0")
# In a separate process, because Ray's tool leaves threads behind.
SCRIPT = """
import os, sys
from pathlib import Path
from ray.cluster_utils import Cluster
from bench.fleet import share_out

folder = Path(sys.argv[1])
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
for name in ("a", "b"):
    cluster.add_node(
        num_cpus=1, resources={"bench_slot": 1}, labels={"host": name},
        object_store_memory=80_000_000, env_vars={"TFCOMPARE_HOST": name},
    )
os.environ["RAY_ADDRESS"] = cluster.address
share_out(folder / "whole", folder / "template", 0.2, int(sys.argv[2]), tuple(sys.argv[3:]))
"""


@pytest.mark.long
def test_forty_cases_on_two_nodes_all_arrive_once(tfcompare: str, stub_cache: dict[str, str], tmp_path: Path) -> None:
    own = fleet.write_cases(tmp_path / "own", COUNT)
    one = run_command(
        tfcompare, "run", "--versions", ",".join(VERSIONS), "--engine", "venv", "--workload-folder", own,
        "--case", f"{fleet.WORKLOAD}[n={fleet.FIRST}]", "--rounds", str(fleet.ROUNDS),
        "--output", tmp_path / "template", env=stub_cache,
    )  # fmt: skip
    assert one.returncode == 0, one.stderr
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path, str(COUNT), *VERSIONS], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, **stub_cache}, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = load_run(tmp_path / "whole")
    assert len(run.arms) == COUNT * len(VERSIONS)
    assert {(arm.outcome, arm.rounds) for arm in run.arms} == {("measured", fleet.ROUNDS)}
    assert run.evaluation.broken == ()
    numbers = [(one.target, one.number) for one in run.replicates]
    assert len(numbers) == len(set(numbers)) == COUNT * len(load_run(tmp_path / "template").replicates)
    hosts = {str(each.host["id"]).rpartition("-")[2]: each.cases for each in run.manifest.hosts}
    assert set(hosts) == {"a", "b"}
    assert sorted(case for cases in hosts.values() for case in cases) == sorted(case.label for case in run.plan.cases)
    assert json.loads((tmp_path / "whole" / "plan.json").read_text())["looks"] == [fleet.ROUNDS]
