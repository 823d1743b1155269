"""The library as a notebook uses it: runs show themselves, and comparisons are measured from Python."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.engines import ENGINES
from orchestrator.errors import UsageError
from orchestrator.results.run import Run as PlainRun
from orchestrator.results.run_folder import RunFolder
from tests.conftest import ROOT
from tests.support import scenes, stub
from tests.support.export_runs import everything
from tests.support.made_runs import measure_at_once
from tests.support.small_run import write_run
from tests.support.stub_engine import Engine
from tfcompare import Run, compare_targets, load_run

PAGE = (ROOT / "docs" / "library.md").read_text()
WORKLOAD = "def build(tf, params):\n    return lambda: sum(range(1000))\n"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine(stub.write(tmp_path / "stub"))
    monkeypatch.setitem(ENGINES, "venv", replace(ENGINES["venv"], make=lambda options: made))
    monkeypatch.chdir(tmp_path)
    return made


def test_a_run_is_a_line_in_text(tmp_path: Path):
    run = load_run(write_run(tmp_path / "run"))
    assert repr(run) == f"<Run 20260102-030405-abcd: 2.0.0 against 1.0.0, 2 cases, in {tmp_path / 'run'}>"
    assert isinstance(run, PlainRun)


def test_a_run_is_the_table_of_its_report_in_a_notebook(tmp_path: Path):
    page = load_run(write_run(tmp_path / "run"))._repr_html_()
    text = re.sub(r"<[^>]*>", "", page)
    assert "2.0.0 against 1.0.0" in text
    assert "▲ 3.00x" in text
    assert page.startswith("<pre ")
    # Its colours are with it, since a notebook has no style sheet of ours.
    assert 'style="color: #' in page
    assert "class=" not in page


def test_what_a_run_holds_is_no_markup_of_the_notebook(tmp_path: Path):
    evaluation = scenes.poisoned("<script>alert(1)</script><img src=x onerror=alert(2)>")
    page = Run(tmp_path, evaluation, (), ())._repr_html_()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page


def test_the_blocks_of_the_page_run_in_order_in_one_process(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    everything(Path("runs/first"))
    monkeypatch.setattr("orchestrator.measure.run.measure", measure_at_once)
    known: dict[str, object] = {}
    for source in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(source, "docs/library.md", "exec"), known)
    [printed] = re.findall(r"```\n(<Run.*?)\n```", PAGE, re.DOTALL)
    *_, last = capsys.readouterr().out.strip().splitlines()
    assert re.sub(r"\d{8}-\d{6}-\w{4}", "ID", last) == re.sub(r"\d{8}-\d{6}-\w{4}", "ID", printed)
    assert isinstance(known["measured"], Run)


def test_targets_are_measured_from_python_as_on_the_command_line(engine: Engine, capfd: pytest.CaptureFixture[str]):
    Path("mine").mkdir()
    Path("mine/words.py").write_text(WORKLOAD)
    run = compare_targets("2.0", "2.13", workload_folder="mine", rounds=4, engine="venv", output="runs/one")
    streams = capfd.readouterr()
    assert streams.out == ""
    assert "plan: 1 case x 2 versions" in streams.err
    assert run.path == Path("runs/one")
    assert {(arm.case.label, str(arm.target), arm.outcome) for arm in run.arms} == {
        ("words", "2.0.0", "measured"), ("words", "2.13.0", "measured"),
    }  # fmt: skip
    assert all(comparison.rounds == 4 for comparison in run.comparisons)
    assert engine.closed
    assert RunFolder.open(run.path).read_manifest().command == ("compare_targets", "2.0", "2.13")


def test_quiet_says_nothing_and_arms_that_died_are_a_warning(engine: Engine, capfd: pytest.CaptureFixture[str]):
    Path("mine").mkdir()
    Path("mine/words.py").write_text("def build(tf, params):\n    raise RuntimeError('broken')\n")
    with pytest.warns(UserWarning, match="died"):
        run = compare_targets("2.0", "2.13", workload_folder="mine", rounds=2, engine="venv", quiet=True)
    assert capfd.readouterr() == ("", "")
    assert {arm.outcome for arm in run.arms} == {"died"}


@pytest.mark.parametrize(
    ("targets", "flags", "words"),
    [
        (("9.9",), {}, "9.9"),
        (("2.0", "2.13"), {"engine": "podman"}, "engine: unknown engine 'podman'"),
        (("2.0", "2.13"), {"metrics": ["speed"]}, "unknown metric 'speed'"),
        (("2.0", "2.13"), {"rounds": 1}, "at least 2"),
        (("2.0", "2.13"), {"budget": "10"}, "no unit"),
        (("2.0", "2.13"), {"margin": "much"}, "margin"),
        (("2.0", "2.13"), {"suite": "slow"}, "slow"),
        (("2.0", "2.13"), {"cases": ["predct"]}, "predct"),
        (("2.0", "2.13"), {"workload_folder": "nowhere"}, "no such folder"),
    ],
)
def test_a_mistake_is_an_error_before_anything_is_measured(engine: Engine, targets, flags, words: str):
    with pytest.raises(UsageError, match=words):
        compare_targets(*targets, **flags)
    assert not Path("runs").exists()
