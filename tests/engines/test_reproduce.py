"""Claims tested for real: what was found in 2.0 is found here, and is not found where it is not said to be."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run_command

CLAIMS = ("predict-after-compile", "predict-compiled-retraces", "xla-on-gpu")
# They need two more versions.
LATER_CLAIMS = ("non-strict-execution", "python-scalars-retrace", "graph-for-small-ops")
Answer = dict[str, Any]


def reproduced(tfcompare: str, *flags: str | Path) -> Answer:
    done = run_command(tfcompare, "reproduce", *flags, "--format", "json")
    assert done.returncode == 0, done.stderr
    answer: Answer = json.loads(done.stdout)
    assert answer["schema"] == "tfcompare.claims/1"
    return {claim["claim"]: claim for claim in answer["claims"]}


@pytest.fixture(scope="module")
def run(tfcompare: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(tfcompare, tmp_path_factory.mktemp("claims") / "run", *CLAIMS)


@pytest.fixture(scope="module")
def later_run(tfcompare: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(tfcompare, tmp_path_factory.mktemp("later") / "run", *LATER_CLAIMS)


def measured(tfcompare: str, out: Path, *claims: str) -> Path:
    reproduced(tfcompare, *claims, "--engine", "venv", "--rounds", "4", "--output", out)
    return out


def claims_of(tfcompare: str, run: Path) -> Answer:
    done = run_command(tfcompare, "report", run, "--format", "json")
    return {claim["claim"]: claim for claim in json.loads(done.stdout)["claims"]}


def arms_of(tfcompare: str, run: Path) -> set[tuple[str, str]]:
    done = run_command(tfcompare, "report", run, "--table", "verdicts", "--format", "json")
    return {(arm["workload"], arm["target"]) for arm in json.loads(done.stdout)["arms"]}


@pytest.fixture(scope="module")
def found(tfcompare: str, run: Path) -> Answer:
    return claims_of(tfcompare, run)


@pytest.fixture(scope="module")
def found_later(tfcompare: str, later_run: Path) -> Answer:
    return claims_of(tfcompare, later_run)


def test_predict_after_compile_is_reproduced(found: Answer) -> None:
    claim = found["predict-after-compile"]
    # How much slower depends on the processor, and its control may be too noisy to tell.
    assert claim["checks"][0]["verdict"] in ("reproduced", "reproduced, smaller")
    assert claim["ci_low"] > 1
    assert claim["targets"] == ["2.0.0", "1.14.0"]


def test_what_1_14_did_not_have_is_not_found_there(found: Answer) -> None:
    control = found["predict-after-compile"]["checks"][1]
    assert (control["below"], control["ours"], control["published"]) == (1.25, True, None)
    assert control["verdict"] in ("reproduced", "inconclusive")
    assert control["ratio"] < 2


def test_traces_are_counted(found: Answer) -> None:
    assert found["predict-compiled-retraces"]["verdict"] == "reproduced"


@pytest.mark.long
def test_traces_of_python_scalars_are_counted(found_later: Answer) -> None:
    assert found_later["python-scalars-retrace"]["verdict"] == "reproduced"
    metrics = [check["metric"] for check in found_later["python-scalars-retrace"]["checks"]]
    assert sorted(set(metrics)) == ["time", "traces_per_call"]


@pytest.mark.long
def test_a_statement_that_checks_itself_holds(found_later: Answer) -> None:
    assert found_later["non-strict-execution"]["verdict"] == "reproduced"
    assert found_later["non-strict-execution"]["ratio"] is None


def test_what_needs_a_gpu_says_so(found: Answer) -> None:
    assert found["xla-on-gpu"]["verdict"] == "needs a GPU"


def test_only_the_arms_that_claims_name_are_measured(tfcompare: str, run: Path) -> None:
    assert arms_of(tfcompare, run) == {("predict", "1.14.0"), ("predict", "2.0.0")}


@pytest.mark.long
def test_each_claim_brings_its_own_versions(tfcompare: str, later_run: Path) -> None:
    named = {(name, version) for name in ("semantics", "tracing") for version in ("2.0.0", "2.13.0", "2.17.1")}
    assert arms_of(tfcompare, later_run) == named | {("power", "2.17.1")}


def test_the_table_says_what_was_expected(tfcompare: str, run: Path) -> None:
    shown = run_command(tfcompare, "report", run).stdout
    assert "predict becomes slower after compile in TensorFlow 2.0" in shown
    assert "published 6.8x" in shown
    assert "1 needs a GPU" in shown


@pytest.mark.long
def test_the_same_on_docker(tfcompare: str, docker_base: str, tmp_path: Path) -> None:
    flags = ("--engine", "docker", "--base", docker_base, "--rounds", "4", "--output", tmp_path / "run")
    found = reproduced(tfcompare, "predict-after-compile", *flags)
    assert found["predict-after-compile"]["checks"][0]["verdict"] in ("reproduced", "reproduced, smaller")


def test_claims_are_listed_without_measuring(tfcompare: str) -> None:
    listed = run_command(tfcompare, "reproduce", "--list", "--suite", "studies")
    assert listed.returncode == 0
    assert "predict-after-compile" in listed.stdout
    unknown = run_command(tfcompare, "reproduce", "predict-after-compil")
    assert unknown.returncode == 2
    assert "did you mean predict-after-compile" in unknown.stderr
