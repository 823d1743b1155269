"""What a run on two hosts says of itself: who measured each case, and where the hosts differ."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator.fleet.arrive import Arrivals
from orchestrator.fleet.model import HostReport
from orchestrator.fleet.replicas import REPLICA_LINE_STARTS, describe_replicas
from orchestrator.fleet.units import Unit
from orchestrator.results.part_files import read_files
from orchestrator.results.run_folder import RunFolder
from tests.support.builders import case, plan, run_folder
from tests.support.parts import measured

CASES = {size: case(size=size) for size in "1234"}
ROUNDS = 10


def copied(folder: Path, hosts: Mapping[str, tuple[str, float]]) -> RunFolder:
    """A copy of the cases, by size: which host measured it, and how many times as long the later version takes."""
    run = run_folder(folder, plan(tuple(CASES.values()), run=folder.name))
    run.write_manifest(replace(run.read_manifest(), environments={}, workers={}))
    arrivals = Arrivals(run, run.read_plan(), run.read_manifest())
    for size, (host, ratio) in hosts.items():
        report = HostReport(tool="1", contract="c", facts={"id": host}, engines={"venv": ""})
        part = measured(folder.parent / f"{folder.name}-{size}", CASES[size], f"run-{size}", ratio, ROUNDS)
        arrivals.accept(Unit(int(size), (CASES[size],)), 1, 1, report, read_files(part.path))
    return run


def test_each_case_is_called_what_was_recorded_of_it(tmp_path: Path):
    first = copied(tmp_path / "first", {"1": ("a", 1.2), "2": ("b", 1.2), "3": ("a", 1.2), "4": ("b", 1.2)})
    second = copied(tmp_path / "second", {"1": ("b", 1.2), "2": ("a", 1.6), "3": ("a", 1.6)})
    found, differs, *others = describe_replicas(first, second)
    assert found == (
        "two hosts measured 2 of 4 cases, and the report shows the first; of 2 ratios, 1 are the same on both, 1 "
        f"differ, and 0 are open: tfcompare compare {first.path} {second.path}"
    )
    assert differs.startswith("two hosts differ: power[size=2], 2.0.0 against 1.0.0: ")
    assert differs.index("on host b") < differs.index("on host a")
    assert others == [
        "one host measured both copies of power[size=3], which does not show whether hosts agree",
        "one host alone has measured power[size=4] so far",
    ]
    assert all(line.startswith(REPLICA_LINE_STARTS) for line in (found, differs, *others))


def test_hosts_that_agree_are_two_for_each_case(tmp_path: Path):
    first, second = (
        copied(tmp_path / name, dict.fromkeys("1234", (host, 1.2))) for name, host in (("first", "a"), ("second", "b"))
    )
    [found] = describe_replicas(first, second)
    assert found.startswith(
        "two hosts measured each case, and the report shows the first; of 4 ratios, 4 are the same on both, 0 "
    )


def test_one_host_is_never_called_two(tmp_path: Path):
    first, second = (copied(tmp_path / name, dict.fromkeys("1234", ("a", 1.2))) for name in ("first", "second"))
    [found] = describe_replicas(first, second)
    assert found.startswith("one host measured both copies of power[size=1], power[size=2], power[size=3]")


def test_nothing_is_said_of_what_nobody_measured(tmp_path: Path):
    assert describe_replicas(copied(tmp_path / "first", {}), copied(tmp_path / "second", {})) == ()
