"""A search from flags to answer: its steps are runs, each is kept, and what ends it early does not undo them."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchestrator.bisect import estimate, report, run, state, wording
from orchestrator.bisect.actions import SearchActions
from orchestrator.bisect.run import DeduplicatingView, SearchOutcome
from orchestrator.bisect.search import PlannedStep
from orchestrator.bisect.state import Question, State
from orchestrator.catalog.version import Version
from orchestrator.engines import Environment, Outlook
from orchestrator.engines.build_log import BuildLog
from orchestrator.errors import (
    ArmsDied,
    ContractBroken,
    EnvironmentFailed,
    Interrupted,
    NothingSelected,
    TfCompareError,
    UsageError,
)
from orchestrator.measure.run import Done
from orchestrator.measure.run import plan_and_measure as measure_run
from orchestrator.metrics.followed import FOLLOWED, Followed
from orchestrator.plan.request import RunOptions
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.conftest import ROOT
from tests.support.actors import Dressing, Part, Stage, offer
from tests.support.builders import arm, case, comparison, environment_facts, evaluation, manifest, plan, version_pair
from tests.support.heard import Heard
from tests.support.worlds import verdict_of
from workloads.sketches import sketch

CASE = "predict[call=predict,state=uncompiled,model=tiny]"
RELEASES = ("1.14.0", "1.15.5", "2.0.0", "2.1.4", "2.2.3", "2.3.4")
SCHEMA = json.loads((ROOT / "docs" / "schema" / "bisect-1.json").read_text())
QUESTION = Question(good="1.14", bad="2.3", run=RunOptions(selected=(CASE,), engine="venv", rounds=4))


class Theatre:
    """An engine whose workers are actors; some versions it cannot make."""

    def __init__(self, stage: Stage, unmade: set[str], sizes: Mapping[str, int] | None = None) -> None:
        self._stage = stage
        self._sizes = sizes or {}
        self._unmade = unmade

    def check(self) -> str:
        return "actors"

    def sweep(self) -> list[str]:
        return []

    def outlook(self, version: Version) -> Outlook:
        return Outlook("to build", "to be dressed") if version.number == "2.1.4" else Outlook("ready", "ready")

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        if version.number in self._unmade:
            raise EnvironmentFailed("no costume", target=version.number, detail="the end of a log")
        facts = environment_facts(version=version.name, kind="venv")
        return Dressing(self._stage, replace(facts, size_bytes=self._sizes.get(version.number)))

    def storage(self) -> tuple[str, Path]:
        return "costumes", Path("/")

    def close(self) -> None:
        pass


@pytest.fixture
def stage() -> Stage:
    """Slow from 2.1 on."""
    return Stage({(CASE, version): Part(lambda number: 30.0) for version in RELEASES[3:]})


@pytest.fixture
def unmade(monkeypatch: pytest.MonkeyPatch, stage: Stage) -> set[str]:
    found: set[str] = set()
    offer(monkeypatch, venv=lambda options: Theatre(stage, found))
    return found


def searched(
    folder: Path, question: Question = QUESTION, view: View | None = None, most: int | None = None
) -> SearchOutcome:
    view = view or View()
    path, known = run.begin(question, folder, view)
    return run.run_search(path, known, view, most)


def change(done: SearchOutcome) -> list[tuple[str, str]]:
    return [(part.earlier, part.later) for part in done.result.parts if part.kind == "change"]


def test_the_version_is_found_and_every_step_is_a_run_that_can_be_reported(unmade, tmp_path: Path):
    heard = Heard()
    done = searched(tmp_path / "hunt", view=heard)
    assert change(done) == [("2.0.0", "2.1.4")]
    assert done.error is None
    assert done.result.overall.ratio == pytest.approx(3.0)
    steps = [line for line in heard.lines if line.startswith("step ")]
    assert steps[0] == "step 1: do 1.14.0 and 2.3.4 differ?"
    assert "2.0.0, in the middle of the 4 versions between them" in steps[1]
    assert len(steps) == len(done.state.measured) <= estimate.count_likely_steps(4)
    for step in done.state.measured:
        judged = judge_run(RunFolder.open(done.path / step.run))
        assert set(judged.plan.targets) == set(step.versions)


def test_after_each_step_it_says_where_the_change_is_so_far(unmade, tmp_path: Path):
    heard = Heard()
    searched(tmp_path / "hunt", view=heard)
    told = [line for line in heard.lines if line.startswith("so far: ")]
    assert told[0] == "so far: 1.14.0 -> 2.3.4, 3.00x slower (3.00-3.00), 4 versions between them"
    assert told[-1] == "so far: 2.0.0 -> 2.1.4, 3.00x slower (3.00-3.00)"


def test_it_ends_once_the_version_is_found_and_goes_on_for_as_many_steps_as_are_asked_for(
    unmade, stage, tmp_path: Path
):
    stage.parts[CASE, "2.0.0"] = Part(lambda number: 12.0)
    for version, ms in (("2.1.4", 60.0), ("2.2.3", 60.0), ("2.3.4", 75.0)):
        stage.parts[CASE, version] = Part(lambda number, ms=ms: ms)
    done = searched(tmp_path / "hunt")
    assert (done.result.main.earlier, done.result.main.later) == ("2.0.0", "2.1.4")
    assert done.result.wanted
    again = run.run_search(tmp_path / "hunt", run.resume_search(tmp_path / "hunt"), View())
    assert len(again.state.measured) == len(done.state.measured)
    more = run.run_search(tmp_path / "hunt", run.resume_search(tmp_path / "hunt"), View(), 10)
    assert not more.result.wanted
    assert change(more) == [("1.15.5", "2.0.0"), ("2.0.0", "2.1.4"), ("2.2.3", "2.3.4")]
    assert change(searched(tmp_path / "all", replace(QUESTION, every=True))) == change(more)


def test_a_search_can_be_continued_from_another_folder(unmade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.py").write_text("def build(tf, params):\n    return lambda: None\n")
    monkeypatch.chdir(tmp_path)
    asked = replace(QUESTION, run=replace(QUESTION.run, own_workloads=Path("own"), selected=("mine",)))
    _, known = run.begin(asked, tmp_path / "hunt", View())
    (tmp_path / "hunt").mkdir()
    state.write_state(tmp_path / "hunt", known)
    monkeypatch.chdir("/")
    assert run.resume_search(tmp_path / "hunt").question.run.own_workloads == tmp_path / "own"


def test_what_changes_both_ends_changes_every_version(unmade, stage, tmp_path: Path):
    change_of_all = "TF_ENABLE_ONEDNN_OPTS=0"
    stage.parts = {(CASE, f"{version}+{change_of_all}"): part for (_, version), part in stage.parts.items()}
    question = replace(QUESTION, good=f"1.14 {change_of_all}", bad=f"2.3 {change_of_all}")
    done = searched(tmp_path / "hunt", question)
    assert change(done) == [("2.0.0", "2.1.4")]
    assert (done.state.question.good, done.state.question.bad) == ("1.14.0", "2.3.4")
    for step in done.state.measured:
        assert sorted(measured_as(done, step)) == sorted(f"{number}+{change_of_all}" for number in step.versions)
    written = report.search_as_object(done.state, done.result)
    assert (written["good"], written["measured_with"]) == ("1.14.0", [change_of_all])
    assert f"every version with {change_of_all}" in report.describe_search(done.state)
    assert searched(tmp_path / "hunt", question).result == done.result
    with pytest.raises(UsageError, match="different options"):
        searched(tmp_path / "hunt")


def test_the_version_that_needs_more_memory_is_found(unmade, stage, tmp_path: Path):
    stage.parts = {
        (CASE, version): Part(memory_kb=300_000 if number >= 3 else 200_000) for number, version in enumerate(RELEASES)
    }
    done = searched(tmp_path / "hunt", replace(QUESTION, metric="memory"))
    assert change(done) == [("2.0.0", "2.1.4")]
    assert done.result.overall.ratio == pytest.approx(1.5)
    assert wording.conclusions(done.state, done.result) == (
        "2.3.4 needs more memory than 1.14.0: 1.50x (1.50-1.50).",
        "2.1.4 needs more memory than 2.0.0: 1.50x (1.50-1.50), 100% of the change",
    )
    assert report.describe_search(done.state).startswith("peak memory · ")
    assert report.search_as_object(done.state, done.result)["metric"] == "memory"
    # Times are the same throughout.
    assert isinstance(searched(tmp_path / "times").error, NothingSelected)


def test_the_version_that_takes_more_disk_is_found_without_a_round(unmade, stage, monkeypatch, tmp_path: Path):
    sizes = {version: (900 if number >= 3 else 300) * 2**20 for number, version in enumerate(RELEASES)}
    offer(monkeypatch, venv=lambda options: Theatre(stage, unmade, sizes))
    unmade.add("2.1.4")
    question = replace(QUESTION, metric="size")
    done = searched(tmp_path / "hunt", question)
    assert change(done) == [("2.0.0", "2.2.3")]
    assert wording.conclusions(done.state, done.result)[0] == "2.3.4 takes more disk than 1.14.0: 3.00x (3.00-3.00)."
    unmade.clear()
    assert change(searched(tmp_path / "hunt", question)) == [("2.0.0", "2.1.4")]
    assert stage.log == []
    Draft202012Validator(SCHEMA).validate(report.search_as_object(done.state, done.result))
    same = searched(tmp_path / "same", replace(question, bad="2.0"))
    assert isinstance(same.error, NothingSelected)


def test_sizes_are_not_compared_on_another_machine(tmp_path: Path):
    with pytest.raises(UsageError, match="leave --on out"):
        run.begin(replace(QUESTION, metric="size"), tmp_path, View(), SearchActions(obstacle=lambda *about: None))


def test_the_version_that_returns_something_else_is_found(unmade, stage, tmp_path: Path):
    stage.parts = {
        (CASE, version): Part(output=sketch(2.5 if number >= 4 else 2.0)) for number, version in enumerate(RELEASES)
    }
    done = searched(tmp_path / "hunt", replace(QUESTION, metric="output"))
    assert change(done) == [("2.1.4", "2.2.3")]
    assert wording.conclusions(done.state, done.result) == (
        "2.3.4 against 1.14.0: differs (by 20%).",
        "2.2.3 returns different results from 2.1.4: by 20%",
    )


@pytest.mark.parametrize("metric", [metric for metric in FOLLOWED if metric != "size"])
def test_an_end_that_dies_in_a_later_step_is_compared_with_nothing(unmade, stage, tmp_path: Path, metric: Followed):
    """Whatever is searched for, also after `--resume`."""
    stage.parts = {
        (CASE, version): Part(output=sketch(2.0), memory_kb=200_000 + 100_000 * (number >= 3))
        for number, version in enumerate(RELEASES)
    }

    def measure(options: RunOptions, view: View) -> Done:
        if options.out and options.out.name == "02":
            stage.parts[CASE, "2.3.4"] = Part(dies=("open", 0), how="signal", reason="killed by SIGKILL")
        return measure_run(options, view)

    question, actions = replace(QUESTION, metric=metric, every=True), SearchActions(measure=measure)
    path, known = run.begin(question, tmp_path / "hunt", View(), actions)
    done = run.run_search(path, known, View(), 2, actions)
    learned = {finding.later: finding for finding in done.state.steps[-1].findings}["2.3.4"]
    assert learned.verdict == "inconclusive"
    assert learned.metric == metric
    assert "killed by SIGKILL" in learned.reason
    again = run.run_search(path, run.resume_search(path), View(), 1, actions)
    assert len(again.state.measured) == 3
    assert report.search_as_object(again.state, again.result)["conclusions"]


def measured_as(done: SearchOutcome, step: state.Step) -> list[str]:
    assert step.run
    return [target.name for target in judge_run(RunFolder.open(done.path / step.run)).plan.targets]


ENDS = {
    "one with a change": ("1.14", "2.3 TF_ENABLE_ONEDNN_OPTS=0", r"different changes \(none, TF_ENABLE_ONEDNN_OPTS"),
    "other values": ("1.14 TF_CPP=1", "2.3 TF_CPP=2", "give both the same"),
    "a name": ("1.14 TF_CPP=1 as mine", "2.3 TF_CPP=1", "without wheel=, image=, freeze= or a name"),
    "an image": ("image=mine as ngc", "2.3", "--good and --bad each take a version"),
}


@pytest.mark.parametrize(("good", "bad", "reason"), ENDS.values(), ids=ENDS)
def test_ends_that_differ_in_more_than_their_version_are_refused(tmp_path: Path, good: str, bad: str, reason: str):
    with pytest.raises(UsageError, match=reason):
        run.begin(replace(QUESTION, good=good, bad=bad), tmp_path / "hunt", View())


def test_what_all_steps_have_in_common_is_said_once(unmade, tmp_path: Path):
    heard = Heard()
    searched(tmp_path / "hunt", view=DeduplicatingView(heard))
    assert heard.lines.count("engine: actors") == 1
    assert heard.lines.count("1.14.0: ready") == 1
    assert sum(line.startswith("step ") for line in heard.lines) >= 3


def test_a_search_that_is_done_is_told_again_without_measuring(unmade, stage, tmp_path: Path):
    first = searched(tmp_path / "hunt")
    played = len(stage.log)
    again = run.run_search(tmp_path / "hunt", run.resume_search(tmp_path / "hunt"), View())
    assert again.result == first.result
    assert searched(tmp_path / "hunt").result == first.result
    assert len(stage.log) == played


def test_interrupted_it_goes_on_where_it_was(unmade, stage, tmp_path: Path):
    """In the middle of the third step."""
    late = replace(stage.parts[CASE, "2.1.4"], ms=_interrupting)
    usual, stage.parts[CASE, "2.1.4"] = stage.parts[CASE, "2.1.4"], late
    with pytest.raises(Interrupted, match=r"so far: 2\.0\.0 -> .*\ncontinue with: tfcompare bisect --resume"):
        searched(tmp_path / "hunt")
    kept = state.read_state(tmp_path / "hunt")
    assert len(kept.measured) == 2
    stage.parts[CASE, "2.1.4"] = usual
    done = searched(tmp_path / "hunt")
    assert change(done) == [("2.0.0", "2.1.4")]
    assert done.state.steps[:2] == kept.steps
    assert (tmp_path / "hunt" / "steps" / "03-2").is_dir()


def _interrupting(number: int) -> float:
    if number == 2:
        raise KeyboardInterrupt
    return 30.0


def test_a_version_that_cannot_be_made_costs_itself_and_is_tried_again_another_time(unmade, tmp_path: Path):
    unmade.add("2.1.4")
    done = searched(tmp_path / "hunt")
    assert change(done) == [("2.0.0", "2.2.3")]
    assert done.error is None
    assert done.state.skipped["2.1.4"].reason.startswith("2.1.4: no costume")
    unmade.clear()
    assert change(searched(tmp_path / "hunt")) == [("2.0.0", "2.1.4")]


def test_a_version_that_refuses_or_dies_is_stepped_over(unmade, stage, tmp_path: Path):
    stage.parts[CASE, "2.0.0"] = Part(refuses="not in this one")
    stage.parts[CASE, "2.1.4"] = Part(dies=("open", 2))
    done = searched(tmp_path / "hunt")
    assert change(done) == [("1.15.5", "2.2.3")]
    assert {one.version: one.reason for one in done.state.skipped.values()} == {
        "2.0.0": "refused: not in this one", "2.1.4": "died: ended with exit code 3",
    }  # fmt: skip


def test_a_deadline_counts_as_slow(unmade, stage, tmp_path: Path):
    for version in RELEASES[3:]:
        stage.parts[CASE, version] = Part(dies=("burst", 2), how="timeout")
    done = searched(tmp_path / "hunt")
    assert change(done) == [("2.0.0", "2.1.4")]
    assert done.result.overall.verdict == "slower"
    assert done.result.overall.ratio is None
    assert "--timeout, which counts as slow" in done.result.overall.reason


@pytest.mark.parametrize(("times", "verdict"), [(1, "same"), (math.inf, "slower")])
def test_one_timeout_does_not_overrule_measured_rounds_and_a_second_one_does(
    unmade, stage, tmp_path: Path, times: float, verdict: str
):
    stage.parts = {(CASE, "2.3.4"): Part(dies=("burst", 3), how="timeout", times=times)}
    done = searched(tmp_path / "hunt", most=2)
    first, *_ = done.state.steps[0].findings
    assert first.verdict == "inconclusive"
    assert first.ratio == pytest.approx(1.0)
    assert done.state.steps[1].kind == "again"
    assert done.state.steps[1].findings[0].verdict == verdict


@pytest.mark.parametrize(
    ("part", "kind", "told"),
    [
        (Part(refuses="not in this one"), NothingSelected, "2.3.4 refused: not in this one"),
        (Part(dies=("open", 2)), ArmsDied, "2.3.4 died: ended with exit code 3"),
    ],
)
def test_without_both_ends_there_is_nothing_to_search(
    unmade, stage, tmp_path: Path, part: Part, kind: type[TfCompareError], told: str
):
    stage.parts[CASE, "2.3.4"] = part
    with pytest.raises(kind, match="choose another --good or --bad") as failed:
        searched(tmp_path / "hunt")
    assert told in str(failed.value)
    assert state.read_state(tmp_path / "hunt").steps == ()


def test_an_end_that_cannot_be_made_ends_it_and_says_how_to_go_on(unmade, tmp_path: Path):
    unmade.add("2.3.4")
    with pytest.raises(EnvironmentFailed, match="continue with: tfcompare bisect --resume"):
        searched(tmp_path / "hunt")
    unmade.clear()
    assert change(searched(tmp_path / "hunt")) == [("2.0.0", "2.1.4")]


def test_ends_that_do_not_differ_are_an_answer_with_an_exit_code_of_its_own(unmade, stage, tmp_path: Path):
    stage.parts.clear()
    done = searched(tmp_path / "hunt")
    assert isinstance(done.error, NothingSelected)
    assert len(done.state.steps) == 1
    assert done.result.overall.verdict == "same"


def test_so_many_steps_and_no_more_are_taken_and_the_rest_is_left_open(unmade, tmp_path: Path):
    done = searched(tmp_path / "hunt", most=1)
    assert len(done.state.steps) == 1
    assert [part.kind for part in done.result.parts] == ["open"]
    assert change(searched(tmp_path / "hunt", most=10)) == [("2.0.0", "2.1.4")]


def test_a_folder_holds_one_search(unmade, tmp_path: Path):
    searched(tmp_path / "hunt", most=1)
    with pytest.raises(UsageError, match="with different options"):
        run.begin(replace(QUESTION, bad="2.2"), tmp_path / "hunt", View())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(UsageError, match="is not empty"):
        run.begin(QUESTION, tmp_path / "full", View())
    with pytest.raises(UsageError, match="holds no search"):
        run.resume_search(tmp_path / "full")


def test_the_address_of_an_index_reaches_every_step_and_no_file(unmade, tmp_path: Path):
    seen: list[str | None] = []

    def measure(options: RunOptions, view: View) -> Done:
        seen.append(options.environments.index_url)
        return measure_run(options, view)

    folder, actions = tmp_path / "hunt", SearchActions(measure=measure)
    address = "https://user:secret@mirror.example/simple"
    question = QUESTION.with_index(address)
    run.run_search(*run.begin(question, folder, View(), actions), View(), 1, actions)
    run.run_search(*run.begin(question, folder, View(), actions), View(), 1, actions)
    run.run_search(folder, run.resume_search(folder, index_url=address), View(), 1, actions)
    assert seen == [address] * 3
    assert not [path for path in folder.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]
    assert run.resume_search(folder).question.run.environments.index_url is None


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sources": {"worker": "x"}}, "the workload has changed"),
        ({"contract": "0"}, "contract 0"),
        ({"host": {"id": "x", "cpu": "Another"}}, r"another machine \(Another\)"),
    ],
)
def test_what_it_rests_on_must_be_what_it_was(unmade, tmp_path: Path, changed: dict, told: str):
    done = searched(tmp_path / "hunt", most=1)
    state.write_state(tmp_path / "hunt", replace(done.state, **changed))
    with pytest.raises(UsageError, match=told):
        run.resume_search(tmp_path / "hunt")


def test_a_search_of_another_user_asks_before_it_is_continued(unmade, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "theirs"))
    done = searched(tmp_path / "hunt", most=1)
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "ours"))
    with pytest.raises(UsageError, match=r"`tfcompare trust .*/hunt` shows what would run and asks you to confirm"):
        run.resume_search(tmp_path / "hunt")
    assert "good: 1.14.0" in state.describe_question(done.state)
    state.seal(tmp_path / "hunt", done.state)
    assert run.resume_search(tmp_path / "hunt").question == done.state.question
    path = tmp_path / "hunt" / state.STATE_FILE
    changed = json.loads(path.read_text())
    changed["question"]["run"]["environments"]["base"] = "evil"
    path.write_text(json.dumps(changed))
    with pytest.raises(UsageError, match="was changed: "):
        run.resume_search(tmp_path / "hunt")
    # A checkout that another user named would be built with the rights of this one.
    theirs = replace(done.state, question=replace(done.state.question, over="steplib@git", source=tmp_path))
    path.write_bytes(b"")
    state.write_state(tmp_path / "hunt", done.state)
    kept = (tmp_path / "hunt" / "seal").read_bytes()
    state.write_state(tmp_path / "hunt", theirs)
    (tmp_path / "hunt" / "seal").write_bytes(kept)
    with pytest.raises(UsageError, match="was changed: "):
        run.resume_search(tmp_path / "hunt")
    assert f"source: {tmp_path}" in state.describe_question(theirs)


def test_a_state_that_is_not_ours_breaks_the_contract(unmade, tmp_path: Path):
    searched(tmp_path / "hunt", most=1)
    path = tmp_path / "hunt" / state.STATE_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "more": 1}))
    with pytest.raises(ContractBroken, match="not what this tfcompare writes"):
        run.resume_search(tmp_path / "hunt")
    path.write_text('{"format": "tfcompare.search/2", "created": 1}')
    with pytest.raises(ContractBroken, match=r"tfcompare\.search/2, and this tfcompare reads .*/1: .* a new search"):
        run.resume_search(tmp_path / "hunt")


def test_a_state_comes_back_as_it_was_written(unmade, tmp_path: Path):
    done = searched(tmp_path / "hunt")
    assert state.read_state(tmp_path / "hunt") == done.state


@pytest.mark.parametrize(
    ("selected", "told"),
    [(("predict[call=predict]",), "the selection has 2"), (("predict[cal=predict]",), "no parameter 'cal'")],
)
def test_a_search_is_about_one_case(selected: tuple[str, ...], told: str):
    with pytest.raises(UsageError, match=told):
        run.begin(replace(QUESTION, run=RunOptions(selected=selected)), None, View())


def test_an_end_is_one_version():
    with pytest.raises(UsageError, match="take one each"):
        run.begin(replace(QUESTION, good="1.14..2.0"), None, View())


def test_the_outlook_says_how_many_steps_and_what_is_to_be_made(unmade):
    heard = Heard()
    _, known = run.begin(QUESTION, None, heard)
    plan_line, installs = estimate.describe_plan(known, heard)
    assert "1.14.0 to 2.3.4, 4 versions between them: about 4 steps to a single change" in plan_line
    assert installs.startswith("1 of 6 versions are not ready")
    assert heard.lines == ["engine: actors"]


def test_the_outlook_of_a_search_for_a_size_names_no_time_of_rounds(unmade):
    """Times take rounds, and sizes none."""
    steps = {}
    for metric in ("time", "size"):
        _, known = run.begin(replace(QUESTION, metric=metric), None, View())
        [steps[metric], _] = estimate.describe_plan(known, View())
    assert " min if builds and calls are short" in steps["time"]
    assert steps["size"].endswith("; a step makes its versions ready and measures no rounds")
    assert " min" not in steps["size"]


def world(logs: Mapping[str, float], *, rounds: list[int | None] | None = None, blind_rounds: int = 0) -> SearchActions:
    """Hands that measure what a made-up history says; with so few rounds, nothing."""
    only = case("predict", call="predict", state="uncompiled", model="tiny")

    def measure(options: RunOptions, view: View) -> Done:
        assert options.out is not None
        options.out.mkdir(parents=True)
        if rounds is not None:
            rounds.append(options.rounds)
        blind = (options.rounds or 0) < blind_rounds
        baseline, *others = options.versions
        asked = plan([only], options.versions)
        comparisons = []
        for version in others:
            theta = logs[version] - logs[baseline]
            verdict = "inconclusive" if blind else verdict_of(theta, 0.01)
            comparisons.append(comparison(version_pair(only, baseline, version), math.exp(theta), verdict))
        found = evaluation(
            plan=asked,
            manifest=manifest(options.versions),
            arms=tuple(arm(only, version) for version in options.versions),
            comparisons=tuple(comparisons),
        )
        return Done(found, options.out, None)

    return SearchActions(measure=measure, provide=lambda names, say, device: tuple(names), obstacle=lambda *given: None)


def begun(folder: Path, candidates: tuple[str, ...], **changes) -> State:
    _, known = run.begin(QUESTION, folder, View())
    question = replace(known.question, good=candidates[0], bad=candidates[-1], **changes)
    return replace(known, question=question, candidates=candidates)


def test_after_the_release_the_nightlies_between_the_two_are_searched(unmade, tmp_path: Path):
    releases = ("2.19.1", "2.20.0", "2.21.0")
    days = tuple(f"2.21.0.dev202601{day:02}" for day in range(1, 9))
    logs = {version: (1.0 if version in ("2.21.0", *days[5:]) else 0.0) for version in (*releases, *days)}
    actions = replace(world(logs), nightlies=lambda: (*days, "2.22.0.dev20260301"))
    known = begun(tmp_path, releases, nightlies=True)
    done = run.run_search(tmp_path / "hunt", known, View(), actions=actions)
    assert change(done) == [("2.21.0.dev20260105", "2.21.0.dev20260106")]
    assert done.state.deepened


def test_where_no_nightly_is_left_the_release_is_the_answer_and_that_is_said(unmade, tmp_path: Path):
    logs = {"1.14.0": 0.0, "1.15.5": 0.0, "2.0.0": 1.0}
    actions = replace(world(logs), nightlies=lambda: ("2.22.0.dev20260301",))
    known = begun(tmp_path, tuple(logs), nightlies=True)
    heard = Heard()
    done = run.run_search(tmp_path / "hunt", known, heard, actions=actions)
    assert change(done) == [("1.15.5", "2.0.0")]
    assert "the index has no nightly between 1.15.5 and 2.0.0: it removes old ones" in heard.lines[-1]
    assert done.state.notes == (heard.lines[-1],)


def test_rounds_that_decide_nothing_are_followed_by_more_of_them(unmade, tmp_path: Path):
    rounds: list[int | None] = []
    logs = dict.fromkeys(RELEASES, 0.0) | {"2.3.4": 1.0}
    known = begun(tmp_path, RELEASES)
    actions = world(logs, rounds=rounds, blind_rounds=5)
    done = run.run_search(tmp_path / "hunt", known, View(), actions=actions)
    assert change(done) == [("2.2.3", "2.3.4")]
    assert rounds[:2] == [4, 8]


@pytest.mark.parametrize(
    ("rounds", "budget_s", "usual", "more"),
    [(None, None, (None, 600), (40, 1200)), (5, None, (5, 600), (10, 1200)), (None, 60, (None, 60), (40, 120))],
)
def test_a_step_has_a_budget_and_more_rounds_have_more_of_it(rounds, budget_s, usual: tuple, more: tuple):
    options = replace(QUESTION.run, rounds=rounds, budget_s=budget_s)
    for kind, expected in (("split", usual), ("again", more)):
        found = run.choose_step_options(options, PlannedStep(kind, ("1.14.0", "2.3.4")))
        assert (found.rounds, found.budget_s) == expected
