"""A question from its ends to its answer, with workers whose truth is known: what differs, and what helps."""

import json
import random
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchestrator.bisect.search import BisectFinding
from orchestrator.errors import Interrupted, UsageError
from orchestrator.metrics.followed import Followed
from orchestrator.plan.request import RunOptions
from orchestrator.profiling.model import ProfileResult
from orchestrator.profiling.run import ProfileOptions
from orchestrator.terminal.view import View
from orchestrator.why import report, run, state
from orchestrator.why.cause import Cause
from orchestrator.why.ladder import Explanation, JudgedRung, Ladder, Rung
from orchestrator.why.page import render_why_page
from orchestrator.why.report import WhyAnswer
from orchestrator.why.run import WhyActions
from orchestrator.why.state import LadderStep, WhyQuestion, WhyState
from tests.conftest import ROOT
from tests.support.actors import Part, Stage, offer
from tests.support.builders import case
from tests.support.heard import Heard
from tests.support.questions import Profiler, Theatre

CASE = "predict[call=predict,state=uncompiled,model=tiny]"
SCHEMA = json.loads((ROOT / "docs" / "schema" / "why-1.json").read_text())
NOISE = 0.01


class World(dict):
    """The parts of a stage, by what the variables of a target do: `A=1` makes a call so many times as long."""

    def __init__(self, factors: dict[str, float], deadly: str = "", memory: str = "") -> None:
        super().__init__()
        self.factors = factors
        # A call takes so many times as long in these releases.
        self.releases: dict[str, float] = {}
        self.deadly = deadly
        self.memory = memory

    def get(self, key, default=None):
        _, target = key
        variables = target.split("+")[1:]

        def take_ms(number: int) -> float:
            noise = random.Random(f"{target}/{number}").gauss(1.0, NOISE)
            ms = 10.0 * noise * self.releases.get(target.partition("+")[0], 1.0)
            for name in variables:
                ms *= self.factors.get(name, 1.0)
            return ms

        if self.deadly and self.deadly in variables:
            return Part(dies=("open", 0), reason="it cannot run so")
        memory_kb = 2**20 if self.memory and self.memory in variables else 2**18
        return Part(take_ms, memory_kb=memory_kb)


def profile_nothing(options: ProfileOptions, view: View) -> ProfileResult:
    raise AssertionError("a profile was not expected")


def ask(
    monkeypatch: pytest.MonkeyPatch, folder: Path, world: World, new: str, *, old: str = "2.13",
    metric: Followed = "time", unmade: str = "", budget_s: float = 900.0, rounds: int | None = None,
    view: View | None = None,
) -> tuple[WhyAnswer, Stage, Profiler]:  # fmt: skip
    stage = Stage(parts=world)
    offer(monkeypatch, venv=lambda options: Theatre(stage, unmade))
    profiler = Profiler()
    actions = WhyActions(profile=profiler)
    options = RunOptions(selected=(CASE,), engine="venv", rounds=rounds, seed=7)
    question = WhyQuestion(old=old, new=new, run=options, budget_s=budget_s, metric=metric)
    path, begun = run.begin_question(question, folder)
    return WhyAnswer(run.answer(path, begun, view or View(), actions), actions), stage, profiler


def blamed(answer: WhyAnswer) -> list[str]:
    return [rung.rung.title for rung in answer.explanation.mattering]


def test_the_one_change_that_matters_is_named_with_its_share_and_undoing_it_helps(monkeypatch, tmp_path: Path):
    answer, _, profiler = ask(monkeypatch, tmp_path / "why", World({"B=1": 2.0}), "2.13 A=1 B=1 C=1")
    assert answer.explanation.whole.verdict == "slower"
    assert answer.explanation.whole.ratio == pytest.approx(2.0, rel=0.05)
    assert blamed(answer) == ["B none -> 1"]
    [rung] = answer.explanation.mattering
    assert answer.explanation.share(rung) == pytest.approx(1.0, abs=0.1)
    [remedy] = [each for each in answer.remedies if each.helps]
    assert set(remedy.text.split()) == {"2.13.0", "A=1", "C=1"}
    assert remedy.to_new.ratio == pytest.approx(0.5, rel=0.05)
    assert remedy.to_old.verdict in ("same", "inconclusive")
    assert profiler.asked == [(rung.lower, rung.upper)]
    Draft202012Validator(SCHEMA).validate(report.answer_as_object(answer))


def test_equal_ends_are_not_explained_and_nothing_is_blamed(monkeypatch, tmp_path: Path):
    for seed in range(5):
        answer, _, profiler = ask(monkeypatch, tmp_path / f"why{seed}", World({}), f"2.13 A=1 B=1 C={seed}")
        assert blamed(answer) == []
        assert answer.explanation.whole.verdict == "same"
        assert "There is nothing to explain." in report.tell_answer(answer)
        assert not answer.remedies
        assert not profiler.asked


def test_two_changes_are_both_named_and_their_product_is_the_whole(monkeypatch, tmp_path: Path):
    answer, _, _ = ask(monkeypatch, tmp_path / "why", World({"A=1": 1.5, "C=1": 2.0}), "2.13 A=1 B=1 C=1")
    assert blamed(answer) == ["C none -> 1", "A none -> 1"]
    assert answer.explanation.product == pytest.approx(answer.explanation.whole.estimate, abs=0.03)


def test_two_changes_that_cancel_each_other_are_both_named(monkeypatch, tmp_path: Path):
    answer, _, _ = ask(monkeypatch, tmp_path / "why", World({"A=1": 2.0, "C=1": 0.5}), "2.13 A=1 B=1 C=1")
    assert answer.explanation.whole.verdict == "same"
    assert set(blamed(answer)) == {"A none -> 1", "C none -> 1"}
    assert "These changes cancel each other." in report.tell_answer(answer)


def test_a_gain_is_explained_and_nothing_has_to_help(monkeypatch, tmp_path: Path):
    answer, _, _ = ask(monkeypatch, tmp_path / "why", World({"A=1": 0.5}), "2.13 A=1 B=1")
    assert answer.explanation.whole.verdict == "faster"
    assert blamed(answer) == ["A none -> 1"]
    assert not [line for line in report.tell_answer(answer) if line.startswith("helps")]


@pytest.mark.parametrize("guilty", ["A=1", "D=1", "H=1"])
def test_one_of_eight_changes_is_found_by_splitting_groups(monkeypatch, tmp_path: Path, guilty: str):
    new = "2.13 A=1 B=1 C=1 D=1 E=1 F=1 G=1 H=1"
    answer, _, _ = ask(monkeypatch, tmp_path / "why", World({guilty: 2.0}), new)
    assert blamed(answer) == [f"{guilty[0]} none -> 1"]
    assert len(answer.state.ladders) == 2
    assert all(len(step.ladder.texts) <= 5 for step in answer.state.ladders)


def test_a_change_that_stops_a_case_is_named_and_what_runs_without_it(monkeypatch, tmp_path: Path):
    answer, _, _ = ask(monkeypatch, tmp_path / "why", World({}, deadly="B=1"), "2.13 A=1 B=1 C=1")
    assert blamed(answer) == ["B none -> 1"]
    assert "it cannot run so" in report.tell_whole(answer)
    assert any("it no longer runs" in line for line in report.tell_answer(answer))


def test_a_change_that_cannot_be_undone_is_a_note_and_the_ladder_goes_on(monkeypatch, tmp_path: Path):
    answer, _, _ = ask(monkeypatch, tmp_path / "why", World({"A=1": 2.0}), "2.13 A=1 B=1", unmade="2.13.0+A=1")
    assert any("cannot be undone" in note for note in answer.state.notes)
    assert answer.explanation.whole.verdict == "slower"
    assert [rung.rung.title for rung in answer.explanation.rungs] == ["B none -> 1", "A none -> 1"]
    assert blamed(answer) == ["A none -> 1"]


def test_memory_has_a_cause_as_well(monkeypatch, tmp_path: Path):
    answer, _, _ = ask(
        monkeypatch, tmp_path / "why", World({"A=1": 2.0}, memory="B=1"), "2.13 A=1 B=1 C=1", metric="memory"
    )
    assert blamed(answer) == ["B none -> 1"]
    page = render_why_page(answer)
    assert "ratio of times" not in page
    assert "B none -&gt; 1" in page


def test_memory_that_is_equal_blames_nothing_although_times_differ(monkeypatch, tmp_path: Path):
    answer, _, profiler = ask(monkeypatch, tmp_path / "why", World({"A=1": 2.0}), "2.13 A=1 B=1", metric="memory")
    assert blamed(answer) == []
    assert answer.explanation.whole.verdict == "same"
    assert not profiler.asked


def test_sizes_need_no_rounds_and_are_refused(tmp_path: Path):
    question = WhyQuestion(old="2.13", new="2.15", run=RunOptions(), budget_s=900.0, metric="size")
    with pytest.raises(UsageError, match="needs no rounds"):
        run.begin_question(question, tmp_path / "why")


def test_a_budget_that_is_too_short_for_one_rung_says_so(monkeypatch, tmp_path: Path):
    answer, _, _ = ask(monkeypatch, tmp_path / "why", World({"A=1": 2.0}), "2.13 A=1 B=1", budget_s=0.001)
    assert blamed(answer) == []
    assert list(report.list_commands(answer))


def test_what_is_interrupted_is_continued_and_keeps_what_it_has(monkeypatch, tmp_path: Path):
    world, folder = World({"A=1": 2.0}), tmp_path / "why"
    stage = Stage(parts=world)
    offer(monkeypatch, venv=lambda options: Theatre(stage))
    question = WhyQuestion(
        old="2.13", new="2.13 A=1 B=1 C=1", run=RunOptions(selected=(CASE,), engine="venv", seed=7), budget_s=900.0
    )
    path, begun = run.begin_question(question, folder)

    def stop(*about):
        raise Interrupted("interrupted")

    with pytest.raises(Interrupted):
        run.answer(path, begun, View(), WhyActions(install=stop, profile=profile_nothing))
    broken = WhyActions(profile=stop)
    outcome = run.answer(path, run.resume(folder), View(), broken)
    assert isinstance(outcome.error, Interrupted)
    assert f"tfcompare why --resume {folder}" in str(outcome.error)
    assert [rung.rung.title for rung in outcome.explanation.mattering] == ["A none -> 1"]
    visits = len(stage.log)
    profiler = Profiler()
    done = run.answer(path, run.resume(folder), View(), WhyActions(profile=profiler))
    assert done.error is None
    assert profiler.asked
    assert len(stage.log) == visits


def test_a_folder_of_another_question_or_of_a_changed_one_is_refused(monkeypatch, tmp_path: Path):
    ask(monkeypatch, tmp_path / "why", World({"A=1": 2.0}), "2.13 A=1")
    other = WhyQuestion(
        old="2.13", new="2.13 B=1", run=RunOptions(selected=(CASE,), engine="venv", seed=7), budget_s=900.0
    )
    with pytest.raises(UsageError, match="different options"):
        run.begin_question(other, tmp_path / "why")
    known = state.read_question(tmp_path / "why")
    forged = replace(known, question=replace(known.question, new="2.13 EVIL=1"))
    path = tmp_path / "why" / state.STATE_FILE
    honest = path.read_text()
    path.write_text(honest.replace("2.13 A=1", "2.13 EVIL=1"))
    assert state.read_question(tmp_path / "why").question == forged.question
    with pytest.raises(UsageError, match="was created by another user or was changed"):
        run.resume(tmp_path / "why")
    # The targets of a ladder are executed as well.
    path.write_text(honest.replace('"2.13.0 A=1"', '"2.13.0 EVIL=1"'))
    assert path.read_text() != honest
    with pytest.raises(UsageError, match="was created by another user or was changed"):
        run.resume(tmp_path / "why")
    path.write_text(honest)
    assert "target: 2.13.0 A=1" in state.list_settings(run.resume(tmp_path / "why"))


def test_a_question_with_a_wrong_name_leaves_no_folder_in_the_way_of_the_right_one(monkeypatch, tmp_path: Path):
    folder = tmp_path / "why"
    with pytest.raises(UsageError, match=r"2\.99"):
        ask(monkeypatch, folder, World({}), "2.99")
    assert not folder.exists()
    answer, _, _ = ask(monkeypatch, folder, World({"B=1": 2.0}), "2.13 A=1 B=1")
    assert blamed(answer) == ["B none -> 1"]


def test_a_folder_that_was_there_before_a_wrong_question_stays(monkeypatch, tmp_path: Path):
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(UsageError, match=r"2\.99"):
        ask(monkeypatch, folder, World({}), "2.99")
    assert folder.is_dir()


def test_the_answer_fits_a_screen_and_says_how_to_continue(monkeypatch, tmp_path: Path):
    from orchestrator.terminal.text import render_plain

    heard = Heard()
    answer, _, _ = ask(monkeypatch, tmp_path / "why", World({"B=1": 2.0}), "2.13 A=1 B=1 C=1", view=heard)
    for width in (60, 80, 120):
        text = render_plain(lambda _, width=width: report.layout_answer(answer, width))
        assert len(text.splitlines()) <= 30
    assert any(line.startswith("ladder 1, from 2.13.0 to 2.13.0+A=1+B=1+C=1") for line in heard.lines)


@pytest.mark.parametrize("newer_is_slower", [True, False])
def test_a_search_goes_from_the_older_release_to_the_newer_one(newer_is_slower: bool):
    numbers = ("3.5.0", "3.8.0") if newer_is_slower else ("3.8.0", "3.5.0")
    cause = Cause(title="Keras", undo=lambda changed: changed, package="keras", numbers=numbers)
    lower, upper = (f"2.20.0 keras=={number}" for number in numbers)
    search = run.choose_search(
        asked("2.20.0", "2.20.0"), explained(lower, upper, Rung(causes=("Keras",))), {"k": [cause]}
    )
    assert (search.good, search.bad, search.over) == ("2.20.0 keras==3.5.0", "2.20.0 keras==3.8.0", "keras")


def test_tensorflow_itself_is_searched_only_where_nothing_else_differs():
    rest = Rung(causes=(), rest="TensorFlow 2.15.1 -> 2.8.4")
    search = run.choose_search(asked("2.15.1", "2.8.4"), explained("2.15.1", "2.8.4", rest), {})
    assert (search.good, search.bad, search.over) == ("2.8.4", "2.15.1", "")
    assert run.choose_search(asked("2.15.1", "2.20.0"), explained("2.15.1", "2.20.0 keras=2", rest), {}) is None
    variable = Cause(title="A", undo=lambda changed: changed)
    with_variable = explained("2.15.1", "2.15.1 A=1", Rung(causes=("A",)))
    assert run.choose_search(asked("2.15.1", "2.15.1 A=1"), with_variable, {"v": [variable]}) is None


def asked(old: str, new: str) -> WhyState:
    return WhyState(
        created=datetime(2026, 11, 29, tzinfo=UTC), tool="0.1.0", contract="x", host={}, sources={}, case=case(),
        question=WhyQuestion(old=old, new=new, run=RunOptions(), budget_s=900.0),
    )  # fmt: skip


def explained(lower: str, upper: str, rung: Rung) -> Explanation:
    found = BisectFinding(earlier="A", later="B", verdict="slower", ratio=2.0, ci_low=1.9, ci_high=2.1, size="beyond")
    judged = JudgedRung(rung=rung, lower=lower, upper=upper, ladder=0, finding=found)
    return Explanation(whole=found, rungs=(judged,))


def test_without_a_search_the_answer_names_the_command_for_releases(tmp_path: Path):
    rest = Rung(causes=(), rest="TensorFlow 2.15.1 -> 2.8.4")
    ladder = Ladder(texts=("2.15.1", "2.8.4"), names=("2.15.1", "2.8.4"), rungs=(rest,))
    known = replace(asked("2.15.1", "2.8.4"), ladders=(LadderStep(ladder=ladder, run="steps/01"),))
    answer = WhyAnswer(run.WhyOutcome(known, explained("2.15.1", "2.8.4", rest), tmp_path))
    command = ["tfcompare", "bisect", "--good", "2.8.4", "--bad", "2.15.1", "--case", known.case.label]
    assert [shlex.split(text) for text in report.list_commands(answer)] == [command]
    of_own = RunOptions(own_workloads=Path("my own; true"), judge="cpu", data={"set": Path("/data/set")})
    question = replace(known.question, run=of_own, metric="memory")
    answer = WhyAnswer(run.WhyOutcome(replace(known, question=question, engine="venv"), answer.explanation, tmp_path))
    own = [*command, "--engine", "venv", "--metric", "memory", "--judge", "cpu", "--workload-folder", "my own; true"]
    own += ["--data", "set=/data/set"]
    assert [shlex.split(text) for text in report.list_commands(answer)] == [own]


def test_a_search_that_was_interrupted_is_continued_with_the_time_that_is_left(monkeypatch, tmp_path: Path):
    world, folder = World({}), tmp_path / "why"
    world.releases = {"2.12.1": 2.0, "2.13.0": 2.0}
    stage = Stage(parts=world)
    offer(monkeypatch, venv=lambda options: Theatre(stage))
    question = WhyQuestion(
        old="2.10", new="2.13", run=RunOptions(selected=(CASE,), engine="venv", seed=7), budget_s=900.0
    )
    path, begun = run.begin_question(question, folder)
    actions, take_step = WhyActions(profile=Profiler()), run.searching.run_search

    def take_one_step(*about):
        take_step(*about)
        raise Interrupted("interrupted")

    monkeypatch.setattr(run.searching, "run_search", take_one_step)
    first = run.answer(path, begun, View(), actions)
    assert isinstance(first.error, Interrupted)
    monkeypatch.setattr(run.searching, "run_search", take_step)
    done = run.answer(path, run.resume(path), View(), actions)
    assert done.state.searched
    assert done.state.notes == ()
    answer = WhyAnswer(done, actions)
    assert answer.search.search_result.main.later == "2.12.1"
    assert [line for line in report.tell_answer(answer) if line.startswith("when: 2.11")]
