"""Claims tested for real: what was found in 2.0 is found here, and is not found where it is not said to be."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run_command

CLAIMS = ("predict-after-compile", "predict-compiled-retraces", "non-strict-execution", "python-scalars-retrace",
          "graph-for-small-ops", "xla-on-gpu")  # fmt: skip
Answer = dict[str, Any]


def reproduced(tfcompare: str, *flags: str | Path) -> Answer:
    done = run_command(tfcompare, "reproduce", *flags, "--format", "json")
    assert done.returncode == 0, done.stderr
    answer: Answer = json.loads(done.stdout)
    assert answer["schema"] == "tfcompare.claims/1"
    return {claim["claim"]: claim for claim in answer["claims"]}


@pytest.fixture(scope="module")
def run(tfcompare: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("claims") / "run"
    reproduced(tfcompare, *CLAIMS, "--engine", "venv", "--rounds", "4", "--output", out)
    return out


@pytest.fixture(scope="module")
def found(tfcompare: str, run: Path) -> Answer:
    done = run_command(tfcompare, "report", run, "--format", "json")
    return {claim["claim"]: claim for claim in json.loads(done.stdout)["claims"]}


def test_predict_after_compile_is_reproduced(found: Answer) -> None:
    claim = found["predict-after-compile"]
    # How much slower depends on the processor, and its control may be too noisy to tell.
    assert claim["checks"][0]["verdict"] in ("reproduced", "reproduced, smaller")
    assert claim["ci_low"] > 1
    assert claim["versions"] == ["2.0.0", "1.14.0"]


def test_what_1_14_did_not_have_is_not_found_there(found: Answer) -> None:
    control = found["predict-after-compile"]["checks"][1]
    assert (control["below"], control["ours"], control["published"]) == (1.25, True, None)
    assert control["verdict"] in ("reproduced", "inconclusive")
    assert control["ratio"] < 2


def test_traces_are_counted(found: Answer) -> None:
    assert found["predict-compiled-retraces"]["verdict"] == "reproduced"
    assert found["python-scalars-retrace"]["verdict"] == "reproduced"
    metrics = [check["metric"] for check in found["python-scalars-retrace"]["checks"]]
    assert sorted(set(metrics)) == ["steady", "traces_per_call"]


def test_a_statement_that_checks_itself_holds(found: Answer) -> None:
    assert found["non-strict-execution"]["verdict"] == "reproduced"
    assert found["non-strict-execution"]["ratio"] is None


def test_what_needs_a_gpu_says_so(found: Answer) -> None:
    assert found["xla-on-gpu"]["verdict"] == "needs a GPU"


def test_only_the_arms_that_claims_name_are_measured(tfcompare: str, run: Path) -> None:
    done = run_command(tfcompare, "report", run, "--table", "verdicts", "--format", "json")
    arms = {(arm["workload"], arm["version"]) for arm in json.loads(done.stdout)["arms"]}
    assert arms == {
        ("predict", "1.14.0"), ("predict", "2.0.0"), ("semantics", "2.0.0"), ("semantics", "2.13.0"),
        ("semantics", "2.17.1"), ("tracing", "2.0.0"), ("tracing", "2.13.0"), ("tracing", "2.17.1"),
        ("power", "2.17.1"),
    }  # fmt: skip


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
