"""Machines are started and ended side by side; one that fails costs itself alone."""

import json
import sys
from pathlib import Path

import pytest

from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.fleet import machines
from orchestrator.terminal.view import View
from tests.support.heard import Heard
from tests.support.processes import is_running, wait_for_end

# Reaches a machine only while another one is being reached, and never the one that is down. Each has its own data.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
name=$2
case $name in
    down) echo 'No route to host' >&2; exit 255 ;;
    odd) echo 'a b c'; exit ;;
    silent) exit ;;
    root) echo '-1 2 3'; exit ;;
    bytes) printf '\\377\\376\\n'; exit ;;
esac
touch {folder}/$name.reached
left=300
while [ $(ls {folder} | grep -c reached) -lt 2 ]; do
    left=$((left - 1))
    if [ $left -eq 0 ]; then echo 'no other machine is being reached' >&2; exit 1; fi
    sleep 0.1
done
mkdir -p {folder}/$name
export TFCOMPARE_DATA={folder}/$name
shift 2
exec "$@"
"""
# Stands for Ray's command, which says such lines and stays.
RAY = """#!/bin/sh
echo 'Local node IP: 127.0.0.1'
echo 'Ray runtime started.'
exec sleep 600
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "here"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    for path, text in (("ssh", SSH.format(folder=tmp_path)), ("bin/ray", RAY)):
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    return [str(tmp_path / "ssh")]


def test_machines_are_reached_side_by_side_and_one_that_is_down_costs_itself(ssh: list[str], tmp_path: Path):
    said: list[str] = []
    fleet = machines.start(("a", "b", "down"), {"a": {"gpu": "a100"}}, ssh, tmp_path, Heard(said))
    pids = [machine.pid for machine in fleet.machines]
    try:
        assert sorted(machine.host for machine in fleet.machines) == ["a", "b"]
        first, second, third = sorted(said)
        assert (first, second) == ("a: ready (host=a,gpu=a100)", "b: ready (host=b)")
        assert third.startswith("warning: down: No route to host; see whether `ssh` reaches it")
        assert machines.read_started() == fleet
        with pytest.raises(UsageError, match="there is a fleet already"):
            machines.start(("c",), {}, ssh, tmp_path, Heard(said))
        assert all(map(is_running, pids))
    finally:
        machines.end(Heard(said))
    wait_for_end(*pids)
    assert sorted(said[-2:]) == ["a: ended", "b: ended"]
    assert machines.read_started() is None


def test_a_machine_that_answers_something_else_costs_itself(ssh: list[str], tmp_path: Path):
    said: list[str] = []
    fleet = machines.start(("a", "b", "odd", "silent", "root", "bytes"), {}, ssh, tmp_path, Heard(said))
    pids = [machine.pid for machine in fleet.machines]
    try:
        assert sorted(machine.host for machine in fleet.machines) == ["a", "b"]
        warnings = sorted(line for line in said if line.startswith("warning: "))
        wrong = ("bytes", repr("\ufffd\ufffd")), ("odd", "'a b c'"), ("root", "'-1 2 3'"), ("silent", "'nothing'")
        for line, (host, answer) in zip(warnings, wrong, strict=True):
            assert line.startswith(f"warning: {host}: it did not answer with the numbers of a process: {answer}; see")
    finally:
        machines.end(Heard(said))
    wait_for_end(*pids)


def test_if_every_machine_answers_something_else_there_is_no_fleet(ssh: list[str], tmp_path: Path):
    with pytest.raises(EngineUnavailable, match="no machine could be started"):
        machines.start(("odd",), {}, ssh, tmp_path, View())
    assert machines.read_started() is None


def test_what_could_not_be_ended_is_kept_for_the_next_time(ssh: list[str], tmp_path: Path):
    said: list[str] = []
    fleet = machines.start(("a", "b"), {}, ssh, tmp_path, Heard(said))
    # One of them can no longer be reached.
    state = json.loads(machines.state_file().read_text())
    [of_b] = [machine for machine in state["machines"] if machine["host"] == "b"]
    of_b["host"] = "down"
    machines.state_file().write_text(json.dumps(state))
    with pytest.raises(EngineUnavailable, match="not ended: down"):
        machines.end(Heard(said))
    assert [machine["host"] for machine in json.loads(machines.state_file().read_text())["machines"]] == ["down"]
    of_b["host"] = "b"
    machines.state_file().write_text(json.dumps({**state, "machines": [of_b]}))
    machines.end(Heard(said))
    wait_for_end(*(machine.pid for machine in fleet.machines))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format": "tfcompare.fleet/2", "ssh": [], "machines": []}', "end it with the tfcompare that started it"),
        ('{"format": "tfcompare.trust/1", "ssh": [], "machines": []}', "mark of its format"),
        ('{"ssh": ["sh", "-c", "touch here"], "machines": []}', "mark of its format"),
        ("\xff", "mark of its format"),
    ],
)
def test_a_file_that_no_fleet_left_starts_nothing_and_says_so_in_one_line(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    machines.state_file().parent.mkdir(parents=True)
    machines.state_file().write_text(text)
    with pytest.raises(UsageError, match=words) as told:
        machines.end(View())
    assert "\n" not in str(told.value)
    assert machines.state_file().read_text() == text
