"""Where a night looks for the causes of its alarms; for real ones see tests/engines/test_causes.py."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.bisect import state as searches
from orchestrator.errors import UsageError
from orchestrator.history.alarms import state
from orchestrator.history.model import Alarm, AlarmOpened, CauseFound, Key, StateChanged
from orchestrator.history.store import Store
from orchestrator.history.wording import describe_cause
from orchestrator.model import Case
from orchestrator.nightly import causes
from orchestrator.nightly.options import NightContext, NightOptions
from orchestrator.nightly.subprocess_run import Child, ChildEnd
from orchestrator.nightly.versions import ResolvedVersions
from orchestrator.why.ladder import Ladder, Rung
from orchestrator.why.state import LadderStep, write_question
from tests.support import night_reports
from tests.support.builders import NEW, OLD, plan, run_folder, target
from tests.support.golden import ASKED
from tests.support.heard import Heard
from tests.support.searches import told
from tests.support.small_run import SAME, SLOWER, write_run
from tests.support.worlds import stepped

DAYS = tuple(f"2.22.0.dev2026110{day}" for day in range(1, 6))
GOOD, BAD = DAYS[0], DAYS[4]
NIGHT = date(2026, 11, 22)
ALARM = night_reports.alarm(1.3, proven=True, night=NIGHT, good=GOOD, bad=BAD, why="tfcompare why")
COMMITS = {version: f"{number}abcdef" for number, version in enumerate(DAYS)}
FINE = ChildEnd(exit_code=0, hung=False, last_lines="")
# What the night has measured with, but for its budget.
MEASURED_SO = ["--engine", "venv", "--gpu-exclusive"]
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


def explained(*cases: Case) -> Does:
    """A question of two targets that differ in nothing else: the made-up run of these cases is its only ladder."""

    def leave(path: Path) -> None:
        write_run(path / "steps" / "01", cases=cases)
        names = (str(OLD), str(NEW))
        rung = Rung(causes=(), rest=f"TensorFlow {names[0]} -> {names[1]}")
        step = LadderStep(ladder=Ladder(texts=names, names=names, rungs=(rung,)), run="steps/01", is_done=True)
        write_question(path, replace(ASKED, ladders=(step,), remedies=None, profile=""))

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
    house.opened(replace(ALARM, why=""))
    house.does = {"bisect": searched(1)}
    assert not house.looks(backfill_s=60.0)[ALARM.id].searched
    assert house.limits[0] <= 60.0
    house.does = {"bisect": searched()}
    found = house.looks()[ALARM.id]
    assert house.asked[1] == house.asked[0], "the command continues the search in its folder"
    assert (found.good, found.bad, found.searched) == (DAYS[1], DAYS[2], True)


def test_builds_that_do_not_differ_side_by_side_are_said_to(house: House):
    house.opened(replace(ALARM, why=""))
    house.does = {"bisect": searched(steps={})}
    found = house.looks()[ALARM.id]
    assert (found.good, found.bad, found.searched) == (GOOD, BAD, True)
    assert found.findings == (f"measured side by side, {BAD} and {GOOD} are not shown to differ",)


def test_neighbours_need_no_search(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(causes.lock_on_demand, "nightlies", lambda device: {GOOD: "tf-nightly", BAD: "tf-nightly"})
    house.opened(replace(ALARM, why=""))
    assert house.looks()[ALARM.id].searched
    assert house.asked == []


def test_an_index_that_is_silent_costs_the_search_and_not_the_answer(house: House, monkeypatch: pytest.MonkeyPatch):
    def fail(device: str) -> None:
        raise UsageError("the index does not answer for tf-nightly")

    monkeypatch.setattr(causes.lock_on_demand, "nightlies", fail)
    house.opened(ALARM, replace(ALARM, id="bbbbbb", key=replace(ALARM.key, case="power[style=function]")))
    house.does = {"why": explained(SLOWER)}
    found = house.looks(keys=[ALARM.key, replace(ALARM.key, case="power[style=function]")])
    assert found[ALARM.id].findings
    assert house.said[-1:] == ["no nightlies are searched: the index does not answer for tf-nightly"]


def test_an_alarm_carries_why_both_builds_differ(house: House):
    house.opened(replace(ALARM, searched=True))
    house.does = {"why": explained(SLOWER)}
    found = house.looks()[ALARM.id]
    [words] = house.asked
    assert words[:5] == ["why", GOOD, BAD, f"--case={ALARM.key.case}", "--no-search"]
    path = str(house.store.runs / f"why-{ALARM.id}")
    assert words[5:] == ["--budget", "300s", "--output", path, *MEASURED_SO, "--format", "json"]
    assert found.findings == (
        "They differ in nothing else that can be undone, so the cause is TensorFlow 1.0.0 -> 2.0.0.",
    )
    assert house.limits[0] <= causes.WHY_LIMIT_S


def test_an_alarm_says_that_both_builds_are_the_same_side_by_side(house: House):
    house.opened(replace(ALARM, searched=True))
    house.does = {"why": explained(SAME)}
    [finding] = house.looks()[ALARM.id].findings
    assert finding.startswith("measured side by side: 2.0.0 is the same as 1.0.0: ")


def test_an_answer_that_another_user_left_is_not_told(house: House):
    def leave(path: Path) -> None:
        explained(SLOWER)(path)
        changed = (path / "why.json").read_text().replace("TensorFlow 1.0.0", "an advertisement of")
        (path / "why.json").write_text(changed)

    house.opened(replace(ALARM, searched=True))
    house.does = {"why": leave}
    assert house.looks()[ALARM.id].findings == ()
    assert house.said[-1].startswith(f"alarm {ALARM.id}: nothing was found out")


def test_where_the_build_is_the_same_the_reference_is_the_other_end(house: House):
    house.opened(replace(ALARM, good="", bad=""))
    house.looks()
    [words] = house.asked
    assert words[1:3] == [str(ALARM.key.reference), BAD]


def test_a_question_that_fails_is_one_line_and_leaves_the_alarm_its_command(house: House):
    house.opened(replace(ALARM, searched=True))
    assert (
        house.looks()[ALARM.id] == state.current([AlarmOpened(at=ALARM.opened, alarm=replace(ALARM, searched=True))])[0]
    )
    assert house.said[1:] == [f"alarm {ALARM.id}: nothing was found out: no such thing"]


@pytest.mark.parametrize("metric", ["output", "memory"])
def test_a_metric_is_explained_and_searched_by_its_name(house: House, metric: str):
    key = replace(ALARM.key, metric=metric)
    house.opened(replace(ALARM, key=key))
    house.looks(keys=[key])
    assert [(words[0], words[words.index("--metric") + 1]) for words in house.asked] == [
        ("why", metric), ("bisect", metric)
    ]  # fmt: skip


LEFT_ALONE = {
    "it may be chance yet": replace(ALARM, proven=False),
    "the machine did it": replace(ALARM, note=state.BY_MACHINE),
    "each night has the same build": replace(ALARM, good="", bad=""),
    "an end is no nightly": replace(ALARM, good="2.21.0"),
    "an end sets a variable": replace(ALARM, good="2.21 LD_PRELOAD=/x.so.dev20261101", why="tfcompare why"),
    "its id leads elsewhere": replace(ALARM, id="../../elsewhere", why="tfcompare why"),
    "it is nothing that tonight's suite measured": replace(ALARM, key=replace(ALARM.key, host="elsewhere")),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_what_is_not_searched(house: House, why: str):
    alarm = LEFT_ALONE[why]
    house.opened(alarm if why.startswith(("an end sets", "its id")) else replace(alarm, why=""))
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


def test_no_more_than_a_few_are_explained_and_the_largest_first(house: House):
    alarms = [
        replace(ALARM, id=f"a0000{number}", searched=True, change=replace(ALARM.change, ratio=math.exp(number / 10)))
        for number in range(1, 6)
    ]
    house.opened(*alarms)
    house.looks()
    assert [Path(words[words.index("--output") + 1]).name for words in house.asked] == [
        "why-a00005", "why-a00004", "why-a00003"
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
