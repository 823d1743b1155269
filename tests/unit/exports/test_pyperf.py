"""pyperf's files, shown and compared by pyperf itself."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyperf
import pytest

from orchestrator.errors import ContractBroken, UsageError
from orchestrator.exports.pyperf import write
from orchestrator.results.run import Run, load_run
from tests.support.builders import MS, case, plan, rows, run_folder, write_stream
from tests.support.export_runs import BATCH, EAGER, FIT, FUNCTION, JIT, MID, NEW, OLD, ROUNDS, calls, ended


@pytest.fixture(scope="module")
def files(run: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    return write(run, tmp_path_factory.mktemp("out") / "pyperf")


def run_pyperf(*argv: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", *map(str, argv)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_a_file_a_version(files: Sequence[Path]):
    assert [path.name for path in files] == [f"{version}.json" for version in (OLD, MID, NEW)]


def test_pyperf_shows_a_version(files: Sequence[Path]):
    told = run_pyperf("show", "--metadata", files[1])
    for one in (EAGER, FUNCTION, JIT, FIT):
        assert one.label in told
    assert BATCH.label not in told
    assert "tfcompare_verdict: slower" in told
    assert "tfcompare_told: slower 4.00x (3.98-4.01) against 1.14.0" in told
    assert "python_version: 3.11.7" in told


def test_pyperf_compares_two_versions(files: Sequence[Path]):
    told = run_pyperf("compare_to", "--table", "--table-format=md", files[0], files[1])
    row = next(line for line in told.splitlines() if EAGER.label in line)
    assert "10.0 ms" in row
    assert "40.0 ms: 4.00x slower" in row
    assert JIT.label in told


def test_pyperf_checks_and_describes_a_file(files: Sequence[Path]):
    run_pyperf("check", files[2])
    assert f"Number of run with values: {len(ROUNDS)}" in run_pyperf("stats", files[2])


def test_a_run_is_a_replicate_with_the_calls_of_its_bursts_as_values_by_the_step(files: Sequence[Path]):
    suite = pyperf.BenchmarkSuite.load(str(files[0]))
    fit = suite.get_benchmark(FIT.label)
    assert fit.get_unit() == "second"
    assert fit.get_nrun() == len(ROUNDS)
    for number, one in zip(ROUNDS, fit.get_runs(), strict=True):
        assert one.get_metadata()["tfcompare_round"] == number
        walls = [wall / 10 / 1e9 for wall in calls(30.0, number, 0.004)]
        assert len(one.values) == 1
        assert min(walls) <= one.values[0] <= max(walls)
        assert one.get_loops() == 10 * len(walls)


def test_the_calls_before_the_bursts_are_warmups_and_the_build_is_none(files: Sequence[Path]):
    eager = pyperf.BenchmarkSuite.load(str(files[0])).get_benchmark(EAGER.label)
    assert {one.warmups for one in eager.get_runs()} == {((1, 0.05), (1, 0.02), (1, 0.01))}
    assert eager.get_runs()[0].get_metadata()["mem_max_rss"] == 2048 * 1024


def test_the_json_is_strict(files: Sequence[Path]):
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    for path in files:
        assert json.loads(path.read_text(), parse_constant=refuse)["version"] == "1.0"


def test_a_time_of_nothing_is_a_nanosecond(tmp_path: Path):
    """pyperf refuses a file with a zero in it."""
    only = case("quick")
    folder = run_folder(tmp_path / "run", plan([only], (OLD, NEW)))
    for number, version in enumerate((OLD, NEW), 1):
        write_stream(folder.settled / f"{version}-1.arrow", [rows(only, version, replicate=number, bursts=(0, 0, 0))])
    old, _new = write(load_run(folder.path), tmp_path / "out")
    assert pyperf.BenchmarkSuite.load(str(old)).get_benchmark("quick").get_values() == (1e-9,)


def test_a_version_in_several_streams_is_one_file(tmp_path: Path):
    """A worker that was started again opened the next part."""
    only = case("restarted")
    folder = run_folder(tmp_path / "run", plan([only], (OLD, NEW)))
    for part in range(1, 4):
        batch = rows(only, NEW, round=part, replicate=part, bursts=(part * MS,) * 2)
        write_stream(folder.settled / f"{NEW}-{part}.arrow", [batch])
    (path,) = write(load_run(folder.path), tmp_path / "out")
    values = pyperf.BenchmarkSuite.load(str(path)).get_benchmark("restarted").get_values()
    assert values == pytest.approx((1e-3, 2e-3, 3e-3))


def test_a_run_without_a_time_has_nothing_for_pyperf(tmp_path: Path):
    folder = run_folder(tmp_path / "run", plan([EAGER], (OLD, NEW)))
    folder.record(ended(EAGER, OLD, "died", reason="it broke"))
    with pytest.raises(UsageError, match="no time in any version"):
        write(load_run(folder.path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_where_the_times_cannot_be_read_that_is_what_is_said(tmp_path: Path):
    folder = run_folder(tmp_path / "run", plan([EAGER], (OLD, NEW)))
    (folder.settled / f"{OLD}-1.arrow").write_bytes(b"no stream")
    with pytest.raises(ContractBroken, match="is not an Arrow stream"):
        write(load_run(folder.path), tmp_path / "out")
