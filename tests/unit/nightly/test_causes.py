"""Where a night looks for the causes of its alarms; real nightlies and profiles are in tests/engines/test_causes.py."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bisect import state as searches
from orchestrator.errors import UsageError
from orchestrator.formats import PROFILE
from orchestrator.history.alarms import state
from orchestrator.history.model import Alarm, AlarmOpened, CauseFound, Key, StateChanged
from orchestrator.history.store import Store
from orchestrator.history.wording import describe_cause
from orchestrator.nightly import causes
from orchestrator.nightly.options import NightContext, NightOptions
from orchestrator.nightly.subprocess_run import Child, ChildEnd
from orchestrator.nightly.versions import ResolvedVersions
from orchestrator.profiling import stored as profiles
from orchestrator.profiling.model import stem
from tests.support import night_reports
from tests.support.builders import case, plan, run_folder, target
from tests.support.heard import Heard
from tests.support.profiled import arm, function, profile, profiled
from tests.support.searches import told
from tests.support.worlds import stepped

DAYS = tuple(f"2.22.0.dev2026110{day}" for day in range(1, 6))
GOOD, BAD = DAYS[0], DAYS[4]
NIGHT = date(2026, 11, 22)
ALARM = night_reports.alarm(1.3, proven=True, night=NIGHT, good=GOOD, bad=BAD, profile="tfcompare profile")
COMMITS = {version: f"{number}abcdef" for number, version in enumerate(DAYS)}
FINE = ChildEnd(exit_code=0, hung=False, last_lines="")
Does = Callable[[Path], Any]


class House:
    """A history with alarms, and commands that write the files which a test wants."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "history")
        self.asked: list[list[str]] = []
        self.does: dict[str, Does] = {}
        self.said: list[str] = []
        self.limits: list[float] = []
        self.warnings: tuple[str, ...] = ()

    def run(self, child: Child, words: Sequence[str]) -> ChildEnd:
        self.asked.append(list(words))
        self.limits.append(child.left_s)
        if words[0] in self.does:
            self.does[words[0]](Path(words[words.index("--output") + 1]))
        return FINE if words[0] in self.does else ChildEnd(exit_code=2, hung=False, last_lines="one\nno such thing")

    def opened(self, *alarms: Alarm) -> None:
        for alarm in alarms:
            self.store.record(AlarmOpened(at=alarm.opened, alarm=alarm))

    def looks(self, keys: Sequence[Key] | None = None, most_s: float = 3600.0, **changes: Any) -> dict[str, Alarm]:
        asked = {"backfill_s": 1800.0, "flags": ("--engine", "venv", "--budget", "4h", "--gpu-exclusive"), **changes}
        options = NightOptions(history=self.store.path, names=("2.13", "nightly"), **asked)
        context = NightContext(
            store=self.store,
            host=ALARM.key.host,
            date=NIGHT,
            started=datetime(2026, 11, 22, 2, tzinfo=UTC),
            resolved=ResolvedVersions(versions=("2.0.0", BAD), names={BAD: "nightly"}),
        )
        own = [ALARM.key] if keys is None else keys
        self.warnings = causes.look_for_causes(options, context, own, most_s, Heard(self.said))
        return {alarm.id: alarm for alarm in state.current(self.store.events()[0])}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    made = House(tmp_path)
    monkeypatch.setattr(Child, "run", lambda self, words: made.run(self, words))
    monkeypatch.setattr(causes.lock_on_demand, "nightlies", lambda device: dict.fromkeys(DAYS, "tf-nightly"))
    return made


def searched(most: int = 100, steps: dict[int, float] | None = None) -> Does:
    """A search that has made so many steps; the third build is slower, unless others are."""
    found = told(stepped(DAYS, {2: 0.3} if steps is None else steps), DAYS, most)

    def leave(path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        searches.write_state(path, found)
        for step in found.measured:
            if not (path / str(step.run)).exists():
                workers = {target(version): {"tensorflow_git": f"v1.12.1-99-g{COMMITS[version]}"} for version in DAYS}
                run_folder(path / str(step.run), plan(), workers=workers)

    return leave


def profiled_as(before: float, after: float) -> Does:
    def leave(path: Path) -> None:
        power = case("power")
        arms = [
            arm(power, version, profile(function("sleep", own=own, file=""), function("same", own=10.0)))
            for version, own in ((GOOD, before), (BAD, after))
        ]
        found = profiled(arms)
        (path / "profiles").mkdir(parents=True)
        (path / profiles.PROFILE_FILE).write_bytes(PROFILE.stamp(profiles.HEADING.dump_json(found.heading)))
        for one in arms:
            file = path / "profiles" / f"{stem(power, one.target)}.json"
            file.write_bytes(PROFILE.stamp(profiles.ARM.dump_json(one)))

    return leave


def test_the_builds_between_are_searched_and_the_alarm_names_the_smallest_range_and_its_commits(house: House):
    house.opened(ALARM)
    house.does = {"bisect": searched()}
    found = house.looks()[ALARM.id]
    [_, words] = house.asked
    path = house.store.runs / f"bisect-{ALARM.id}-20261101-20261105"
    assert words[:4] == ["bisect", f"--good={GOOD}", f"--bad={BAD}", f"--case={ALARM.key.case}"]
    assert words[4:] == ["--output", str(path), "--engine", "venv", "--gpu-exclusive", "--format", "json"]
    assert (found.good, found.bad, found.searched) == (DAYS[1], DAYS[2], True)
    assert found.commits.endswith(f"/compare/{COMMITS[DAYS[1]]}...{COMMITS[DAYS[2]]}")
    assert found.bisect == f"tfcompare bisect --resume {path}"
    assert describe_cause(found)[0] == f"between {DAYS[1]} (as before) and {DAYS[2]} (changed)"
    house.looks()
    assert [words[0] for words in house.asked].count("bisect") == 1, "a search that is over is not made again"


def test_a_search_whose_time_is_over_goes_on_the_next_night(house: House):
    house.opened(replace(ALARM, profile=""))
    house.does = {"bisect": searched(1)}
    assert not house.looks(backfill_s=60.0)[ALARM.id].searched
    assert house.limits[0] <= 60.0
    house.does = {"bisect": searched()}
    found = house.looks()[ALARM.id]
    assert house.asked[1] == house.asked[0], "the command continues the search in its folder"
    assert (found.good, found.bad, found.searched) == (DAYS[1], DAYS[2], True)


def test_builds_that_do_not_differ_side_by_side_are_said_to(house: House):
    house.opened(replace(ALARM, profile=""))
    house.does = {"bisect": searched(steps={})}
    found = house.looks()[ALARM.id]
    assert (found.good, found.bad, found.searched) == (GOOD, BAD, True)
    assert found.findings == (f"measured side by side, {BAD} and {GOOD} are not shown to differ",)


def test_neighbours_need_no_search(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(causes.lock_on_demand, "nightlies", lambda device: {GOOD: "tf-nightly", BAD: "tf-nightly"})
    house.opened(replace(ALARM, profile=""))
    assert house.looks()[ALARM.id].searched
    assert house.asked == []


def test_an_index_that_is_silent_costs_the_search_and_not_the_profile(house: House, monkeypatch: pytest.MonkeyPatch):
    def fail(device: str) -> None:
        raise UsageError("the index does not answer for tf-nightly")

    monkeypatch.setattr(causes.lock_on_demand, "nightlies", fail)
    house.opened(ALARM, replace(ALARM, id="bbbbbb", key=replace(ALARM.key, case="power[style=function]")))
    house.does = {"profile": profiled_as(100.0, 130.0)}
    found = house.looks(keys=[ALARM.key, replace(ALARM.key, case="power[style=function]")])
    assert found[ALARM.id].findings
    assert house.said == ["no nightlies are searched: the index does not answer for tf-nightly"]


def test_an_alarm_carries_what_the_profiles_of_both_builds_show(house: House):
    house.opened(replace(ALARM, searched=True))
    house.does = {"profile": profiled_as(100.0, 130.0)}
    found = house.looks()[ALARM.id]
    [words] = house.asked
    assert words[:3] == ["profile", f"--versions={GOOD},{BAD}", f"--case={ALARM.key.case}"]
    assert words[3:] == ["--output", str(house.store.runs / f"profile-{ALARM.id}"), "--engine", "venv"]
    assert found.findings == ("grown: sleep (C), 10.0 ms -> 13.0 ms in a step",)
    assert house.limits[0] <= causes.PROFILE_LIMIT_S


def test_where_the_build_is_the_same_the_reference_is_the_other_half_of_the_profile(house: House):
    house.opened(replace(ALARM, good="", bad=""))
    house.looks()
    [words] = house.asked
    assert words[1] == f"--versions={ALARM.key.reference},{BAD}"


def test_a_profile_that_fails_is_one_line_and_leaves_the_alarm_its_command(house: House):
    house.opened(replace(ALARM, searched=True))
    assert (
        house.looks()[ALARM.id] == state.current([AlarmOpened(at=ALARM.opened, alarm=replace(ALARM, searched=True))])[0]
    )
    assert house.said == [f"alarm {ALARM.id} has no profile: no such thing"]


def test_results_are_explained_by_their_layers(house: House):
    key = replace(ALARM.key, metric="output")
    house.opened(replace(ALARM, key=key, searched=True))
    house.looks(keys=[key])
    assert "--explain-output" in house.asked[0]


def test_memory_is_searched_by_its_metric_and_not_profiled(house: House):
    key = replace(ALARM.key, metric="memory")
    house.opened(replace(ALARM, key=key, profile=""))
    house.looks(keys=[key])
    [words] = house.asked
    assert words[0] == "bisect"
    assert words[words.index("--metric") + 1] == "memory"


LEFT_ALONE = {
    "it may be chance yet": replace(ALARM, proven=False),
    "the machine did it": replace(ALARM, note=state.BY_MACHINE),
    "each night has the same build": replace(ALARM, good="", bad=""),
    "an end is no nightly": replace(ALARM, good="2.21.0"),
    "an end sets a variable": replace(ALARM, good="2.21 LD_PRELOAD=/x.so.dev20261101", profile="tfcompare profile"),
    "its id leads elsewhere": replace(ALARM, id="../../elsewhere", profile="tfcompare profile"),
    "it is nothing that tonight's suite measured": replace(ALARM, key=replace(ALARM.key, host="elsewhere")),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_what_is_not_searched(house: House, why: str):
    alarm = LEFT_ALONE[why]
    house.opened(alarm if why.startswith(("an end sets", "its id")) else replace(alarm, profile=""))
    house.looks()
    assert house.asked == []


def test_what_people_know_or_what_is_over_is_not_searched(house: House):
    house.opened(ALARM)
    for number, way in enumerate(("known", "muted", "recovered")):
        moved = StateChanged(at=datetime(2026, 11, 23, number, tzinfo=UTC), alarm=ALARM.id, state=way)
        house.store.record(moved)
        house.looks()
    assert house.asked == []


@pytest.mark.parametrize(("backfill_s", "most_s"), [(0.0, 3600.0), (1800.0, 0.0)])
def test_without_time_nothing_is_looked_for(house: House, backfill_s: float, most_s: float):
    house.opened(ALARM)
    house.looks(most_s=most_s, backfill_s=backfill_s)
    assert house.asked == []


def test_no_more_than_a_few_are_profiled_and_the_largest_first(house: House):
    alarms = [
        replace(ALARM, id=f"a0000{number}", searched=True, change=replace(ALARM.change, ratio=math.exp(number / 10)))
        for number in range(1, 6)
    ]
    house.opened(*alarms)
    house.looks()
    assert [Path(words[words.index("--output") + 1]).name for words in house.asked] == [
        "profile-a00005", "profile-a00004", "profile-a00003"
    ]  # fmt: skip


def test_what_a_later_event_leaves_empty_stays_as_it_was():
    at = ALARM.opened
    events = [
        AlarmOpened(at=at, alarm=ALARM),
        CauseFound(at=at, alarm=ALARM.id, findings=("grown: f",)),
        CauseFound(at=at, alarm=ALARM.id, good=DAYS[1], bad=DAYS[2], searched=True),
        CauseFound(at=at, alarm="unheard", searched=True),
    ]
    [found] = state.current(events)
    assert (found.findings, found.good, found.bad, found.bisect) == (("grown: f",), DAYS[1], DAYS[2], ALARM.bisect)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UsageError("cannot write the log"), "cannot write the log"),
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_whatever_ends_the_search_is_a_warning_of_a_night_that_is_told(
    house: House, monkeypatch: pytest.MonkeyPatch, error: BaseException, said: str
):
    def fail(child: Child, words: Sequence[str]) -> ChildEnd:
        raise error

    monkeypatch.setattr(Child, "run", fail)
    house.opened(ALARM)
    house.looks()
    assert house.warnings == (f"the search for the causes of alarms was not finished: {said}",)
