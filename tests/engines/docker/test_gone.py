"""An engine that is not there, or not any more."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.engines.docker.conftest import MakeEngine, PrivateEngine, Start, containers
from tests.support.end_to_end import parse

RUN = ("run", "--versions", "1.14,2.0", "--suite", "smoke")
ENDLESS = ("--rounds", "1000", "--case", "naps", "--format", "json")


@pytest.fixture
def absent(tmp_path: Path) -> dict[str, str]:
    return {"DOCKER_HOST": f"unix://{tmp_path / 'nobody.sock'}"}


def test_absent_engine_that_was_asked_for_is_an_error(tfcompare: str, absent: dict[str, str], tmp_path: Path) -> None:
    done = run_command(tfcompare, *RUN, "--engine", "docker", "--output", tmp_path / "run", env=absent)
    assert done.returncode == 4
    assert done.stderr == (
        "tfcompare: no Docker engine answers (its socket does not exist); start it, set DOCKER_HOST, "
        "or use --engine venv\n"
    )
    assert not (tmp_path / "run").exists()


def test_absent_engine_is_replaced_by_virtual_environments_and_one_line_says_so(
    tfcompare: str, absent: dict[str, str], tmp_path: Path
) -> None:
    done = run_command(tfcompare, *RUN, "--dry-run", "--output", tmp_path / "run", env=absent)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "virtual environments" in line]
    assert len(told) == 1
    assert "(no Docker engine answers (its socket does not exist))" in told[0]
    assert not (tmp_path / "run").exists()


def test_engine_that_answers_is_taken_and_one_line_says_so(tfcompare: str, docker_base: str, tmp_path: Path) -> None:
    done = run_command(tfcompare, *RUN, "--dry-run", "--base", docker_base, "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("engine: Docker ")]
    assert len(told) == 1
    assert "--engine venv" in told[0]


def test_engine_that_dies_during_a_run_keeps_what_was_measured(
    tfcompare: str,
    private_stubs: PrivateEngine,
    start: Start,
    engine: MakeEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    going = start(*ENDLESS, env=private_stubs.env)
    try:
        going.until_measuring()
        private_stubs.kill()
        code, stdout, stderr = going.end()
    finally:
        private_stubs.kill()
        private_stubs.start()
    assert code == 4, stderr
    assert "the Docker engine stopped answering" in stderr
    assert f"what was measured before is kept: tfcompare report {going.out}" in stderr
    assert "Traceback" not in stderr
    done = run_command(tfcompare, "report", going.out, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == stdout
    arms = json.loads(done.stdout)["arms"]
    assert max(arm["rounds"] for arm in arms) >= 1
    assert "died" not in {arm["outcome"] for arm in arms if arm["rounds"]}, "it is not the workload that failed"

    monkeypatch.setenv("DOCKER_HOST", private_stubs.env["DOCKER_HOST"])
    assert engine().sweep()
    with closing(private_stubs.client()) as client:
        assert containers(client, going.out) == []


def test_a_run_is_continued_after_its_engine_was_stopped_in_order_and_started_again(
    tfcompare: str, private_stubs: PrivateEngine, stub_base: str, start: Start
) -> None:
    """An engine that is stopped ends its containers first."""
    going = start(*ENDLESS, env=private_stubs.env)
    try:
        going.until_measuring()
        private_stubs.end()
        code, stdout, stderr = going.end()
    finally:
        private_stubs.kill()
        private_stubs.start()
    assert code == 4, stderr
    assert "the Docker engine stopped answering" in stderr
    assert f"what was measured before is kept: tfcompare report {going.out}" in stderr
    assert "Traceback" not in stderr
    arms = json.loads(stdout)["arms"]
    assert "died" not in {arm["outcome"] for arm in arms}, "it is not a worker that failed"
    more = ("run", "--resume", going.out, "--rounds", "2", "--base", stub_base, "--format", "json")
    done = run_command(tfcompare, *more, env=private_stubs.env)
    assert done.returncode == 0, done.stderr
    assert "removed what runs that were killed had left behind: 2 containers" in done.stderr
    again = {(arm["target"], arm["params"]["which"]): arm for arm in parse(done)["arms"]}
    assert {arm["outcome"] for arm in again.values()} == {"measured"}
    assert all(again[arm["target"], arm["params"]["which"]]["rounds"] >= arm["rounds"] + 2 for arm in arms)
    with closing(private_stubs.client()) as client:
        assert containers(client, going.out) == []
