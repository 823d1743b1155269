"""The workflow of docs/pull-requests.md as it is written, with Docker, and attacks on it by what it measures."""

import json
from pathlib import Path

import pytest

from tests.support.forges import TOKEN, fake_forge
from tests.support.pull_requests import WORKFLOW, assert_harmless, plant, write_code
from tests.support.workflows import Forge


@pytest.mark.long
@pytest.mark.slow
def test_what_is_measured_in_containers_takes_nothing_and_is_commented(stub_base: str, tmp_path: Path) -> None:
    code = write_code(tmp_path / "code", "pace", "thief", "shouts")
    with (code / "tfcompare.toml").open("a") as settings:
        # The action decides that.
        settings.write('engine = "venv"\n')
    with fake_forge() as api:
        forge = Forge(
            folder=tmp_path, code=code, event={"pull_request": {"number": 7}}, api=api.url, token=TOKEN,
            env={"TFCOMPARE_BASE": stub_base},
        )  # fmt: skip
        plant(forge)
        jobs = forge.run(WORKFLOW)
    log = jobs["measure"].log
    assert "it was here" in log
    assert "##[error]boo" in log
    # In a container there is nothing to read, and nothing to replace.
    assert list(tmp_path.glob("machine-*/seen")) == list(tmp_path.glob("machine-*/loot")) == []
    assert_harmless(forge, jobs)
    assert json.loads((forge.artefacts["tfcompare"] / "plan.json").read_text())["engine"] == "docker"
    [body] = api.bodies
    assert "`pace`" in body
