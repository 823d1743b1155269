"""What a night does with what its measuring left; the measuring itself is real in tests/engines/test_night.py."""

import math
import os
import random
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.nightly.run import ending
from orchestrator.errors import ArmsDied, ContractBroken, Interrupted, UsageError
from orchestrator.fleet.model import FleetOptions
from orchestrator.fleet.single import SingleHost
from orchestrator.history.alarms.steps import CONFIRM_TIMES
from orchestrator.history.model import AlarmOpened, Night, NightReport, Point
from orchestrator.history.series import all_arrays, last_segments
from orchestrator.history.store import Store
from orchestrator.machine.host import host_facts
from orchestrator.nightly import lock, versions
from orchestrator.nightly import night as nights
from orchestrator.nightly.causes import add_flags
from orchestrator.nightly.night import run_night
from orchestrator.nightly.options import NightOptions
from orchestrator.nightly.subprocess_run import Child, ChildEnd
from orchestrator.plan.request import RunOptions, check_request
from orchestrator.results.run import load_run
from tests.support.builders import MS, finished, plan, rows, run_folder, write_stream
from tests.support.heard import Heard, Listener
from tests.support.nights import history
from tests.support.trends import RELEASES, written

FINE = ChildEnd(exit_code=0, hung=False, last_lines="")
Leaves = Callable[[Path], ChildEnd]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))


@pytest.fixture
def options(tmp_path: Path) -> NightOptions:
    return NightOptions(history=tmp_path / "history", names=("1.13", "2.13"), suite="made")


def measures(monkeypatch: pytest.MonkeyPatch, leaves: Leaves) -> None:
    """What `tfcompare run` would leave in its folder."""
    monkeypatch.setattr(Child, "run", lambda self, words: leaves(Path(words[words.index("--output") + 1])))


def whole(path: Path) -> ChildEnd:
    written(path)
    return FINE


def paced(slower: Sequence[float], asked_for: list[list[str]]) -> Callable[[Child, Sequence[str]], ChildEnd]:
    """Runs of a night, one after the other, whose newer version is slower by so much; a round strays by a tenth."""
    draw = random.Random(1)

    def measure(self: Child, words: Sequence[str]) -> ChildEnd:
        number = len(asked_for)
        asked_for.append(list(words))
        rounds = int(words[words.index("--rounds") + 1])
        asked = replace(plan(looks=(rounds,)), run=f"20260102-03040{number}-made")
        folder = run_folder(Path(words[words.index("--output") + 1]), asked)
        for place, version in enumerate(asked.targets):
            batches = []
            for count in range(1, rounds + 1):
                strays = draw.gauss(0, 0.07) + (slower[number] if place else 0.0)
                bursts = [int(10 * MS * math.exp(strays))] * 3
                batches.append(rows(version=version, round=count, replicate=count, bursts=bursts, run=asked.run))
            write_stream(folder.settled / f"{version}-1.arrow", batches)
        folder.record(finished(how="", seconds=9.0))
        return FINE

    return measure


def said(options: NightOptions) -> tuple[NightReport, list[str]]:
    lines: list[str] = []
    return run_night(options, Heard(lines)), lines


def kept(options: NightOptions) -> list[Night]:
    return [event for event in Store(options.history).events()[0] if isinstance(event, Night)]


def test_what_was_measured_is_kept_under_the_name_of_its_run(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)
    told, _ = said(options)
    assert told.night.outcome == "measured"
    run = load_run(options.history / "runs" / told.night.run)
    assert run.plan.run == told.night.run
    assert {point.run for point in Store(options.history).read().points()} == {told.night.run}
    assert Path(told.page).is_relative_to(run.path)
    assert kept(options) == [told.night]
    assert told.night.cells == 2 * (len(RELEASES) - 1)


@pytest.mark.parametrize(("slower", "told"), [(0.5, "not yet: slower"), (0.0, "go")], ids=["slower", "equal"])
def test_a_night_says_whether_one_may_move(monkeypatch, options: NightOptions, slower: float, told: str):
    monkeypatch.setattr(Child, "run", paced([slower] * 20, []))
    report, _ = said(options)
    [move] = report.moves
    version, _, verdict = move.partition(": ")
    assert version == "2.0.0"
    assert verdict.startswith(told), move


def test_the_same_night_is_not_measured_twice_unless_asked(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)
    first, _ = said(options)
    again, lines = said(options)
    assert again.night.outcome == "skipped"
    assert not again.happened
    assert f"was measured already (run {first.night.run})" in lines[-1]
    assert len(kept(options)) == 1
    events, host, today = Store(options.history).events()[0], first.night.host, first.night.night
    assert nights.earlier_measurement(events, options, host, today) == first.night
    assert nights.earlier_measurement(events, options, "elsewhere", today) is None
    assert nights.earlier_measurement(events, options, host, today + timedelta(days=1)) is None


def test_a_night_in_a_fleet_records_who_measured_and_who_started_it(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)
    fleet = FleetOptions(on="auto")
    monkeypatch.setattr(nights, "find_single", lambda *asked, **only: SingleHost(fleet, {"id": "of-a-fleet"}))
    told, _ = said(replace(options, fleet=fleet))
    assert (told.night.host, told.night.starter) == ("of-a-fleet", host_facts()["id"])
    monkeypatch.setattr(versions, "resolve_followed", lambda *asked, **named: 1 / 0)
    failed, _ = said(replace(options, fleet=fleet, again=True))
    assert (failed.night.outcome, failed.night.host, failed.night.starter) == (
        "failed", "of-a-fleet", host_facts()["id"]
    )  # fmt: skip
    assert kept(options) == [told.night, failed.night]


@pytest.mark.parametrize(("names", "vanished"), [(("1.13", "2.13"), ("gone in 1.14.0",)), (("1.13", "2.16"), ())])
def test_a_night_is_compared_with_the_last_of_its_own_schedule(
    monkeypatch, tmp_path: Path, options: NightOptions, names: tuple[str, ...], vanished: tuple[str, ...]
):
    measures(monkeypatch, whole)
    told, _ = said(replace(options, history=tmp_path / "before"))
    ago = timedelta(days=1)
    points = [
        replace(point, run="yesterday", night=point.night - ago, started=point.started - ago)
        for point in Store(tmp_path / "before").read().points()
    ]
    store = Store(options.history)
    store.append([*points, *(replace(point, case="gone") for point in points if point.target == "1.14.0")])
    store.record(replace(told.night, run="yesterday", night=told.night.night - ago, targets=names))
    assert said(options)[0].vanished == vanished


def spoil(path: Path) -> ChildEnd:
    """Leave a stream that breaks the contract, as `tfcompare run` reports it."""
    max((path / "streams").glob("*.arrow")).write_bytes(b"no stream")
    return ChildEnd(exit_code=ContractBroken.exit_code, hung=False, last_lines="tfcompare: a stream is broken")


@pytest.mark.parametrize("was_ended", [False, True])
def test_a_run_with_broken_results_is_kept_and_not_in_the_history(monkeypatch, options: NightOptions, was_ended: bool):
    measures(monkeypatch, lambda path: replace(spoil(written(path)), hung=was_ended))
    told, _ = said(options)
    assert (told.night.outcome, told.night.exit_code) == ("hung" if was_ended else "failed", 7)
    [run] = (options.history / "runs").iterdir()
    [reason] = told.night.said
    assert "2.9.3-1.arrow" in reason
    assert f"This run was not added to the history; its folder is {run}" in reason
    assert isinstance(ending(told), ArmsDied if was_ended else ContractBroken)
    assert list(Store(options.history).read().points()) == []
    assert kept(options) == [told.night]


def test_a_confirmation_with_broken_results_leaves_the_screen_as_it_is(monkeypatch, tmp_path, options: NightOptions):
    point = remembered(monkeypatch, tmp_path, options)
    asked_for: list[list[str]] = []
    measure = paced((0.14, 0.14), asked_for)

    def run(self: Child, words: Sequence[str]) -> ChildEnd:
        ended = measure(self, words)
        return spoil(Path(words[words.index("--output") + 1])) if len(asked_for) > 1 else ended

    monkeypatch.setattr(Child, "run", run)
    told, _ = said(options)
    assert len(asked_for) == 2
    assert (told.night.outcome, told.night.confirmed) == ("measured", 0)
    assert "a second measuring ended with exit code 7: " in told.warnings[-1]
    tonight = [one for one in Store(options.history).read().points() if one.night == point.night]
    assert [one.stage for one in tonight] == ["screen"]


OTHER_NIGHTS: tuple[dict[str, Any], ...] = (
    {"suite": "another"},
    {"names": ("1.13", "2.16")},
    {"flags": ("--gpu",)},
    {"flags": ("--gpus", "0")},
    {"flags": ("--engine", "venv")},
    {"flags": ("--threads", "2,1")},
    {"flags": ("--workload-folder", "mine")},
    {"selected": ("predict",)},
)


def test_a_night_of_something_else_is_not_the_same_night(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)
    first, _ = said(options)
    events, host, night = Store(options.history).events()[0], first.night.host, first.night.night
    assert nights.earlier_measurement(events, options, host, night) is not None
    for others in OTHER_NIGHTS:
        assert nights.earlier_measurement(events, replace(options, **others), host, night) is None, others


def test_flags_that_change_no_result_make_no_other_night(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)
    first, _ = said(options)
    flags = ("--timeout", "5m", "--wheelhouse", "/wheels", "--no-python-downloads")
    assert said(replace(options, flags=flags))[0].night.outcome == "skipped"
    assert (first.night.device, first.night.engine, first.night.flags) == ("cpu", "auto", ())


def test_a_night_that_is_caught_up_after_midnight_is_dated_by_the_day_before(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)
    yesterday = date.today() - timedelta(days=1)
    told, _ = said(replace(options, night=yesterday))
    assert told.night.night == yesterday
    assert {point.night for point in Store(options.history).read().points()} == {yesterday}
    # The regular night of this day is another one.
    assert nights.earlier_measurement([told.night], options, told.night.host, date.today()) is None


def test_a_second_night_waits_for_the_first_and_then_measures(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)
    monkeypatch.setattr(lock, "TRY_S", 0.05)
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.hold():
            held.set()
            free.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(30)
    lines: list[str] = []

    def say(text: str) -> None:
        lines.append(text)
        free.set()

    told = run_night(options, Listener(say))
    other.join()
    assert told.night.outcome == "measured"
    assert "waiting for its end" in lines[0]


def test_what_was_measured_with_a_clock_ahead_is_ignored_and_reported(monkeypatch, tmp_path, options: NightOptions):
    point = remembered(monkeypatch, tmp_path, options)
    monkeypatch.setattr(nights, "host_facts", lambda: {"id": point.host})
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1000)
    Store(options.history).append([replace(point, started=later, night=later.date(), run="ahead", effect=1.0)])
    monkeypatch.setattr(Child, "run", paced((0.14, 0.14, 0.14, 0.14), []))
    told, _ = said(options)
    [warning] = told.warnings
    assert f"1 run started later here, up to {later:%Y-%m-%d}" in warning
    assert told.night.outcome == "measured"
    assert [alarm.change.first for alarm in told.opened] == [told.night.night]


class Wednesday(datetime):
    """A clock that stands still: how a night is judged depends on its day of the week."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Wednesday":
        return cls(2026, 7, 15, 2, 30, tzinfo=UTC).astimezone(tz)


def remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: NightOptions) -> Point:
    """Write thirty nights that are alike, and return a point of tonight, which is never one of a weekend."""
    monkeypatch.setattr("orchestrator.nightly.night.datetime", Wednesday)
    monkeypatch.setattr(Child, "run", paced([0.0], []))
    said(replace(options, history=tmp_path / "before"))
    [point] = Store(tmp_path / "before").read().points()
    draw = random.Random(7)
    for ago in range(1, 31):
        day = timedelta(days=ago)
        strays = draw.gauss(0, 0.025)
        old = replace(point, night=point.night - day, started=point.started - day, run=f"old-{ago}", effect=strays)
        Store(options.history).append([old])
    return point


@pytest.mark.parametrize(
    ("slower", "stages"),
    [
        ((0.0,), ["screen"]),
        ((0.14, 0.0), ["screen", "confirm"]),
        # A single night needs the rounds of two screens to be believed.
        ((0.14, 0.14, 0.14, 0.14), ["screen", "confirm", "confirm", "confirm"]),
        ((0.14, 0.08, 0.05, 0.0), ["screen", "confirm", "confirm", "confirm"]),
    ],
    ids=["calm", "cleared", "told", "cleared late"],
)
def test_what_looks_changed_is_measured_again_until_that_is_settled(
    monkeypatch, tmp_path: Path, options: NightOptions, slower, stages
):
    point = remembered(monkeypatch, tmp_path, options)
    asked_for: list[list[str]] = []
    monkeypatch.setattr(Child, "run", paced(slower, asked_for))
    told, lines = said(options)
    tonight = [one for one in Store(options.history).read().points() if one.night == point.night]
    assert [one.stage for one in tonight] == stages
    assert [one.rounds for one in tonight] == [options.rounds * times for times in (1, *CONFIRM_TIMES)][: len(stages)]
    assert all(point.case in words for words in asked_for[1:])
    assert len([line for line in lines if "more rounds follow" in line]) == max(0, len(stages) - 2)
    assert bool(told.opened) == (0.0 not in slower)


def test_the_commands_of_an_alarm_measure_what_the_night_did_from_any_folder(
    monkeypatch, tmp_path: Path, options: NightOptions
):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    remembered(monkeypatch, tmp_path, options)
    monkeypatch.setattr(Child, "run", paced((0.14, 0.14, 0.14, 0.14), []))
    flags = (
        "--workload-folder", "mine", "--data", "mine", "--data", "set=there", "--threads", "2,1", "--base", "mine=x",
        "--inherit-env", "--budget", "10m", "--engine", "venv", "--lock-clocks", "1200",
    )  # fmt: skip
    told, _ = said(replace(options, own_workloads=Path("mine"), flags=(*flags, "--where", "host=a b")))
    [alarm] = told.opened
    folders = f"--workload-folder {tmp_path}/mine --data {tmp_path}/mine --data set={tmp_path}/there"
    measured = f"{folders} --threads 2,1 --base mine=x --inherit-env"
    assert alarm.reproduce.endswith(f" --engine venv --control {measured} --lock-clocks 1200 --where 'host=a b'")
    assert alarm.why.endswith(f" --engine venv {measured} --lock-clocks 1200")
    assert alarm.bisect.startswith("tfcompare compare ")
    searched = add_flags(replace(alarm, bisect="tfcompare bisect --good nightly-20261101"), options)
    assert searched.bisect == "tfcompare bisect --good nightly-20261101"
    assert add_flags(searched, replace(options, flags=flags)).bisect.endswith(f" {measured} --lock-clocks 1200")
    opened = [event.alarm for event in Store(options.history).events()[0] if isinstance(event, AlarmOpened)]
    assert [each.reproduce for each in opened] == [alarm.reproduce]


def test_a_folder_of_workloads_is_the_suite_of_its_nights(monkeypatch, options: NightOptions, tmp_path: Path):
    """`run` is told no suite, and by its own rule gives its points the name that the night has."""
    asked_for: list[list[str]] = []

    def measure(self: Child, words: Sequence[str]) -> ChildEnd:
        asked_for.append(list(words))
        if len(asked_for) > 1:
            return ChildEnd(exit_code=4, hung=False, last_lines="no engine")
        return whole(Path(words[words.index("--output") + 1]))

    monkeypatch.setattr(Child, "run", measure)
    flags = ("--workload-folder", str(tmp_path / "mine"))
    own = replace(options, suite=None, own_workloads=tmp_path / "mine", flags=flags)
    told, _ = said(own)
    assert "--suite" not in asked_for[0]
    assert asked_for[0][-2:] == list(flags)
    assert told.night.suite == "mine/" == run_suite(tmp_path / "mine")
    assert said(own)[0].night.outcome == "skipped"
    assert said(replace(own, suite="quick"))[0].night.suite == "quick"
    assert asked_for[1][asked_for[1].index("--suite") + 1] == "quick"


def run_suite(folder: Path) -> str:
    folder.mkdir()
    (folder / "words.py").write_text("def build(tf, params): return lambda: 1\n")
    return check_request(RunOptions(versions=("2.0", "2.13"), own_workloads=folder)).freeze("venv").suite


def test_a_night_without_its_control_arm_is_judged_by_the_control_arm_of_the_others(options: NightOptions):
    store = Store(options.history)
    points = history(10, 1, ["2.13.0"])
    store.append([one for one in points if one.target == "2.13.0" or one.night != points[-1].night])
    [key] = {point.key for point in points if point.target == "2.13.0"}
    segment = last_segments(all_arrays(store.read().table), [key])[key]
    assert (len(segment.values), len(segment.control)) == (10, 9)


def test_what_another_host_measured_later_says_nothing_of_this_clock(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)
    [point] = history(1, 1, ["2.13.0"], control=False, host="elsewhere")
    Store(options.history).append([replace(point, started=datetime.now(UTC) + timedelta(days=3))])
    assert said(options)[0].warnings == ()


def test_a_night_that_left_nothing_failed_and_says_why(monkeypatch, options: NightOptions):
    measures(monkeypatch, lambda path: ChildEnd(exit_code=4, hung=False, last_lines="tfcompare: no engine answers"))
    told, _ = said(options)
    assert (told.night.outcome, told.night.exit_code) == ("failed", 4)
    assert told.night.said == ("tfcompare: no engine answers",)
    assert told.happened
    assert kept(options) == [told.night]
    # It was not measured, and so may be tried again the same night.
    measures(monkeypatch, whole)
    assert said(options)[0].night.outcome == "measured"


def test_what_a_night_that_hung_had_measured_is_kept(monkeypatch, options: NightOptions):
    measures(monkeypatch, lambda path: replace(whole(path), hung=True, exit_code=130))
    told, _ = said(options)
    assert told.night.outcome == "hung"
    assert "took too long" in told.warnings[0]
    assert len(Store(options.history).read().points()) == 2 * (len(RELEASES) - 1)


def test_a_disk_that_is_full_is_told_and_what_was_measured_stays(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)

    def full(self: Store, path: Path, data: bytes) -> None:
        raise UsageError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr(Store, "_write", full)
    told, _ = said(options)
    assert told.night.outcome == "failed"
    assert "No space left on device" in told.night.said[0]
    assert told.happened
    [run] = (options.history / "runs").iterdir()
    assert load_run(run).comparisons


def test_an_interrupt_says_where_what_was_measured_lies(monkeypatch, options: NightOptions):
    def interrupted(path: Path) -> ChildEnd:
        raise KeyboardInterrupt

    measures(monkeypatch, interrupted)
    told, _ = said(options)
    assert isinstance(told.failure, Interrupted)
    assert re.search(r"runs.*-screen.*history import", str(told.failure))
    assert kept(options) == [told.night]
    assert (told.night.outcome, told.night.exit_code) == ("failed", 130)


@pytest.mark.parametrize(
    ("error", "code"),
    [(ContractBroken("a line is cut short"), 7), (KeyError("case"), 70), (OSError(5, "Input/output error"), 70)],
)
@pytest.mark.parametrize("step", ["run_stage", "_judge_points"])
def test_whatever_ends_a_night_is_recorded_and_reported(
    monkeypatch, options: NightOptions, error: Exception, code: int, step: str
):
    def fail(*asked: object) -> None:
        raise error

    measures(monkeypatch, whole)
    monkeypatch.setattr(nights, step, fail)
    told, _ = said(options)
    assert told.failure is error
    assert ending(told) is error
    assert told.happened
    assert kept(options) == [told.night]
    assert (told.night.outcome, told.night.exit_code) == ("failed", code)
    assert str(error) in told.night.said[0]


def test_a_night_that_waited_in_vain_for_another_is_recorded(monkeypatch, options: NightOptions):
    def refuse(**asked: object) -> None:
        raise UsageError("another night runs here already")

    monkeypatch.setattr(nights, "hold", refuse)
    told, _ = said(options)
    assert told.night.said == ("another night runs here already",)
    assert kept(options) == [told.night]


def test_a_report_that_cannot_be_written_fails_no_night(monkeypatch, options: NightOptions):
    measures(monkeypatch, whole)

    def full(path: Path, data: bytes) -> None:
        if path.name == "report.html":
            raise OSError(28, os.strerror(28))
        path.write_bytes(data)

    monkeypatch.setattr(nights.files, "write_atomically", full)
    told, _ = said(options)
    assert (told.night.outcome, told.page) == ("measured", "")


def test_a_version_that_cannot_be_had_is_a_point_in_every_case(monkeypatch, options: NightOptions):
    def resolve(names, say, last, *, device):
        missing = versions.Unavailable(name="nightly", reason="lock: the index does not answer")
        return versions.ResolvedVersions(versions=("1.13.2", "2.13.0"), names={}, unavailable=(missing,))

    monkeypatch.setattr(nights.versions, "resolve_followed", resolve)
    measures(monkeypatch, whole)
    said(options)
    missing = [point for point in Store(options.history).read().points() if point.target == "nightly"]
    assert len(missing) == 2
    assert {(point.outcome, point.reason, point.effect) for point in missing} == {
        ("died", "lock: the index does not answer", None)
    }
