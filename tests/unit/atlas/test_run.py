"""An atlas from its first unit to its pages, with workers whose truth is known: equal, a step, a death, a release that
cannot be installed.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.atlas import run as atlas
from orchestrator.atlas.figures import read_figures
from orchestrator.atlas.gather import gather_figures
from orchestrator.atlas.run import AtlasActions, begin_atlas, plan_atlas, resume_atlas
from orchestrator.atlas.site import write_atlas_site
from orchestrator.atlas.state import AtlasQuestion, read_atlas, write_atlas
from orchestrator.atlas.summary import list_atlas_changes
from orchestrator.engines import Outlook
from orchestrator.errors import EnvironmentFailed, Interrupted, UsageError
from orchestrator.measure.run import plan_and_measure
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View
from tests.support.actors import Stage, offer
from tests.support.atlases import CASES, RELEASES, Truth, measure
from tests.support.heard import Heard
from tests.support.questions import Theatre

FUNCTION, EAGER, PREDICT = CASES


def named(figures, metric="time"):
    return {
        (each.case, each.older, each.newer): each.verdict
        for each in figures.steps
        if each.is_named and each.metric == metric
    }


def test_equal_releases_have_no_step(monkeypatch, tmp_path: Path):
    outcome = measure(monkeypatch, tmp_path / "atlas", Truth())
    assert outcome.error is None
    assert outcome.open_units == 0
    assert [step for step in outcome.figures.steps if step.is_named] == []
    assert {step.verdict for step in outcome.figures.steps if step.metric == "time"} == {"same"}
    assert "2.9.3, 2.10.1, 2.11.1, 2.12.1, 2.13: no certain change" in "\n".join(list_atlas_changes(outcome.figures))


def test_a_planted_step_is_found_where_it_is_and_nowhere_else(monkeypatch, tmp_path: Path):
    truth = Truth(slow={(EAGER, "2.11.1"): 1.4}, hungry={(FUNCTION, "2.10.1"): 1.5}, other="2.12.1")
    figures = measure(monkeypatch, tmp_path / "atlas", truth).figures
    assert named(figures) == {(EAGER, "2.10.1", "2.11.1"): "slower"}
    assert named(figures, "memory") == {(FUNCTION, "2.9.3", "2.10.1"): "slower"}
    assert {(each.newer, each.verdict) for each in figures.results if each.verdict != "equal"} == {
        ("2.12.1", "differs")
    }
    text = "\n".join(list_atlas_changes(figures))
    assert re.search(r"2\.11\.1: slower: power eager 1\.(39|4)", text)
    assert "2.10.1: peak memory more: power function 1.50x" in text
    assert "2.12.1: different results in" in text


def test_levels_are_ratios_to_the_newest(monkeypatch, tmp_path: Path):
    figures = measure(monkeypatch, tmp_path / "atlas", Truth(slow={(EAGER, "2.11.1"): 2.0})).figures
    levels = {each.newer: each for each in figures.levels if (each.case, each.metric) == (EAGER, "time")}
    assert list(levels) == list(RELEASES[:-1])
    for release, level in levels.items():
        truth = 0.5 if release in ("2.8.4", "2.9.3", "2.10.1") else 1.0
        assert level.ratio == pytest.approx(truth, rel=0.03)
        assert level.ci_low < level.ratio < level.ci_high
        assert level.verdict == ("faster" if truth < 1 else "same")


def test_levels_against_a_release_that_is_not_followed_have_no_column_of_it(monkeypatch, tmp_path: Path):
    truth = Truth(slow={(EAGER, "2.9.3"): 1.4, (EAGER, "2.13.0"): 2.0})
    followed = RELEASES[:3]
    figures = measure(monkeypatch, tmp_path / "atlas", truth, releases=followed, against="2.13.0").figures
    assert [release.name for release in figures.releases] == list(followed)
    assert {cell.release for cell in figures.cells} == set(followed)
    assert named(figures) == {(EAGER, "2.8.4", "2.9.3"): "slower"}
    assert (figures.reference, {each.older for each in figures.levels}) == ("2.13.0", {"2.13.0"})
    levels = {each.newer: each.ratio for each in figures.levels if (each.case, each.metric) == (EAGER, "time")}
    assert levels == {
        "2.8.4": pytest.approx(1 / 2.8, rel=0.03), "2.9.3": pytest.approx(0.5, rel=0.03),
        "2.10.1": pytest.approx(0.5, rel=0.03),
    }  # fmt: skip
    index = write_atlas_site([figures], tmp_path / "site")
    assert read_figures(tmp_path / "site" / "figures.json") == figures
    assert "Time relative to 2.13<" in index.read_text()
    [page] = (tmp_path / "site" / "cases").glob("power*eager*")
    assert "Against 2.13<" in page.read_text()


def test_equal_releases_are_at_the_level_of_one_that_is_not_followed(monkeypatch, tmp_path: Path):
    figures = measure(monkeypatch, tmp_path / "atlas", Truth(), releases=RELEASES[:3], against="2.13.0").figures
    assert named(figures) == {}
    assert {level.verdict for level in figures.levels if level.metric == "time"} == {"same"}


def test_a_gain_is_a_step_as_well(monkeypatch, tmp_path: Path):
    figures = measure(monkeypatch, tmp_path / "atlas", Truth(slow={(EAGER, "2.11.1"): 0.5})).figures
    assert named(figures) == {(EAGER, "2.10.1", "2.11.1"): "faster"}


def test_a_case_that_dies_in_a_release_is_a_cell_with_its_reason(monkeypatch, tmp_path: Path):
    figures = measure(monkeypatch, tmp_path / "atlas", Truth(deadly={"2.10.1": EAGER})).figures
    cell = figures.by_cell[EAGER, "2.10.1"]
    assert (cell.outcome, "it is gone" in cell.reason) == ("died", True)
    assert figures.by_cell[FUNCTION, "2.10.1"].outcome == "measured"
    assert figures.by_cell[EAGER, "2.11.1"].outcome == "measured"
    assert "2.10.1: power eager no longer runs" in "\n".join(list_atlas_changes(figures))


def test_a_release_that_cannot_be_installed_is_a_column_with_its_reason(monkeypatch, tmp_path: Path):
    stage = Stage(parts=Truth())
    outcome = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=Theatre(stage, unmade="2.10.1"))
    figures = outcome.figures
    assert {figures.by_cell[case, "2.10.1"].outcome for case in CASES} == {"not measured"}
    assert "no costume" in figures.by_cell[EAGER, "2.10.1"].reason
    # Its neighbours still have their levels, and the other steps are measured.
    assert (EAGER, "time", "2.9.3") in figures.by_level
    assert (EAGER, "time", "2.12.1") in figures.by_step
    assert atlas.list_lost(figures) == ["2.10.1"]
    # Nothing is said of the steps to it and from it.
    text = "\n".join(list_atlas_changes(figures))
    assert "2.10.1, 2.11.1: not measured" in text
    assert "2.9.3, 2.12.1, 2.13: no certain change" in text


class Counted:
    """Measures as an atlas does, and remembers which targets; it may end like a killed process after some units."""

    def __init__(self, stop_after: int = 1000) -> None:
        self.measured: list[tuple[str, ...]] = []
        self.stop_after = stop_after

    def __call__(self, options, view):
        if len(self.measured) == self.stop_after:
            raise Interrupted("stopped by the user")
        self.measured.append(options.versions)
        return plan_and_measure(options, view)


def test_what_was_measured_is_not_measured_again(monkeypatch, tmp_path: Path):
    truth, first, second = Truth(slow={(EAGER, "2.11.1"): 1.4}), Counted(stop_after=3), Counted()
    stopped = measure(monkeypatch, tmp_path / "atlas", truth, measure=first)
    assert isinstance(stopped.error, Interrupted)
    assert f"tfcompare atlas --resume {tmp_path / 'atlas'}" in str(stopped.error)
    assert len(first.measured) == 3
    done = measure(monkeypatch, tmp_path / "atlas", truth, measure=second, resume=True)
    assert done.error is None
    assert len(first.measured + second.measured) == len({*first.measured, *second.measured}) == 6
    assert named(done.figures) == {(EAGER, "2.10.1", "2.11.1"): "slower"}


def test_a_call_ends_with_its_time_and_the_next_one_continues(monkeypatch, tmp_path: Path):
    heard = Heard()
    counted = Counted()
    ended = measure(monkeypatch, tmp_path / "atlas", Truth(), budget_s=1.0, measure=counted, view=heard)
    assert (ended.error, counted.measured, ended.open_units) == (None, [], 6)
    assert "time is up; 6 units remain" in "\n".join(heard.lines)
    assert measure(monkeypatch, tmp_path / "atlas", Truth(), resume=True).open_units == 0


def test_the_largest_steps_are_explained_and_each_once(monkeypatch, tmp_path: Path):
    asked = []

    def ask(question, folder, view):
        asked.append((question.old, question.new, question.run.selected, question.metric))
        raise UsageError("no profile")

    truth = Truth(slow={(EAGER, "2.11.1"): 1.4, (PREDICT, "2.9.3"): 2.0}, hungry={(FUNCTION, "2.10.1"): 1.2})
    outcome = measure(monkeypatch, tmp_path / "atlas", truth, explained=2, ask=ask)
    assert asked == [
        ("2.8.4", "2.9.3", (PREDICT,), "time"), ("2.10.1", "2.11.1", (EAGER,), "time"),
    ]  # fmt: skip
    step = outcome.figures.largest[0]
    assert outcome.figures.find_cause(step) == ("the cause was not found: no profile",)
    measure(monkeypatch, tmp_path / "atlas", truth, explained=2, ask=ask, resume=True)
    assert len(asked) == 2


def test_a_question_that_cannot_be_installed_is_asked_again(monkeypatch, tmp_path: Path):
    asked = []

    def ask(question, folder, view):
        asked.append(folder)
        raise EnvironmentFailed("no network")

    truth, heard = Truth(slow={(EAGER, "2.11.1"): 1.4}), Heard()
    first = measure(monkeypatch, tmp_path / "atlas", truth, explained=1, ask=ask, view=heard)
    assert first.state.causes == ()
    assert f"why: {EAGER} in 2.11.1 stays open: no network" in heard.lines
    measure(monkeypatch, tmp_path / "atlas", truth, explained=1, ask=ask, resume=True)
    assert len(asked) == 2
    assert asked[0] == asked[1]


def test_a_workload_that_changed_does_not_continue_the_atlas(monkeypatch, tmp_path: Path):
    measure(monkeypatch, tmp_path / "atlas", Truth(), releases=RELEASES[:2])
    monkeypatch.setattr(atlas, "source_hashes", lambda workloads: {"power": "another"})
    with pytest.raises(UsageError, match="workloads have changed"):
        resume_atlas(tmp_path / "atlas")


def test_other_options_and_other_machines_do_not_continue_it(monkeypatch, tmp_path: Path):
    measure(monkeypatch, tmp_path / "atlas", Truth())
    state = read_atlas(tmp_path / "atlas")
    changed = replace(state.question, releases=RELEASES[1:])
    with pytest.raises(UsageError, match="different options"):
        begin_atlas(changed, tmp_path / "atlas", View())
    monkeypatch.setattr(atlas, "is_here", lambda host: False)
    with pytest.raises(UsageError, match="measured on another machine"):
        resume_atlas(tmp_path / "atlas")


def test_a_state_that_somebody_changed_is_not_continued(monkeypatch, tmp_path: Path):
    measure(monkeypatch, tmp_path / "atlas", Truth())
    path = tmp_path / "atlas" / "atlas.json"
    path.write_text(path.read_text().replace('"2.12.1"', '"2.13.1"'))
    with pytest.raises(UsageError, match="trust"):
        resume_atlas(tmp_path / "atlas")


def test_a_damaged_unit_costs_itself(monkeypatch, tmp_path: Path):
    measure(monkeypatch, tmp_path / "atlas", Truth())
    (tmp_path / "atlas" / "units" / "02" / "plan.json").write_text("{}")
    figures = gather_figures(tmp_path / "atlas", read_atlas(tmp_path / "atlas"))
    assert len(figures.notes) == 1
    assert "unit 02 cannot be used" in figures.notes[0]
    assert (EAGER, "time", "2.12.1") in figures.by_step


def test_a_unit_that_is_a_link_is_not_read(monkeypatch, tmp_path: Path):
    measure(monkeypatch, tmp_path / "atlas", Truth())
    unit = tmp_path / "atlas" / "units" / "02"
    unit.rename(tmp_path / "elsewhere")
    unit.symlink_to(tmp_path / "elsewhere")
    figures = gather_figures(tmp_path / "atlas", read_atlas(tmp_path / "atlas"))
    assert (EAGER, "time", "2.10.1") not in figures.by_step


class Installing(Theatre):
    """An engine that has nothing installed at first."""

    def __init__(self, stage: Stage, unmade: str = "") -> None:
        super().__init__(stage, unmade)
        self.here: set[str] = set()

    def outlook(self, version):
        return Outlook("ready" if version.name in self.here else "to build", "")

    def prepare(self, version, log):
        made = super().prepare(version, log)
        self.here.add(version.name)
        facts = replace(made.facts, details={"path": f"/cache/{version.name}"})
        return replace(made, facts=facts)

    def remove(self, engine, identity):
        assert engine == "venv"
        self.here.discard(identity)
        return ""


@pytest.mark.parametrize(("free_gb", "most"), [(1000, 6), (9, 3)])
def test_a_disk_that_cannot_hold_all_releases_holds_those_of_a_unit(
    monkeypatch, tmp_path: Path, free_gb: float, most: int
):
    engine = Installing(Stage(parts=Truth()))
    seen = []

    def find_free(path):
        seen.append(len(engine.here))
        return int((free_gb - 1.7 * len(engine.here)) * 10**9)

    # What was there before is the user's.
    engine.here.add("2.13.0")
    outcome = measure(
        monkeypatch, tmp_path / "atlas", Truth(), engine=engine, find_free=find_free, remove=engine.remove
    )
    assert outcome.open_units == 0
    assert max(*seen, len(engine.here)) == most
    assert "2.13.0" in engine.here
    assert "2.13.0" not in outcome.state.installed
    assert outcome.state.installing == ()


def test_a_release_that_stays_makes_no_room(monkeypatch, tmp_path: Path):
    engine, heard = Installing(Stage(parts=Truth())), Heard()
    outcome = measure(
        monkeypatch, tmp_path / "atlas", Truth(), engine=engine, view=heard,
        find_free=lambda path: int((9 - 1.7 * len(engine.here)) * 10**9), remove=lambda engine, identity: "in use",
    )  # fmt: skip
    assert "2.8.4 stays: in use" in heard.lines
    assert len(engine.here) == 3
    # It is asked for again by the next call.
    assert "2.8.4" in outcome.state.installed
    assert outcome.open_units > 0
    assert any("no room; it takes 5 GB" in run.failure for run in outcome.state.runs.values())


def test_a_release_that_can_be_installed_later_is_measured_then(monkeypatch, tmp_path: Path):
    stage = Stage(parts=Truth(slow={(EAGER, "2.10.1"): 1.4}))
    first = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=Theatre(stage, unmade="2.10.1"))
    assert first.open_units == 2
    kept = (tmp_path / "atlas" / "units" / "02" / "journal.jsonl").read_bytes()
    again = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=Theatre(stage, unmade="2.10.1"), resume=True)
    assert again.open_units == 2
    assert (tmp_path / "atlas" / "units" / "02" / "journal.jsonl").read_bytes() == kept
    done = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=Theatre(stage), resume=True)
    assert done.open_units == 0
    assert named(done.figures) == {(EAGER, "2.9.3", "2.10.1"): "slower"}
    # What was measured without it is still there.
    assert (tmp_path / "atlas" / "units" / "earlier" / "02" / "journal.jsonl").read_bytes() == kept


def test_a_release_that_cannot_be_planned_is_left_out_with_its_reason(monkeypatch, tmp_path: Path):
    plan_run = atlas.plan_run

    def refuse(options, view, fewest=2):
        if "2.10.1" in options.versions:
            raise UsageError("2.10.1 is known to fail on this GPU")
        return plan_run(options, view, fewest)

    monkeypatch.setattr(atlas, "plan_run", refuse)
    heard = Heard()
    outcome = measure(monkeypatch, tmp_path / "atlas", Truth(), view=heard)
    assert "2.10.1 is left out: 2.10.1 is known to fail on this GPU" in heard.lines
    assert [release.name for release in outcome.figures.releases] == [name for name in RELEASES if name != "2.10.1"]
    assert outcome.figures.notes == ("2.10.1 is left out: 2.10.1 is known to fail on this GPU",)
    # The same command continues it.
    question = replace(outcome.state.question, releases=RELEASES)
    assert begin_atlas(question, tmp_path / "atlas", heard)[1].left_out == outcome.state.left_out
    with pytest.raises(UsageError, match="different options"):
        begin_atlas(replace(question, releases=RELEASES[1:]), tmp_path / "atlas", heard)


def test_a_wrong_option_is_no_fault_of_a_release(tmp_path: Path):
    options = RunOptions(selected=("nonsense",), engine="venv")
    with pytest.raises(UsageError, match="nonsense"):
        begin_atlas(AtlasQuestion(title="x", releases=RELEASES, run=options), tmp_path / "atlas", View())


def test_an_atlas_of_which_nothing_runs_fails(monkeypatch, tmp_path: Path):
    engine = Installing(Stage(parts=Truth()))
    outcome = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=engine, find_free=lambda path: 0)
    assert isinstance(outcome.error, EnvironmentFailed)
    assert "no unit could be measured" in str(outcome.error)
    assert "no room" in str(outcome.error)


def test_an_image_that_is_gone_ends_the_rounds_of_its_unit(monkeypatch, tmp_path: Path):
    engine, heard = Installing(Stage(parts=Truth())), Heard()
    first = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=engine, kind="docker")
    runs = {**first.state.runs, "02": replace(first.state.runs["02"], is_done=False)}
    write_atlas(tmp_path / "atlas", replace(first.state, runs=runs))
    engine.here.discard("2.10.1")
    kept = (tmp_path / "atlas" / "units" / "02" / "journal.jsonl").read_bytes()
    done = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=engine, kind="docker", resume=True, view=heard)
    assert done.state.runs["02"] == first.state.runs["02"]
    assert [line for line in heard.lines if line.startswith("unit 02 keeps its") and "2.10.1 was removed" in line]
    assert (tmp_path / "atlas" / "units" / "02" / "journal.jsonl").read_bytes() == kept
    assert "2.10.1" not in engine.here


def test_what_the_user_installed_after_a_failure_is_not_removed(monkeypatch, tmp_path: Path):
    engine = Installing(Stage(parts=Truth()), unmade="2.10.1")
    first = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=engine)
    assert first.state.installing == ("2.10.1",)
    # The user installs it before the next call.
    engine = Installing(Stage(parts=Truth()))
    engine.here |= set(RELEASES)
    done = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=engine, resume=True)
    assert done.open_units == 0
    assert "2.10.1" not in done.state.installed


def test_an_atlas_can_continue_if_removing_makes_the_room(monkeypatch, tmp_path: Path):
    engine = Installing(Stage(parts=Truth()))
    measured = measure(monkeypatch, tmp_path / "atlas", Truth(), engine=engine).state
    open_again = {"05": replace(measured.runs["05"], is_done=False)}
    engine.here -= {"2.12.1", "2.13.0"}
    actions = AtlasActions(find_free=lambda path: 4 * 10**9)
    waiting = replace(measured, runs={**measured.runs, **open_again})
    assert any(line.startswith("disk: the 2 releases to install") for line in plan_atlas(waiting, View(), actions))
    # Nothing is left to install.
    assert len(plan_atlas(measured, View(), actions)) == 1


def test_the_plan_says_what_it_takes_and_refuses_what_cannot_fit(monkeypatch, tmp_path: Path):
    offer(monkeypatch, venv=lambda options: Installing(Stage(parts=Truth())))
    options = RunOptions(selected=CASES, engine="venv")
    _, state = begin_atlas(AtlasQuestion(title="x", releases=RELEASES, run=options), tmp_path / "atlas", View())
    plan = plan_atlas(state, View(), AtlasActions(find_free=lambda path: 9 * 10**9))
    assert plan[0].startswith("plan: 6 releases from 2.8.4 to 2.13.0, 3 cases; 6 of 6 units to measure")
    assert plan[1] == (
        "disk: the 6 releases to install need about 10 GB and 9 GB are free; they are installed, measured and removed "
        "in turn"
    )
    with pytest.raises(UsageError, match=r"take about 8 GB.* has 5 GB free"):
        plan_atlas(state, View(), AtlasActions(find_free=lambda path: 5 * 10**9))


def test_one_release_is_no_atlas(tmp_path: Path):
    with pytest.raises(UsageError, match="two releases or more"):
        begin_atlas(AtlasQuestion(title="x", releases=("2.13.0",), run=RunOptions()), tmp_path / "atlas", View())


def test_figures_come_back_from_their_file(monkeypatch, tmp_path: Path):
    outcome = measure(monkeypatch, tmp_path / "atlas", Truth(slow={(EAGER, "2.11.1"): 1.4}))
    write_atlas_site([outcome.figures], tmp_path / "site")
    assert read_figures(tmp_path / "site" / "figures.json") == outcome.figures
    assert json.loads((tmp_path / "site" / "figures.json").read_text())["schema"] == "tfcompare.atlas/1"
