"""What a user's slip and a look at the help cost: nothing of what measures, reads runs or draws is imported."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from orchestrator.cli import main
from tests.conftest import ROOT

HEAVY = ("docker", "duckdb", "jinja2", "numpy", "pandas", "pyarrow", "scipy", "tomlkit")
CALLS = {
    "help": (["--help"], 0, "Is my code faster"),
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
    "an unknown export": (["export", ".", "--format", "cvs"], 2, "did you mean csv?"),
    "a bad column": (["report", ".", "--columns", "tmie"], 2, "did you mean time?"),
    "a bad order": (["report", ".", "--sort", "tiem"], 2, "did you mean time?"),
    "an export for a report": (["report", ".", "--format", "csv"], 2, "tfcompare export"),
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


# What a shell asks for at a Tab, with a word that has to be among the answers.
TABS = {
    "commands": ("tfcompare ", "reproduce"),
    "flags": ("tfcompare run --", "--versions"),
    "versions": ("tfcompare run --versions 2.", "2.13"),
    "patches": ("tfcompare run --versions 2.13.", "2.13.1"),
    "workloads": ("tfcompare run --case pre", "predict"),
    "parameters": ("tfcompare run --case predict[", "predict[state="),
    "values": ("tfcompare run --case predict[state=", "predict[state=compiled]"),
    "suites": ("tfcompare run --suite ", "studies"),
    "claims": ("tfcompare reproduce predict-", "predict-after-compile"),
    "suites of claims": ("tfcompare reproduce --suite ", "reported"),
    "columns": ("tfcompare report --columns ", "verdict"),
    "kinds": ("tfcompare report --only ", "slower"),
    "outcomes": ("tfcompare run --fail-on slower,", "slower,inconclusive"),
    "exports": ("tfcompare export run --format ", "junit"),
    "runs": ("tfcompare report runs/", "runs/first"),
}
# Validation takes 80 ms, and what computes a quarter of a second.
NOT_AT_A_TAB = (*HEAVY, "pydantic")


@pytest.mark.parametrize(("line", "word"), TABS.values(), ids=TABS)
def test_a_tab_waits_for_nothing_that_validates_or_computes(tmp_path, monkeypatch, line: str, word: str):
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (tmp_path / "runs" / "first" / "plan.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    # A shell with one word per argument, as zsh is.
    code, text, imported = call(["completion", "zsh", "--", *line.split(" ")[1:]], NOT_AT_A_TAB)
    assert (code, imported) == (0, [])
    assert word in [each.strip() for each in text.splitlines()]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_only_what_is_shown_of_a_command_is_imported(shell: str):
    modules = tuple(f"orchestrator.cli.{module}" for module in set(main.COMMANDS.values()) - {"run", "completion"})
    code, text, imported = call(["completion", shell, "--", "ru"], modules)
    assert (code, imported) == (0, [])
    assert text.startswith("run")


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


def test_a_checkout_that_is_not_installed_says_so(tmp_path: Path):
    """Its dependencies are there, without the record that tfcompare is installed."""
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith(("tfcompare", "_tfcompare")):
            (tmp_path / package.name).symlink_to(package)
    done = subprocess.run(
        [sys.executable, "-S", "-m", "orchestrator", "--version"],
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"}, cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tfcompare unknown (not installed) (contract ")
