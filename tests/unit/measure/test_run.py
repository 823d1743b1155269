"""What happens becomes an exit code, and a run's end is recorded however it comes."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.catalog.version import Version
from orchestrator.engines import Environment, Outlook
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.choose import choose_engine
from orchestrator.errors import EngineUnavailable, EnvironmentFailed, UsageError
from orchestrator.measure import run
from orchestrator.measure.alternative import can_compare
from orchestrator.measure.conduct import measure_rounds
from orchestrator.measure.outline import outline
from orchestrator.measure.prepare_run import OpenRun, PreparedRun, make_manifest, prepare_environments
from orchestrator.measure.replicate import Progress
from orchestrator.measure.resume import MoreOptions, more_rounds
from orchestrator.measure.rounds import first_rounds
from orchestrator.model import EnvironmentFacts, Expectation, Finished, Isolation
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions, make_plan
from orchestrator.results.comparison import judge_run
from orchestrator.results.rundir import RunDir
from orchestrator.terminal.progress import Quiet
from tests.support import actors
from tests.support.actors import Dressing, Part, Stage
from tests.support.builders import claim, version_pair

VERSIONS = ("1.14", "2.0")
SMOKE = RunOptions(versions=VERSIONS, suite="smoke", selected=("power[style=eager]",))
POWER = "power[style=eager]"


def test_how_long_it_takes_is_said_beforehand_and_of_claims_only_what_it_takes_at_most():
    one = make_plan(SMOKE).plan
    assert "1 cases x 2 versions, 6 to 20 rounds, about 0.1 to 0.4 min" in outline(replace(one, budget_s=None))
    assert "about 0.1 to 0.2 min" in outline(replace(one, budget_s=12.0))
    assert "6 rounds, about 0.1 min" in outline(replace(one, looks=(6,)))
    said = version_pair(one.cases[0], *one.versions)
    of_claims = replace(one, claims=(claim(Expectation(pair=said, effect="same", published=None)),), budget_s=1140.0)
    assert "1 claims, 2 arms in 2 versions, 6 to 20 rounds, at most 19 min" in outline(of_claims)
    assert "about 0.1 to 0.4 min" in outline(replace(of_claims, budget_s=None))


class Engine:
    """An engine that answers, or does not."""

    def __init__(self, name: str, answers: bool) -> None:
        self.name = name
        self._answers = answers

    def check(self) -> str:
        if not self._answers:
            raise EngineUnavailable(f"{self.name} does not answer", "start it")
        return self.name

    def outlook(self, version: Version) -> Outlook:
        return Outlook("to build", "to be made")

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        raise EnvironmentFailed(f"{self.name} cannot make it", version=version.number)

    def close(self) -> None:
        pass


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch):
    def offer(**answers: bool) -> None:
        made = {name: lambda options, n=name, a=answer: Engine(n, a) for name, answer in answers.items()}
        actors.offer(monkeypatch, **made)

    return offer


def chosen(options: RunOptions) -> tuple[str, str]:
    said: list[str] = []
    name, engine = choose_engine(options.engine, options.isolation, options.environments, said.append)
    assert engine.name == name
    return name, "\n".join(said)


def test_auto_takes_docker_where_it_answers_and_says_how_not_to(offered):
    offered(docker=True, venv=True)
    name, said = chosen(SMOKE)
    assert name == "docker"
    assert "--engine venv" in said


def test_auto_takes_environments_where_docker_does_not_answer_and_says_why(offered):
    offered(docker=False, venv=True)
    assert chosen(SMOKE) == ("venv", "engine: venv (docker does not answer)")


def test_auto_never_takes_the_cpu_for_a_gpu(offered):
    offered(docker=False, venv=True)
    with pytest.raises(EngineUnavailable, match="docker does not answer"):
        chosen(replace(SMOKE, environments=EngineOptions(gpu=True)))


@pytest.mark.parametrize(
    ("isolation", "tried", "not_tried"),
    [("fork", ("docker", "venv"), ()), ("container", ("docker",), ("venv",)), ("process", ("venv",), ("docker",))],
)
def test_where_no_image_can_be_had_only_a_fork_may_live_elsewhere(
    offered, tmp_path: Path, isolation: Isolation, tried: tuple[str, ...], not_tried: tuple[str, ...]
):
    """A container of a replicate's own cannot become a process without anybody having asked for that."""
    offered(docker=True, venv=True)
    with pytest.raises(EnvironmentFailed) as failed:
        run.run(replace(SMOKE, isolation=isolation, out=tmp_path / "run"), Quiet())
    assert f"{tried[-1]} cannot make it" in str(failed.value)
    assert not any(name in str(failed.value) for name in not_tried)


class Lacking(Engine):
    """An engine that lacks the Python of some versions."""

    def __init__(self, *lacks: str) -> None:
        super().__init__("venv", answers=True)
        self._lacks = lacks

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        if version.number in self._lacks:
            raise EnvironmentFailed("Python 3.7 could not be downloaded", version=version.number, lacks_python=True)
        facts = EnvironmentFacts(version=version.number, kind="venv", identity="", lock="", python="")
        return Dressing(Stage(), facts)


def test_the_plan_is_written_once_with_the_engine_that_made_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    actors.offer(monkeypatch, docker=lambda options: Engine("docker", answers=True), venv=lambda options: Lacking())
    written: list[str] = []
    real = RunDir.write_plan
    monkeypatch.setattr(RunDir, "write_plan", lambda self, plan: (written.append(plan.engine), real(self, plan)))
    done = run.run(replace(SMOKE, rounds=2, seed=1, out=tmp_path / "run"), Quiet())
    assert written == ["venv"]
    assert RunDir.open(done.path).read_plan().engine == "venv"


def test_a_run_whose_environments_fail_leaves_a_directory_that_says_what_it_was(offered, tmp_path: Path):
    offered(venv=True)
    command = ("run", "--versions", "1.14,2.0")
    with pytest.raises(EnvironmentFailed):
        run.run(replace(SMOKE, command=command, out=tmp_path / "run"), Quiet())
    assert not (tmp_path / "run" / "plan.json").exists()
    for read in (RunDir.open, lambda path: more_rounds(MoreOptions(run=path), Quiet())):
        with pytest.raises(UsageError, match=r"`tfcompare run --versions 1\.14,2\.0`, begun .* ended before its env"):
            read(tmp_path / "run")


def test_a_run_that_still_makes_its_environments_is_told_from_one_that_ended(directory: RunDir):
    with directory.hold(), pytest.raises(UsageError, match=r"no run yet: a run is still making its environments ready"):
        RunDir.open(directory.path)


class Heard(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def prepared(lacks: tuple[str, ...], directory: RunDir, heard: Heard) -> list[str]:
    options = replace(SMOKE, versions=("1.14", "2.0", "2.12", "2.13"))
    asked = make_plan(options)
    with ExitStack() as held:
        opened = OpenRun(asked, "venv", Lacking(*lacks), directory, heard, held)
        run = prepare_environments(opened, enough=lambda ready: can_compare(asked.plan, ready))
    return list(run.environments)


def test_a_run_goes_on_without_the_versions_that_lack_their_python(directory: RunDir):
    heard = Heard()
    assert prepared(("1.14.0", "2.0.0"), directory, heard) == ["2.12.1", "2.13.0"]
    warnings = [line for line in heard.lines if line.startswith("warning")]
    assert warnings == ["warning: 1.14.0, 2.0.0: Python 3.7 could not be downloaded"]


def test_a_single_version_that_is_left_is_not_measured_for_nothing(directory: RunDir):
    with pytest.raises(EnvironmentFailed) as failed:
        prepared(("1.14.0", "2.0.0", "2.12.1"), directory, Heard())
    assert str(failed.value) == "1.14.0, 2.0.0, 2.12.1: Python 3.7 could not be downloaded"


def test_an_engine_that_was_named_is_taken_or_nothing(offered):
    offered(docker=False, venv=True)
    assert chosen(replace(SMOKE, engine="venv"))[0] == "venv"
    with pytest.raises(EngineUnavailable):
        chosen(replace(SMOKE, engine="docker"))
    with pytest.raises(UsageError, match="unknown engine 'podman'; there are auto, docker, venv"):
        chosen(replace(SMOKE, engine="podman"))


@pytest.fixture
def directory(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path / "run")


def conducted(directory: RunDir, stage: Stage, *, without: tuple[str, ...] = ()) -> errors.TfCompareError | None:
    options = replace(SMOKE, engine="venv", rounds=2, seed=1)
    asked = make_plan(options)
    directory.write_plan(asked.plan)
    environments = {
        version: Dressing(stage, EnvironmentFacts(version=version, kind="venv", identity="", lock="", python=""))
        for version in asked.plan.versions
        if version not in without
    }
    directory.write_manifest(make_manifest(asked, environments))
    prepared = PreparedRun(asked.plan, environments, directory)
    return measure_rounds(prepared, first_rounds(asked.plan), Progress(), Quiet())


def ending(directory: RunDir) -> str:
    (finished,) = [entry for entry in directory.entries() if isinstance(entry, Finished)]
    return finished.how


def test_a_run_that_goes_well_leaves_a_manifest_settled_streams_and_its_end(directory: RunDir):
    assert conducted(directory, Stage()) is None
    manifest = directory.read_manifest()
    assert set(manifest.environments) == set(manifest.workers) == {"1.14.0", "2.0.0"}
    assert set(manifest.sources) == {"worker", "power"}
    assert [stream.path.name for stream in directory.streams()] == ["1.14.0-1.arrow", "2.0.0-1.arrow"]
    assert ending(directory) == ""


def raising(error: BaseException):
    def ms(number: int) -> float:
        if number == 2:
            raise error
        return 10.0

    return ms


@pytest.mark.parametrize(
    ("error", "kind", "how"),
    [
        (KeyboardInterrupt(), errors.Interrupted, "interrupted"),
        (EngineUnavailable("no answer"), EngineUnavailable, "no answer"),
    ],
)
def test_a_run_that_is_cut_short_keeps_its_rounds_and_says_where(directory: RunDir, error, kind: type, how: str):
    """Interrupted in the second of two rounds: the first is there."""
    found = conducted(directory, Stage({(POWER, "2.0.0"): Part(raising(error))}))
    assert type(found) is kind
    assert f"tfcompare report {directory.path}" in str(found)
    assert ending(directory) == how
    judged = judge_run(directory)
    assert how in judged.warnings
    assert {found.rounds for found in judged.arms} == {1}


def test_an_error_of_ones_own_is_no_good_end_either(directory: RunDir):
    with pytest.raises(ZeroDivisionError):
        conducted(directory, Stage({(POWER, "2.0.0"): Part(raising(ZeroDivisionError()))}))
    assert ending(directory) == "an error ended the run"


def test_a_version_without_an_environment_leaves_the_others_measured(directory: RunDir):
    assert conducted(directory, Stage(), without=("2.0.0",)) is None
    assert [found.outcome for found in judge_run(directory).arms] == ["measured", "died"]
