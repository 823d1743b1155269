"""The program behind `--`: its name, its folder, and what cannot run."""

import re
from pathlib import Path

import pytest

from orchestrator.catalog import program, workloads
from orchestrator.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / "inner").mkdir(parents=True)
    (tmp_path / "project" / "train.py").write_text("")
    (tmp_path / "project" / "inner" / "other.py").write_text("")
    for name in ("run.sh", "plain.sh"):
        (tmp_path / "project" / name).write_text("")
    (tmp_path / "project" / "run.sh").chmod(0o755)
    (tmp_path / "outside.py").write_text("")
    return tmp_path / "project"


SCRIPTS = {
    ("python", "train.py", "--epochs", "1"): "train.py",
    ("python3.9", "-u", "-B", "inner/train.py"): "inner/train.py",
    ("train.py",): "train.py",
    ("python", "-m", "package.train"): None,
    ("python", "-c", "import train.py"): None,
    ("python",): None,
    ("bash", "-e", "run.sh"): "run.sh",
    ("./run.sh", "train.py"): "./run.sh",
    ("/bin/bash", "-c", "./run.sh"): None,
    ("bash", "-c", "echo run.sh"): None,
    ("make", "train.py"): None,
}


@pytest.mark.parametrize(("words", "script"), SCRIPTS.items(), ids=map(" ".join, SCRIPTS))
def test_the_script_of_a_command_is_the_file_that_it_runs(words: tuple[str, ...], script: str | None):
    assert program.find_script(words) == script


def test_a_program_is_a_workload_that_is_called_what_it_is(folder: Path):
    words = ("python", "train.py", "--name", "two words")
    ((name, workload),) = program.find_measurable(words, ("pandas",), folder).items()
    assert name == workload.name == "python train.py --name 'two words'"
    assert (workload.path, workload.requirements, workload.builtin) == (folder, ("pandas",), False)
    assert program.find_measurable(words, (), None) == {}
    assert program.find_measurable((), (), None) == workloads.all_workloads()


def test_what_is_in_the_folder_can_run(folder: Path):
    for words in SCRIPTS:
        if program.find_script(words) != "inner/train.py":
            program.check_program(words, folder)
    program.check_program(("python", "inner/other.py"), folder)


REFUSED = {
    "a file that is not there": (("python", "absent.py"), "there is no absent.py in /"),
    "an option": (("--dry-run",), "--dry-run is after --, .* put options of tfcompare before --"),
    "a command that is not there": (("./absent.sh",), "there is no ./absent.sh in /"),
    "a script that is not there": (("bash", "absent.sh"), "there is no absent.sh in /"),
    "a command elsewhere": (("../run.sh",), "../run.sh: a version sees /"),
    "what cannot be executed": (("./plain.sh",), r"plain.sh in /.* cannot be executed: `chmod \+x ./plain.sh`"),
    "a file elsewhere": (("python", "../outside.py"), "../outside.py: a version sees /"),
    "an absolute path": (("/usr/bin/train.py",), "name the file as it is seen from there"),
    "two lines": (("python", "-c", "1\n2"), "all in one line"),
    "much text": (("python", "-c", "1" * 2000), "at most 1000 letters"),
}


@pytest.mark.parametrize(("words", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_run_is_refused_before_any_work(folder: Path, words: tuple[str, ...], reason: str):
    with pytest.raises(UsageError, match=reason):
        program.check_program(words, folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="absent: no such folder"):
        program.check_program(("bash", "run.sh"), tmp_path / "absent")


def test_requirements_are_read_from_a_file_as_pip_takes_them(tmp_path: Path):
    path = tmp_path / "requirements.txt"
    path.write_text("# what it needs\npandas>=1,<3  # tables\n\npillow\n")
    assert program.read_requirements(path) == ("pandas>=1,<3", "pillow")


@pytest.mark.parametrize("line", ["-r others.txt", "pandas @ https://example.org/pandas.whl", "no package"])
def test_other_lines_are_refused(tmp_path: Path, line: str):
    path = tmp_path / "requirements.txt"
    path.write_text(f"{line}\n")
    with pytest.raises(UsageError, match=r"--requirements .*requirements.txt: "):
        program.read_requirements(path)
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not a text"):
        program.read_requirements(path)
    with pytest.raises(UsageError, match="No such file"):
        program.read_requirements(tmp_path / "absent.txt")


def test_data_stand_where_they_are_below_the_home_or_else_in_the_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, elsewhere = tmp_path / "home", tmp_path / "data"
    (home / ".keras" / "datasets").mkdir(parents=True)
    elsewhere.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    found = program.find_data([Path("~/.keras/datasets"), Path("data")], folder)
    assert found == {"home/.keras/datasets": home / ".keras" / "datasets", "folder/data": elsewhere}
    ((_, workload),) = program.find_measurable(("python", "train.py"), (), folder, found).items()
    assert workload.data == found


WRONG_DATA = {
    "nothing there": (["data/absent"], "there is no such file or folder"),
    "two of one name": (["data/a/digits", "data/b/digits"], "its place is digits in the program's folder"),
    "a name of the project": (["data/train.py"], "its place is train.py"),
    "everything": (["/"], "its place is / in"),
    "one in another": (["data/a/digits", "data/a"], "which is named as well"),
}


@pytest.mark.parametrize(("places", "reason"), WRONG_DATA.values(), ids=WRONG_DATA)
def test_data_that_have_no_place_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: list[str], reason: str
):
    for name in ("a", "b"):
        (tmp_path / "data" / name / "digits").mkdir(parents=True)
    (tmp_path / "data" / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=re.escape(reason)):
        program.find_data([Path(place) for place in places], folder)
