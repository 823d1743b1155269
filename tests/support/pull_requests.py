"""The workflows of docs/pull-requests.md, code of a pull request for them, and what no attack on them may do."""

import json
import re
from pathlib import Path
from shutil import copy

from tests.conftest import ROOT
from tests.support.forges import TOKEN
from tests.support.workflows import Forge, Job

WORKLOADS = ROOT / "tests" / "engines" / "workloads"
SETTINGS = """
targets = ["1.14", "2.0"]
workload-folder = "own"
rounds = 4
fail-on = "slower"
"""
PAGE = (ROOT / "docs" / "pull-requests.md").read_text()
WORKFLOW, FOR_FORKS, ON_REQUEST = (
    text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if text.startswith("name:")
)
MEASURES = "- uses: OWNER/tfcompare@COMMIT\n"


def with_inputs(*lines: str) -> str:
    """The workflow of the page whose measuring step has inputs."""
    assert WORKFLOW.count(MEASURES) == 1
    return WORKFLOW.replace(
        MEASURES, MEASURES + "\n".join(("        with:", *(f"          {one}" for one in lines), ""))
    )


def write_code(folder: Path, *cases: str) -> Path:
    """The code of a pull request, in which 2.0 is slower in the case `pace`."""
    (folder / "own").mkdir(parents=True, exist_ok=True)
    for case in cases:
        copy(WORKLOADS / f"{case}.py", folder / "own")
    (folder / "own" / "pace.json").write_text(json.dumps({"1.14": (10, 20, 1.0), "2.0": (15, 20, 1.0)}))
    (folder / "tfcompare.toml").write_text(f"{SETTINGS}cases = {json.dumps(cases)}\n")
    return folder


def plant(forge: Forge) -> None:
    """Give every job variables that hold tokens, as a careless workflow would."""
    forge.env |= {
        "GITHUB_TOKEN": "planted-token", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "planted-id", "MY_SECRET": "planted-secret",
    }  # fmt: skip


def assert_harmless(forge: Forge, jobs: dict[str, Job]) -> None:
    """No token reached what was measured, and GitHub carries out only commands of the action."""
    kept = [path.read_text(errors="replace") for name in ("loot", "seen") for path in forge.folder.glob(f"*/{name}")]
    assert TOKEN not in "".join(kept)
    assert re.findall("planted-[a-z]+", "".join(kept)) == []
    assert list(jobs) == ["measure", "comment"]
    for job in jobs.values():
        assert [line for line in job.commands if not re.match("::(error|warning) title=tfcompare::", line)] == []
    assert not jobs["comment"].failed, jobs["comment"].log
