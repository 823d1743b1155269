"""asv's results folder, read back by asv's own classes."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from asv import util
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.machine import Machine, iter_machine_files
from asv.results import Results, format_benchmark_result, iter_results
from asv_runner.statistics import get_err

from orchestrator.exports import asv
from orchestrator.results.run import Run, load_run
from tests.support.builders import case, evaluation, manifest, plan, run_folder, target, unmeasured
from tests.support.export_runs import BATCH, CASES, EAGER, FIT, JIT, MID, NEW, OLD, ROUNDS, VERSIONS, calls, of_scene

POWER, LOOP = "tfcompare.power", "tfcompare.train_loop"


@pytest.fixture(scope="module")
def folder(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "asv"
    files = asv.write(run, folder)
    assert sorted(files) == sorted(path for path in folder.rglob("*") if path.is_file())
    return folder


@pytest.fixture(scope="module")
def benchmarks(folder: Path) -> Benchmarks:
    conf = Config()
    conf.results_dir = str(folder)
    conf.benchmark_dir = str(folder)
    return Benchmarks.load(conf)


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Results]:
    return {one.params["tensorflow"]: one for one in iter_results(str(folder))}


def test_the_machine_is_known_by_its_stable_id(folder: Path):
    (path,) = iter_machine_files(str(folder))
    machine = util.load_json(path, Machine.api_version)
    assert set(machine) == {name for name, _ in Machine.fields}
    assert (machine["machine"], machine["cpu"], machine["num_cpu"]) == ("machine-0123456789ab", "A CPU", "4")


def test_a_workload_is_a_benchmark_with_its_parameters(benchmarks: Benchmarks):
    assert set(benchmarks) == {f"{name}{of}" for name in (POWER, LOOP) for of in ("", ".first", ".memory")}
    assert benchmarks[POWER]["param_names"] == ["style"]
    assert benchmarks[POWER]["params"] == [["'eager'", "'function'", "'jit'"]]
    assert benchmarks[LOOP]["param_names"] == ["loop", "model"]
    assert (benchmarks[LOOP]["type"], benchmarks[LOOP]["unit"]) == ("time", "seconds")
    assert (benchmarks[f"{LOOP}.first"]["type"], benchmarks[f"{LOOP}.first"]["unit"]) == ("time", "seconds")
    assert (benchmarks[f"{LOOP}.memory"]["type"], benchmarks[f"{LOOP}.memory"]["unit"]) == ("peakmemory", "bytes")


def test_other_metrics_come_back_in_their_own_units(results: dict[str, Results], benchmarks: Benchmarks):
    memory = results[OLD].get_result_value(f"{POWER}.memory", benchmarks[f"{POWER}.memory"]["params"])
    assert memory == [2048 * 1024.0, 2048 * 1024.0, None]
    first = results[OLD].get_result_value(f"{POWER}.first", benchmarks[f"{POWER}.first"]["params"])
    assert first == [pytest.approx(0.05), pytest.approx(0.05), None]


def test_each_version_is_a_result_of_a_commit_of_its_own(folder: Path, results: dict[str, Results]):
    assert set(results) == set(VERSIONS)
    hashes = [results[version].commit_hash for version in VERSIONS]
    assert len(set(hashes)) == 3
    assert {len(one) for one in hashes} == {40}
    assert hashes[0] == asv.commit_hash(target(OLD), "y")
    assert (results[MID].params["python"], results[MID].env_name) == ("3.11.7", "venv-py3.11.7")
    assert sorted(path.name for path in folder.glob("machine-*/*-venv*.json")) == sorted(
        f"{one[:8]}-venv-py3.11.7.json" for one in hashes
    )


def test_the_hash_stays_while_version_and_lock_stay_and_changes_with_either():
    assert asv.commit_hash(target(OLD), "y") == asv.commit_hash(target(OLD), "y")
    assert (
        len({asv.commit_hash(target(OLD), "y"), asv.commit_hash(target(OLD), "z"), asv.commit_hash(target(MID), "y")})
        == 3
    )


def test_values_come_back_at_their_parameters_in_seconds(run: Run, results: dict[str, Results], benchmarks: Benchmarks):
    """And null where nothing was measured, be it refused or dead."""
    medians = {(arm.case, arm.target): arm.time_ms for arm in run.arms}
    for version, result in results.items():
        assert result.get_result_keys(benchmarks) == set(benchmarks)
        for name, params in ((POWER, ("style",)), (LOOP, ("loop", "model"))):
            values = result.get_result_value(name, benchmarks[name]["params"])
            at = dict(zip(itertools.product(*benchmarks[name]["params"]), values, strict=True))
            for one in CASES:
                if tuple(dict(one.params)) == params:
                    median_ms = medians[one, target(version)]
                    found = at[tuple(repr(value) for _, value in one.params)]
                    assert found == (None if median_ms is None else pytest.approx(median_ms / 1e3))
    assert results[OLD].get_result_value(POWER, benchmarks[POWER]["params"])[2] is None
    assert results[NEW].get_result_value(LOOP, benchmarks[LOOP]["params"])[1] is None


def test_samples_are_the_medians_of_the_replicates_and_the_statistics_theirs(
    results: dict[str, Results], benchmarks: Benchmarks
):
    samples = results[OLD].get_result_samples(LOOP, benchmarks[LOOP]["params"])
    assert samples[0] == pytest.approx([sorted(calls(30.0, number, 0.004))[1] / 1e10 for number in ROUNDS])
    stats = results[OLD].get_result_stats(LOOP, benchmarks[LOOP]["params"])[0]
    assert (stats["repeat"], stats["number"]) == (len(ROUNDS), 1)
    assert stats["ci_99_a"] < stats["q_25"] < stats["q_75"] < stats["ci_99_b"]
    assert 0 < get_err(0.003, stats) < 0.0001
    assert results[NEW].get_result_stats(LOOP, benchmarks[LOOP]["params"])[1] in (None, {})


def test_asv_prints_what_it_read(results: dict[str, Results], benchmarks: Benchmarks):
    info, details = format_benchmark_result(results[OLD], benchmarks[POWER])
    assert info == "1/3 failed"
    assert "10.0" in details
    assert "eager" in details


def test_every_file_is_strict_json(folder: Path):
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    for path in folder.rglob("*.json"):
        assert "version" in json.loads(path.read_text(), parse_constant=refuse)


def test_a_case_that_lacks_a_parameter_has_none_for_it(tmp_path: Path):
    short, long = case("mixed", style="a"), case("mixed", style="a", size="1")
    asked = plan([short, long])
    arms = tuple(unmeasured(one, version, "died", "it broke") for one in asked.cases for version in asked.targets)
    asv.write(of_scene(evaluation(plan=asked, arms=arms, comparisons=())), tmp_path / "asv")
    found = json.loads((tmp_path / "asv" / "benchmarks.json").read_text())["tfcompare.mixed"]
    assert (found["param_names"], found["params"]) == (["style", "size"], [["'a'"], ["None", "'1'"]])


def test_parameters_that_would_span_too_much_give_way_to_the_cases(tmp_path: Path):
    """Correlated parameters: a product of a hundred to the third, of which a hundred combinations exist."""
    cases = [case("wide", a=f"{number}", b=f"{number}", c=f"{number}") for number in range(100)]
    asked = plan(cases)
    arms = tuple(unmeasured(one, version, "died", "it broke") for one in cases for version in asked.targets)
    files = asv.write(of_scene(evaluation(plan=asked, arms=arms, comparisons=())), tmp_path / "asv")
    found = json.loads((tmp_path / "asv" / "benchmarks.json").read_text())["tfcompare.wide"]
    assert found["param_names"] == ["case"]
    assert found["params"] == [[repr(one.label) for one in cases]]
    assert sum(path.stat().st_size for path in files) < 100_000


def test_a_workload_called_version_does_not_break_the_format(tmp_path: Path):
    only = case("version")
    arms = tuple(unmeasured(only, version, "died", "it broke") for version in (OLD, NEW))
    asv.write(of_scene(evaluation(plan=plan([only], (OLD, NEW)), arms=arms, comparisons=())), tmp_path / "asv")
    assert json.loads((tmp_path / "asv" / "benchmarks.json").read_text())["version"] == 2
    assert len(list(iter_results(str(tmp_path / "asv")))) == 2


def test_a_version_that_was_never_installed_has_a_result_without_values(tmp_path: Path):
    folder = run_folder(tmp_path / "run", plan([EAGER, FIT, JIT, BATCH], (OLD, NEW)))
    folder.write_manifest(manifest((OLD,)))
    found = load_run(folder.path)
    asv.write(found, tmp_path / "asv")
    (lost,) = [one for one in iter_results(str(tmp_path / "asv")) if one.params["tensorflow"] == NEW]
    assert (lost.params["python"], lost.commit_hash) == ("", asv.commit_hash(target(NEW), ""))
    assert set(lost.get_result_value(POWER, [["'eager'", "'jit'"]])) == {None}


def test_asv_compares_two_versions(folder: Path, tmp_path: Path):
    conf = {
        "version": 1, "project": "tensorflow", "project_url": "none", "repo": ".", "results_dir": str(folder),
        "benchmark_dir": "benchmarks", "env_dir": "env", "html_dir": "html",
    }  # fmt: skip
    (tmp_path / "asv.conf.json").write_text(json.dumps(conf))
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    subprocess.run(["git", *who, "commit", "--quiet", "--allow-empty", "-m", "."], cwd=tmp_path, check=True)
    hashes = [asv.commit_hash(target(version), "y")[:8] for version in (OLD, MID)]
    done = subprocess.run(
        [sys.executable, "-m", "asv", "compare", "--machine", "machine-0123456789ab", *hashes],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    of_times = [line for line in done.stdout.splitlines() if f"{POWER}(" in line]
    lines = {name: line for line in of_times for name in ("eager", "jit") if f"'{name}'" in line}
    assert "4.00" in lines["eager"]
    assert "failed" in lines["jit"]
