"""What a user's slip and a look at the help cost: nothing of what measures, reads runs or draws is imported."""

import subprocess
import sys

import pytest

from orchestrator.cli import main

HEAVY = ("altair", "docker", "duckdb", "jinja2", "numpy", "pandas", "pyarrow", "scipy", "tomlkit")
CALLS = {
    "help": (["--help"], 0, "Is my TensorFlow"),
    "help of a command": (["run", "--help"], 0, "--no-python-downloads"),
    "version": (["--version"], 0, "tfcompare "),
    "versions": (["list", "versions"], 0, "2.13"),
    "an unknown command": (["imagse"], 2, "images"),
    "an unknown flag": (["run", "--round", "1"], 2, "No such option"),
    "an unknown engine": (["run", "--versions", "1.14,2.0", "--engine", "podman"], 2, "unknown engine 'podman'"),
    "an unknown version": (["run", "--versions", "1.14,2.130"], 2, "did you mean 2.13"),
    "an unknown version to profile": (["profile", "--versions", "2.130"], 2, "did you mean 2.13"),
    "an unknown version of a night": (["nightly", "run", "--versions", "2.130"], 2, "did you mean 2.13"),
    "an unknown version of an image": (["images", "build", "2.130"], 2, "did you mean 2.13"),
    "an unknown suite": (["run", "--versions", "1.14,2.0", "--suite", "smoek"], 2, "did you mean smoke?"),
    "an unknown claim": (["reproduce", "predict-after"], 2, "predict-after"),
    "an unknown end": (["bisect", "--good", "1.14", "--bad", "2.130", "--case", "power"], 2, "did you mean 2.13"),
    "an unknown export": (["export", ".", "--to", "cvs"], 2, "did you mean csv?"),
    "a bad duration": (["run", "--versions", "1.14,2.0", "--budget", "soon"], 2, "a duration"),
}
# The last line of stdout says what was imported.
PROGRAM = """
import sys
from orchestrator.cli import main
code = main.call()
print(*(name for name in {names} if name in sys.modules))
sys.exit(code)
"""


def call(argv: list[str], names: tuple[str, ...]) -> tuple[int, str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(names=names), *argv], capture_output=True, text=True, timeout=60
    )
    *lines, imported = done.stdout.splitlines()
    return done.returncode, "\n".join(lines) + done.stderr, imported.split()


@pytest.mark.parametrize(("argv", "code", "words"), CALLS.values(), ids=CALLS)
def test_what_measures_nothing_imports_nothing_of_what_measures(argv: list[str], code: int, words: str):
    left, text, imported = call(argv, HEAVY)
    assert (left, imported) == (code, [])
    assert words in text


@pytest.mark.parametrize("argv", [["--help"], ["--version"]])
def test_help_and_version_do_without_validation(argv: list[str]):
    assert call(argv, ("pydantic",))[2] == []


@pytest.mark.parametrize(("argv", "code"), [(["list", "versions"], 0), (["list", "versionz"], 2), (["imagse"], 2)])
def test_a_call_imports_no_module_of_another_command(argv: list[str], code: int):
    others = tuple(f"orchestrator.cli.{module}" for module in main.COMMANDS.values() if module != argv[0])
    left, _, imported = call(argv, others)
    assert (left, imported) == (code, [])


def test_an_unknown_version_is_refused_before_anything_is_planned():
    assert call(["run", "--versions", "1.14,2.130"], ("orchestrator.plan.request",))[2] == []


def test_the_version_names_the_tool_its_contract_and_its_python():
    from importlib.metadata import version
    from platform import python_version

    from workloads.contract import FINGERPRINT

    code, text, _ = call(["--version"], ())
    assert code == 0
    assert text == f"tfcompare {version('tfcompare')} (contract {FINGERPRINT}, Python {python_version()})"
