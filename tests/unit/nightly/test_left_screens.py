"""A screen that a killed nightly run had measured to its end counts for the next one of the day, if it is just that."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.catalog import workloads as suites
from orchestrator.formats import RUN
from orchestrator.history.model import NightReport
from orchestrator.history.store import Store
from orchestrator.machine.host import host_facts
from orchestrator.model import Extended, Lost
from orchestrator.nightly import night as nights
from orchestrator.nightly.night import run_night
from orchestrator.nightly.options import NightOptions
from orchestrator.nightly.stages import STAMP
from orchestrator.nightly.subprocess_run import Child, ChildEnd
from orchestrator.results.run_folder import BEGUN, RunFolder
from orchestrator.terminal.view import View
from tests.support.builders import MS, case, ended, finished, plan, rows, run_folder, target, write_stream
from tests.support.heard import Heard

CASE, VERSIONS = case("power", style="eager"), ("1.13.2", "2.13.0")


class Killed(BaseException):
    """Ends a nightly run as SIGKILL does: nothing of it catches this."""


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NightOptions:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    return NightOptions(history=tmp_path / "history", names=("1.13", "2.13"), suite="made")


def measure(words: Sequence[str]) -> Path:
    """What `tfcompare run` leaves when it is called with these words."""
    path = Path(words[words.index("--output") + 1])
    number = len(list(path.parent.glob("*"))) if path.parent.exists() else 0
    asked = replace(plan((CASE,), VERSIONS, looks=(3,)), run=f"{datetime.now(UTC):{STAMP}}-{number:04x}")
    sources = suites.source_hashes([suites.all_workloads()[CASE.workload]])
    run = run_folder(path, asked, sources=sources, host=dict(host_facts()))
    begin(path, *words)
    for version in VERSIONS:
        batches = [rows(CASE, version, round=at, replicate=at, bursts=[MS] * 3, run=asked.run) for at in (1, 2, 3)]
        write_stream(run.settled / f"{version}-1.arrow", batches)
    run.record(finished(how="", seconds=9.0))
    return path


def put_back(words: Sequence[str]) -> list[str]:
    """The same words of a nightly run that began a second ago."""
    place = words.index("--output") + 1
    stamp, _, stage = Path(words[place]).name.rpartition("-")
    before = datetime.strptime(stamp, STAMP) - timedelta(seconds=1)
    return [*words[:place], str(Path(words[place]).with_name(f"{before:{STAMP}}-{stage}")), *words[place + 1 :]]


def begin(path: Path, *command: str) -> None:
    begun = replace(RunFolder(path).read_begun(), command=command)
    (path / "begun.json").write_bytes(RUN.stamp(BEGUN.dump_json(begun)))


def kill_before(monkeypatch: pytest.MonkeyPatch, options: NightOptions, step: str) -> Path:
    """Kill a nightly run once it has measured its screen; return the screen's folder."""

    def leave(self: Child, words: Sequence[str]) -> ChildEnd:
        if step == "the run has its name":
            measure(put_back(words))
            raise Killed
        measure(words)
        return ChildEnd(exit_code=0, hung=False, last_lines="")

    def die(*given: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Child, "run", leave)
        if step == "there are points":
            patch.setattr(Store, "append", die)
        if step == "the night is judged":
            patch.setattr(nights, "_judge_points", die)
        with pytest.raises(Killed):
            run_night(options, View())
    [path] = (options.history / "runs").iterdir()
    return path


def run_next(monkeypatch: pytest.MonkeyPatch, options: NightOptions) -> tuple[NightReport, int, list[str]]:
    """The next nightly run, how often it measured, and its lines."""
    measured, lines = [], []

    def count(self: Child, words: Sequence[str]) -> ChildEnd:
        measured.append(measure(words))
        return ChildEnd(exit_code=0, hung=False, last_lines="")

    with monkeypatch.context() as patch:
        patch.setattr(Child, "run", count)
        # To draw one takes most of the time.
        patch.setattr(nights, "_write_page", lambda run: str(run.path / "report.html"))
        return run_night(options, Heard(lines)), len(measured), lines


@pytest.mark.parametrize("step", ["the run has its name", "there are points", "the night is judged"])
def test_it_counts_instead_of_being_measured_again(monkeypatch, options: NightOptions, step: str):
    left = kill_before(monkeypatch, options, step)
    run = RunFolder(left).read_plan().run
    assert left.name.endswith("-screen") == (step == "the run has its name")
    report, measured, lines = run_next(monkeypatch, options)
    assert (measured, report.night.outcome, report.night.run, report.night.exit_code) == (0, "measured", run, 0)
    assert f"was measured already (run {run}) by a nightly run that was ended" in "\n".join(lines)
    store = Store(options.history)
    assert [path.name for path in store.runs.iterdir()] == [run]
    assert Path(report.page).parent == store.runs / run
    keys = [point.key for point in store.read().points()]
    assert len(keys) == len(set(keys)) == report.night.cells
    assert run_next(monkeypatch, options)[0].night.outcome == "skipped"


OTHER_NIGHTS: tuple[dict[str, Any], ...] = (
    {"names": ("1.13", "2.12")},
    {"selected": ("predict",)},
    {"suite": "another"},
    {"rounds": 24},
    {"flags": ("--threads", "2,1")},
    {"flags": ("--inherit-env",)},
    {"again": True},
)


@pytest.mark.parametrize("others", OTHER_NIGHTS, ids=lambda others: " ".join(map(str, others.items())))
def test_a_night_of_something_else_measures(monkeypatch, options: NightOptions, others: dict[str, Any]):
    left = kill_before(monkeypatch, options, "the run has its name")
    report, measured, _ = run_next(monkeypatch, replace(options, **others))
    assert (measured, report.night.outcome, left.exists()) == (1, "measured", True)
    assert report.night.run != RunFolder(left).read_plan().run
    assert run_next(monkeypatch, options)[1] == 0, "its own night still counts it"


def of_yesterday(run: RunFolder) -> None:
    word, flag, output, *words = run.read_begun().command
    stamp, _, stage = Path(output).name.rpartition("-")
    yesterday = datetime.strptime(stamp, STAMP) - timedelta(days=1)
    begin(run.path, word, flag, str(run.path.with_name(f"{yesterday:{STAMP}}-{stage}")), *words)


def of_a_confirmation(run: RunFolder) -> None:
    word, flag, output, *words = run.read_begun().command
    begin(run.path, word, flag, output.replace("-screen", "-confirm"), *words)


def cut_short(run: RunFolder) -> None:
    run.record(finished(how="interrupted", seconds=9.0, cut=True))


def killed_in_a_round(run: RunFolder) -> None:
    run.record(ended(CASE, "2.13.0", "refused", round=7, replicate=5000))


def without_a_line(run: RunFolder) -> None:
    run.journal.write_text("")


def extended(run: RunFolder) -> None:
    more = Extended(
        created=datetime.now(UTC), command=(), seed=1, first_round=7, looks=(8,), budget_s=None, exploratory=True
    )
    run.record(more, finished(how="", seconds=9.0))


def of_another_machine(run: RunFolder) -> None:
    manifest = run.read_manifest()
    run.write_manifest(replace(manifest, host={**manifest.host, "id": "elsewhere"}))


def of_other_sources(run: RunFolder) -> None:
    manifest = run.read_manifest()
    run.write_manifest(replace(manifest, sources={**manifest.sources, "power": "0" * 64}))


def of_another_contract(run: RunFolder) -> None:
    run.write_manifest(replace(run.read_manifest(), contract="0" * 12))


def with_variables_of_the_shell(run: RunFolder) -> None:
    run.write_manifest(replace(run.read_manifest(), variables={"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"}))


def with_lost_results(run: RunFolder) -> None:
    (run.settled / "2.13.0-1.arrow").write_bytes(b"no stream")


def damaged(run: RunFolder) -> None:
    (run.path / "begun.json").write_text("{")


def without_a_plan(run: RunFolder) -> None:
    (run.path / "plan.json").unlink()


@pytest.mark.parametrize(
    "change",
    [
        of_yesterday, of_a_confirmation, cut_short, killed_in_a_round, without_a_line, extended, of_another_machine,
        of_other_sources, of_another_contract, with_variables_of_the_shell, with_lost_results,
        damaged, without_a_plan,
    ],
)  # fmt: skip
def test_what_is_not_tonights_whole_screen_is_left_where_it_is(
    monkeypatch, options: NightOptions, change: Callable[[RunFolder], None]
):
    left = kill_before(monkeypatch, options, "the run has its name")
    change(RunFolder(left))
    report, measured, lines = run_next(monkeypatch, options)
    assert (measured, report.night.outcome, left.exists()) == (1, "measured", True)
    assert "measured already" not in "\n".join(lines)
    assert {point.run for point in Store(options.history).read().points()} == {report.night.run}


def test_one_that_is_being_continued_is_left_alone(monkeypatch, options: NightOptions):
    left = kill_before(monkeypatch, options, "the run has its name")
    with RunFolder(left).hold():
        assert run_next(monkeypatch, options)[1] == 1
    assert left.exists()


def test_one_that_another_night_has_counted_is_not_counted_twice(monkeypatch, options: NightOptions):
    first, _, _ = run_next(monkeypatch, options)
    exact = replace(options, names=("1.13.2", "2.13.0"))
    second, measured, _ = run_next(monkeypatch, exact)
    assert (measured, second.night.run != first.night.run) == (1, True)


def test_what_could_not_be_measured_in_it_is_the_nights_end(monkeypatch, options: NightOptions):
    left = RunFolder(kill_before(monkeypatch, options, "the run has its name"))
    *entries, finished = left.entries()
    left.journal.write_text("")
    lost = Lost(
        target=target("2.12.1"),
        stage="environment",
        reason="environment: no package of that name",
        failure="workload",
        external=False,
    )
    left.record(*entries, lost, finished)
    report, measured, _ = run_next(monkeypatch, options)
    assert (measured, report.night.outcome, report.night.exit_code) == (0, "measured", 5)


def test_nights_of_one_schedule_share_a_day_across_midnight(monkeypatch, options: NightOptions):
    """The day of a nightly run begins at its time: what was measured before that is of the day before."""
    kill_before(monkeypatch, options, "the run has its name")
    yesterday = datetime.now().date() - timedelta(days=1)
    report, measured, _ = run_next(monkeypatch, replace(options, night=yesterday))
    assert (measured, report.night.night) == (0, yesterday)
    assert len(Store(options.history).events()[0]) == 1
