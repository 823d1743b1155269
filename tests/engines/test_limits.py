"""What every arm may use, and processes and containers of a replicate's own: asked of the real thing, from inside."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.support.end_to_end import Answer, compare, comparison, parse

OWN = Path(__file__).parent / "workloads"
VERSIONS = ("1.14.0", "2.0.0")
SHARED = ("--versions", "1.14,2.0", "--workload-folder", OWN, "--quiet")


def told(run: Path) -> list[tuple[str, str, str]]:
    """(CPUs, limit of data, limit of the control group) of every replicate of both versions."""
    logs = [run / "logs" / f"worker-{version}.log" for version in VERSIONS]
    return [
        match for log in logs for match in re.findall(r"whoami cpus=(\S+) data=(\S+) cgroup=(\S+)", log.read_text())
    ]


def endings(run: Path) -> list[Answer]:
    entries = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    return [entry for entry in entries if entry["kind"] == "ended"]


def streams(run: Path) -> list[str]:
    """The versions of all streams; each is closed."""
    names = [path.name for path in (run / "streams").iterdir()]
    assert all(name.endswith(".arrow") for name in names)
    return sorted(name.rpartition("-")[0] for name in names)


def a_stream_a_replicate(run: Path) -> bool:
    """Two rounds, and perhaps a pilot that is none of them, or one that was redone: a stream each."""
    return len(streams(run)) == len(told(run)) >= 2 * 2 and set(streams(run)) == set(VERSIONS)


@pytest.fixture(scope="module")
def limited(tfcompare: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("limited") / "run"
    # With such a margin two rounds do not show that the versions are the same, however quiet the machine is.
    undecided = ("--rounds", "2", "--margin", "0.01")
    limits = ("--cpuset", "0", "--memory", "6g", "--threads", "1,2")
    flags = ("--isolation", "process", *limits, "--case", "whoami", *undecided)
    code, answer, stderr = compare(tfcompare, *SHARED, *flags, "--engine", "auto", "--output", run)
    assert code == 0, stderr
    assert answer["run"]["engine"] == "venv"
    return run


def test_a_process_a_replicate_leaves_a_stream_each(limited: Path) -> None:
    assert a_stream_a_replicate(limited), (streams(limited), told(limited))


def test_every_process_has_the_cpus_and_the_memory_that_were_asked_for(limited: Path) -> None:
    assert {(cpus, data) for cpus, data, _ in told(limited)} == {("0", str(6 * 2**30))}


def test_every_replicate_states_the_threads_that_were_asked_for(limited: Path) -> None:
    stated = {(one["target"], tuple(one["threads"])) for one in endings(limited)}
    assert stated == {(version, (1, 2)) for version in VERSIONS}


def test_more_rounds_keep_the_limits_and_are_judged_after_too_few_for_a_verdict(limited: Path, tfcompare: str) -> None:
    replicates = len(told(limited))
    before = parse(run_command(tfcompare, "report", limited, "--format", "json"))
    assert [comparison["exploratory"] for comparison in before["comparisons"]] == [False]
    done = run_command(
        tfcompare, "run", "--resume", limited, "--rounds", "2", "--workload-folder", OWN, "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    assert "exploratory" not in done.stderr
    after = parse(done)
    assert {arm["rounds"] for arm in after["arms"]} == {4}
    assert [comparison["exploratory"] for comparison in after["comparisons"]] == [False]
    assert {(cpus, data) for cpus, data, _ in told(limited)} == {("0", str(6 * 2**30))}
    assert len(told(limited)) >= replicates + 4


def test_a_workload_that_wants_more_memory_than_there_is_dies_with_that_reason(
    tfcompare: str, stub_cache: dict[str, str], tmp_path: Path
) -> None:
    flags = ("--memory", "5g", "--rounds", "2", "--case", "greedy", "--engine", "venv", "--output", tmp_path / "run")
    code, answer, _ = compare(tfcompare, *SHARED, *flags, env=stub_cache)
    assert code == 6
    assert {arm["outcome"] for arm in answer["arms"]} == {"died"}
    assert all("MemoryError" in arm["reason"] for arm in answer["arms"])
    assert all("MemoryError" in comparison["reason"] for comparison in answer["comparisons"])


@pytest.fixture(scope="module")
def odd(tfcompare: str, stub_cache: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Answer:
    run = tmp_path_factory.mktemp("odd") / "run"
    flags = ("--case", "instant", "--case", "leaks", "--rounds", "6", "--engine", "venv", "--output", run)
    code, answer, stderr = compare(tfcompare, *SHARED, *flags, env=stub_cache)
    assert code == 0, stderr
    return answer


def test_calls_that_are_too_short_for_a_clock_have_no_verdict(odd: Answer) -> None:
    found = comparison(odd, "instant", "target", {"candidate": "2.0.0"})
    assert found["verdict"] == "inconclusive"
    assert "too short to be timed one by one" in found["reason"]


def test_calls_that_take_longer_and_longer_are_told_with_their_slope(odd: Answer) -> None:
    drifts = [arm["drift"] for arm in odd["arms"] if arm["workload"] == "leaks"]
    assert all(drift > 0.1 for drift in drifts)
    assert all(arm["drift"] is None for arm in odd["arms"] if arm["workload"] == "instant")


def test_a_container_a_replicate_has_the_limits_too(tfcompare: str, docker_base: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    flags = ("--isolation", "container", "--cpuset", "1", "--memory", "3g", "--rounds", "2", "--case", "whoami")
    answer: Answer
    code, answer, stderr = compare(tfcompare, *SHARED, *flags, "--base", docker_base, "--output", run)
    assert code == 0, stderr
    assert answer["run"]["engine"] == "docker"
    assert a_stream_a_replicate(run), (streams(run), told(run))
    assert {cpus for cpus, _, _ in told(run)} == {"1"}
    assert {cgroup for _, _, cgroup in told(run)} <= {str(3 * 2**30), "none"}
