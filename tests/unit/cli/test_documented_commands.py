"""Every command in README and docs is one that the program takes: its name, its flags, and their values."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperCommand

from orchestrator.cli import main
from orchestrator.errors import TfCompareError
from tests.conftest import ROOT
from tests.support.commands import called
from tests.support.documented import COMMAND, FENCED, PAGES, cut


def commands() -> Iterator[Any]:
    for page in PAGES:
        text = FENCED.sub(lambda block: block[0] if block["language"] else "", page.read_text())
        for match in COMMAND.finditer(text):
            words = cut(match[1])
            # A sentence about tfcompare, and a usage line with brackets, are no commands.
            if words and words[0] in main.COMMANDS and not any(re.search(r"^\[|\.\.\.|…", word) for word in words):
                yield pytest.param(words, id=f"{page.name}: {' '.join(words)}"[:120])


@pytest.mark.parametrize("words", dict.fromkeys(map(tuple, (param.values[0] for param in commands()))))
def test_a_documented_command_is_one_that_the_program_takes(monkeypatch, capsys, words: tuple[str, ...]):
    """Each is parsed as it is, and not run: engines and GPUs are for other tests."""
    monkeypatch.setattr(TyperCommand, "invoke", lambda command, context: None)
    code = called(monkeypatch, *words)
    told = capsys.readouterr().err
    # A text may name a command without all that it needs, or with a word in capitals for a value.
    lacks = r"Missing (argument|option|command)|requires an argument|unknown \w+ '[A-Z]+'|there is no run in runs/"
    assert code == 0 or re.search(lacks, told)


def test_there_are_commands():
    assert len(list(commands())) > 80


def blocks() -> Iterator[tuple[str, str]]:
    """Each line of an indented block that calls a program, with its page."""
    for page in PAGES:
        for line in page.read_text().splitlines():
            if match := re.match(r" {4}(?:\S*\.venv/bin/)?(tfcompare|make) (.*)", line):
                yield match[1], match[2]


def test_a_block_names_no_command_that_is_none():
    unknown = [line for program, line in blocks() if program == "tfcompare" and line.split()[0] not in main.COMMANDS]
    # Flags of the program itself, and a line of its output.
    assert [line for line in unknown if not re.match(r"-|\w+:", line)] == []


def test_a_block_makes_only_what_the_makefile_has():
    targets = set(re.findall(r"^([\w./-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = [word for program, line in blocks() if program == "make" for word in cut(line) if "=" not in word]
    assert named
    assert set(named) - targets == set()


def test_the_exit_codes_of_troubleshooting_are_those_of_the_errors():
    text = (ROOT / "docs" / "troubleshooting.md").read_text().partition("## Exit codes")[2]
    told = [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    errors = [0, *(error.exit_code for error in TfCompareError.__subclasses__())]
    assert told == sorted(errors)


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110
