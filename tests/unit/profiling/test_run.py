"""The story of a profile, by real workers under a stub TensorFlow: what is asked, what is left behind, how it ends."""

import json
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from orchestrator.catalog.gpu_support import GpuSupport, Match
from orchestrator.catalog.outside import find_allowed
from orchestrator.engines.worker.client import WorkerClient
from orchestrator.errors import (
    ArmsDied,
    ContractBroken,
    EngineUnavailable,
    EnvironmentFailed,
    Interrupted,
    NothingSelected,
    TfCompareError,
    UsageError,
)
from orchestrator.model import Case
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions
from orchestrator.profiling import run as story
from orchestrator.profiling.model import ProfileResult
from orchestrator.profiling.run import ProfileOptions
from orchestrator.profiling.stored import read_profile
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.support import stub
from tests.support.actors import offer
from tests.support.builders import case
from tests.support.heard import Heard
from tests.support.stub_engine import Engine

VERSIONS = ("1.14", "2.0")
FINE = """
    '''Is fine.'''
    PARAMS = {"size": ("1", "2")}

    def build(tf, params):
        return lambda: leaf(float(params["size"]))

    def leaf(value):
        return value
"""
# Ends as its version is told to.
ENDING = """
    '''Ends.'''
    import os, time
    PARAMS = {"how": ("refuses", "raises", "is killed", "takes its worker along", "hangs")}

    def build(tf, params):
        if params["how"] == "raises":
            raise RuntimeError("on purpose")
        if params["how"] == "is killed":
            os.kill(os.getpid(), 9)
        if params["how"] == "takes its worker along":
            os.kill(os.getppid(), 9)
        if params["how"] == "hangs":
            time.sleep(600)

    def refuse(tf, params):
        return "no such op" if params["how"] == "refuses" else None
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine(stub.write(tmp_path / "stub"))
    offer(monkeypatch, venv=lambda options: made)
    return made


@pytest.fixture
def options(tmp_path: Path, engine: Engine) -> ProfileOptions:
    own = tmp_path / "own"
    own.mkdir()
    (own / "fine.py").write_text(dedent(FINE))
    (own / "ending.py").write_text(dedent(ENDING))
    run = RunOptions(versions=VERSIONS, selected=("fine[size=1]",), own_workloads=own, out=tmp_path / "run", seed=7)
    return ProfileOptions(run=run, calls=4)


def changed(options: ProfileOptions, **changes: Any) -> ProfileOptions:
    """`calls` are the profile's, all else the run's."""
    calls = changes.pop("calls", options.calls)
    return ProfileOptions(run=replace(options.run, **changes), calls=calls)


def ended(done: ProfileResult) -> list[tuple[str, str, str]]:
    return [(arm.case.label, str(arm.target), arm.outcome) for arm in done.arms]


def test_every_case_is_profiled_in_every_version_in_turn(options: ProfileOptions, engine: Engine):
    said = Heard()
    done = story.profile(changed(options, selected=("fine",)), said)
    assert ended(done) == [
        ("fine[size=1]", "1.14.0", "profiled"),
        ("fine[size=1]", "2.0.0", "profiled"),
        ("fine[size=2]", "1.14.0", "profiled"),
        ("fine[size=2]", "2.0.0", "profiled"),
    ]
    assert done.error is None
    assert engine.closed
    assert "2.0.0 profiled fine[size=2]" in said.lines
    for arm in done.arms:
        assert arm.profile is not None
        assert {function.name: function.later.calls for function in arm.profile.functions}["leaf"] == 4


def test_without_a_selection_the_folder_is_profiled_and_not_the_quick_suite(options: ProfileOptions):
    assert {case.workload for case in story.plan_profile(changed(options, selected=()), Heard()).selection.cases} == {
        "ending",
        "fine",
    }


def test_a_single_version_is_enough(options: ProfileOptions):
    assert ended(story.profile(changed(options, versions=("2.0",)), View())) == [("fine[size=1]", "2.0.0", "profiled")]


def test_data_is_hashed_if_asked(options: ProfileOptions, tmp_path: Path):
    own, data = tmp_path / "reading", tmp_path / "data"
    own.mkdir()
    data.mkdir()
    (data / "words.txt").write_text("one two")
    (own / "reads.py").write_text(f'DATA = {{"words": "{data}"}}\ndef build(tf, params): return lambda: 1\n')
    asked = {"own_workloads": own, "selected": ("reads",), "outside": find_allowed(own, (f"words={data}",))}
    plain = story.profile(changed(options, **asked), View())
    hashed = story.profile(changed(options, **asked, hash_data=True, out=tmp_path / "hashed"), View())
    assert {arm.outcome for done in (plain, hashed) for arm in done.arms} == {"profiled"}
    first, second = (RunFolder(done.path).read_manifest().sources for done in (plain, hashed))
    assert set(second) - set(first) == {"tfcompare_data/reads/words"}


def test_its_folder_holds_profiles_and_nothing_that_was_measured(options: ProfileOptions):
    done = story.profile(options, View())
    files = {str(path.relative_to(done.path)) for path in done.path.rglob("*") if path.is_file()}
    stems = [f"profiles/fine,size=1-{version}" for version in ("1.14.0", "2.0.0")]
    ends = ("json", "speedscope.json", "collapsed.txt")
    logs = {"logs/worker-1.14.0.log", "logs/worker-2.0.0.log"}
    assert files == {f"{one}.{end}" for one in stems for end in ends} | logs | {
        ".lock",
        "begun.json",
        "manifest.json",
        "profile.json",
        "workloads/ending.py",
        "workloads/fine.py",
    }
    speedscope = json.loads((done.path / f"{stems[0]}.speedscope.json").read_text())
    assert speedscope["$schema"].endswith("file-format-schema.json")
    assert (done.path / f"{stems[0]}.collapsed.txt").read_text()
    assert RunFolder(done.path).read_manifest().sources.keys() == {"worker", "fine"}


def test_no_report_of_runs_takes_it_for_one(options: ProfileOptions):
    done = story.profile(options, View())
    with pytest.raises(UsageError, match=r"holds no run \(no plan\.json in it\)"):
        judge_run(RunFolder.open(done.path))


def test_it_is_read_as_it_was_left(options: ProfileOptions):
    done = story.profile(changed(options, selected=("fine", "ending[how=refuses]")), View())
    again = read_profile(done.path)
    assert (again.heading, again.arms, again.path) == (done.heading, done.arms, done.path)


def test_what_is_no_profile_is_not_read(tmp_path: Path):
    with pytest.raises(UsageError, match="holds no profile"):
        read_profile(tmp_path)
    (tmp_path / "profile.json").write_text("{}")
    with pytest.raises(ContractBroken, match="is not what this tfcompare writes"):
        read_profile(tmp_path)
    (tmp_path / "profile.json").write_text('{"format": "tfcompare.profile/2", "run": "x"}')
    with pytest.raises(ContractBroken, match=r"tfcompare\.profile/2, and this tfcompare reads .*/1: .* a new profile"):
        read_profile(tmp_path)


ENDS = {
    "refuses": ("refused", "no such op"),
    "raises": ("died", "RuntimeError: on purpose (raised in build, at ending.py:8)"),
    "is killed": ("died", "killed by SIGKILL; often the kernel, out of memory"),
    "takes its worker along": ("died", "its worker died: killed by SIGKILL (often the kernel, out of memory)"),
    "hangs": ("died", "no answer within 0.3 s; ended (raise --timeout or lower --calls)"),
}


@pytest.mark.parametrize(("how", "outcome", "reason"), [(how, *rest) for how, rest in ENDS.items()], ids=ENDS)
def test_an_arm_that_ends_otherwise_is_a_row_with_its_reason_and_the_next_is_profiled(
    options: ProfileOptions, how: str, outcome: str, reason: str
):
    asked = changed(options, versions=("2.0",), selected=(f"ending[how={how}]", "fine[size=1]"))
    # Where it hangs nothing else has to be done in so short a time.
    asked = changed(asked, selected=asked.run.selected[:1], timeout_s=0.3) if how == "hangs" else asked
    done = story.profile(asked, View())
    ending, *others = done.arms
    assert (ending.outcome, ending.reason, ending.profile) == (outcome, reason, None)
    assert all(arm.outcome == "profiled" for arm in others)
    assert type(done.error) is {"died": ArmsDied, "refused": type(None)}[outcome]


def test_a_version_that_cannot_be_made_costs_itself_only(options: ProfileOptions, engine: Engine):
    engine.absent = ("1.14.0",)
    done = story.profile(options, View())
    assert ended(done) == [("fine[size=1]", "1.14.0", "died"), ("fine[size=1]", "2.0.0", "profiled")]
    assert done.arms[0].reason == "environment: no disk"
    assert isinstance(done.error, EnvironmentFailed)


def test_a_version_whose_worker_does_not_start_costs_itself_only(options: ProfileOptions, engine: Engine):
    engine.fails = {"1.14.0": "its Python is gone"}
    done = story.profile(options, View())
    assert [arm.outcome for arm in done.arms] == ["died", "profiled"]
    assert "start: 1.14.0: its Python is gone" in done.arms[0].reason
    assert isinstance(done.error, ArmsDied)


def test_where_no_version_can_be_made_there_is_nothing_to_show(options: ProfileOptions, engine: Engine):
    engine.absent = ("1.14.0", "2.0.0")
    with pytest.raises(EnvironmentFailed, match="no version could be made ready"):
        story.profile(options, View())
    assert engine.closed


def test_where_no_version_can_run_it_nothing_was_selected(options: ProfileOptions):
    done = story.profile(changed(options, selected=("ending[how=refuses]",)), View())
    assert isinstance(done.error, NothingSelected)
    assert "no such op" in str(done.error)


class Stops(View):
    """Raises as soon as something is said that holds these words."""

    def __init__(self, words: str, error: BaseException) -> None:
        self._words = words
        self._error = error

    def say(self, text: str) -> None:
        if self._words in text:
            raise self._error


@pytest.mark.parametrize(
    ("error", "kind"), [(KeyboardInterrupt(), Interrupted), (EngineUnavailable("no answer"), EngineUnavailable)]
)
def test_what_was_profiled_before_an_end_is_kept(options: ProfileOptions, error: BaseException, kind: type):
    done = story.profile(options, Stops("1.14.0 profiled", error))
    assert ended(done) == [("fine[size=1]", "1.14.0", "profiled")]
    assert type(done.error) is kind
    assert read_profile(done.path).arms == done.arms


def test_an_end_before_the_first_profile_is_an_error_and_no_report(options: ProfileOptions, engine: Engine):
    def interrupt() -> None:
        raise KeyboardInterrupt

    engine.act = interrupt
    with pytest.raises(Interrupted):
        story.profile(options, View())
    assert engine.closed


WRONG: dict[str, tuple[dict[str, Any], type[TfCompareError], str]] = {
    "no version": ({"versions": ()}, UsageError, "names no version"),
    "a version twice": ({"versions": ("2.0", "2.0.0")}, UsageError, "named twice"),
    "an unknown version": ({"versions": ("0.1",)}, UsageError, "unknown version '0.1'"),
    "too few calls": ({"calls": 2}, UsageError, "--calls 2: a profile takes at least 3 calls"),
    "an unknown workload": ({"selected": ("fien",)}, UsageError, r"unknown workload 'fien' \(did you mean fine\?\)"),
    "an unknown suite": ({"suite": "qiuck"}, UsageError, "unknown suite 'qiuck'"),
}


@pytest.mark.parametrize(("changes", "kind", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_found_before_any_work(
    options: ProfileOptions, changes: dict[str, Any], kind: type[TfCompareError], words: str
):
    with pytest.raises(kind, match=words):
        story.profile(changed(options, **changes), View())
    assert options.run.out is not None
    assert not options.run.out.exists()


def test_a_folder_that_is_in_use_is_left_alone(options: ProfileOptions, tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").touch()
    with pytest.raises(UsageError, match="is not empty"):
        story.profile(options, View())


def test_without_a_seed_there_is_one_and_it_is_told(options: ProfileOptions):
    first, second = (story.plan_profile(changed(options, seed=None), Heard()).seed for _ in range(2))
    assert first != second
    assert story.plan_profile(options, Heard()).seed == 7


def test_limits_and_threads_reach_the_workers_plan(options: ProfileOptions):
    environments = EngineOptions(cpus=(0,), memory_mb=1024)
    plan = story.plan_profile(changed(options, environments=environments, threads=(1, 2)), Heard()).freeze("venv")
    assert (plan.cpus, plan.memory_mb, plan.threads, plan.device) == ((0,), 1024, (1, 2), "cpu")
    assert plan.cases == (case("fine", size="1"),)


def test_a_version_without_code_for_the_card_may_take_longer_in_its_first_profile(
    options: ProfileOptions, monkeypatch: pytest.MonkeyPatch
):
    """A refusal makes no code, so the case after it is still the first."""
    given: list[tuple[str, float]] = []
    asked = WorkerClient.profile

    def profile(self: WorkerClient, case: Case, **order: Any) -> Any:
        given.append((str(self.target), order["timeout_s"]))
        return asked(self, case, **order)

    monkeypatch.setattr(WorkerClient, "profile", profile)
    jit = GpuSupport(matches=(Match("1.14.0", "", "jit", ""),))
    monkeypatch.setattr("orchestrator.plan.planning.fit", lambda planned: replace(planned, fitting=jit))
    story.profile(changed(options, selected=("ending[how=refuses]", "fine")), View())
    assert [timeout_s for version, timeout_s in given if version == "1.14.0"] == [7200.0, 7200.0, 600.0]
    assert {timeout_s for version, timeout_s in given if version == "2.0.0"} == {600.0}
