"""What Tab offers: commands, flags, versions, cases with their parameters, runs and claims, in every shell."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command

from orchestrator.cli import completion, main
from orchestrator.cli.candidates import complete_words
from tests.support.commands import called

ROOT = get_command(main.app)


def words(*line: str) -> list[str]:
    *complete, unfinished = line
    return [each.word for each in complete_words(ROOT, complete, unfinished)]


def test_commands_come_first_and_those_of_a_group_after_its_name():
    assert words("re") == ["reproduce", "report"]
    assert words("images", "pr") == ["prune"]
    assert "completion" in words("")


def test_flags_are_those_of_the_command_by_their_long_names():
    assert words("run", "--bu") == ["--budget"]
    assert words("run", "--wo") == ["--workload-folder"]
    assert words("list", "versions", "--bu") == []


def test_choices_are_what_help_lists():
    assert words("run", "--engine", "v") == ["venv"]
    assert words("run", "--format=h") == ["--format=html"]
    assert words("list", "w") == ["workloads"]
    assert words("completion", "f") == ["fish"]


def test_versions_continue_a_list_and_a_range_and_are_offered_once():
    assert words("run", "--versions", "1.1") == ["1.13", "1.14", "1.15", "1.15-nv"]
    assert "1.14" not in words("run", "--versions", "1.14,")
    assert words("run", "--versions", "1.14,2.13") == ["1.14,2.13", "1.14,2.13.1"]
    assert words("run", "--versions", "2.8..2.1")[0] == "2.8..2.1"
    assert "2.8..2.10" in words("run", "--versions", "2.8..2.1")
    assert words("run", "--versions", "1.14,la") == ["1.14,latest"]
    assert words("bisect", "--good", "2.0.") == ["2.0.4", "2.0.0"]
    assert words("run", "2.13", "2.1") == words("run", "--target", "2.1")
    assert "2.16" in words("run", "2.13", "2.1")
    assert "2.16" in words("check", "mine/training.py", "2.1")


def test_a_case_is_completed_step_by_step():
    assert words("run", "-c", "forw") == ["forward", "forward["]
    assert "predict" in words("run", "--case", "p")
    assert words("run", "--case", "predict[s") == ["predict[state="]
    assert words("run", "--case", "predict[state=c") == ["predict[state=compiled]", "predict[state=compiled,"]
    assert not any(
        "state=" in word for word in words("run", "--case", "predict[call=predict,")[1:] if "call=" not in word
    )
    assert words("run", "--case", "predict[state=compiled|u")[0] == "predict[state=compiled|uncompiled]"
    assert words("run", "--case", "nothing[") == []


def test_cases_of_a_folder_that_was_named_are_offered_too(tmp_path: Path):
    (tmp_path / "training.py").write_text("PARAMS = {'size': ('1', '2')}\ndef build(tf, params):\n    return len\n")
    assert words("run", "--workload-folder", str(tmp_path), "--case", "training[size=") == [
        "training[size=1]", "training[size=2]",
    ]  # fmt: skip
    assert words("run", f"--workload-folder={tmp_path}", "--case", "traini") == ["training", "training["]


def test_runs_are_offered_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for age, name in enumerate(("newest", "older", "oldest")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "plan.json").write_text("{}")
        os.utime(tmp_path / "runs" / name / "plan.json", (10_000 - age, 10_000 - age))
    (tmp_path / "runs" / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert words("report", "") == ["last", "runs/newest", "runs/older", "runs/oldest"]
    assert words("merge", "runs/newest", "la") == ["last"]
    assert words("run", "--resume", "runs/old") == ["runs/older", "runs/oldest"]
    assert words("compare", "runs/newest", "./runs/older") == ["./runs/older"]
    monkeypatch.chdir("/")
    assert words("report", "runs/") == []


def test_claims_suites_kinds_and_columns_have_names():
    assert "predict-after-compile" in words("reproduce", "predict-after")
    assert words("run", "--suite", "sm") == ["smoke"]
    assert words("reproduce", "--suite", "st") == ["studies"]
    assert words("run", "--fail-on", "slower,i") == ["slower,inconclusive"]
    assert words("export", "--format", "ju") == ["junit"]
    assert words("report", "--only", "slower,die") == ["slower,died"]
    assert words("report", "--sort", "n") == ["name"]
    assert words("report", "--columns", "+bui") == ["+build"]


def test_where_only_files_fit_nothing_is_offered():
    assert words("run", "--workload-folder", "") == []
    assert words("run", "--budget", "") == []
    assert words("run", "x") == []


@pytest.mark.parametrize(
    ("line", "split"),
    [
        ("tfcompare ", ["tfcompare", ""]),
        ("tfcompare run", ["tfcompare", "run"]),
        ("tfcompare run 'a b", ["tfcompare", "run", "a b"]),
        ('tfcompare run "x" --case "pre', ["tfcompare", "run", "x", "--case", "pre"]),
        ("tfcompare run a\\", ["tfcompare", "run", "a"]),
    ],
)
def test_a_line_may_end_anywhere(line: str, split: list[str]):
    assert completion.split_line(line) == split


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_is_printed_and_the_shell_can_read_it(shell: str, monkeypatch, capsys):
    assert called(monkeypatch, "completion", shell) == 0
    script = capsys.readouterr().out
    assert f"tfcompare completion {shell} -- " in script
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=script, text=True, check=True)


def test_another_shell_is_refused(monkeypatch, capsys):
    assert called(monkeypatch, "completion", "tcsh") == 2
    assert "bash, zsh, fish" in capsys.readouterr().err


def test_fish_gets_words_with_what_they_are_about(monkeypatch, capsys):
    assert called(monkeypatch, "completion", "fish", "--", "run", "--budg") == 0
    word, about = capsys.readouterr().out.rstrip("\n").split("\t")
    assert word == "--budget"
    assert about


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("tfcompare exp", "tfcompare export "),
        ("tfcompare run --versions 1.14,lat", "tfcompare run --versions 1.14,latest"),
        ("tfcompare run --case predict[sta", "tfcompare run --case predict[state="),
        ("tfcompare run --case predict[state=unc", "tfcompare run --case predict[state=uncompiled"),
        ("tfcompare run --case 'predict[state=unc", "tfcompare run --case 'predict[state=uncompiled"),
        ("tfcompare run --format=ht", "tfcompare run --format=html "),
    ],
)
def test_bash_completes_the_line_when_tab_is_pressed(typed: str, line: str, tmp_path: Path):
    assert press_tab(typed, tmp_path, "bash", line) == line


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("tfcompare exp", "tfcompare export "),
        ("tfcompare run --versions 1.14,lat", "tfcompare run --versions 1.14,latest"),
        ("tfcompare run --case 'predict[state=unc", "tfcompare run --case 'predict[state=uncompiled"),
        ("tfcompare run --format=ht", "tfcompare run --format=html "),
    ],
)
def test_zsh_completes_the_line_when_tab_is_pressed(typed: str, line: str, tmp_path: Path):
    assert press_tab(typed, tmp_path, "zsh", line) == line


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("tfcompare exp", "export"),
        ("tfcompare run --versions 1.14,lat", "1.14,latest"),
        ("tfcompare run --case predict[state=unc", "predict[state=uncompiled]"),
        ("tfcompare run --case 'predict[state=unc", "predict[state=uncompiled]"),
        ("tfcompare run --format=ht", "--format=html"),
    ],
)
def test_fish_offers_what_continues_the_line(typed: str, found: str, tmp_path: Path):
    script = 'tfcompare completion fish | source; complete -C "$argv[1]"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", script, typed], env=of_shell(tmp_path), capture_output=True, text=True, check=True
    )
    assert found in [line.partition("\t")[0] for line in done.stdout.splitlines()]


def of_shell(home: Path) -> dict[str, str]:
    here = str(Path(sys.executable).parent)
    return {"PATH": f"{here}:{os.environ['PATH']}", "HOME": str(home), "ZDOTDIR": str(home), "TERM": "dumb"}


# Shells also write bells, and switch on the marks of pasted text.
BESIDE = re.compile(r"[\a\r]|\x1b\[\?2004[hl]")
ZSHRC = """
PS1='> '
unsetopt prompt_sp
unset zle_bracketed_paste
autoload -U compinit
compinit -u
source <(tfcompare completion zsh)
"""


def press_tab(typed: str, home: Path, shell: str, expected: str) -> str:
    """The line that a real shell shows after a Tab, once it is the expected one and nothing follows."""
    program = shutil.which(shell)
    assert program
    (home / "rc").write_text("PS1='> '\nbind 'set enable-bracketed-paste off'\nsource <(tfcompare completion bash)\n")
    (home / ".zshrc").write_text(ZSHRC)
    flags = ["--noprofile", "--rcfile", str(home / "rc")] if shell == "bash" else ["--no-globalrcs"]
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(home)
        os.execve(program, [shell, *flags, "-i"], of_shell(home))
    try:
        read_until(terminal, "> ")
        os.write(terminal, f"{typed}\t".encode())
        return read_until(terminal, expected) + read_until(terminal, None, patience_s=0.5)
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def read_until(terminal: int, end: str | None, patience_s: float = 30) -> str:
    """What the terminal shows up to an end, or as long as patience lasts; a busy machine needs some."""
    shown = ""
    until = time.monotonic() + patience_s
    while not (end and shown.endswith(end)) and (left_s := until - time.monotonic()) > 0:
        if select.select([terminal], [], [], left_s)[0]:
            shown = BESIDE.sub("", shown + os.read(terminal, 4096).decode())
    return shown
