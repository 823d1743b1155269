"""A run that leaves something undecided ends with the command that continues it, and that command works as printed."""

import shlex
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.catalog import workloads
from orchestrator.model import Lost
from orchestrator.reports.next_step import flag_values, next_line, round_s
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run import load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import RoundDone
from tests.support import builders, stub
from tests.support.actors import Part, Stage, offer, play
from tests.support.builders import NEW, OLD, arm, case, evaluation, finished, plan, target
from tests.support.commands import called
from tests.support.stub_engine import Engine
from tests.support.theatre import OPEN, STAGE, VERSIONS, Theatre, dressed, noisy


def test_a_round_costs_the_calls_of_its_arms_and_what_a_replicate_takes_besides():
    """Ten replicates of 2 and 4 s took 50 s: 2 s each went into forks and messages."""
    one, other = case("one"), case("other")
    arms = (arm(one, OLD, build=1000.0, train_s=1.0), arm(other, OLD, build=1000.0, train_s=3.0))
    entries = [
        *(builders.ended(label, OLD, round=number, replicate=number)
          for label in ("one", "other") for number in range(5)),
        finished(how="", seconds=50.0),
    ]  # fmt: skip
    judged = evaluation(plan=plan([one, other], (OLD,)), arms=arms)
    assert round_s(judged, entries, [("one", OLD)]) == pytest.approx(4.0)
    assert round_s(judged, entries, [("one", OLD), ("other", OLD)]) == pytest.approx(10.0)
    assert round_s(judged, entries, [("never measured", NEW)]) == pytest.approx(5.0)
    assert round_s(judged, [], [("one", OLD)]) == pytest.approx(2.0)


@pytest.mark.parametrize("rounds", [(0,), (0, 1), (0, 2, 3, 4)])
def test_a_round_takes_the_start_of_its_workers_however_many_were_measured(rounds: tuple[int, ...]):
    """Workers start in 14 s, the first of them before the run's time begins, and both arms take 12 s a round."""
    one = case("one")
    arms = tuple(arm(one, version, build=1000.0, train_s=3.0) for version in (OLD, NEW))
    entries = [
        builders.ended("one", version, round=number, replicate=2 * number + place)
        for number in rounds
        for place, version in enumerate((OLD, NEW))
    ]
    renewals = sum(number > 1 for number in rounds)
    end = finished(how="", seconds=12.0 * len(rounds) + 14.0 * renewals, start_s=14.0)
    judged = evaluation(plan=plan([one]), arms=arms)
    assert round_s(judged, [*entries, end], [("one", OLD), ("one", NEW)]) == pytest.approx(26.0)


def test_flags_are_found_with_their_values_however_they_were_written():
    command = ("run", "--workload-folder", "my folder", "--base=x:{python}", "--control")
    assert list(flag_values(command, ("--workload-folder", "--base"))) == [
        ("--workload-folder", "my folder"),
        ("--base", "x:{python}"),
    ]


@pytest.fixture
def theatre(monkeypatch: pytest.MonkeyPatch) -> Theatre:
    made = Theatre(Stage(dict(STAGE)))
    offer(monkeypatch, venv=made)
    return made


def ended(folder: Path, stage: Stage | None = None, *, seconds: float = 0.0, **changes) -> RunFolder:
    """A run of one case, undecided unless the stage says otherwise."""
    asked = plan([OPEN], VERSIONS, **{"looks": (4, 8), **changes})
    made = dressed(play(folder, asked, stage or Stage(dict(STAGE))).run)
    if seconds:
        made.record(finished(how="", seconds=seconds))
    return made


def line_of(folder: RunFolder) -> str:
    return next_line(folder.path, judge_run(folder))


def test_the_command_names_the_run_and_what_its_next_look_takes(tmp_path: Path):
    """Three rounds, of which the pilot is one, took 30 s, ten a round; two more make a look."""
    made = ended(tmp_path / "a b", looks=(3,), seconds=30.0)
    made.write_plan(replace(made.read_plan(), looks=(3, 5)))
    assert line_of(made) == f"Next:  tfcompare run --resume '{made.path}' --budget 30s"


def test_the_command_keeps_the_flags_that_made_the_environments(tmp_path: Path):
    made = ended(tmp_path)
    command = ("run", "--versions", "1.14,2.0", "--base=x:{python}", "--wheelhouse", "my wheels", "--threads", "1,1")
    made.write_manifest(replace(made.read_manifest(), command=command))
    assert line_of(made).endswith(" --budget 30s --base 'x:{python}' --wheelhouse 'my wheels'")


def test_the_command_works_as_printed(tmp_path: Path, theatre: Theatre, monkeypatch, capsys):
    # It was written by hand, and no command of this user began it.
    monkeypatch.setenv("TFCOMPARE_TRUST", "1")
    made = ended(tmp_path / "a b")
    program, *words = shlex.split(line_of(made).removeprefix("Next:  "))
    assert program == "tfcompare"
    assert called(monkeypatch, *words) == 0
    assert {one.rounds for one in judge_run(made).arms} == {18}
    assert capsys.readouterr().err.splitlines()[-1] == line_of(made)


def test_a_report_ends_with_it_in_one_line_and_json_has_none(tmp_path: Path, monkeypatch, capsys):
    made = ended(tmp_path / "with a long name" / "that no narrow table holds in one line")
    monkeypatch.setenv("COLUMNS", "60")
    assert called(monkeypatch, "report", str(made.path)) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-2:] == ["", line_of(made)]
    assert called(monkeypatch, "report", str(made.path), "--output", str(tmp_path / "table")) == 0
    assert (tmp_path / "table").read_text() == out
    capsys.readouterr()
    assert called(monkeypatch, "report", str(made.path), "--format", "json") == 0
    assert "Next:" not in capsys.readouterr().out


def test_where_nothing_can_be_decided_there_is_no_command(tmp_path: Path):
    decided = Stage({(OPEN.label, "2.0.0"): Part(lambda number: 20.0)})
    dead = Stage({(OPEN.label, "2.0.0"): Part(noisy, dies=("open", 3))})
    elsewhere = ended(tmp_path / "elsewhere")
    elsewhere.write_manifest(replace(elsewhere.read_manifest(), host={"id": "elsewhere"}))
    lost = ended(tmp_path / "lost")
    facts = lost.read_manifest().environments
    lost.write_manifest(replace(lost.read_manifest(), environments={target("1.14.0"): facts[target("1.14.0")]}))
    without = [ended(tmp_path / "decided", decided, looks=(6,)), ended(tmp_path / "dead", dead), elsewhere, lost]
    assert [line_of(made) for made in without] == [""] * 4


def interrupting(at: int) -> Stage:
    def ms(number: int) -> float:
        if number == at:
            raise KeyboardInterrupt
        return noisy(number)

    return Stage({(OPEN.label, "2.0.0"): Part(ms)})


@pytest.mark.parametrize(("at", "budget"), [(0, ""), (3, " --budget ")])
def test_an_interrupted_run_is_continued_with_a_budget_if_the_length_of_a_round_is_known(
    tmp_path: Path, at: int, budget: str
):
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, plan([OPEN], VERSIONS), interrupting(at))
    line = line_of(dressed(RunFolder.open(tmp_path / "run")))
    assert line.startswith(f"Next:  tfcompare run --resume {tmp_path}/run{budget}")
    assert ("--budget" in line) is bool(budget)


def test_a_run_whose_worker_was_killed_is_continued(tmp_path: Path):
    killed = Stage({(OPEN.label, "2.0.0"): Part(noisy, takes_its_worker_along=("open", 3))})
    assert line_of(ended(tmp_path, killed)).startswith("Next:  tfcompare run --resume ")


@pytest.mark.parametrize("external", [True, False])
def test_a_version_that_was_lost_to_something_outside_is_worth_another_try(tmp_path: Path, external: bool):
    made = ended(tmp_path)
    made.record(
        Lost(target=target("2.0.0"), stage="worker", reason="it died 3 times", failure="signal", external=external)
    )
    assert bool(line_of(made)) is external


# Two versions of the same code whose replicates differ by chance: no two rounds decide anything.
CHANCE = """
    '''Takes a time of its replicate's own.'''
    import os, time

    def build(tf, params):
        pause_s = 0.0005 + 0.003 * (os.getpid() % 7)
        return lambda: time.sleep(pause_s)
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of own workloads, in a folder where versions are stubs; everything else of a run is real."""
    engine = Engine(stub.write(tmp_path / "stub"))
    offer(monkeypatch, venv=lambda options: engine)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my workloads").mkdir()
    (tmp_path / "my workloads" / "chance.py").write_text(dedent(CHANCE))
    return Path("my workloads")


@pytest.mark.slow
def test_a_real_run_is_continued_by_its_last_line(mine: Path, monkeypatch, capsys):
    flags = ("--versions", "1.14,2.0", "--workload-folder", str(mine), "--budget", "1s", "--output", "first run")
    assert called(monkeypatch, "run", *flags) == 0
    before = load_run("first run")
    last = capsys.readouterr().err.splitlines()[-2:]
    assert last[0] == "run folder: first run"
    assert last[1].startswith("Next:  tfcompare run --resume 'first run' --budget ")
    assert "--workload-folder" not in last[1], "the run keeps them"
    (mine / "chance.py").unlink()
    assert called(monkeypatch, *shlex.split(last[1].removeprefix("Next:  "))[1:]) == 0
    after = load_run("first run")
    (earlier,), (later,) = before.comparisons, after.comparisons
    assert earlier.verdict == "inconclusive"
    assert later.rounds > earlier.rounds
    assert not later.exploratory


def test_a_quiet_run_says_nothing_of_it(mine: Path, monkeypatch, capsys):
    flags = ("--versions", "1.14,2.0", "--workload-folder", str(mine), "--rounds", "2", "--output", "run", "--quiet")
    assert called(monkeypatch, "run", *flags) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_it_is_the_last_line_of_a_run_that_an_interrupt_ended(mine: Path, monkeypatch, capsys):
    """Also after the words on what was kept."""
    rounds: list[int] = []

    def until(view, done: RoundDone) -> None:
        rounds.append(done.number)
        if done.number == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("orchestrator.terminal.progress.PlainView.round_done", until)
    flags = ("--versions", "1.14,2.0", "--workload-folder", str(mine), "--output", "run")
    assert called(monkeypatch, "run", *flags) == 130
    # Where the pilot was the first round of every case, nothing is said of another first one.
    assert rounds[-2:] == [2, 3]
    *_, kept, last = capsys.readouterr().err.splitlines()
    assert kept == "tfcompare: interrupted; what was measured before is kept: tfcompare report run"
    assert last.startswith("Next:  tfcompare run --resume run --budget ")


CHANGES_ITSELF = """
    from pathlib import Path

    import _helper

    def build(tf, params):
        # As an editor would, while the run goes on.
        for name in ("changes.py", "_helper.py"):
            (Path(USERS) / name).write_text("raise ValueError('edited')")
        return lambda: _helper.VALUE
"""


def test_a_workload_that_is_edited_while_it_is_measured_is_measured_as_it_was(mine: Path, monkeypatch, capsys):
    (mine / "chance.py").unlink()
    source = dedent(CHANGES_ITSELF).replace("USERS", repr(str(mine.absolute())))
    (mine / "changes.py").write_text(source)
    (mine / "_helper.py").write_text("VALUE = 1.0\n")
    flags = ("--versions", "1.14,2.0", "--workload-folder", str(mine), "--rounds", "3", "--output", "run")
    assert called(monkeypatch, "run", *flags) == 0, capsys.readouterr().err
    done = load_run("run")
    assert {(arm.outcome, arm.rounds) for arm in done.arms} == {("measured", 3)}
    assert (mine / "changes.py").read_text() == "raise ValueError('edited')"
    kept = workloads.all_workloads(done.path / "workloads")
    assert done.manifest.sources["changes"] == workloads.source_hashes([kept["changes"]])["changes"]


def test_a_large_file_is_read_where_it_is_and_listed_in_the_plan(mine: Path, monkeypatch, capsys):
    (mine / "chance.py").write_text(
        "import os\ndef build(tf, params):\n"
        "    path = os.path.join(os.path.dirname(__file__), 'data', 'large.bin')\n"
        "    assert os.path.getsize(path) == 11 * 10**6\n    return lambda: 1.0\n"
    )
    (mine / "data").mkdir()
    with (mine / "data" / "large.bin").open("wb") as file:
        file.truncate(11 * 10**6)
    flags = ("--versions", "1.14,2.0", "--workload-folder", str(mine), "--rounds", "2", "--output", "run")
    assert called(monkeypatch, "run", *flags) == 0
    assert "note: data/large.bin (11 MB) is not copied" in capsys.readouterr().err
    (large,) = load_run("run").plan.large
    assert (large.name, large.bytes) == ("data/large.bin", 11 * 10**6)
    assert called(monkeypatch, "run", *flags[:4], "--dry-run") == 0
    assert "data/large.bin (11 MB) is not copied" in capsys.readouterr().out
