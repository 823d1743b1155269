"""What docs/migration.md shows is what was printed: its blocks are compared with the runs that it tells of.

The runs were measured on a real machine, and are kept next to the other golden files.
"""

import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.bisect.report import layout_search
from orchestrator.bisect.state import read_state
from orchestrator.catalog.version import Version
from orchestrator.engines import ENGINES, Outlook
from orchestrator.terminal.text import print_table
from orchestrator.upgrade.report import UpgradeAnswer, layout_upgrade
from orchestrator.upgrade.run import read_upgrade_outcome
from orchestrator.why.ladder import explain
from orchestrator.why.report import WhyAnswer, layout_answer
from orchestrator.why.run import WhyActions, WhyOutcome, read_ladders
from orchestrator.why.state import read_question
from tests.conftest import ROOT
from tests.support import stub
from tests.support.commands import called
from tests.support.documented import FENCED, is_part
from tests.support.stub_engine import Engine

PAGE = (ROOT / "docs" / "migration.md").read_text()
KEPT = ROOT / "tests" / "golden" / "migration.tar.xz"
WORKLOAD = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
PLAN, *SHOWN = [block[0].split("\n", 1)[1].removesuffix("```") for block in FENCED.finditer(PAGE) if not block[1]]
# The runs of the page that are kept, its question and its search, in its order.
RUNS = ("migration", "where", "cause", "hunt", "optimizers", "upgrade")
# Which Python a version has is a matter of the machine.
PYTHON = re.compile(r" \(Python [\d.]+\)")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("migration")
    with tarfile.open(KEPT) as archive:
        archive.extractall(folder, filter="data")
    return folder / "runs"


def test_the_page_has_a_block_for_each_run():
    assert len(SHOWN) == len(RUNS)


@pytest.mark.parametrize(("name", "block"), list(zip(RUNS, SHOWN, strict=True)), ids=RUNS)
def test_the_page_shows_what_its_run_prints(
    runs: Path, name: str, block: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "110")
    if name == "hunt":
        state = read_state(runs / name)
        print_table(lambda width: layout_search(state, state.search_result, width))
    elif name == "cause":
        question = read_question(runs / name)
        ladders = read_ladders(runs / name, question, WhyActions())
        answer = WhyAnswer(WhyOutcome(question, explain(ladders), runs / name))
        print_table(lambda width: layout_answer(answer, width))
    elif name == "upgrade":
        upgrade = UpgradeAnswer(read_upgrade_outcome(runs / name))
        print_table(lambda width: layout_upgrade(upgrade, width))
    else:
        called(monkeypatch, "report", str(runs / name))
    printed = capfd.readouterr().out
    assert is_part(block, printed), printed


class InstalledVersions(Engine):
    """An engine with every version, each in an environment of its Python."""

    def outlook(self, version: Version) -> Outlook:
        return Outlook("ready", f"ready (Python {version.on('cpu')[0].python.number})")


def test_the_page_shows_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "training.py").write_text(WORKLOAD)
    stub.write(tmp_path / "stub")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setitem(
        ENGINES, "venv", replace(ENGINES["venv"], make=lambda options: InstalledVersions(tmp_path / "stub"))
    )
    words = ("--versions", "2.8,2.15,2.16", "--workload-folder", "mine", "--dry-run", "--engine", "venv")
    assert called(monkeypatch, "run", *words) == 0
    assert is_part(PYTHON.sub("", PLAN), PYTHON.sub("", capfd.readouterr().out))
