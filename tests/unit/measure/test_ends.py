"""What happens becomes an exit code, and the end of a run is recorded however it comes."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.errors import EngineUnavailable
from orchestrator.measure.round_range import first_rounds
from orchestrator.measure.run import measure_rounds
from orchestrator.measure.session import Session, make_manifest
from orchestrator.model import Finished
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions, check_request
from orchestrator.reports import table
from orchestrator.reports.json import comparison_as_object
from orchestrator.reports.reasons import describe_reasons
from orchestrator.results.evaluation import judge_run
from orchestrator.results.exit_error import find_error
from orchestrator.results.past import Progress
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.support.actors import Dressing, Part, Stage
from tests.support.builders import environment_facts
from tests.support.heard import Heard

SMOKE = RunOptions(versions=("1.14", "2.0"), suite="smoke", selected=("power[style=eager]",))
POWER = "power[style=eager]"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run")


def conducted(
    folder: RunFolder,
    stage: Stage,
    *,
    without: tuple[str, ...] = (),
    budget_s: float | None = None,
    view: View | None = None,
    variables: tuple[tuple[str, str], ...] = (),
) -> errors.TfCompareError | None:
    options = replace(
        SMOKE,
        rounds=None if budget_s else 2,
        budget_s=budget_s,
        seed=1,
        environments=EngineOptions(variables=variables),
    )
    asked = check_request(options)
    plan = asked.freeze("venv")
    folder.write_plan(plan)
    environments = {
        version: Dressing(stage, environment_facts(version=str(version), kind="venv"))
        for version in plan.targets
        if version not in without
    }
    folder.write_manifest(make_manifest(asked, environments))
    session = Session(plan, environments, folder, view=view or View())
    return measure_rounds(session, first_rounds(plan), Progress()).error


def ending(folder: RunFolder) -> str:
    (finished,) = [entry for entry in folder.entries() if isinstance(entry, Finished)]
    return finished.how


def test_a_run_that_goes_well_leaves_a_manifest_settled_streams_and_its_end(folder: RunFolder):
    assert conducted(folder, Stage()) is None
    manifest = folder.read_manifest()
    assert set(manifest.environments) == set(manifest.workers) == {"1.14.0", "2.0.0"}
    assert set(manifest.sources) == {"worker", "power"}
    assert [stream.path.name for stream in folder.worker_output.streams()] == [
        f"{version}-{part}.arrow" for version in ("1.14.0", "2.0.0") for part in (1, 2)
    ]
    assert ending(folder) == ""


def test_variables_that_reach_every_target_are_in_the_manifest_and_in_every_report(folder: RunFolder):
    conducted(folder, Stage(), variables=(("TF_ENABLE_ONEDNN_OPTS", "0"),))
    assert folder.read_manifest().variables == {"TF_ENABLE_ONEDNN_OPTS": "0"}
    [warning] = [text for text in judge_run(folder).warnings if "variables of your shell" in text]
    assert "TF_ENABLE_ONEDNN_OPTS=0" in warning


def interrupt(number: int) -> float:
    raise KeyboardInterrupt


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
def test_a_run_that_is_cut_short_keeps_its_rounds_and_says_where(folder: RunFolder, error, kind: type, how: str):
    """Interrupted in the second of two rounds: the first is there."""
    found = conducted(folder, Stage({(POWER, "2.0.0"): Part(raising(error))}))
    assert type(found) is kind
    assert f"tfcompare report {folder.path}" in str(found)
    assert ending(folder) == how
    judged = judge_run(folder)
    assert how in judged.warnings
    assert {found.rounds for found in judged.arms} == {1}


def test_a_budget_that_ends_a_run_is_information_and_what_cuts_it_short_a_warning(tmp_path: Path):
    asked, cut = RunFolder.create(tmp_path / "asked"), RunFolder.create(tmp_path / "cut")
    assert conducted(asked, Stage(), budget_s=0.001) is None
    ended = "the budget of 0 s ended the run after 1 round"
    judged = judge_run(asked)
    assert (judged.warnings, judged.ended_by_budget) == ((), ended)
    assert comparison_as_object(judged)["run"]["ended_by_budget"] == ended
    assert table.describe_measurement(judged).count(ended) == 1
    assert "warning" not in table.render_details(judged)
    conducted(cut, Stage({(POWER, "2.0.0"): Part(raising(KeyboardInterrupt()))}), budget_s=60.0)
    judged = judge_run(cut)
    assert ("interrupted" in judged.warnings, judged.ended_by_budget) == (True, "")


def test_a_run_says_when_it_is_on_the_disk(folder: RunFolder):
    conducted(folder, Stage())
    kinds = [entry.kind for entry in folder.entries()]
    synced = [place for place, kind in enumerate(kinds) if kind == "synced"]
    assert kinds[:2] == ["machine", "synced"]
    assert kinds[-2:] == ["synced", "finished"]
    assert len(synced) == 2 + 2, "before the first round, after each, and at the end"


def test_results_that_are_removed_are_named_in_the_same_round(folder: RunFolder):
    """By the workload, or by a user who cleans up."""

    def remove(number: int) -> float:
        if number == 2:
            shutil.rmtree(folder.results / "2.0.0-2", ignore_errors=True)
        return 10.0

    view = Heard()
    conducted(folder, Stage({(POWER, "2.0.0"): Part(remove)}), view=view)
    assert view.lines[1:] == ["warning: the results of 2.0.0 were removed: what it measured in round 2 is lost"]
    assert judge_run(folder).broken == (
        "2.0.0: the results of 2 replicates are lost: measured, and in no file. Measure 2.0.0 again, in a new run",
    )


def test_an_error_of_ones_own_is_no_good_end_either(folder: RunFolder):
    with pytest.raises(ZeroDivisionError):
        conducted(folder, Stage({(POWER, "2.0.0"): Part(raising(ZeroDivisionError()))}))
    assert ending(folder) == "an error ended the run"


def test_a_version_that_is_left_alone_is_not_measured(folder: RunFolder):
    stage = Stage()
    assert conducted(folder, stage, without=("2.0.0",)) is None
    assert stage.log == []


@pytest.mark.parametrize("lost", ["1.14.0", "2.0.0"])
def test_a_version_whose_only_other_does_not_start_is_not_measured_and_has_not_died(folder: RunFolder, lost: str):
    assert type(conducted(folder, Stage(broken=(lost,)))) is errors.ArmsDied
    judged = judge_run(folder)
    ends = {str(arm.target): (arm.outcome, arm.reason) for arm in judged.arms}
    start = f"start: {lost}: does not start"
    assert ends.pop(lost) == ("died", start)
    assert list(ends.values()) == [("not measured", "nothing was left to compare it with")]
    assert {comparison.reason for comparison in judged.comparisons} == {start}
    error = find_error(judged.arms, ())
    assert isinstance(error, errors.ArmsDied)
    assert str(error).startswith("1 of 2 arms died")
    kinds = {arm["target"]: arm["outcome"] for arm in comparison_as_object(judged)["arms"]}
    assert kinds == {lost: "died"} | dict.fromkeys(map(str, {*judged.plan.targets} - {lost}), "not measured")
    assert any(line.startswith("not measured: ") for line in describe_reasons(judged))


def test_what_an_interrupt_left_unmeasured_says_so(folder: RunFolder):
    stage = Stage({(POWER, "1.14.0"): Part(interrupt), (POWER, "2.0.0"): Part(interrupt)})
    with pytest.raises(errors.Interrupted):
        conducted(folder, stage)
    assert {(arm.outcome, arm.reason) for arm in judge_run(folder).arms} == {("not measured", "interrupted")}
