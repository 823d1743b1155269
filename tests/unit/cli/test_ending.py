"""How the process of tfcompare ends, whatever is broken in it or around it: always with a documented exit code."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from orchestrator.model import Finished
from orchestrator.results.run_folder import RunFolder
from tests.conftest import ROOT, require_python, run_command
from tests.support.builders import MS, NEW, OLD, case, plan, rows, run_folder, write_stream

CASE = case("power", style="eager")
BUG = """\
import orchestrator.cli.list as listing
def find_listing(what, own=None):
    {}
listing.find_listing = find_listing
"""
LIST = ("list", "versions")
# A whole run in which all but the workers is real.
ACTORS = """
from dataclasses import replace
from orchestrator.__main__ import main
from orchestrator.engines import ENGINES, Outlook
from tests.support.actors import Dressing, Stage
from tests.support.builders import environment_facts

class Engine:
    check = staticmethod(lambda: "actors")
    sweep = staticmethod(lambda: [])
    close = staticmethod(lambda: None)
    outlook = staticmethod(lambda version: Outlook("ready", "ready"))
    def prepare(self, version, log):
        return Dressing(Stage(), environment_facts(version.number))

ENGINES["venv"] = replace(ENGINES["venv"], make=lambda options: Engine())
main()
"""
RUN = ("run", "--engine", "venv", "--versions", "1.14,2.0", "--case", "power[style=eager]", "--rounds", "2")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = run_folder(tmp_path_factory.mktemp("run") / "run", plan([CASE]))
    for place, version in enumerate((OLD, NEW)):
        batches = [
            rows(CASE, version, round=number, replicate=number * 2 + place, bursts=((1 + place) * MS * 10,) * 3)
            for number in range(1, 7)
        ]
        write_stream(made.settled / f"{version}-0.arrow", batches)
    return made.path


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.fixture
def full() -> Iterator[int]:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


def breaking(folder: Path, code: str) -> dict[str, str]:
    """Variables with which a Python runs this code before anything else; its crash reports go into the same folder."""
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder), "TMPDIR": str(folder)}


def ended(*argv: str | Path, env: Mapping[str, str] | None = None, **streams: int) -> tuple[int, str]:
    """The exit code, and what stderr got if it is not redirected."""
    wanted = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **streams}
    variables = {**os.environ, "COLUMNS": "100", **(env or {})}
    done = subprocess.run(list(map(str, argv)), env=variables, cwd=ROOT, text=True, timeout=120, check=False, **wanted)
    return done.returncode, done.stderr or ""


def test_an_unexpected_error_is_one_line_and_a_traceback_that_only_its_owner_reads(tfcompare, tmp_path):
    env = breaking(tmp_path, BUG.format("raise KeyError('two\\nlines')"))
    code, said = ended(tfcompare, *LIST, env=env)
    assert code == 70
    (file,) = tmp_path.glob("tfcompare-crash-*")
    assert said == (
        f"tfcompare: this is a bug in tfcompare: KeyError: 'two\\nlines' (traceback in {file}; "
        "please report it with that file)\n"
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert text.startswith("command: list versions\n")
    assert "in find_listing" in text


def test_a_crash_report_holds_no_secrets(tfcompare, tmp_path):
    env = breaking(
        tmp_path,
        "import sys, orchestrator.measure.forecast as run\ndef forecast(planned, say):\n"
        "    import os\n"
        "    told = sys.argv[1:] + [os.environ['TFCOMPARE_NOTIFY'], 'ftp://me:hunter1@else.where/']\n"
        "    raise RuntimeError(' '.join(told))\nrun.forecast = forecast\n",
    )
    env["TFCOMPARE_NOTIFY"] = "slack://hunter4/hunter5"
    secret = ("--index-url=https://me:hunter2@index.example/hunter3/simple",)
    code, said = ended(tfcompare, *RUN, *secret, "--dry-run", env=env)
    (file,) = tmp_path.glob("tfcompare-crash-*")
    assert code == 70
    assert "hunter" not in said + file.read_text()
    assert "https://****@index.example/..." in file.read_text()


def test_an_unexpected_error_is_reported_where_no_file_can_be_written(tfcompare, tmp_path):
    code = "import tempfile\ndef mkstemp(*_, **__):\n    raise PermissionError(13, 'Permission denied')\n"
    env = breaking(tmp_path, code + "tempfile.mkstemp = mkstemp\n" + BUG.format("raise KeyError(what)"))
    code, said = ended(tfcompare, *LIST, env={**env, "HOME": "/proc/nope", "XDG_CACHE_HOME": "/proc/nope"})
    assert code == 70
    assert re.fullmatch(r"tfcompare: this is a bug in tfcompare: KeyError: 'versions' \(sitecustomize.py:7, .*\n", said)


BROKEN = {
    "an error in a thread": (
        "import threading\n    one = threading.Thread(target=lambda: 1 / 0)\n    one.start()\n    one.join()\n"
        "    return listing.LISTINGS[what]()",
        70,
        "ZeroDivisionError",
    ),
    "a library that exits with words": ("raise SystemExit('so long')", 70, "SystemExit: so long"),
    "a library that exits with 1": ("raise SystemExit(1)", 70, "SystemExit: 1"),
    "a closed pipe that is not stdout": ("raise BrokenPipeError(32, 'Broken pipe')", 70, "this is a bug"),
    "a full disk": (
        "raise OSError(28, 'No space left on device', '/some/file')",
        2,
        "cannot write /some/file: No space",
    ),
    "the end of input at a question": ("import typer; typer.confirm('Really?', err=True)", 130, "Really?"),
    "an interrupt": ("raise KeyboardInterrupt", 130, ""),
}


@pytest.mark.parametrize(("code", "expected", "words"), BROKEN.values(), ids=BROKEN)
def test_no_error_ends_with_pythons_own_exit_code(tfcompare, tmp_path, code: str, expected: int, words: str):
    found, said = ended(tfcompare, *LIST, env=breaking(tmp_path, BUG.format(code)))
    assert (found, words in said, "Traceback" in said) == (expected, True, False)


def test_an_interrupt_while_modules_are_imported_is_130_without_a_traceback(tfcompare, tmp_path):
    code = (
        "import os, signal, sys\nclass Finder:\n    def find_spec(name, path=None, target=None):\n"
        "        if name == 'typer':\n            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    assert ended(tfcompare, *LIST, env=breaking(tmp_path, code)) == (130, "")


def test_an_interrupt_at_shutdown_is_130_without_a_traceback(tfcompare, tmp_path):
    code = "import atexit, os, signal\natexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
    assert ended(tfcompare, *LIST, env=breaking(tmp_path, code)) == (130, "")


def test_a_package_that_is_missing_is_said_in_one_line(tfcompare, tmp_path):
    code, said = ended(tfcompare, *LIST, env=breaking(tmp_path, "import sys\nsys.modules['rich'] = None\n"))
    assert code == 70
    assert "install tfcompare again" in said
    assert said.count("\n") == 1


def test_nothing_in_the_code_exits_with_1():
    code = "\n".join(path.read_text() for path in (ROOT / "orchestrator").rglob("*.py"))
    assert not re.search(r"(Exit|exit|_exit)\(1\)|raise SystemExit", code)


SLOW = pytest.mark.slow
PRINTING = {
    "a table": ("report", "RUN"),
    "help": ("run", "--help"),
    "an export": ("export", "RUN", "--format", "csv", "--table", "calls"),
    "a list": LIST,
}
# The fast loop has two of each kind.
PRINTED = [
    pytest.param(words, id=name, marks=SLOW if name in ("an export", "a list") else ())
    for name, words in PRINTING.items()
]


@pytest.mark.parametrize("words", PRINTED)
def test_a_closed_pipe_is_no_failure(tfcompare, run: Path, closed_pipe: int, words: tuple[str, ...]):
    argv = [str(run) if word == "RUN" else word for word in words]
    assert ended(tfcompare, *argv, stdout=closed_pipe) == (0, "")
    assert ended(tfcompare, *argv, stdout=closed_pipe, stderr=closed_pipe) == (0, "")


def test_a_closed_pipe_does_not_hide_an_exit_code(tfcompare, closed_pipe: int):
    assert ended(tfcompare, "report", "nowhere", stderr=closed_pipe)[0] == 2


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_pipe_during_a_run_loses_nothing_of_it(tmp_path, closed_pipe: int, closed: str):
    out = tmp_path / "out"
    code, _ = ended(sys.executable, "-c", ACTORS, *RUN, "--output", out, **{closed: closed_pipe})
    assert code == 0
    (finished,) = (entry for entry in RunFolder.open(out).entries() if isinstance(entry, Finished))
    # Nothing ended it early.
    assert finished.how == ""
    streams = {(stream.target, stream.part) for stream in RunFolder.open(out).worker_output.streams()}
    assert streams == {(version, part) for version in ("1.14.0", "2.0.0") for part in (1, 2)}


def test_a_run_whose_table_cannot_be_written_says_where_it_is(tmp_path, full: int):
    out = tmp_path / "out"
    code, said = ended(sys.executable, "-c", ACTORS, *RUN, "--output", out, stdout=full)
    assert code == 2
    assert f"run folder: {out}\n" in said
    assert said.splitlines()[-1].startswith("tfcompare: cannot write to stdout: No space left on device")


@pytest.mark.parametrize("words", PRINTED)
def test_an_output_that_cannot_be_written_is_wrong_usage_in_one_line(tfcompare, run, full: int, words: tuple[str, ...]):
    argv = [str(run) if word == "RUN" else word for word in words]
    code, said = ended(tfcompare, *argv, stdout=full)
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("tfcompare: cannot write to stdout: No space left on device")


def test_closed_streams_change_nothing(tfcompare, run: Path):
    shell = ["bash", "-c", f"'{tfcompare}' report '{run}' <&- >&- 2>&-"]
    assert ended(*shell)[0] == 0
    shell[-1] = f"'{tfcompare}' report nowhere 2>&- | wc -c"
    assert run_command(*shell).stdout.strip() == "0"


ENCODED = [
    (PRINTING["a table"], "ascii"),
    (("export", "RUN", "--format", "markdown"), "latin-1"),
    pytest.param(PRINTING["a table"], "latin-1", marks=SLOW),
    pytest.param(PRINTING["help"], "ascii", marks=SLOW),
]


@pytest.mark.parametrize(("words", "encoding"), ENCODED)
def test_an_encoding_without_a_character_gets_ascii_of_the_same_width(tfcompare, run, words, encoding: str):
    argv = [str(run) if word == "RUN" else word for word in words]
    whole = run_command(tfcompare, *argv, env={"PYTHONIOENCODING": "utf-8"})
    plain = run_command(tfcompare, *argv, env={"PYTHONIOENCODING": encoding})
    assert (plain.returncode, plain.stderr) == (0, "")
    assert not whole.stdout.isascii()
    assert plain.stdout.isascii()
    assert list(map(len, plain.stdout.splitlines())) == list(map(len, whole.stdout.splitlines()))


HOMELESS = (
    "HOME=/proc/nope",
    "TFCOMPARE_CACHE=FILE",
    pytest.param("HOME=FILE", marks=SLOW),
    pytest.param("XDG_CACHE_HOME=/proc/nope", marks=SLOW),
)


@pytest.mark.parametrize("variable", HOMELESS)
def test_a_cache_that_cannot_be_written_is_an_environment_that_failed(tfcompare, tmp_path, variable: str):
    require_python("3.7")
    (tmp_path / "file").touch()
    name, _, value = variable.replace("FILE", str(tmp_path / "file")).partition("=")
    code, said = ended(tfcompare, *RUN, "--output", tmp_path / "out", env={name: value})
    assert code == 5
    assert "cannot write" in said
    assert "TFCOMPARE_CACHE" in said
    assert "Traceback" not in said
