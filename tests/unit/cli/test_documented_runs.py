"""Every command block of README and docs runs: all that a command does, except that versions are stubs.

What measures is replaced by a run that is made up; the rest is real. A command that needs a machine of another kind, or
TensorFlow itself, is named below with the tests that run it.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.engines import ENGINES
from tests.conftest import ROOT
from tests.support import repository, stub
from tests.support.commands import called
from tests.support.documented import FENCED, PAGES, cut
from tests.support.made_runs import measure_at_once
from tests.support.small_run import write_run
from tests.support.stub_engine import Engine

LINE = re.compile(r"^ {4}(?:\S*\.venv/bin/)?tfcompare ([a-z].*)$", re.MULTILINE)
# What a command needs that is not here, and where it runs.
ELSEWHERE = {
    r".*--gpu\b": "a GPU; tests/engines/docker/test_nvidia.py has a stub of its runtime",
    r"environments (un)?pack ": "an index: tests/engines/test_packed.py",
    r"images ": "a Docker engine: tests/engines/docker",
    r"(run|doctor).*(--engine docker|wheel=)": "an image or a wheel of the user's: tests/engines/docker, test_wheel.py",
    r"run .*(==|\btoday\b|freeze=|--vary)": "an index: tests/engines/test_pins.py",
    r"run .*\bnightly\b|bisect .*nightly-": "an index with nightlies: tests/engines/test_nightly_tensorflow.py",
    r"fleet |run .*--on auto": "other machines: tests/engines/test_fleet.py",
    r"history 'train_loop|history import .*--name": "nights of these cases: tests/unit/history",
    r"nightly (run|install|notify-test)": "a scheduler or a recipient: tests/engines/test_night.py, test_schedule.py",
    r"models |upgrade ": "TensorFlow: tests/engines/test_models.py, test_upgrade.py",
    r"bisect |why |profile |reproduce |doctor": "TensorFlow: tests/engines/test_bisect.py, test_why.py and others",
}


def command_lines() -> Iterator[str]:
    for page in PAGES:
        text = FENCED.sub(lambda block: block[0] if block["language"] else "", page.read_text())
        yield from (" ".join(cut(line)) and line for line in LINE.findall(text) if ":" not in line.split()[0])


LINES = [line for line in dict.fromkeys(command_lines()) if not re.search(r"\bFOLDER\b|\.\.\.", " ".join(cut(line)))]
RUN_HERE = [line for line in LINES if not any(re.match(pattern, line) for pattern in ELSEWHERE)]


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user who has read all pages: workloads, a program, data and runs, with their own home."""
    folder = tmp_path_factory.mktemp("user")
    page = (ROOT / "docs" / "migration.md").read_text()
    (folder / "mine").mkdir()
    (folder / "mine" / "training.py").write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    (folder / "train.py").write_text("print('trained')\n")
    (folder / "requirements.txt").write_text("six\n")
    repository.begin(folder)
    for tag in ("v1.1", "v1.2"):
        repository.commit(folder, {}, tag)
    for name in (".keras/datasets", "data", "var/lib/node_exporter", ".config"):
        (folder / name).mkdir(parents=True)
    (folder / "data" / "digits.csv").write_text("1,2\n")
    for name in ("first", "monday", "friday", "ci", "nightly", "tuesday", "migration", "20261121-093000-1a2b"):
        write_run(folder / "runs" / name)
    stub.write(folder / "stub")
    return folder


@pytest.fixture
def at_home(user: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(user)
    for name in ("TFCOMPARE_HISTORY", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TFCOMPARE_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setitem(ENGINES, "venv", replace(ENGINES["venv"], make=lambda options: Engine(user / "stub")))
    monkeypatch.setattr("orchestrator.measure.run.measure", measure_at_once)
    return user


def expand(words: list[str], home: Path) -> list[str]:
    """The words as a shell gives them, with the folders of the machine in that of the user."""
    found = []
    for word in words:
        word = word.replace("~", str(home))
        word = str(home) + word if word.startswith(("/data/", "/var/")) else word
        found += sorted(map(str, Path().glob(word))) if re.fullmatch(r"[\w-]+\*", word) else [word]
    return found


@pytest.fixture(scope="module")
def prepared(user: Path) -> Path:
    """The shards that other machines measured, and a history."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(user)
        monkeypatch.setenv("HOME", str(user))
        monkeypatch.setitem(ENGINES, "venv", replace(ENGINES["venv"], make=lambda options: Engine(user / "stub")))
        monkeypatch.setattr("orchestrator.measure.run.measure", measure_at_once)
        for number in (1, 2, 3):
            words = ("--versions", "2.13,2.16,2.20", "--suite", "studies", "--engine", "venv", "--shard", f"{number}/3")
            assert called(monkeypatch, "run", *words, "--output", f"shard-{number}") == 0
        assert called(monkeypatch, "history", "import", "runs/monday", "--night", "2026-11-16") == 0
    return user


@pytest.mark.parametrize("line", RUN_HERE)
def test_a_documented_command_does_what_its_page_says(
    prepared: Path, at_home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], line: str
):
    words = expand(cut(line), at_home)
    for place, word in enumerate(words[:-1]):
        # A folder that an earlier command has written is not written again.
        if word == "--output" and words[0] in ("run", "merge"):
            words[place + 1] = f"again-{abs(hash(line))}"
    engine = ["--engine", "venv"] if words[0] == "run" and "--engine" not in words else []
    split = words.index("--") if "--" in words else len(words)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    code = called(monkeypatch, *words[:split], *engine, *words[split:])
    streams = capfd.readouterr()
    # A made-up run has neither results nor counts that a gate could judge.
    wanted = 0 if "--fail-on" not in words else 3 if any(each in line for each in ("output:", "calls:", "ops:")) else 1
    assert code == wanted, streams.err
    assert "Traceback" not in streams.err
    assert streams.out or streams.err


def test_fifty_commands_run_here_and_each_mark_is_needed():
    assert len(RUN_HERE) >= 50
    assert [pattern for pattern in ELSEWHERE if not any(re.match(pattern, line) for line in LINES)] == []
