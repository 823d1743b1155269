"""A run goes on with the versions that could be made ready, if enough of them are left to compare."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.catalog.version import Version
from orchestrator.engines import Engine, Environment
from orchestrator.engines.build_log import BuildLog
from orchestrator.errors import EnvironmentFailed
from orchestrator.measure.alternative import can_compare
from orchestrator.measure.session import NewSession, prepare_environments
from orchestrator.plan.request import PlannedRun, RunOptions, check_request
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from tests.support.engines import Lacking
from tests.support.heard import Heard

SMOKE = RunOptions(versions=("1.14", "2.0"), suite="smoke", selected=("power[style=eager]",))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run")


def opened_on(engine: Engine, asked: PlannedRun, folder: RunFolder, view: View) -> NewSession:
    return NewSession(asked.freeze("venv"), {}, folder, view=view, planned=asked, engine=engine)


def prepared(lacks: tuple[str, ...], folder: RunFolder, heard: Heard) -> list[str]:
    options = replace(SMOKE, versions=("1.14", "2.0", "2.12", "2.13"))
    asked = check_request(options)
    opened = opened_on(Lacking(*lacks), asked, folder, heard)
    run = prepare_environments(opened, enough=lambda ready: can_compare(asked, ready))
    return list(map(str, run.environments))


def test_a_run_goes_on_without_the_versions_that_lack_their_python(folder: RunFolder):
    heard = Heard()
    assert prepared(("1.14.0", "2.0.0"), folder, heard) == ["2.12.1", "2.13.0"]
    warnings = [line for line in heard.lines if line.startswith("warning")]
    assert warnings == ["warning: 1.14.0, 2.0.0: Python 3.7 could not be downloaded"]


class Broken(Lacking):
    """An engine that has every Python, and cannot install some versions."""

    def prepare(self, version: Version, log: BuildLog) -> Environment:
        try:
            return super().prepare(version, log)
        except EnvironmentFailed as error:
            raise EnvironmentFailed("the hashes do not match", target=version.name) from error


@pytest.mark.parametrize(("versions", "enough"), [(("1.14", "2.0", "2.13"), True), (("1.14", "2.13"), False)])
def test_versions_that_cannot_be_installed_end_the_run_if_one_is_left(
    folder: RunFolder, versions: tuple[str, ...], enough: bool
):
    asked = check_request(replace(SMOKE, versions=versions))
    opened = opened_on(Broken("1.14.0"), asked, folder, View())
    if enough:
        run = prepare_environments(opened, enough=lambda ready: can_compare(asked, ready))
        assert list(map(str, run.environments)) == ["2.0.0", "2.13.0"]
        return
    with pytest.raises(EnvironmentFailed) as failed:
        prepare_environments(opened, enough=lambda ready: can_compare(asked, ready))
    assert str(failed.value) == (
        "too few versions for a comparison could be made ready:\n1.14.0: the hashes do not match"
    )


def test_a_single_version_that_is_left_is_not_measured_for_nothing(folder: RunFolder):
    with pytest.raises(EnvironmentFailed) as failed:
        prepared(("1.14.0", "2.0.0", "2.12.1"), folder, Heard())
    assert str(failed.value) == "1.14.0, 2.0.0, 2.12.1: Python 3.7 could not be downloaded"
