"""The flags of `tfcompare run` are read strictly: a refusal is an exit code and one line with what to write instead."""

import re
from pathlib import Path

import pytest

from orchestrator.catalog import active
from tests.conftest import ROOT
from tests.support.commands import called

BAD_CALLS = {
    "an unknown version": (["--versions", "1.14,2.130"], 2, "did you mean 2.13"),
    "a version that is nearly another": (["--versions", "1.41,2.0"], 2, "did you mean 1.15?"),
    "one version": (["--versions", "2.0"], 2, "at least two versions"),
    "a version by two names": (["--versions", "2.0,2.0.0"], 2, "named twice"),
    "an unknown suite": (["--suite", "smoek"], 2, "did you mean smoke?"),
    "an unknown workload": (["--case", "powr"], 2, "did you mean power?"),
    "an unknown value": (["--case", "predict[state=compile]"], 2, "did you mean compiled?"),
    "an unknown parameter": (["--case", "predict[stat=compiled]"], 2, "did you mean state?"),
    "a file for a case": (["--case", "mine/training.py"], 2, "--workload-folder mine --case training"),
    "an excluded case": (["--case", "train_loop[model=large,data=small]"], 3, "leaves that combination"),
    "an unknown format": (["--format", "jsno"], 2, "did you mean json?"),
    "a margin of nothing": (["--margin", "0"], 2, "--margin '0'"),
    "a margin of everything": (["--margin", "100"], 2, "--margin '100'"),
    "an unknown alarm": (["--fail-on", "slower,quicker"], 2, "choose from slower, faster, inconclusive, died"),
    "a gate that this run does not measure": (
        ["--metric", "traces", "--fail-on", "memory:more"],
        2,
        "--fail-on memory:more: the run does not compare memory; name it: --metric traces,memory",
    ),
    "a gate that takes more calls": (["--fail-on", "leak:more"], 2, "--metric first,memory,output,leak"),
    "a gate about a GPU": (["--fail-on", "gpu_memory:more"], 2, "a run on a CPU has no gpu_memory"),
    "a gate about first calls of a program": (
        ["--fail-on", "first:slower", "--", "python", "-c", "pass"],
        2,
        "a program after -- has no first",
    ),
    "a target that is no version": (["2.130"], 2, "did you mean 2.13"),
    "a change that does not exist": (["-t", "2.13 kreas=2"], 2, "unknown change 'kreas' (did you mean keras?)"),
    "a target twice": (["-t", "2.13 TF_X=1 as a", "-t", "2.13 TF_X=1 as b"], 2, "a and b are the same target"),
    "a GPU that nothing shows": (["--engine", "venv", "--gpu"], 4, "neither NVML nor nvidia-smi shows a GPU"),
    "a wheel that is not there": (["-t", "wheel=a-1-py3-none-any.whl as b"], 2, "No such file or directory"),
    "a program without its sign": (["python", "train.py"], 2, "To measure a program, put its command after --"),
    "a program that is not there": (["--", "python", "train.py"], 2, "there is no train.py in"),
    "a shell script that is not there": (["--dry-run", "--", "./train.sh"], 2, "there is no ./train.sh in"),
    "an option behind the sign": (["--", "--dry-run"], 2, "put options of tfcompare before --"),
    "no program": (["--"], 2, "there is no program after --"),
    "an export": (["--format", "csv"], 2, "--format csv: `tfcompare export RUN --format csv` writes that"),
    "a bad duration": (["--budget", "soon"], 2, "--budget 'soon' is not a duration"),
    "bad threads": (["--threads", "two"], 2, "--threads 'two': expected a number"),
    "an unknown engine": (["--engine", "podman", "--dry-run"], 2, "unknown engine 'podman'"),
    "an unknown request": (["--gpu-request", "cuda"], 2, "choose from runtime, device, cdi"),
    "no GPU's name": (["--gpus", ","], 2, "--gpus ',': indices or UUIDs"),
    "a GPU that is not there": (["--gpus", "4095"], 2, "4095"),
    "clocks without a GPU": (["--lock-clocks", "1200"], 2, "it goes with --gpu"),
    "force without a GPU": (["--allow-unsupported-gpu"], 2, "it goes with --gpu"),
    "a GPU for one process at a time that nothing shows": (
        ["--gpu-exclusive", "--isolation", "process", "--dry-run"],
        4,
        "neither NVML nor nvidia-smi shows a GPU",
    ),
    "a folder that is not there": (["--workload-folder", "no/such/folder"], 2, "no such folder"),
    "one round": (["--rounds", "1"], 2, "--rounds '1': expected a whole number from 2 to 1000"),
    "rounds in words": (["--rounds", "many"], 2, "--rounds 'many': expected a whole number"),
    "a margin that is no number": (["--margin", "nan"], 2, "--margin 'nan'"),
    "a budget of years": (["--budget", "9999h"], 2, "at most 30 days"),
    "a seed below zero": (["--seed", "-1"], 2, "--seed '-1': expected a whole number from 0 to 2147483647"),
    "a seed too large": (["--seed", "2147483648"], 2, "--seed '2147483648'"),
    "a version that is too new": (["--versions", "2.0,2.99"], 2, "unknown version '2.99': the newest known is 2.21"),
    "a version that is too old": (["--versions", "1.0,2.13"], 2, "unknown version '1.0': the oldest known is 1.13"),
    "a range that runs backwards": (["--versions", "2.13..2.0"], 2, "write 2.0..2.13"),
    "a case that is not closed": (
        ["--case", "predict[model=tiny"],
        2,
        "invalid case 'predict[model=tiny': a ] is missing",
    ),
    "a page of a dry run": (["--dry-run", "--engine", "venv", "--format", "html"], 2, "--dry-run prints a plan"),
    "a bad set of CPUs": (["--cpuset", "3-1"], 2, "--cpuset '3-1': expected CPU numbers"),
    "CPUs that are not there": (["--cpuset", "4095", "--engine", "venv", "--dry-run"], 2, "--cpuset: CPU 4095 cannot"),
    "too little memory": (["--memory", "10m"], 2, "at least 512m"),
    "more memory than there is": (
        ["--memory", "999999g", "--engine", "venv", "--dry-run"],
        2,
        "--memory: 1023998976 MB",
    ),
    "an unknown isolation": (["--isolation", "vm"], 2, "choose from fork, process, container"),
    "an unknown time to judge by": (["--judge", "gpu"], 2, "choose from wall, cpu"),
    "CPU time twice": (["--judge", "cpu", "--metric", "cpu"], 2, "with --judge cpu, that is what `time` is"),
    "CPU time of a GPU": (["--judge", "cpu", "--gpu", "--dry-run"], 2, "what a GPU computes takes no CPU time"),
    "a gate about steps that CPU time leaves out": (
        ["--judge", "cpu", "--fail-on", "step:slower", "--", "python", "-c", "pass"],
        2,
        "with --judge cpu a run does not compare step",
    ),
    "a container without docker": (["--isolation", "container", "--engine", "venv", "--dry-run"], 2, "--engine docker"),
    "an unknown column": (["--columns", "tmie"], 2, "did you mean time?"),
    "columns of no table": (["--columns", "time", "--format", "json"], 2, "--columns goes with --format table"),
    "more of nothing": (["--resume", "nowhere"], 2, "leave --versions out"),
    "a flag that does not exist": (["--round", "1"], 2, "No such option"),
}


@pytest.mark.parametrize(("flags", "code", "words"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_call_ends_before_any_work(monkeypatch, capsys, tmp_path, flags: list[str], code: int, words: str):
    monkeypatch.chdir(tmp_path)
    versions = [] if "--versions" in flags else ["--versions", "1.14,2.0"]
    assert called(monkeypatch, "run", *versions, *flags) == code
    streams = capsys.readouterr()
    assert words in streams.err
    assert streams.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_workloads_is_what_a_dry_run_lists(monkeypatch, capsys, tmp_path):
    (tmp_path / "words.py").write_text("def build(tf, params): return lambda: 1\n")
    flags = ("--versions", "2.0,2.13", "--engine", "venv", "--workload-folder", str(tmp_path), "--dry-run")
    assert called(monkeypatch, "run", *flags) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "  words"
    assert "1 case x 2 versions" in out


def test_the_example_of_the_readme_is_a_workload_and_its_command_selects_it(monkeypatch, capsys, tmp_path):
    page = (ROOT / "README.md").read_text()
    [(path, source)] = re.findall(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL)
    command = re.search(r"^    tfcompare (run .*?--workload-folder mine)", page, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text(source)
    assert called(monkeypatch, *command[1].split(), "--engine", "venv", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "1 case x 2 versions" in out
    assert out.splitlines()[-1] == f"  {Path(path).stem}"


def test_the_workload_of_the_worked_migration_is_one_and_its_commands_select_it(monkeypatch, capsys, tmp_path):
    page = (ROOT / "docs" / "migration.md").read_text()
    [source] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "training.py").write_text(source)
    commands = re.findall(r"^    tfcompare ((?:run|profile|bisect) .*?)(?: --dry-run)?$", page, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        if command.startswith("profile"):
            continue
        assert called(monkeypatch, *command.split(), "--engine", "venv", "--dry-run") == 0, command
        assert "2.8.4" in capsys.readouterr().out


def test_syntax_that_is_too_new_for_a_version_is_found_before_any_work(monkeypatch, capsys, tmp_path):
    (tmp_path / "words.py").write_text("def build(tf, params):\n    if (x := 1): return lambda: x\n")
    flags = ("--versions", "2.0,2.13", "--engine", "venv", "--workload-folder", str(tmp_path), "--dry-run")
    assert called(monkeypatch, "run", *flags) == 2
    assert "words.py, line 2: Python 3.7 cannot read this" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["taken", "/proc/x", "taken/file/below"])
def test_a_dry_run_refuses_where_the_run_would(monkeypatch, capsys, tmp_path, place: str):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    flags = ("--versions", "1.14,2.0", "--engine", "venv", "--dry-run", "--output", place)
    assert called(monkeypatch, "run", *flags) == 2
    assert "choose another --output" in capsys.readouterr().err


def test_a_dry_run_leaves_nothing_and_makes_no_page(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    flags = ("--versions", "1.14,2.0", "--engine", "venv", "--dry-run")
    assert called(monkeypatch, "run", *flags, "--output", "deep/run") == 0
    assert called(monkeypatch, "run", *flags, "--format", "html") == 2
    assert "--dry-run prints a plan" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_versions_may_be_separated_by_blanks_and_named_by_what_they_are(monkeypatch, capsys):
    for versions in ("2.0 2.13", "2.0,latest", "2.*"):
        assert called(monkeypatch, "run", "--versions", versions, "--engine", "venv", "--dry-run") == 0
        assert "2.0.0" in capsys.readouterr().out


def test_versions_with_the_same_prospects_share_a_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path))
    assert called(monkeypatch, "run", "--versions", "1.13,1.14,2.0", "--engine", "venv", "--dry-run") == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "1.14.0" in line]
    assert line.startswith("  1.13.2, 1.14.0, 2.0.0: ")


def test_versions_are_needed_but_to_go_on_with_a_run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(active, "find_active", lambda: None)
    assert called(monkeypatch, "run") == 2
    assert "there is nothing to compare: name versions" in capsys.readouterr().err
    assert called(monkeypatch, "run", "--resume", str(tmp_path)) == 2
    assert "holds no run" in capsys.readouterr().err
