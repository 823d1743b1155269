"""Runs that a real Ray cluster measures: real nodes, real workers, a stub of TensorFlow.

The nodes are simulated hosts: they share this machine, and each has its name and its lock.
"""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchestrator.history.model import Night
from orchestrator.history.store import Store
from orchestrator.model import Ended
from orchestrator.results.run import Run, load_run
from orchestrator.results.run_folder import RunFolder
from tests.conftest import ROOT, run_command
from tests.support.fleets import Nodes, free_port
from tests.support.processes import PATIENCE_S

pytest.importorskip("ray")

SCHEMA = json.loads((ROOT / "docs" / "schema" / "comparison-1.json").read_text())
VERSIONS = ("--versions", "1.14,2.0", "--engine", "venv")
# Every replicate writes down when it began, by the clock that all processes share.
WORKLOAD = """
'''Sleeps, and says when.'''
import time
PARAMS = {{"style": ("eager", "graph"), "size": ("1", "2")}}
COMPARISONS = {{"style": "eager"}}

def build(tf, params):
    with open({moments!r}, "a") as file:
        file.write("%s %s %s\\n" % (time.monotonic(), params["style"], params["size"]))
    wait = 0.004 if params["style"] == "eager" else 0.002
    return lambda: time.sleep(wait)
"""


@pytest.fixture(scope="module")
def nodes(stub_cache: dict[str, str]) -> Iterator[Nodes]:
    nodes = Nodes(stub_cache)
    try:
        nodes.add("a", gpu="a100")
        nodes.add("b", gpu="t4")
        yield nodes
    finally:
        nodes.close()


@dataclass
class FleetScene:
    """A folder with a workload, and the command."""

    command: str
    folder: Path
    nodes: Nodes

    @property
    def moments(self) -> Path:
        return self.folder / "moments"

    @property
    def own(self) -> Path:
        own = self.folder / "own"
        own.mkdir(exist_ok=True)
        (own / "own.py").write_text(WORKLOAD.format(moments=str(self.moments)))
        return own

    def words(self, out: str, *flags: str) -> list[str]:
        return [
            self.command, "run", *VERSIONS, "--workload-folder", str(self.own),
            "--output", str(self.folder / out), *flags,
        ]  # fmt: skip

    def run(self, out: str, *flags: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        return run_command(*self.words(out, *flags), env={**self.nodes.env, **(env or {})})

    def start(self, out: str, *flags: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.words(out, *flags), env={**os.environ, **self.nodes.env}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def resume(self, out: str, *flags: str) -> "subprocess.CompletedProcess[str]":
        return run_command(self.command, "run", "--resume", self.folder / out, *flags, env=self.nodes.env)

    def load(self, out: str) -> Run:
        return load_run(self.folder / out)

    def await_partial_rounds(self, out: str) -> Path:
        """Wait until a host has sent some of what it measures, and return where that is kept."""
        until = time.monotonic() + PATIENCE_S
        while True:
            kept = [path.parent for path in (self.folder / out).glob("unused/*/plan.json")]
            if kept and any(isinstance(entry, Ended) for entry in RunFolder(kept[0]).entries()):
                return kept[0]
            assert time.monotonic() < until, "no host has sent anything"
            time.sleep(0.05)


@pytest.fixture
def scene(tfcompare: str, nodes: Nodes, tmp_path: Path) -> FleetScene:
    return FleetScene(tfcompare, tmp_path, nodes)


def host_of(run: Run, case: str) -> str:
    [host] = [str(each.host["id"]) for each in run.manifest.hosts if case in each.cases]
    return host.rpartition("-")[2]


def check_whole(run: Run, cases: int = 4) -> None:
    """Every case is there once with all its arms, each on one host."""
    assert len(run.arms) == cases * 2
    assert {arm.outcome for arm in run.arms} == {"measured"}
    assert run.evaluation.broken == ()
    assert len({(one.target, one.number) for one in run.replicates}) == len(run.replicates)
    assert sorted(case for each in run.manifest.hosts for case in each.cases) == sorted(
        case.label for case in run.plan.cases
    )


def test_cases_are_shared_out_and_the_run_is_like_any_other(scene: FleetScene):
    local = scene.run("local", "--rounds", "2", "--case", "own[size=1]")
    assert local.returncode == 0, local.stderr
    scene.moments.unlink()
    done = scene.run("whole", "--on", "auto", "--rounds", "3", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "fleet: 2 hosts (a, b), engine venv" in done.stderr
    Draft202012Validator(SCHEMA).validate(json.loads(done.stdout))
    run = scene.load("whole")
    check_whole(run)
    # Cases that are compared with each other were on one host, and both hosts had some.
    hosts = {case.label: host_of(run, case.label) for case in run.plan.cases}
    assert set(hosts.values()) == {"a", "b"}
    assert all(hosts[f"own[style=eager,size={size}]"] == hosts[f"own[style=graph,size={size}]"] for size in "12")
    # Nothing that was measured on a host overlapped with anything else on it: it had one unit at a time.
    spans: dict[str, list[tuple[float, float]]] = {}
    moments = [line.split() for line in scene.moments.read_text().splitlines()]
    for size in "12":
        times = [float(moment) for moment, _, of in moments if of == size]
        spans.setdefault(hosts[f"own[style=eager,size={size}]"], []).append((min(times), max(times)))
    for of_host in spans.values():
        ordered = sorted(of_host)
        assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(ordered))
    # The files are those of a run on one machine, but for what continues it.
    names = {path.name for path in (scene.folder / "local").iterdir()}
    assert {path.name for path in (scene.folder / "whole").iterdir()} == names | {"fleet.json", "unused", "parts"}
    for name, more in (("plan", set()), ("manifest", {"hosts"})):
        keys = [set(json.loads((scene.folder / out / f"{name}.json").read_text())) for out in ("whole", "local")]
        assert keys[0] == keys[1] | more
    assert list((scene.folder / "whole" / "unused").iterdir()) == []
    shown = run_command(scene.command, "report", scene.folder / "whole").stdout
    assert "host" in shown
    assert "own[style=eager,size=1]" in shown


@pytest.mark.long
def test_a_driver_elsewhere_measures_by_the_client_where_it_wants_to(scene: FleetScene):
    done = scene.run(
        "client", "--on", scene.nodes.address, "--where", "gpu=t4", "--case", "own[size=1]", "--rounds", "2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "warning: a is left out: --where: it lacks gpu=t4" in done.stderr
    run = scene.load("client")
    check_whole(run, 2)
    assert {host_of(run, case.label) for case in run.plan.cases} == {"b"}


@pytest.mark.long
def test_two_hosts_measure_each_case_and_are_compared(scene: FleetScene):
    done = scene.run("twice", "--on", "auto", "--replicate-hosts", "2", "--case", "own[size=1]", "--rounds", "4")
    assert done.returncode == 0, done.stderr
    first, second = scene.load("twice"), scene.load("twice/replicas/2")
    for run in (first, second):
        check_whole(run, 2)
    for case in first.plan.cases:
        assert {host_of(first, case.label), host_of(second, case.label)} == {"a", "b"}
    assert any(note.startswith("two hosts measured each case") for note in first.manifest.notes)
    assert "two hosts measured each case" in " ".join(done.stdout.split())


@pytest.mark.long
def test_a_second_copy_waits_for_a_second_host(scene: FleetScene):
    """Host b is not asked at first: host a, which has the first copy of the case, never gets the second."""
    flags = ("--on", "auto", "--where", "host=a")
    done = scene.run("half", *flags, "--replicate-hosts", "2", "--case", "own[size=1]", "--rounds", "2")
    assert done.returncode == 4
    again = scene.resume("half", *flags)
    assert again.returncode == 4
    for ended in (done, again):
        assert "a: it has the other copy, and each copy needs a different host" in ended.stderr
        assert "one host alone has measured own[style=eager,size=1]" in " ".join(ended.stdout.split())
        assert "two hosts" not in ended.stdout
    assert RunFolder(scene.folder / "half" / "replicas" / "2").read_manifest().hosts == ()
    whole = scene.resume("half", "--on", "auto", "--where", "host=b")
    assert whole.returncode == 0, whole.stderr
    first, second = scene.load("half"), scene.load("half/replicas/2")
    for case in first.plan.cases:
        assert [host_of(run, case.label) for run in (first, second)] == ["a", "b"]
    shown = " ".join(whole.stdout.split())
    assert "two hosts measured each case" in shown
    assert "one host alone" not in shown


def test_what_cannot_be_placed_is_reported_at_once(scene: FleetScene):
    # Or it would wait for such a machine for ever.
    done = scene.run("nowhere", "--on", "auto", "--where", "gpu=v100", "--rounds", "2")
    assert done.returncode == 4
    assert "a is left out: --where: it lacks gpu=v100" in done.stderr
    assert "no machine of the cluster can measure" in done.stderr
    assert not (scene.folder / "nowhere").exists()


def test_a_wrong_token_is_refused(scene: FleetScene, tmp_path: Path):
    wrong = tmp_path / "wrong"
    wrong.write_text("0" * 64)
    done = scene.run("refused", "--on", scene.nodes.address, env={"RAY_AUTH_TOKEN_PATH": str(wrong)})
    assert done.returncode == 4
    assert f"tfcompare: --on {scene.nodes.address}: the cluster refuses this token" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_no_cluster_at_an_address_is_one_sentence(scene: FleetScene):
    done = scene.run("none", "--on", f"ray://127.0.0.1:{free_port()}")
    assert done.returncode == 4
    assert "no cluster answers there" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.long
def test_a_search_has_one_host_and_only_that_continues_it(scene: FleetScene):
    words = ("bisect", "--good", "1.14", "--bad", "2.0", "--case", "own[style=eager,size=1]", "--rounds", "4")
    flags = ("--engine", "venv", "--workload-folder", scene.own, "--output", scene.folder / "hunt")
    done = run_command(scene.command, *words, *flags, "--on", "auto", env=scene.nodes.env)
    assert done.returncode == 3, done.stderr
    assert "nothing to find" in done.stderr
    state = json.loads((scene.folder / "hunt" / "bisect.json").read_text())
    host = state["host"]["id"]
    run = load_run(scene.folder / "hunt" / "steps" / "01")
    assert {str(each.host["id"]) for each in run.manifest.hosts} == {host}
    here = run_command(scene.command, "bisect", "--resume", scene.folder / "hunt", env=scene.nodes.env)
    assert here.returncode == 2
    assert "was measured on another machine" in here.stderr
    again = run_command(scene.command, "bisect", "--resume", scene.folder / "hunt", "--on", "auto", env=scene.nodes.env)
    assert again.returncode == 3, again.stderr


@pytest.mark.long
def test_a_night_is_of_one_host(scene: FleetScene):
    words = (
        "nightly", "run", "--versions", "1.14,2.0", "--engine", "venv", "--workload-folder", scene.own, "--rounds", "2",
        "--case", "own[size=1]", "--history", scene.folder / "history", "--on", "auto",
    )  # fmt: skip
    several = run_command(scene.command, *words, env=scene.nodes.env)
    assert several.returncode == 2
    assert "a night is of one machine, and the fleet has a, b: choose one, e.g. --where host=a" in several.stderr
    done = run_command(scene.command, *words, "--where", "host=b", env=scene.nodes.env)
    assert done.returncode == 0, done.stderr
    store = Store(scene.folder / "history")
    [night] = [event for event in store.events()[0] if isinstance(event, Night)]
    assert night.host.endswith("-b")
    assert {point.host for point in store.read().points()} == {night.host}


def test_claims_are_tested_by_a_fleet(scene: FleetScene):
    """The stub has none of what claims are about: all that is asked here is that they arrive."""
    names = ("predict-after-compile", "keras-3-dense-fit-slow")
    done = run_command(
        scene.command, "reproduce", "--on", "auto", "--engine", "venv", "--dry-run", *names[:1], env=scene.nodes.env
    )
    assert done.returncode == 0, done.stderr
    assert "in 1 unit, each on one host" in done.stdout


@pytest.mark.long
def test_a_machine_that_is_measuring_is_let_be(scene: FleetScene):
    """Somebody else's run holds the lock of host b: all units go to host a."""
    held = subprocess.Popen(
        [
            sys.executable, "-c",
            "from orchestrator.machine.occupied import occupy\nwith occupy(alone=False): print(1, flush=True); input()",
        ],
        env={**os.environ, "TFCOMPARE_HOST": "b"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert held.stdout
    assert held.stdout.readline()
    with held:
        try:
            done = scene.run("beside", "--on", "auto", "--rounds", "2")
        finally:
            held.kill()
    assert done.returncode == 0, done.stderr
    assert "b is asked again every 20 s: another run is measuring on this machine" in done.stderr
    run = scene.load("beside")
    check_whole(run)
    assert {host_of(run, case.label) for case in run.plan.cases} == {"a"}


def test_a_second_node_of_a_machine_is_left_out(scene: FleetScene):
    scene.nodes.add("again", host="a")
    try:
        done = scene.run("double", "--on", "auto", "--dry-run")
    finally:
        scene.nodes.end("again")
    assert done.returncode == 0, done.stderr
    assert "it has the same id as" in done.stderr
    assert done.stdout.count("can measure 2 units") == 2


@pytest.mark.long
def test_a_process_that_is_killed_costs_its_unit_a_new_beginning(scene: FleetScene):
    with scene.start("killed", "--on", "auto", "--rounds", "4") as driver:
        kept = scene.await_partial_rounds("killed")
        scene.nodes.kill("a", "ray::_measure")
        scene.nodes.kill("b", "ray::_measure")
        _, stderr = driver.communicate(timeout=PATIENCE_S * 3)
    assert driver.returncode == 0, stderr
    assert "begins again at its first round: its process on the host died" in stderr
    check_whole(scene.load("killed"))
    # What it had measured is kept, and counts nowhere.
    assert any(isinstance(entry, Ended) for entry in RunFolder(kept).entries())
    assert {arm.rounds for arm in scene.load("killed").arms} == {4}


@pytest.mark.long
def test_a_driver_that_is_killed_is_continued_without_what_is_measured(scene: FleetScene):
    with scene.start("continued", "--on", "auto", "--rounds", "6") as driver:
        assert driver.stderr
        for line in driver.stderr:
            if "is measured, 1 of 2" in line:
                break
        driver.kill()
        driver.wait()
    before = scene.load("continued")
    measured = {case for each in before.manifest.hosts for case in each.cases}
    assert measured
    rounds = {(one.arm, one.round, one.time_ns) for one in before.replicates}
    # On one machine it cannot be continued.
    alone = scene.resume("continued")
    assert alone.returncode == 2
    assert "was measured by a fleet" in alone.stderr
    done = scene.resume("continued", "--on", "auto")
    assert done.returncode == 0, done.stderr
    assert "is measured, 1 of 1" in done.stderr
    after = scene.load("continued")
    check_whole(after)
    assert rounds <= {(one.arm, one.round, one.time_ns) for one in after.replicates}
    again = scene.resume("continued", "--on", "auto")
    assert again.returncode == 3
    assert "every case of" in again.stderr


@pytest.mark.long
def test_a_machine_that_dies_leaves_its_unit_to_another(scene: FleetScene):
    """The last test: afterwards host a is gone."""
    with scene.start("died", "--on", "auto", "--rounds", "6") as driver:
        scene.await_partial_rounds("died")
        scene.nodes.kill("a")
        _, stderr = driver.communicate(timeout=PATIENCE_S * 3)
    assert driver.returncode == 0, stderr
    assert "begins again at its first round" in stderr or "a is gone" in stderr
    run = scene.load("died")
    check_whole(run)
    assert {arm.rounds for arm in run.arms} == {6}
    assert "b" in {host_of(run, case.label) for case in run.plan.cases}
