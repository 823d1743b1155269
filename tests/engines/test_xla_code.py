"""--keep-xla-code in real TensorFlows: the first replicate of a version compiles, and the others load its code."""

import re
from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.support.end_to_end import compare

# It tells which files XLA has kept, and when they were written, before and after its first call.
WORKLOAD = """
import os
import re

PARAMS = {}


def list_kept():
    found = re.search('cache_directory="(.*)"', os.environ.get("TF_XLA_FLAGS", ""))
    if not found:
        return "none"
    folder = found.group(1).replace(chr(92) + '"', '"')
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    return ",".join(sorted(f"{os.path.basename(path)}@{os.stat(path).st_mtime_ns}" for path in paths)) or "empty"


def build(tf, params):
    @tf.function(jit_compile=True)
    def work(value):
        for _ in range(20):
            value = tf.sin(value) @ value / 64.0
        return value

    told = []

    def step():
        before = list_kept() if not told else ""
        found = work(tf.ones((64, 64)))
        if not told:
            told.append(1)
            print(f"kept before={before} after={list_kept()}.", flush=True)
        return found

    return step
"""
FLAGS = ("--case", "compiled", "--rounds", "2", "--metric", "first")
VERSIONS = ("2.13", "2.20")


def told(run: Path, version: str) -> list[tuple[str, str]]:
    """What XLA had kept before and after each first call of a version."""
    text = (run / "logs" / f"worker-{version}.log").read_text()
    return re.findall(r"kept before=(\S+) after=(\S+)\.$", text, re.MULTILINE)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / 'it\'s "own"'
    folder.mkdir()
    (folder / "compiled.py").write_text(WORKLOAD)
    return folder


@pytest.fixture(params=["venv", pytest.param("docker", marks=pytest.mark.docker)])
def engine(request: pytest.FixtureRequest) -> tuple[str, ...]:
    base = ("--base", request.getfixturevalue("docker_base")) if request.param == "docker" else ()
    return ("--engine", request.param, *base)


def test_the_first_replicate_compiles_and_the_others_load_its_code(
    tfcompare: str, own: Path, engine: tuple[str, ...]
) -> None:
    run = own / "run"
    flags = ("--versions", ",".join(VERSIONS), "--workload-folder", own, *FLAGS, "--keep-xla-code", "--output", run)
    exit_code, answer, stderr = compare(tfcompare, *map(str, flags), *engine)
    assert exit_code == 0, stderr
    (first, code), *others = told(run, "2.20.0")
    assert first == "empty"
    assert code not in ("empty", "none")
    # XLA would write what it compiles in place of what is there.
    assert others
    assert {*others} == {(code, code)}
    assert {*told(run, "2.13.0")} == {("none", "none")}
    assert "XLA compiles in every replicate of 2.13.0: it keeps its code from 2.16 on, " in " ".join(answer["warnings"])
    assert not (run / "xla").exists()


def test_code_that_a_stranger_left_in_a_run_reaches_no_worker(tfcompare: str, own: Path) -> None:
    run = own / "run"
    flags = ("--versions", "2.16,2.20", "--workload-folder", own, *FLAGS, "--engine", "venv", "--keep-xla-code")
    exit_code, _, stderr = compare(tfcompare, *map(str, flags), "--output", str(run))
    assert exit_code == 0, stderr
    before = len(told(run, "2.20.0"))
    (run / "xla" / "2.20.0").mkdir(parents=True)
    (run / "xla" / "2.20.0" / "code.pb").touch()
    done = run_command(tfcompare, "run", "--resume", run, "--rounds", "2", "--workload-folder", own)
    assert done.returncode == 0, done.stderr
    found = told(run, "2.20.0")[before:]
    assert found[0][0] == "empty"
    assert not any("code.pb" in word for each in found for word in each)
    assert not (run / "xla").exists()


def test_what_else_a_workload_puts_there_is_removed_with_it(tfcompare: str, own: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    links = f"""
    os.symlink({str(tmp_path / "kept")!r}, os.path.join(folder, f"link-{{len(os.listdir(folder))}}"))
    os.makedirs(os.path.join(folder, f"deep-{{len(os.listdir(folder))}}", *["a"] * 7), mode=0o500)
"""
    (own / "compiled.py").write_text(WORKLOAD.replace("    paths = [", f"{links}    paths = ["))
    flags = ("--versions", "2.16,2.20", "--workload-folder", own, *FLAGS, "--engine", "venv", "--keep-xla-code")
    exit_code, _, stderr = compare(tfcompare, *map(str, flags), "--output", str(own / "run"))
    assert exit_code == 0, stderr
    assert not (own / "run" / "xla").exists()
    assert (tmp_path / "kept" / "file").exists()


def test_a_workload_that_fills_the_folder_loses_its_worker(tfcompare: str, own: Path) -> None:
    many = """
    for number in range(5001):
        open(os.path.join(folder, str(number)), "w").close()
"""
    (own / "compiled.py").write_text(WORKLOAD.replace("    paths = [", f"{many}    paths = ["))
    flags = ("--versions", "2.16,2.20", "--workload-folder", own, *FLAGS, "--engine", "venv", "--keep-xla-code")
    exit_code, answer, _ = compare(tfcompare, *map(str, flags), "--output", str(own / "run"))
    assert exit_code == 6
    reasons = [arm["reason"] for arm in answer["arms"]]
    assert all("the folder for the code of XLA holds more than 5000 files" in reason for reason in reasons), reasons


def test_without_the_flag_nothing_is_kept(tfcompare: str, own: Path) -> None:
    run = own / "run"
    flags = ("--versions", "2.16,2.20", "--workload-folder", own, *FLAGS, "--engine", "venv", "--output", run)
    exit_code, _, stderr = compare(tfcompare, *map(str, flags))
    assert exit_code == 0, stderr
    assert {each for version in ("2.16.2", "2.20.0") for each in told(run, version)} == {("none", "none")}
