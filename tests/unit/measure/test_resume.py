"""More rounds: what they are called, which cases they are for, and what of the error is left for them."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import pinned, workloads
from orchestrator.engines.worker.client import WorkerClient
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.machine.gpu import Gpu
from orchestrator.measure import resume
from orchestrator.measure.forecast import forecast_more
from orchestrator.measure.resume import add_rounds
from orchestrator.model import Calibrated, Disturbed, Ended, Extended, Lost, Machine, Postponed, Prolonged
from orchestrator.options import EngineOptions
from orchestrator.plan import gpus
from orchestrator.results.endings import summarise_endings
from orchestrator.results.evaluation import judge_run
from orchestrator.results.more_rounds import ResumeOptions, plan_extension
from orchestrator.results.past import read_past
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats.calibrate import Effort
from orchestrator.terminal.view import View
from tests.support import builders
from tests.support.actors import Part, Stage, offer, play
from tests.support.builders import NEW, OLD, case, finished, plan, run_folder, target
from tests.support.clock import Clock
from tests.support.heard import Heard
from tests.support.theatre import DECIDED, OPEN, STAGE, VERSIONS, Theatre, dressed, noisy

LOOKS = (6, 10, 15, 20)


def ended(round: int, outcome: str = "measured", version: str = OLD) -> Ended:
    return builders.ended("a", version, outcome, round=round, replicate=round + 1)


def extended(first: int, *looks: int, exploratory: bool = False) -> Extended:
    return Extended(
        created=plan().created,
        command=(),
        seed=1,
        first_round=first,
        looks=looks,
        budget_s=None,
        exploratory=exploratory,
    )


def rounds(last: int, first: int = 0) -> tuple[Ended, ...]:
    return tuple(map(ended, range(first, last + 1)))


def calibrated(version: str, *, counts: bool = False) -> Calibrated:
    return Calibrated(case="a", target=target(version), warmup=1, bursts=2, calls=3, once=0, counts=counts)


def test_the_past_is_what_the_journal_says():
    disturbed = Disturbed(case="a", round=3, replicates=(4,), cause="x", redone=True)
    past = read_past(plan(), [calibrated(OLD), *rounds(8), ended(8, "died", NEW), disturbed])
    assert past.progress.efforts == {("a", OLD): Effort(1, 2, 3)}
    assert past.progress.ended == {("a", NEW)}
    assert (past.progress.redone["a"], past.progress.replicates) == (1, 9)
    assert (past.progress.rounds["a"], past.rounds) == (8, 8)


def test_a_pilot_that_counts_is_a_round_of_the_past():
    past = read_past(plan(), [ended(0), calibrated(OLD, counts=True)])
    assert (past.progress.rounds["a"], past.rounds) == (1, 1)
    assert read_past(plan(), [ended(0), calibrated(OLD)]).rounds == 0


def test_every_stretch_spends_its_part_of_the_error():
    """A look where none was planned spends half of what is left; the rest is for the looks ahead."""
    entries = (*rounds(6), extended(7, 10, 15, 20), *rounds(12, 7))
    assert read_past(plan(), rounds(6)).spent == 0.5
    assert 0.5 < read_past(plan(), entries).spent < 1
    assert read_past(plan(), (*entries, extended(13, 20), *rounds(20, 13))).spent == 1


@pytest.mark.parametrize("last", [0, 1, 3])
def test_a_run_that_showed_nothing_has_spent_nothing(last: int):
    past = read_past(plan(), rounds(last))
    assert past.spent == 0
    assert plan_extension(ResumeOptions(run=Path()), plan(), past).looks == LOOKS


def test_the_unspent_error_is_for_the_planned_looks_that_are_ahead():
    ahead = plan_extension(ResumeOptions(run=Path()), plan(), read_past(plan(), rounds(8)))
    assert (ahead.first_round, ahead.looks, ahead.exploratory) == (9, (10, 15, 20), False)


def test_a_run_that_its_pilot_prolonged_goes_on_with_the_same_looks():
    past = read_past(plan(), [Prolonged(looks=(*LOOKS, 25, 32)), *rounds(20)])
    assert 0 < past.spent < 1
    ahead = plan_extension(ResumeOptions(run=Path()), plan(), past)
    assert (ahead.looks, ahead.exploratory) == ((25, 32), False)
    begun = (extended(1, *LOOKS), Prolonged(looks=(*LOOKS, 25)), *rounds(25))
    assert summarise_endings(begun).schedule(LOOKS).looks == (*LOOKS, 25)
    assert read_past(plan(), begun).spent == 1


@pytest.mark.parametrize("last", [5, 6, 8])
def test_a_run_that_a_budget_ended_and_its_continuation_share_the_error(last: int):
    cut = finished(how="the budget of 60 s ended the run", seconds=60.0)
    begun = (*rounds(last), cut)
    first = summarise_endings(begun).schedule(LOOKS)
    assert first.looks == tuple(sorted({look for look in LOOKS if look < last} | {last}))
    assert 0.5 <= first.spent[-1] < 1
    ahead = plan_extension(ResumeOptions(run=Path()), plan(), read_past(plan(), begun))
    whole = summarise_endings((*begun, ahead, *rounds(20, last + 1))).schedule(LOOKS)
    assert whole.looks == (*first.looks, *ahead.looks)
    assert whole.spent[: len(first.looks)] == first.spent
    assert whole.spent[-1] == 1
    # What was decided before more rounds stays decided.
    for look in first.looks:
        assert whole.level(look, 0.05) == pytest.approx(first.level(look, 0.05), rel=1e-6)


def test_a_run_that_ended_by_itself_is_judged_at_its_planned_looks():
    schedule = summarise_endings((*rounds(10), finished(how="", seconds=1.0))).schedule(LOOKS)
    assert schedule.looks == LOOKS
    assert schedule.spent[-1] == 1


def test_rounds_that_are_asked_for_are_one_look():
    ahead = plan_extension(ResumeOptions(run=Path(), rounds=30), plan(), read_past(plan(), rounds(8)))
    assert (ahead.looks, ahead.exploratory) == ((38,), False)


def test_what_comes_after_the_last_look_is_exploratory():
    ahead = plan_extension(ResumeOptions(run=Path()), plan(), read_past(plan(), rounds(20)))
    assert (ahead.looks, ahead.exploratory) == ((30,), True)
    fixed = plan(looks=(8,))
    assert plan_extension(ResumeOptions(run=Path()), fixed, read_past(fixed, rounds(8))).exploratory


@pytest.mark.parametrize("few", [2, 3])
def test_what_comes_after_rounds_that_were_too_few_for_a_verdict_is_not_exploratory(few: int):
    fixed = plan(looks=(few,))
    begun = (*rounds(few), finished(how="", seconds=1.0))
    assert not plan_extension(ResumeOptions(run=Path(), rounds=4), fixed, read_past(fixed, begun)).exploratory


def test_orders_are_drawn_anew():
    past = read_past(plan(), [])
    seeds = {plan_extension(ResumeOptions(run=Path()), plan(), past).seed for _ in range(5)}
    assert len(seeds) == 5


@pytest.fixture
def theatre(monkeypatch: pytest.MonkeyPatch) -> Theatre:
    made = Theatre(Stage(dict(STAGE)))
    offer(monkeypatch, venv=made)
    return made


def first(folder: Path, *, looks=(6, 10), sources: dict[str, str] | None = None, **host: str) -> RunFolder:
    """A run of a case that is decided at its first look and one that stays open to its last."""
    return dressed(play(folder, plan([OPEN, DECIDED], VERSIONS, looks=looks), Stage(dict(STAGE))).run, sources, **host)


def test_more_rounds_go_to_the_open_cases_of_the_same_run(tmp_path: Path, theatre: Theatre):
    run = first(tmp_path)
    done = add_rounds(ResumeOptions(run=run.path, rounds=4), View())
    assert theatre.stage.opened(OPEN.label, "2.0.0") == [11, 12, 13, 14]
    assert theatre.stage.opened(DECIDED.label, "2.0.0") == []
    rounds = {arm.case.label: arm.rounds for arm in done.evaluation.arms if arm.target == "2.0.0"}
    assert rounds == {OPEN.label: 14, DECIDED.label: 6}
    assert not done.evaluation.broken


def test_more_rounds_have_the_seeds_that_they_would_have_had_in_one_run(
    tmp_path: Path, theatre: Theatre, monkeypatch: pytest.MonkeyPatch
):
    """A workload draws it by the seed that it is opened with."""
    run = first(tmp_path)
    seeds: set[int] = set()
    opening = WorkerClient.open

    def spy(self: WorkerClient, of, **order):
        seeds.add(order["seed"])
        return opening(self, of, **order)

    monkeypatch.setattr(WorkerClient, "open", spy)
    add_rounds(ResumeOptions(run=run.path, rounds=2), View())
    assert seeds == {run.read_plan().seed + number - 1 for number in (11, 12)}


def test_a_version_that_no_table_has_any_more_is_left_out_and_reported(
    tmp_path: Path, theatre: Theatre, monkeypatch: pytest.MonkeyPatch
):
    run = first(tmp_path)
    remaining = tuple(version for version in catalog.all_versions() if version.number != "1.14.0")
    monkeypatch.setattr(catalog, "all_versions", lambda: remaining)
    done = add_rounds(ResumeOptions(run=run.path, rounds=2), View())
    assert str(done.error) == "1.14.0: left out because it is no longer in the table of versions"
    lost = "1.14.0 was lost (environment: left out because it is no longer in the table of versions)"
    assert lost in done.evaluation.warnings


def test_more_rounds_are_calibrated_by_the_runs_own_pilot_and_have_numbers_of_their_own(
    tmp_path: Path, theatre: Theatre
):
    run = first(tmp_path)
    add_rounds(ResumeOptions(run=run.path, rounds=2), View())
    entries = list(run.entries())
    assert sum(isinstance(entry, Calibrated) for entry in entries) == 2 * 2, "one for each arm, and none more"
    numbers = [entry.replicate for entry in entries if isinstance(entry, Ended)]
    assert len(numbers) == len(set(numbers))
    names = [stream.path.name for stream in run.worker_output.streams()]
    assert names == [f"{version}-{part}.arrow" for version in VERSIONS for part in range(1, 13)], "one each round"


def test_beyond_the_last_look_the_report_says_exploratory_and_only_of_what_was_looked_at_again(
    tmp_path: Path, theatre: Theatre
):
    run = first(tmp_path)
    evaluation = add_rounds(ResumeOptions(run=run.path), View()).evaluation
    told = {one.pair.arms[0][0]: one.exploratory for one in evaluation.comparisons if one.pair.kind == "target"}
    assert told == {OPEN.label: True, DECIDED.label: False}
    assert judge_run(run) == evaluation


def test_a_run_that_was_interrupted_goes_on_at_its_next_look_without_exploring(tmp_path: Path, theatre: Theatre):
    def until(number: int) -> float:
        if number == 4:
            raise KeyboardInterrupt
        return noisy(number)

    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, plan([OPEN], VERSIONS), Stage({(OPEN.label, "2.0.0"): Part(until)}))
    run = dressed(RunFolder.open(tmp_path / "run"))
    evaluation = add_rounds(ResumeOptions(run=run.path), View()).evaluation
    assert not any(one.exploratory for one in evaluation.comparisons)
    assert {arm.rounds for arm in evaluation.arms} == {20}


def test_a_run_that_was_interrupted_in_its_pilot_keeps_what_counts_of_it(tmp_path: Path, theatre: Theatre):
    """The case whose pilot was cut short has another, which is no round of the run any more."""
    orders = iter(range(100))

    def until(number: int) -> float:
        if next(orders) == 9:
            raise KeyboardInterrupt
        return 10.0

    asked = plan([DECIDED, OPEN], VERSIONS, looks=(4, 6))
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, asked, Stage({(OPEN.label, "2.0.0"): Part(until)}))
    run = dressed(RunFolder.open(tmp_path / "run"))
    assert {entry.case for entry in run.entries() if isinstance(entry, Calibrated)} == {DECIDED.label}
    evaluation = add_rounds(ResumeOptions(run=run.path), View()).evaluation
    assert theatre.stage.opened(DECIDED.label, "2.0.0") == [2, 3, 4]
    assert theatre.stage.opened(OPEN.label, "2.0.0") == [0, 2, 3, 4, 5, 6]
    assert {arm.key: arm.rounds for arm in evaluation.arms} == {(DECIDED.label, version): 4 for version in VERSIONS} | {
        (OPEN.label, version): 5 for version in VERSIONS
    }
    assert not any(one.exploratory for one in evaluation.comparisons)
    assert evaluation.broken == ()


def test_more_rounds_measure_what_the_budget_had_postponed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
):
    def stage() -> Stage:
        return clock.stage({OPEN.label: 30.0, DECIDED.label: 1.0}, "2.0.0", lambda number: 20.0)

    asked = plan([OPEN, DECIDED], VERSIONS, looks=(4, 6, 8, 10), budget_s=60.0)
    played = play(tmp_path, asked, stage(), started=0.0)
    assert [entry.cases for entry in played.run.entries() if isinstance(entry, Postponed)] == [(OPEN.label,)]
    assert played.ending == "the budget of 60 s ended the run after 4 rounds"
    dressed(played.run).record(finished(how=played.ending, seconds=clock.now))
    made = Theatre(stage())
    offer(monkeypatch, venv=made)
    done = add_rounds(ResumeOptions(run=played.run.path, budget_s=1000.0), View())
    assert made.stage.opened(OPEN.label, "2.0.0") == [5, 6, 7, 8]
    assert made.stage.opened(DECIDED.label, "2.0.0") == []
    verdicts = {one.pair.case: (one.verdict, one.rounds, one.exploratory) for one in done.evaluation.comparisons[:2]}
    assert verdicts == {OPEN: ("slower", 5, False), DECIDED: ("slower", 4, False)}


def test_a_postponed_case_that_was_never_judged_is_not_exploratory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
):
    """Although the other case has spent its error at the only look."""

    def stage() -> Stage:
        return clock.stage({OPEN.label: 30.0, DECIDED.label: 1.0}, "2.0.0", lambda number: 20.0)

    played = play(tmp_path, plan([OPEN, DECIDED], VERSIONS, looks=(4,), budget_s=60.0), stage(), started=0.0)
    assert [entry.cases for entry in played.run.entries() if isinstance(entry, Postponed)] == [(OPEN.label,)]
    dressed(played.run).record(finished(how=played.ending, seconds=clock.now))
    offer(monkeypatch, venv=Theatre(stage()))
    done = add_rounds(ResumeOptions(run=played.run.path, budget_s=1000.0), View())
    [ahead] = [entry for entry in played.run.entries() if isinstance(entry, Extended)]
    assert ahead.exploratory
    verdicts = {one.pair.case: (one.verdict, one.exploratory) for one in done.evaluation.comparisons[:2]}
    assert verdicts == {OPEN: ("slower", False), DECIDED: ("slower", False)}


def test_nothing_open_is_nothing_to_do(tmp_path: Path, theatre: Theatre):
    played = play(tmp_path, plan([DECIDED], VERSIONS), Stage())
    dressed(played.run)
    with pytest.raises(NothingSelected, match="more rounds would bias it"):
        add_rounds(ResumeOptions(run=played.run.path), View())


def test_old_times_do_not_mix_with_those_of_a_changed_workload(tmp_path: Path, theatre: Theatre):
    run = first(tmp_path, sources={"worker": "0", "power": "0"})
    with pytest.raises(UsageError, match=r"changed since .* was measured: worker, power; .* start a new run"):
        add_rounds(ResumeOptions(run=run.path), View())


def test_another_machine_takes_no_part_in_a_run(tmp_path: Path, theatre: Theatre):
    run = first(tmp_path, id="elsewhere", cpu="Another CPU")
    with pytest.raises(UsageError, match=r"another machine \(Another CPU\)"):
        add_rounds(ResumeOptions(run=run.path), View())


def test_an_environment_that_has_become_another_is_left_out_and_told(tmp_path: Path, theatre: Theatre):
    run = first(tmp_path)
    theatre.identity = "rebuilt"
    with pytest.raises(resume.EnvironmentFailed) as failed:
        add_rounds(ResumeOptions(run=run.path), View())
    assert str(failed.value).splitlines() == [
        "no version could be made ready:",
        "1.14.0, 2.0.0: its environment was  and is rebuilt; start a new run",
    ]
    assert not any(isinstance(entry, Extended) for entry in run.entries())


def test_two_do_not_measure_into_one_run_at_once(tmp_path: Path, theatre: Theatre):
    run = first(tmp_path)
    with run.hold(), pytest.raises(UsageError, match="another tfcompare is measuring into"):
        add_rounds(ResumeOptions(run=run.path), View())


def test_limits_of_the_plan_hold_for_more_rounds_too(tmp_path: Path, theatre: Theatre):
    run = first(tmp_path)
    asked = run.read_plan()
    run.write_plan(resume.replace(asked, cpus=(0,), memory_mb=4096))
    add_rounds(ResumeOptions(run=run.path, rounds=2, environments=EngineOptions(base="b")), View())
    assert (theatre.options.cpus, theatre.options.memory_mb, theatre.options.base) == ((0,), 4096, "b")


CARDS = tuple(Gpu(index, f"GPU-{index}", "NVIDIA H100", "9.0", "550.54", None, None, None, None) for index in (0, 1))


def test_more_rounds_are_measured_on_the_same_gpus(tmp_path: Path, theatre: Theatre, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpus, "find_gpus", lambda: CARDS)
    run = first(tmp_path)
    run.write_plan(resume.replace(run.read_plan(), device="gpu", gpus=("GPU-1",)))
    theatre.stage.gpus = [{"name": "NVIDIA H100", "capability": "9.0"}]
    add_rounds(ResumeOptions(run=run.path, rounds=2), View())
    assert (theatre.options.gpu, theatre.options.gpus, theatre.options.chosen_gpus) == (True, ("GPU-1",), CARDS[1:])


def test_gpus_that_are_gone_end_it(tmp_path: Path, theatre: Theatre, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpus, "find_gpus", lambda: CARDS[:1])
    run = first(tmp_path)
    run.write_plan(resume.replace(run.read_plan(), device="gpu", gpus=("GPU-1",)))
    with pytest.raises(UsageError, match="GPU-1 is not a GPU of this machine; there are 0: NVIDIA H100 GPU-0"):
        add_rounds(ResumeOptions(run=run.path, rounds=2), View())


def test_a_round_that_was_written_and_not_journaled_is_not_measured_under_its_number_again(
    tmp_path: Path, theatre: Theatre
):
    """As a host that is killed between a worker's flush and its own journal leaves it."""
    run = first(tmp_path, looks=(6,))
    kept = [line for line in run.journal.read_text().splitlines(keepends=True) if '"round":6' not in line]
    run.journal.write_text("".join(kept))
    run.record(Machine(when="begin", readings={}))
    add_rounds(ResumeOptions(run=run.path, rounds=2), View())
    assert theatre.stage.opened(OPEN.label, "2.0.0") == [7, 8]
    evaluation = judge_run(run)
    assert evaluation.broken == ()
    rounds = {arm.rounds for arm in evaluation.arms if arm.case == OPEN}
    assert rounds == {7}, "five that are journaled, and two more"
    assert {one.rounds for one in evaluation.comparisons if one.pair.case == OPEN} == {7}
    numbers = [entry.replicate for entry in run.entries() if isinstance(entry, Ended)]
    assert len(numbers) == len(set(numbers))


def test_a_journal_that_was_cut_short_is_mended_before_add_rounds(tmp_path: Path, theatre: Theatre):
    run = first(tmp_path)
    run.record(finished(how="interrupted", seconds=1.0))
    run.journal.write_bytes(run.journal.read_bytes()[:-30])
    assert judge_run(run)
    add_rounds(ResumeOptions(run=run.path, rounds=2), View())
    assert theatre.stage.opened(OPEN.label, "2.0.0") == [11, 12]
    assert judge_run(run).broken == ()


def with_own(tmp_path: Path) -> tuple[RunFolder, Path]:
    """A run of a workload of the user's own, which it keeps, and the user's folder."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "sleeps.py").write_text("import _helper\ndef build(tf, params):\n    return lambda: 1.0\n")
    (mine / "_helper.py").write_text("x = 1\n")
    (mine / "table.json").write_text("[1]")
    asked = plan([case("sleeps")], VERSIONS, looks=(2,))
    run = play(tmp_path, asked, Stage({("sleeps", "2.0.0"): Part(noisy)})).run
    pinned.pin(mine, run.workloads)
    sources = workloads.source_hashes([workloads.all_workloads(run.workloads)["sleeps"]])
    return dressed(run, sources), mine


@pytest.mark.parametrize("named", [True, False])
def test_more_rounds_use_the_workloads_that_the_run_keeps(tmp_path: Path, theatre: Theatre, named: bool):
    run, mine = with_own(tmp_path)
    add_rounds(ResumeOptions(run=run.path, rounds=2, own_workloads=mine if named else None), View())
    assert theatre.stage.opened("sleeps", "2.0.0") == [3, 4]
    assert set(theatre.stage.workload_folders) == {run.workloads}


def test_workloads_that_are_named_and_have_changed_are_refused_with_a_way_on(tmp_path: Path, theatre: Theatre):
    run, mine = with_own(tmp_path)
    (mine / "_helper.py").write_text("x = 2\n")
    with pytest.raises(UsageError, match=r"changed since .* sleeps; .* or leave --workload-folder out"):
        add_rounds(ResumeOptions(run=run.path, rounds=2, own_workloads=mine), View())


def test_kept_workloads_that_somebody_has_edited_are_refused(tmp_path: Path, theatre: Theatre):
    run, _ = with_own(tmp_path)
    (run.workloads / "_helper.py").write_text("x = 2\n")
    with pytest.raises(UsageError, match=r"changed since .* was measured: sleeps"):
        add_rounds(ResumeOptions(run=run.path, rounds=2), View())


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "table.json").write_text("[2]"),
        lambda folder: (folder / "table.json").unlink(),
        lambda folder: (folder / "more.json").write_text("[1]"),
    ],
    ids=["changed", "removed", "added"],
)
def test_a_changed_file_next_to_the_workloads_is_refused_and_named(
    tmp_path: Path, theatre: Theatre, change: Callable[[Path], object]
):
    run, mine = with_own(tmp_path)
    change(mine)
    with pytest.raises(UsageError, match=r"changed since .* was measured: workloads/(table|more)\.json; "):
        add_rounds(ResumeOptions(run=run.path, rounds=2, own_workloads=mine), View())


def test_leftovers_of_editors_and_caches_change_nothing(tmp_path: Path, theatre: Theatre):
    run, mine = with_own(tmp_path)
    (mine / "__pycache__").mkdir()
    for name in ("table.json~", "#table.json#", ".table.json.swp", "__pycache__/sleeps.pyc"):
        (mine / name).write_text("x")
    add_rounds(ResumeOptions(run=run.path, rounds=2, own_workloads=mine), View())
    assert theatre.stage.opened("sleeps", "2.0.0") == [3, 4]


def test_a_large_file_that_has_changed_is_refused(tmp_path: Path, theatre: Theatre):
    run, mine = with_own(tmp_path)
    (mine / "large.bin").write_text("x")
    run.write_plan(replace(run.read_plan(), large=(pinned.describe_file("large.bin", mine / "large.bin"),)))
    os.utime(mine / "large.bin", ns=(1, 1))
    with pytest.raises(UsageError, match=r"changed since .*large\.bin"):
        add_rounds(ResumeOptions(run=run.path, rounds=2), View())


KILLED, EXITS = Part(noisy, takes_its_worker_along=("burst", 3)), Part(noisy, dies=("burst", 3))
BOTH = (OPEN, DECIDED)


def with_deaths(folder: Path) -> RunFolder:
    """A run in which one arm of 2.0.0 lost its worker, and another ended by itself."""
    stage = Stage({(OPEN.label, "2.0.0"): KILLED, (DECIDED.label, "2.0.0"): EXITS})
    return dressed(play(folder, plan(BOTH, VERSIONS, looks=(6,)), stage).run)


def test_an_arm_that_died_from_outside_is_tried_again_and_one_that_died_by_itself_is_not(
    tmp_path: Path, theatre: Theatre
):
    run = with_deaths(tmp_path)
    before = {arm.case: arm for arm in judge_run(run).arms if arm.target == "2.0.0"}
    assert {case: (arm.outcome, arm.failure, arm.external) for case, arm in before.items()} == {
        OPEN: ("died", "signal", True),
        DECIDED: ("died", "workload", False),
    }
    view = Heard()
    done = add_rounds(ResumeOptions(run=run.path, rounds=4), view)
    after = {arm.case: arm for arm in done.evaluation.arms if arm.target == "2.0.0"}
    assert (after[OPEN].outcome, after[OPEN].failure, after[OPEN].external) == ("measured", None, False)
    assert after[OPEN].rounds == before[OPEN].rounds + 4
    assert after[DECIDED] == before[DECIDED]
    assert theatre.stage.opened(DECIDED.label, "2.0.0") == []
    assert f"tried again, because the cause was outside of their code: 2.0.0 {OPEN.label} (signal)" in view.lines
    assert f"not tried again, because the cause is in their code: 2.0.0 {DECIDED.label} (workload)" in view.lines
    assert done.evaluation.broken == ()


def test_an_arm_that_is_tried_again_and_dies_again_has_its_last_reason(
    tmp_path: Path, theatre: Theatre, monkeypatch: pytest.MonkeyPatch
):
    run = with_deaths(tmp_path)
    offer(monkeypatch, venv=Theatre(Stage({(OPEN.label, "2.0.0"): Part(noisy, dies=("burst", 5))})))
    add_rounds(ResumeOptions(run=run.path, rounds=4), View())
    (dead,) = [arm for arm in judge_run(run).arms if (arm.case, arm.target) == (OPEN, "2.0.0")]
    assert (dead.outcome, dead.reason, dead.failure, dead.external) == (
        "died", "ended with exit code 3", "workload", False,
    )  # fmt: skip


def test_where_all_died_by_themselves_the_message_does_not_speak_of_verdicts_alone(tmp_path: Path, theatre: Theatre):
    run = dressed(play(tmp_path, plan([OPEN], VERSIONS, looks=(6,)), Stage({(OPEN.label, "2.0.0"): EXITS})).run)
    with pytest.raises(NothingSelected, match=r"2\.0\.0 .* \(workload\) died, the cause is in their code, and they"):
        add_rounds(ResumeOptions(run=run.path), View())


def test_a_death_by_itself_ends_its_arm():
    died = ended(3, "died", NEW)
    past = read_past(plan(), [calibrated(OLD), ended(3), died])
    assert (past.progress.ended, past.again, list(past.given_up)) == ({("a", NEW)}, {}, [("a", NEW)])


def test_a_death_from_outside_leaves_the_arm_open_and_its_round_used():
    died = replace(ended(3, "died", NEW), failure="disk", external=True)
    past = read_past(plan(), [calibrated(OLD), ended(2), died])
    assert (past.progress.ended, list(past.again)) == (set(), [("a", NEW)])
    assert (past.progress.rounds["a"], past.rounds) == (1, 3)


def test_a_version_whose_tensorflow_is_not_imported_is_not_started_again(tmp_path: Path, theatre: Theatre):
    run = first(tmp_path)
    run.record(Lost(target=target("2.0.0"), stage="start", reason="import failed: x", failure="import", external=False))
    with pytest.raises(NothingSelected):
        add_rounds(ResumeOptions(run=run.path, rounds=2), View())
    assert theatre.stage.doors == []


def begun(folder: Path, *files: str) -> RunFolder:
    """A run that was ended before its first round, with no more than these files of it."""
    asked = plan([OPEN], VERSIONS, looks=(4,))
    run = dressed(run_folder(folder / "run", asked))
    run.write_begun(asked, replace(run.read_manifest(), environments={}, workers={}))
    for name in {"plan.json", "manifest.json"}.difference(files):
        (run.path / name).unlink()
    return run


@pytest.mark.parametrize(
    "files", [(), ("plan.json",), ("plan.json", "manifest.json")], ids=["nothing", "its plan", "all"]
)
def test_a_run_that_was_ended_before_its_first_round_is_continued(
    tmp_path: Path, theatre: Theatre, files: tuple[str, ...]
):
    run = begun(tmp_path, *files)
    done = add_rounds(ResumeOptions(run=run.path), View())
    assert [(arm.target, arm.outcome, arm.rounds) for arm in done.evaluation.arms] == [
        (version, "measured", 4) for version in VERSIONS
    ]
    assert not any(one.exploratory for one in done.evaluation.comparisons)
    assert done.error is None
    assert set(run.read_manifest().environments) == set(VERSIONS)


def test_a_dry_run_of_more_says_what_it_would_measure_and_changes_nothing(tmp_path: Path, theatre: Theatre):
    run = begun(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.name != ".lock"}
    said: list[str] = []
    found = forecast_more(ResumeOptions(run=run.path), Heard(said))
    told = found.as_object()
    assert (told["schema"], told["folder"], told["continues"]) == ("tfcompare.forecast/1", str(run.path), True)
    assert [version["target"] for version in told["targets"]] == list(VERSIONS)
    assert found.cases
    assert list(found.lines())[-len(found.cases) :] == [f"  {label}" for label in found.cases]
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.name != ".lock"} == before


def test_a_report_of_a_run_that_was_ended_before_its_first_round_names_the_command(tmp_path: Path):
    run = begun(tmp_path)
    with pytest.raises(UsageError, match=rf"nothing was measured\..*; then `tfcompare run --resume {run.path}`"):
        RunFolder.open(run.path)


@pytest.mark.parametrize(
    ("command", "repeated"),
    [
        (("run", "--versions", "1.14,2.0"), "run --output {run} --versions 1.14,2.0"),
        (("run", "1.14", "--output", "there"), "run 1.14 --output there"),
        (("run", "1.14", "-o=there"), "run 1.14 -o=there"),
        (("run", "1.14", "--", "train", "--output", "x"), "run --output {run} 1.14 -- train --output x"),
        ((), "run --output {run}"),
    ],
)
def test_a_run_without_a_plan_says_what_to_repeat(tmp_path: Path, command: tuple[str, ...], repeated: str):
    run = RunFolder.create(tmp_path / "run", command)
    with pytest.raises(UsageError, match=r"nothing was measured\.") as refused:
        add_rounds(ResumeOptions(run=run.path), View())
    assert str(refused.value).endswith(f"; then repeat `tfcompare {repeated.format(run=run.path)}`")
