"""What goes wrong costs what it must and no more: messages, exit codes, and every other case's results kept."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from orchestrator.engines.venv import interpreters
from tests.conftest import REAL_CACHE, run_command
from tests.support.end_to_end import compare, outcomes, parse

OWN = Path(__file__).parent / "workloads"
VENV = ("--engine", "venv", "--versions", "1.14,2.0", "--rounds", "2", "--quiet")

pytestmark = pytest.mark.usefixtures("stubbed")


def own(*names: str) -> list[str]:
    return ["--workload-folder", str(OWN), *(part for name in names for part in ("--case", name))]


def test_broken_workloads_leave_the_others_measured(tfcompare: str, tmp_path: Path) -> None:
    names = ("raises_at_import", "raises_in_build", "raises_in_call", "crashes", "refuses", "fine[size=10]")
    code, answer, stderr = compare(tfcompare, *VENV, *own(*names), "--output", tmp_path / "run")
    found = outcomes(answer)
    assert code == 6
    for name in names[:4]:
        assert found[name, "1.14.0"] == found[name, "2.0.0"] == "died"
    assert (found["refuses", "1.14.0"], found["refuses", "2.0.0"]) == ("refused", "measured")
    assert found["fine", "1.14.0"] == found["fine", "2.0.0"] == "measured"
    reasons = {arm["workload"]: arm["reason"] for arm in answer["arms"]}
    assert reasons["raises_at_import"].startswith(
        "RuntimeError: broken at import (raised in import, at raises_at_import.py:"
    )
    built = "ValueError: broken in [bold]build[/bold] (raised in build, at raises_in_build.py:"
    assert reasons["raises_in_build"].startswith(built)
    assert "ZeroDivisionError" in reasons["raises_in_call"]
    assert reasons["crashes"].startswith("killed by SIGSEGV")
    assert "8 of 12 arms died" in stderr
    assert "Traceback" not in stderr
    table = run_command(tfcompare, "report", tmp_path / "run").stdout
    assert "broken in [bold]build[/bold]" in table.replace("\n", " ")
    assert "it needs TensorFlow 2" in table.replace("\n", " ")


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 2])
def test_a_worker_that_is_killed_once_costs_nothing_and_twice_its_arm(
    tfcompare: str, tmp_path: Path, kills: int
) -> None:
    """The next case is measured in any event."""
    announce = tmp_path / "announce"
    announce.touch()
    flags = [*VENV, *own("announces", "fine[size=10]"), "--format", "json", "--output", str(tmp_path / "run")]
    environment = {**os.environ, "TF_CPP_ANNOUNCE": str(announce)}
    with subprocess.Popen(
        [tfcompare, "run", *flags], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        killed: set[str] = set()
        for _ in range(kills):
            worker = wait_for_line(announce, process, killed)
            os.kill(int(worker), signal.SIGKILL)
            killed.add(worker)
        stdout, stderr = process.communicate(timeout=120)
    answer = json.loads(stdout)
    found = outcomes(answer)
    assert found["announces", "1.14.0"] == "measured"
    assert found["fine", "2.0.0"] == found["fine", "1.14.0"] == "measured"
    if kills == 1:
        assert process.returncode == 0, stderr
        assert found["announces", "2.0.0"] == "measured"
        assert {arm["rounds"] for arm in answer["arms"]} == {2}
    else:
        assert process.returncode == 6, stderr
        assert found["announces", "2.0.0"] == "died"
        [reason] = [arm["reason"] for arm in answer["arms"] if arm["outcome"] == "died"]
        assert "SIGKILL" in reason
    again = run_command(tfcompare, "report", tmp_path / "run", "--format", "json")
    assert parse(again)["arms"] == answer["arms"]


@pytest.mark.slow
def test_a_version_that_cannot_be_installed_ends_a_run_of_two_before_it_measures(
    tfcompare: str, tmp_path: Path
) -> None:
    nobody = ("--index-url", "http://127.0.0.1:9/simple")
    argv = ["run", "--engine", "venv", *own("fine[size=10]"), *nobody, "--output", str(tmp_path / "run")]
    done = run_command(tfcompare, *argv, "--versions", "2.13,2.12")
    assert done.returncode == 5, done.stderr
    said = " ".join(done.stderr.split())
    assert "too few versions for a comparison could be made ready: 2.12.1: " in said
    assert not (tmp_path / "run" / "plan.json").exists()


def wait_for_line(path: Path, process: "subprocess.Popen[str]", seen: Collection[str] = ()) -> str:
    """Wait for a whole line that was not seen before, and return it."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        whole = path.read_text().rpartition("\n")[0]
        if lines := [line for line in whole.splitlines() if line not in seen]:
            return lines[0]
        time.sleep(0.02)
    raise AssertionError(f"the run ended early: {process.communicate()}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_keeps_what_it_measured(tfcompare: str, tmp_path: Path, number: signal.Signals) -> None:
    announce = tmp_path / "announce"
    announce.touch()
    flags = ["--engine", "venv", "--versions", "1.14,2.0", "--rounds", "500", "--output", str(tmp_path / "run")]
    with subprocess.Popen(
        [tfcompare, "run", *flags, *own("announces")],
        env={**os.environ, "TF_CPP_ANNOUNCE": str(announce)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        worker = wait_for_line(announce, process)
        while len(announce.read_text().splitlines()) < 60:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; what was measured before is kept" in stderr
    assert "announces" in stdout
    assert not Path(f"/proc/{worker}").exists()
    report = run_command(tfcompare, "report", tmp_path / "run")
    assert report.returncode == 0
    assert "interrupted" in report.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_signals_that_follow_the_first_change_nothing(tfcompare: str, tmp_path: Path, number: signal.Signals) -> None:
    announce = tmp_path / "announce"
    announce.touch()
    (tmp_path / "temporary").mkdir()
    flags = ["--engine", "venv", "--versions", "1.14,2.0", "--rounds", "500", "--output", str(tmp_path / "run")]
    with subprocess.Popen(
        [tfcompare, "run", *flags, *own("announces")],
        env={**os.environ, "TF_CPP_ANNOUNCE": str(announce), "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for_line(announce, process)
        for _ in range(3):
            process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert '"kind":"finished"' in (tmp_path / "run" / "journal.jsonl").read_text()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_processes_of_workloads_end_with_them_and_no_death_goes_unnoticed(tfcompare: str, tmp_path: Path) -> None:
    names = ("closes_its_pipe", "dies_before_its_child", "leaves_a_daemon", "fine[size=10]")
    announce = tmp_path / "announce"
    code, answer, stderr = compare(
        tfcompare, *VENV, *own(*names), "--output", tmp_path / "run", env={"TF_CPP_ANNOUNCE": str(announce)}
    )
    assert code == 6, stderr
    found = outcomes(answer)
    for version in ("1.14.0", "2.0.0"):
        assert [found[name.partition("[")[0], version] for name in names] == ["died", "died", "measured", "measured"]
    reasons = {arm["workload"]: arm["reason"] for arm in answer["arms"] if arm["outcome"] == "died"}
    assert reasons == {
        "closes_its_pipe": "it closed its pipe to the worker and did not end; ended",
        "dies_before_its_child": ("killed by SIGKILL, sent by another process: this machine did not run out of memory"),
    }
    assert any("left processes running" in warning for warning in answer["warnings"])
    assert not any(Path(f"/proc/{pid}").exists() for pid in announce.read_text().split())


def test_case_that_no_version_can_run_says_why(tfcompare: str, tmp_path: Path) -> None:
    # Keras has had augmentation layers since TensorFlow 2.3.
    case = "augmentation[layer=flip]"
    done = run_command(
        tfcompare, "run", "--versions", "1.14,2.0", "--engine", "venv", "--rounds", "2", "--output", tmp_path / "run",
        "--case", case, "--format", "json", env=REAL_CACHE,
    )  # fmt: skip
    assert done.returncode == 3
    assert "no version can run what was selected" in done.stderr
    assert [arm["outcome"] for arm in parse(done)["arms"]] == ["refused", "refused"]


def test_bad_call_ends_before_any_work(tfcompare: str, tmp_path: Path) -> None:
    """By a process; tests/unit/cli has all bad calls."""
    done = run_command(tfcompare, "run", "--versions", "1.41,2.0", "--output", tmp_path / "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 1.15?" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_absent_engine_is_told_with_the_way_out(tfcompare: str, tmp_path: Path) -> None:
    gone = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    done = run_command(tfcompare, "run", "--versions", "1.14,2.0", "--engine", "docker", env=gone)
    assert done.returncode == 4
    assert "--engine venv" in done.stderr
    fallback = run_command(tfcompare, "run", "--versions", "1.14,2.0", "--dry-run", env=gone)
    assert fallback.returncode == 0
    assert "virtual environments" in fallback.stderr


@pytest.mark.parametrize("moment", ["pip-py3.7.txt", "1.14.0-cpu-py3.7.txt"], ids=["pip", "TensorFlow"])
def test_install_that_is_interrupted_ends_at_once(tfcompare: str, tmp_path: Path, moment: str) -> None:
    """SIGTERM during an install: exit code 130, no program of it left running, nothing half-made counts as made."""
    environment = {**os.environ, "TFCOMPARE_CACHE": str(tmp_path / "cache")}
    flags = ["--engine", "venv", "--versions", "1.14,2.0", "--output", str(tmp_path / "run")]
    with subprocess.Popen(
        [tfcompare, "run", *flags], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not any(moment in line for line in using(tmp_path / "cache")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert (stdout, "interrupted before anything was measured" in stderr) == ("", True)
    assert not list((tmp_path / "cache").glob("**/tfcompare.json"))
    # What pip had started is dying, but not ours to wait for.
    until = time.monotonic() + 2
    while using(tmp_path / "cache") and time.monotonic() < until:
        time.sleep(0.05)
    assert not using(tmp_path / "cache")


def using(folder: Path) -> list[str]:
    """The command lines that name a folder."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return [line for line in lines if str(folder) in line]


def test_missing_interpreter_leaves_nothing_to_compare(tfcompare: str, tmp_path: Path) -> None:
    """With nothing but a Python 3.11 in reach: 2.13 alone is not measured; the last line compares it with another."""
    found = interpreters.find_interpreter("3.11")
    assert found is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.11").symlink_to(found.path)
    reach = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "PYENV_ROOT": "/none", "UV_PYTHON_INSTALL_DIR": "/none"}
    # An environment that is ready brings its Python with it.
    reach["TFCOMPARE_CACHE"] = str(tmp_path / "cache")
    flags = ("--versions", "1.14,2.13", "--engine", "venv", "--suite", "smoke", "--rounds", "2")
    done = run_command(tfcompare, "run", *flags, "--no-python-downloads", "--output", tmp_path / "run", env=reach)
    assert (done.returncode, done.stdout) == (5, "")
    assert "1.14.0: it needs Python 3.7 or 3.6" in done.stderr
    assert "pyenv install 3.7" in done.stderr
    flags = "--engine venv --suite smoke --rounds 2 --no-python-downloads"
    assert done.stderr.splitlines()[-1] == f"tfcompare run --versions 2.13,2.21 {flags}"
