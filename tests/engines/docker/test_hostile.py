"""Workloads that attack: what they leave changes no file outside, no other version's result, and nothing silently."""

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run_command
from tests.engines.docker.conftest import Start
from tests.support.end_to_end import outcomes
from tests.support.hostile import CHECKS, attack

HOSTILE = Path(__file__).parent / "hostile"
FAULTS = Path(__file__).parents[2] / "faults" / "workloads"
NOBODY = 65534


def attacked(
    tfcompare: str, base: str, out: Path, *names: str, code: int = 0, folder: Path = HOSTILE
) -> tuple[dict[tuple[str, str], dict[str, Any]], dict[str, Any], str]:
    """The arms by workload and version, the whole answer, and stderr."""
    done = run_command(
        tfcompare, "run", "--versions", "1.14,2.0", "--engine", "docker", "--base", base, "--rounds", "2", "--format",
        "json", "--workload-folder", folder, *(word for name in names for word in ("--case", name)), "--output", out,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    answer = json.loads(done.stdout)
    return {(arm["workload"], arm["target"]): arm for arm in answer["arms"]}, answer, done.stderr


def journal(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]


def test_links_among_the_results_lead_nowhere(tfcompare: str, stub_base: str, tmp_path: Path) -> None:
    """At every name that a host might write, and in the place of the stream itself."""
    victim = Path("/var/tmp") / f"tfcompare-victim-{os.getpid()}"
    victim.write_text("precious")
    os.environ["TF_CPP_VICTIM"] = str(victim)
    try:
        _, _, stderr = attacked(tfcompare, stub_base, tmp_path / "run", "links", "innocent", code=7)
        assert victim.read_text() == "precious"
    finally:
        del os.environ["TF_CPP_VICTIM"]
        victim.unlink()
    assert not any(path.is_symlink() for path in (tmp_path / "run").rglob("*"))
    assert "it is a symbolic link" in stderr
    told = {entry["what"] for entry in journal(tmp_path / "run") if entry["kind"] == "discarded"}
    assert any(".2.0.0-1.arrow.tmp" in what for what in told)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can leave what makes others root")
def test_no_program_of_root_is_left_behind(tfcompare: str, stub_base: str, tmp_path: Path) -> None:
    arms, answer, _ = attacked(tfcompare, stub_base, tmp_path / "run", "setuid")
    assert {arm["outcome"] for arm in arms.values()} == {"measured"}
    run = tmp_path / "run"
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    left = [path for path in run.rglob("*") if path.is_file() and path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)]
    assert left == []
    assert any("unexpected files from the results of" in warning and "id" in warning for warning in answer["warnings"])
    looked = subprocess.run(
        ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "ls", run], capture_output=True
    )
    assert looked.returncode != 0


def test_a_worker_sees_no_results_but_its_own_and_speaks_for_no_other(
    tfcompare: str, stub_base: str, tmp_path: Path
) -> None:
    arms, answer, stderr = attacked(tfcompare, stub_base, tmp_path / "run", "forges", code=7)
    # In 1.14 the forged stream lies beside the true one, in 2.0 in its place: nothing of that worker counts. A worker
    # that had one replicate only has nothing to forge from.
    assert (arms["forges", "1.14.0"]["outcome"], arms["forges", "1.14.0"]["rounds"]) == ("measured", 2)
    assert arms["forges", "2.0.0"]["rounds"] < 2
    assert "target: its row names '1.14.0', and '2.0.0' wrote it" in stderr
    assert any("removed unexpected files from the results of 1.14.0: 1.14.0-9" in one for one in answer["warnings"])


def test_an_error_text_that_is_no_utf8_costs_its_arm_alone(tfcompare: str, stub_base: str, tmp_path: Path) -> None:
    arms, _, _ = attacked(tfcompare, stub_base, tmp_path / "run", "odd_name", "innocent", code=6)
    assert {arms["innocent", version]["outcome"] for version in ("1.14.0", "2.0.0")} == {"measured"}
    for version in ("1.14.0", "2.0.0"):
        assert arms["odd_name", version]["reason"].startswith("ValueError: cannot read caf?.npy (raised in build, at ")


def test_answers_that_cannot_be_true_cost_their_arm_alone(tfcompare: str, stub_base: str, tmp_path: Path) -> None:
    arms, _, _ = attacked(tfcompare, stub_base, tmp_path / "run", "lies", "innocent", code=6)
    assert {arms["innocent", version]["outcome"] for version in ("1.14.0", "2.0.0")} == {"measured"}
    assert {arms["lies", version]["outcome"] for version in ("1.14.0", "2.0.0")} == {"died"}


# What these two attack is on the host, whatever the engine.
OF_THE_HOST = ("flood", "loud")


@pytest.mark.parametrize(
    "attacker", [pytest.param(name, marks=[pytest.mark.long] if name in OF_THE_HOST else []) for name in CHECKS]
)
def test_what_is_sent_printed_and_written_without_end_costs_its_own_case(
    tfcompare: str, stub_base: str, tmp_path: Path, attacker: str
) -> None:
    CHECKS[attacker](tfcompare, tmp_path / "run", ("--engine", "docker", "--base", stub_base))


def test_no_replicate_reaches_the_pipe_of_its_worker(tfcompare: str, stub_base: str, tmp_path: Path) -> None:
    answer, _ = attack(
        tfcompare, tmp_path / "run", "flood[way=worker]", engine=("--engine", "docker", "--base", stub_base)
    )
    assert set(outcomes(answer).values()) == {"measured"}


def test_a_host_that_is_killed_amid_an_attack_leaves_a_run_that_is_read_safely(
    start: Start, tfcompare: str, tmp_path: Path
) -> None:
    going = start("--rounds", "1000", "--case", "naps")
    going.until_measuring()
    going.process.kill()
    going.process.communicate()
    for folder in (going.out / "results").iterdir():
        (folder / "link").symlink_to("/etc/passwd")
    done = run_command(tfcompare, "report", going.out, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert max(arm["rounds"] for arm in json.loads(done.stdout)["arms"]) >= 1


def test_processes_of_workloads_end_with_them_and_no_death_goes_unnoticed(
    tfcompare: str, stub_base: str, tmp_path: Path
) -> None:
    names = ("closes_its_pipe", "dies_before_its_child", "leaves_a_daemon", "fine[size=10]")
    arms, answer, _ = attacked(tfcompare, stub_base, tmp_path / "run", *names, code=6, folder=FAULTS)
    for version in ("1.14.0", "2.0.0"):
        assert arms["closes_its_pipe", version]["reason"] == "it closed its pipe to the worker and did not end; ended"
        assert arms["dies_before_its_child", version]["reason"].startswith("killed by SIGKILL")
        assert arms["leaves_a_daemon", version]["outcome"] == arms["fine", version]["outcome"] == "measured"
    assert {entry["target"] for entry in journal(tmp_path / "run") if entry["kind"] == "strays"} == {"1.14.0", "2.0.0"}
    assert any("left processes running" in warning for warning in answer["warnings"])
