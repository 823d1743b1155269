"""Machines that ssh reaches: each is asked what it is, does one thing at a time, and costs itself alone if it fails."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.fleet import host_process, machines
from orchestrator.fleet.machines import FleetMachine, NamedFleet, SshFleet, open_machines
from orchestrator.fleet.model import TaskLost, UnitAnswer
from tests.conftest import ROOT
from tests.support.heard import Heard
from tests.support.processes import PATIENCE_S, is_running, read_pids, wait_for_end

# Reaches this machine under every name, as ssh does: a shell there gets the words.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
name=${2##*@}
shift 2
case $name in
    down) echo 'No route to host' >&2; exit 255 ;;
    odd) echo 'a b c'; exit ;;
    welcoming) echo 'Welcome!' ;;
esac
export TFCOMPARE_HOST=$name
exec sh -c "$*"
"""
# Stands for Python on a host: it says what it is, and its units do what their task says.
PYTHON = """#!{python}
import os, sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from orchestrator.fleet.packets import Packet, read_packet, write_packet

folder, name = Path({folder!r}), os.environ.get("TFCOMPARE_HOST", "here")
out = sys.stdout.buffer
question = read_packet(sys.stdin.buffer)
with (folder / "pids").open("a") as file:
    file.write(f"{{os.getpid()}}\\n")
if sys.argv[-1].endswith(".host"):
    if name == "vague":
        write_packet(out, Packet(b"no report", kind="answer"))
    elif name != "mute":
        report = b'{{"tool":"1","contract":"c","facts":{{"id":"%s"}},"engines":{{"venv":""}}}}' % name.encode()
        write_packet(out, Packet(report, kind="answer"))
    sys.exit()
what = question.text.decode()
if what == "die":
    print("out of memory", file=sys.stderr)
    os._exit(1)
if what == "rubbish":
    write_packet(out, Packet(b"{{}}", kind="answer"))
elif what == "greedy":
    out.write(b"\\x1etfcompare [\\"message\\", 0, {{\\"a\\": 99999999999}}]\\n")
    out.flush()
    time.sleep(600)
elif what == "listen":
    heard = sys.stdin.buffer.readline() + sys.stdin.buffer.readline()
    write_packet(out, Packet(b'{{"exit_code": 0}}', {{"heard": heard}}, "answer"))
elif what == "wait":
    write_packet(out, Packet(b"waiting"))
    while sys.stdin.buffer.readline():
        pass
    (folder / "let-go").touch()
else:
    write_packet(out, Packet(b"begun", {{"journal.jsonl": b"so far"}}))
    write_packet(out, Packet(b'{{"exit_code": 0}}', question.contents, "answer"))
"""


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NamedFleet:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    (tmp_path / "bin").mkdir()
    stub = PYTHON.format(python=sys.executable, root=str(ROOT), folder=str(tmp_path))
    for path, text in (("ssh", SSH), ("bin/python", stub)):
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    return NamedFleet(
        ssh=(str(tmp_path / "ssh"),),
        python=str(tmp_path / "bin" / "python"),
        machines=tuple(FleetMachine(host=f"me@{name}", labels={"host": name}) for name in ("a", "b")),
    )


@pytest.fixture
def reached(named: NamedFleet) -> Iterator[SshFleet]:
    with open_machines(named) as fleet:
        yield fleet


def name_all(named: NamedFleet, *hosts: str, **labels: dict[str, str]) -> list[str]:
    view = Heard()
    machines.register_machines(hosts, labels, named.ssh, Path(named.python).parent.parent, view)
    return view.lines


def test_machines_that_answer_are_remembered_and_one_that_is_down_costs_itself(named: NamedFleet):
    said = name_all(named, "me@a", "down", "localhost", "welcoming", welcoming={"gpu": "a100"})
    assert said[0] == "me@a: ready (host=a)"
    assert said[1].startswith("warning: down: No route to host; check that `ssh` reaches it without a password")
    assert said[2].startswith("localhost: ready (host=")
    assert said[3] == "welcoming: ready (host=welcoming,gpu=a100)"
    found = machines.read_fleet()
    assert found
    assert [machine.host for machine in found.machines] == ["me@a", "localhost", "welcoming"]
    assert found.python == named.python
    assert machines.state_file().stat().st_mode & 0o777 == 0o600
    # Nothing runs on them.
    wait_for_end(*read_pids(Path(named.python).parent.parent / "pids"))


def test_what_is_no_answer_of_a_host_costs_it_its_place(named: NamedFleet):
    said = name_all(named, "a", "odd", "vague", "mute")
    assert said[0] == "a: ready (host=a)"
    assert said[1].startswith("warning: odd: its process ended and said nothing; check that")
    assert said[2].startswith("warning: vague: ")
    assert said[3].startswith("warning: mute: its process ended and said nothing; check that")
    found = machines.read_fleet()
    assert found
    assert [machine.host for machine in found.machines] == ["a"]


def test_a_fleet_is_named_anew_and_kept_if_no_machine_answers(named: NamedFleet):
    name_all(named, "a")
    with pytest.raises(EngineUnavailable, match="no machine answers"):
        name_all(named, "down")
    name_all(named, "b")
    found = machines.read_fleet()
    assert found
    assert [machine.host for machine in found.machines] == ["b"]
    machines.forget_machines()
    assert machines.read_fleet() is None
    with pytest.raises(UsageError, match="no fleet is stored"):
        machines.forget_machines()


def test_a_machine_is_named_once(named: NamedFleet):
    with pytest.raises(UsageError, match="a machine is named twice"):
        name_all(named, "me@a", "you@a")


def test_where_there_is_no_ssh_every_machine_says_so(named: NamedFleet):
    view = Heard()
    with pytest.raises(EngineUnavailable, match="no machine answers"):
        machines.register_machines(("a",), {}, ("/nowhere/ssh",), Path("/opt"), view)
    assert view.lines[0].startswith("warning: a: /nowhere/ssh cannot be started: No such file")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format": "tfcompare.fleet/2", "ssh": [], "machines": []}', "names its machines again"),
        ('{"format": "tfcompare.trust/1", "ssh": [], "machines": []}', "mark of its format"),
        ('{"ssh": ["sh", "-c", "touch here"], "machines": []}', "mark of its format"),
        ("\xff", "mark of its format"),
    ],
)
def test_a_file_that_named_no_fleet_starts_nothing_and_says_so_in_one_line(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    machines.state_file().parent.mkdir(parents=True)
    machines.state_file().write_text(text)
    with pytest.raises(UsageError, match=words) as told:
        machines.read_fleet()
    assert "\n" not in str(told.value)


def test_each_task_is_answered_by_its_machine(reached: SshFleet):
    a, b = reached.nodes()
    tasks = [reached.begin(a, b"work", {"own.py": b"1"}), reached.ask(b)]
    while len(reached.wait(tasks, PATIENCE_S)) < len(tasks):
        pass
    answer = reached.answer(tasks[0])
    assert isinstance(answer, UnitAnswer)
    assert (answer.end.exit_code, answer.files) == (0, {"own.py": b"1"})
    assert b'"id":"b"' in reached.answer(tasks[1])
    assert reached.heard() == [(b"begun", {"journal.jsonl": b"so far"})]
    assert reached.heard() == []
    assert [node.id for node in reached.nodes()] == ["a 0", "b 0"]


def test_without_a_task_it_waits_all_the_same(reached: SshFleet):
    begun = time.monotonic()
    assert reached.wait([], 0.05) == []
    assert time.monotonic() - begun >= 0.05


@pytest.mark.parametrize(
    ("task", "reason"),
    [("die", "out of memory"), ("rubbish", "not one of tfcompare's"), ("greedy", "more than any unit has")],
)
def test_a_machine_that_loses_a_unit_says_again_what_it_is(reached: SshFleet, task: str, reason: str):
    a, _ = reached.nodes()
    begun = reached.begin(a, task.encode(), {})
    assert reached.wait([begun], PATIENCE_S) == [begun]
    with pytest.raises(TaskLost, match=reason):
        reached.answer(begun)
    if task != "rubbish":
        assert [node.id for node in reached.nodes()] == ["a 1", "b 0"]


def test_a_machine_that_does_not_say_what_it_is_is_asked_again_later(
    named: NamedFleet, monkeypatch: pytest.MonkeyPatch
):
    down = NamedFleet(ssh=named.ssh, python=named.python, machines=(FleetMachine(host="down", labels={"host": "x"}),))
    monkeypatch.setattr(machines, "RETRY_S", 0.2)
    with open_machines(down) as reached:
        [node] = reached.nodes()
        begun = reached.ask(node)
        reached.wait([begun], PATIENCE_S)
        with pytest.raises(TaskLost, match="No route to host"):
            reached.answer(begun)
        assert reached.nodes() == []
        time.sleep(0.25)
        assert [node.id for node in reached.nodes()] == ["x 1"]


def test_a_unit_that_is_not_wanted_ends_politely(reached: SshFleet, tmp_path: Path):
    a, _ = reached.nodes()
    begun = reached.begin(a, b"wait", {})
    until = time.monotonic() + PATIENCE_S
    while not reached.heard():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not (tmp_path / "let-go").exists()
    reached.end(begun)
    assert reached.wait([begun], PATIENCE_S) == [begun]
    assert (tmp_path / "let-go").exists()


def test_a_host_hears_that_the_command_lives(named: NamedFleet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host_process, "BEAT_S", 0.05)
    with open_machines(named) as reached:
        begun = reached.begin(reached.nodes()[0], b"listen", {})
        assert reached.wait([begun], PATIENCE_S) == [begun]
        assert reached.answer(begun).files == {"heard": b"\n\n"}


def test_what_is_under_way_ends_with_the_fleet(named: NamedFleet, tmp_path: Path):
    with open_machines(named) as reached:
        for node in reached.nodes():
            reached.begin(node, b"wait", {})
        pids = read_pids(tmp_path / "pids", 2)
        assert all(map(is_running, pids))
    wait_for_end(*pids)
    assert (tmp_path / "let-go").exists()
