"""An upgrade from its ends to its page, with workers whose truth is known: equal, worse, dying, and with a remedy."""

import io
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from orchestrator.errors import Interrupted, UsageError
from orchestrator.measure.warned import collect_warnings
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View
from orchestrator.upgrade import report, run
from orchestrator.upgrade.page import render_upgrade_markdown, render_upgrade_page
from orchestrator.upgrade.report import UpgradeAnswer, find_removal
from orchestrator.upgrade.run import UpgradeActions, choose_between
from orchestrator.upgrade.state import BETWEEN, HELPED, RUN, UpgradeQuestion
from orchestrator.why.run import WhyActions
from tests.conftest import ROOT
from tests.support.actors import Part, Stage, offer
from tests.support.questions import Profiler, Theatre
from workloads.sketches import sketch

CASE = "predict[call=predict,state=uncompiled,model=tiny]"
SCHEMA = json.loads((ROOT / "docs" / "schema" / "upgrade-1.json").read_text())
GATES = "slower>10%,memory:more>25%,output:differs,died"


class World(dict):
    """The parts of a stage, by what a release or a variable of a target does."""

    def __init__(self, **truths: object) -> None:
        super().__init__()
        self.slow: dict[str, float] = truths.get("slow", {})
        self.hungry: str = truths.get("hungry", "")
        self.wrong: str = truths.get("wrong", "")
        self.deadly: str = truths.get("deadly", "")
        # This variable undoes whatever is bad.
        self.cure: str = truths.get("cure", "")
        self.noise: float = truths.get("noise", 0.01)
        self.warned: tuple[str, ...] = truths.get("warned", ())

    def get(self, key, default=None):
        _, target = key
        words = [] if self.cure and self.cure in target.split("+") else target.split("+")

        def take_ms(number: int) -> float:
            ms = 10.0 * random.Random(f"{target}/{number}").gauss(1.0, self.noise)
            for word, factor in self.slow.items():
                ms *= factor if word in words else 1.0
            return ms

        if self.deadly and self.deadly in words:
            return Part(dies=("open", 0), reason="AttributeError: it is gone")
        return Part(
            take_ms,
            memory_kb=2**19 if self.hungry and self.hungry in words else 2**18,
            output=sketch([1.0, 5.0] if self.wrong and self.wrong in words else [1.0, 2.0]),
            warned=self.warned,
        )


def ask(
    monkeypatch: pytest.MonkeyPatch, folder: Path, world: World, new: str = "2.15", *, old: str = "2.13",
    gates: str = GATES, remedies: bool = True, budget_s: float = 300.0, cases: tuple[str, ...] = (CASE,),
    **actions: object,
) -> UpgradeAnswer:  # fmt: skip
    stage = Stage(parts=world)
    offer(monkeypatch, venv=lambda options: Theatre(stage))
    monkeypatch.setattr(
        "orchestrator.upgrade.run.asking.answer",
        lambda path, state, view: _ANSWER(path, state, view, WhyActions(profile=Profiler())),
    )
    options = RunOptions(selected=cases, engine="venv", seed=7, of_gates=("import", "size"))
    question = UpgradeQuestion(
        old=old, new=new, run=options, gates=gates, budget_s=budget_s, more_s=900.0, remedies=remedies
    )
    path, begun = run.begin_upgrade(question, folder, View())
    outcome = run.answer_upgrade(path, begun, View(), replace(UpgradeActions(), **actions))
    answer = UpgradeAnswer(outcome)
    Draft202012Validator(SCHEMA).validate(report.upgrade_as_object(answer))
    return answer


_ANSWER = run.asking.answer


def shown(answer: UpgradeAnswer, width: int = 100) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(report.layout_upgrade(answer, width))
    return console.export_text()


def test_equal_ends_are_go_and_nothing_more_is_measured(monkeypatch, tmp_path: Path):
    answer = ask(monkeypatch, tmp_path / "up", World())
    assert answer.decision == "go"
    assert not answer.open
    assert set(answer.outcome.state.runs) == {RUN}
    assert report.tell_decision(answer) == "GO: 2.15.1 passes all gates against 2.13.0."
    assert list(report.list_next(answer)) == []


def test_a_gain_is_go_as_well(monkeypatch, tmp_path: Path):
    answer = ask(monkeypatch, tmp_path / "up", World(slow={"2.15.1": 0.5}))
    assert answer.decision == "go"
    assert answer.aspects[0].verdict == "faster"


def test_slower_code_is_not_yet_and_the_release_between_that_passes_is_named(monkeypatch, tmp_path: Path):
    answer = ask(monkeypatch, tmp_path / "up", World(slow={"2.15.1": 1.5}))
    assert answer.decision == "not yet"
    assert [each.metric for each in answer.judged.tripped] == ["time"]
    assert answer.best_between == "2.14.1"
    text = shown(answer)
    assert "NOT YET: slower, 1.5" in text
    assert "the newest release that passes is 2.14.1" in text


def test_no_release_between_is_proposed_if_none_passes(monkeypatch, tmp_path: Path):
    answer = ask(monkeypatch, tmp_path / "up", World(slow={"2.15.1": 1.5, "2.14.1": 1.5}))
    assert answer.decision == "not yet"
    assert answer.best_between == ""
    assert "between: none is shown to pass" in shown(answer)


def test_a_release_between_that_was_not_measured_enough_is_not_proposed(monkeypatch, tmp_path: Path):
    def measure(options, view):
        return UpgradeActions().measure(replace(options, rounds=8 if len(options.versions) == 2 else 2), view)

    world = World(slow={"2.16.2": 1.5})
    answer = ask(monkeypatch, tmp_path / "up", world, "2.16", measure=measure)
    assert {text: judged.passes for text, judged in answer.between.items()} == {"2.14.1": True, "2.15.1": True}
    assert answer.best_between == ""


@pytest.mark.parametrize(
    ("truth", "metric"),
    [({"hungry": "2.15.1"}, "memory"), ({"wrong": "2.15.1"}, "output"), ({"deadly": "2.15.1"}, "died")],
    ids=["memory", "results", "death"],
)
def test_what_else_gets_worse_is_in_the_way_as_well(monkeypatch, tmp_path: Path, truth: dict[str, str], metric: str):
    answer = ask(monkeypatch, tmp_path / "up", World(**truth), remedies=False)
    assert answer.decision == "not yet"
    assert {each.metric for each in answer.judged.tripped} == {metric}
    assert list(report.list_next(answer)) == [f"tfcompare upgrade --resume {answer.outcome.path}"]


def test_a_variable_of_the_new_target_that_costs_time_is_undone_and_it_is_go_with_a_flag(monkeypatch, tmp_path: Path):
    answer = ask(monkeypatch, tmp_path / "up", World(slow={"B=1": 2.0}), "2.13 A=1 B=1")
    assert answer.decision == "go with a flag"
    assert "B=1" not in answer.flag.split()
    assert "A=1" in answer.flag.split()
    told = report.tell_decision(answer)
    assert told.startswith("GO WITH A FLAG: A=1. Without it: slower, 1.99x (1.8")
    assert "Why: B none -> 1" in shown(answer)


def test_a_flag_that_brings_back_the_time_and_not_the_memory_is_no_flag(monkeypatch, tmp_path: Path):
    world = World(slow={"B=1": 2.0}, hungry="A=1")
    answer = ask(monkeypatch, tmp_path / "up", world, "2.13 A=1 B=1")
    assert answer.decision == "not yet"
    assert HELPED in answer.outcome.state.runs
    assert not [text for text, judged in answer.helped.items() if judged.passes]


def test_a_case_that_dies_runs_again_with_a_flag(monkeypatch, tmp_path: Path):
    answer = ask(monkeypatch, tmp_path / "up", World(deadly="B=1"), "2.13 A=1 B=1")
    assert answer.decision == "go with a flag"
    assert "died: AttributeError: it is gone" in report.tell_decision(answer)
    # Of what did not run, nothing else is listed as not shown.
    assert answer.judged
    assert [each.metric for each in answer.judged.tripped] == ["died"]
    assert not answer.judged.open


def test_what_dies_at_both_ends_says_nothing_of_the_move(monkeypatch, tmp_path: Path):
    world = World()
    monkeypatch.setattr(world, "get", lambda key, default=None: Part(dies=("open", 0)), raising=False)
    answer = ask(monkeypatch, tmp_path / "up", world)
    assert answer.judged is not None
    assert not answer.judged.tripped
    assert answer.decision == "not measured"
    assert report.tell_decision(answer).startswith("NOT MEASURED")


def test_what_is_not_shown_to_be_within_its_gate_is_named(monkeypatch, tmp_path: Path):
    answer = ask(monkeypatch, tmp_path / "up", World(noise=0.25), remedies=False)
    assert answer.decision == "go"
    assert [each.metric for each in answer.open] == ["time"]
    assert "not shown for: speed" in report.tell_decision(answer)
    assert next(report.list_next(answer)).startswith(f"tfcompare run --resume {tmp_path / 'up' / 'run'}")


def test_too_few_rounds_are_no_proof(monkeypatch, tmp_path: Path):
    answer = ask(monkeypatch, tmp_path / "up", World(slow={"2.15.1": 1.5}), budget_s=21.0, measure=_measure_two_rounds)
    assert answer.decision == "go"
    assert "not shown for: speed" in report.tell_decision(answer)


def _measure_two_rounds(options, view):
    return UpgradeActions().measure(replace(options, rounds=2, budget_s=None), view)


def test_own_gates_replace_the_usual_ones(monkeypatch, tmp_path: Path):
    slow = World(slow={"2.15.1": 1.5})
    assert ask(monkeypatch, tmp_path / "a", slow, gates="slower>100%").decision == "go"
    assert ask(monkeypatch, tmp_path / "b", slow, gates="slower>20%", remedies=False).decision == "not yet"
    # A death is never a pass, whatever the gates are.
    dead = ask(monkeypatch, tmp_path / "c", World(deadly="2.15.1"), gates="slower>20%")
    assert dead.decision == "not measured"
    assert "died" in {each.metric for each in dead.open}


def test_warnings_are_listed_by_line_with_their_end(monkeypatch, tmp_path: Path):
    texts = ("a is deprecated", "b will be removed in NumPy 3.0")
    answer = ask(monkeypatch, tmp_path / "up", World(warned=texts))
    assert report.list_warnings(answer) == [
        "own.py:1 FutureWarning: a is deprecated",
        "own.py:2 FutureWarning (until NumPy 3.0): b will be removed in NumPy 3.0",
    ]
    assert ask(monkeypatch, tmp_path / "none", World()).outcome.state.warnings == ()


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("np.bool is removed in NumPy 2.0.", "NumPy 2.0"),
        ("this will be removed in a future version.", "a future version"),
        ("it will raise an error in the next release", "the next release"),
        ("x is deprecated and will be removed after 2031-01-01", "2031"),
        ("Use y instead; removed from version 2.19", "version 2.19"),
        ("use keras.Input instead", ""),
        ("removed", ""),
    ],
)
def test_the_end_is_read_from_the_text_and_never_guessed(text: str, when: str):
    assert find_removal(text) == when


def test_the_page_is_the_same_in_every_form_and_has_at_most_sixty_lines(monkeypatch, tmp_path: Path):
    texts = tuple(f"{number} is deprecated" for number in range(40))
    answer = ask(monkeypatch, tmp_path / "up", World(slow={"2.15.1": 1.5}, warned=texts, hungry="2.15.1"))
    for width in (80, 120):
        lines = shown(answer, width).splitlines()
        assert len(lines) <= 60, "\n".join(lines)
        assert all(len(line) <= width for line in lines)
    page, markdown = render_upgrade_page(answer), render_upgrade_markdown(answer)
    for text in ("NOT YET", "2.14.1", "0 is deprecated"):
        assert text in page
        assert text in markdown


def test_cases_are_counted_only_where_there_are_several(monkeypatch, tmp_path: Path):
    one = ask(monkeypatch, tmp_path / "one", World())
    several = ask(
        monkeypatch, tmp_path / "several", World(), cases=(CASE, CASE.replace("call=predict", "call=predict_on_batch"))
    )
    for answer, counted in ((one, False), (several, True)):
        head, rule, first = render_upgrade_markdown(answer).splitlines()[6:9]
        assert ("Cases" in head, "2 of 2" in first) == (counted, counted)
        assert head.count("|") == rule.count("|") == first.count("|") == (8 if counted else 7)
        assert (">Cases<" in render_upgrade_page(answer)) == counted


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_name_of_the_table_is_broken_by_a_long_target(monkeypatch, tmp_path: Path, width: int):
    new = "2.15.1 SLOW=1 ANOTHER_VARIABLE=with-a-long-value"
    answer = ask(monkeypatch, tmp_path / "up", World(slow={"SLOW=1": 1.5}), new=new, remedies=False)
    lines = shown(answer, width).splitlines()
    rows = {name: next(line for line in lines if line.strip().startswith(name)) for name in ("speed", "first call")}
    assert rows["speed"].rstrip().endswith("slower")
    assert all(len(line) <= width for line in lines)
    # The names of both targets are in the first line, whatever the table has room for.
    assert "ANOTHER_VARIABLE" in "".join(lines[:2])


def test_hostile_texts_stay_texts(monkeypatch, tmp_path: Path):
    evil = "<script>alert(1)</script> is deprecated | @somebody `x` [a](b) \x1b[31m"
    answer = ask(monkeypatch, tmp_path / "up", World(warned=(evil,)))
    assert "<script>" not in render_upgrade_page(answer)
    markdown = render_upgrade_markdown(answer)
    assert "<script>" not in markdown.replace("`", "") or "`" in markdown
    assert "\x1b[31m" not in shown(answer)


def test_what_is_interrupted_keeps_what_it_has_and_goes_on(monkeypatch, tmp_path: Path):
    def interrupt(planned, view):
        raise Interrupted("interrupted")

    folder = tmp_path / "up"
    first = ask(monkeypatch, folder, World(slow={"2.15.1": 1.5}), warn=interrupt)
    assert isinstance(first.outcome.error, Interrupted)
    assert f"tfcompare upgrade --resume {folder}" in str(first.outcome.error)
    assert "warnings" in first.untested
    measured = first.outcome.state.runs[RUN]
    state = run.resume_upgrade(folder)
    again = UpgradeAnswer(run.answer_upgrade(folder, state, View(), UpgradeActions(warn=collect_warnings)))
    assert again.outcome.state.runs[RUN] == measured
    assert again.outcome.state.warnings == ()
    assert again.decision == "not yet"
    assert BETWEEN in again.outcome.state.runs


def test_equal_ends_and_another_question_are_refused(monkeypatch, tmp_path: Path):
    with pytest.raises(UsageError, match=r"2\.13"):
        ask(monkeypatch, tmp_path / "same", World(), "2.13", old="2.13")
    ask(monkeypatch, tmp_path / "up", World())
    with pytest.raises(UsageError, match="different options"):
        ask(monkeypatch, tmp_path / "up", World(), "2.16")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(UsageError, match="holds no upgrade"):
        ask(monkeypatch, tmp_path / "full", World())


def test_a_state_that_was_changed_is_not_continued(monkeypatch, tmp_path: Path):
    ask(monkeypatch, tmp_path / "up", World())
    path = tmp_path / "up" / "upgrade.json"
    path.write_text(path.read_text().replace('"2.15"', '"2.16"'))
    with pytest.raises(UsageError):
        run.resume_upgrade(tmp_path / "up")


def test_a_run_that_is_a_link_is_not_read(monkeypatch, tmp_path: Path):
    answer = ask(monkeypatch, tmp_path / "up", World(slow={"2.15.1": 1.5}), remedies=False)
    (tmp_path / "up" / "run").rename(tmp_path / "elsewhere")
    (tmp_path / "up" / "run").symlink_to(tmp_path / "elsewhere")
    assert UpgradeAnswer(run.read_upgrade_outcome(answer.outcome.path)).decision == "not measured"


def test_releases_between_are_spread_with_the_last_one_of_keras_2():
    assert choose_between("2.13.0", "2.15.1") == ("2.14.1",)
    assert choose_between("2.14.1", "2.15.1") == ()
    chosen = choose_between("2.8.4", "2.20.0")
    assert len(chosen) == 3
    assert "2.15.1" in chosen
    assert "2.19.1" in chosen or "2.19.0" in chosen
    assert choose_between("2.8.4", "2.20.0 TF_X=1") == ()
    assert choose_between("wheel=/tmp/x.whl as mine", "2.20.0") == ()
