"""A whole year of nights, told as people see it: in messages, in exit codes, in `history` and on the site."""

import json
import re
from pathlib import Path

import pytest

from orchestrator.cli.nightly.run import ending
from orchestrator.history import site
from orchestrator.history.model import NightReport
from orchestrator.history.site import wording
from orchestrator.history.store import Store
from orchestrator.nightly.message import compose
from tests.support import years
from tests.support.commands import called
from tests.support.years import BROKEN, FASTER, GONE, SLOWER, STEP, Year, day

pytestmark = pytest.mark.slow
# Nights within which a change of 3 % has to be reported, and one of 8 %.
SOON, AT_ONCE = 14, 2


@pytest.fixture(scope="module")
def year() -> Year:
    made = Year(seed=2025)
    made.live()
    return made


@pytest.fixture(scope="module")
def store(year: Year, tmp_path_factory: pytest.TempPathFactory) -> Store:
    kept = Store(tmp_path_factory.mktemp("year") / "history")
    year.kept_in(kept)
    return kept


def told(year: Year) -> dict[int, NightReport]:
    """The nights about which people get a message, by their numbers."""
    return {number: report for number, report in enumerate(year.reports) if report.happened}


def case_of(alarm: dict) -> str:
    return f"{alarm['workload']}[{','.join(f'{name}={value}' for name, value in alarm['params'].items())}]"


def title(report: NightReport) -> str:
    return compose(report, "bench-1").title


def began_with_a_restart(report: NightReport) -> bool:
    """Whether the alarms of a night name a restart: no version is there that nobody changed, to tell what it did."""
    alarms = (*report.opened, *report.confirmed, *report.recovered)
    return bool(alarms) and all(any(text.startswith("boot: ") for text in alarm.surroundings) for alarm in alarms)


def test_people_hear_of_what_happened_and_of_a_restart_and_of_nothing_else(year: Year) -> None:
    titles = {number: title(report) for number, report in told(year).items()}
    restarts = [number for number in titles if began_with_a_restart(year.reports[number])]
    assert [text.partition(" (")[0] for number, text in titles.items() if number in restarts] == [
        "tfcompare: 1 slower",
        "tfcompare: 1 recovered",
    ]
    titles = {number: text for number, text in titles.items() if number not in restarts}
    slower = [number for number, text in titles.items() if "1 slower" in text]
    faster = [number for number, text in titles.items() if "1 faster" in text]
    assert [STEP[SLOWER] <= number < STEP[SLOWER] + SOON for number in slower] == [True]
    assert [STEP[FASTER] <= number < STEP[FASTER] + AT_ONCE for number in faster] == [True]
    assert titles.pop(STEP[GONE]) == f"tfcompare: 1 vanished (host bench-1, {day(STEP[GONE])})"
    assert titles.pop(BROKEN) == f"tfcompare: 1 warning (host bench-1, {day(BROKEN)})"
    others = {number: text for number, text in titles.items() if number not in (*slower, *faster)}
    for number, text in others.items():
        assert "1 confirmed" in text, text
        assert year.reports[number].warnings == ()


def test_the_messages_say_what_which_and_since_when(year: Year) -> None:
    nights = [report for report in year.reports if not began_with_a_restart(report)]
    by_case = {alarm.key.case: report for report in nights for alarm in report.opened}
    assert set(by_case) == {SLOWER, FASTER}
    text = " ".join(compose(by_case[SLOWER]).text.split())
    assert f"slower (1.01-1.03): {SLOWER} in nightly since {day(STEP[SLOWER] + 2)}" in text
    assert f"tfcompare bisect --good nightly-{day(STEP[SLOWER] + 1):%Y%m%d} --bad nightly-" in text
    assert f"{GONE} in nightly" in compose(year.reports[STEP[GONE]]).text
    broken = " ".join(compose(year.reports[BROKEN]).text.split())
    assert f"nightly died in 5 cases: {years.BROKEN_REASON}" in broken


def test_only_what_became_slower_and_what_could_not_be_measured_end_with_a_code(year: Year) -> None:
    codes = {number: error.exit_code for number, report in enumerate(year.reports) if (error := ending(report))}
    [restarted, slower] = [number for number, code in codes.items() if code == 1]
    assert began_with_a_restart(year.reports[restarted])
    assert STEP[SLOWER] <= slower < STEP[SLOWER] + SOON
    assert codes == {restarted: 1, slower: 1, BROKEN: 5}


def test_at_the_end_of_the_year_both_changes_are_open_and_the_right_size(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "history", "alarms", "--history", str(store.path), "--format", "json") == 0
    alarms = json.loads(capsys.readouterr().out)["alarms"]
    seen = {case_of(alarm): alarm for alarm in alarms if alarm["state"] != "known"}
    assert set(seen) == {SLOWER, FASTER}
    assert {alarm["state"] for alarm in seen.values()} == {"confirmed"}
    assert seen[SLOWER]["change"]["ci_low"] < 1 + years.RISE
    assert seen[FASTER]["change"]["ci_low"] < 1 + years.DROP < seen[FASTER]["change"]["ci_high"]


def test_the_history_shows_the_steps_the_broken_night_and_the_case_that_left(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert called(monkeypatch, "history", "--history", str(store.path)) == 0
    overview = capsys.readouterr().out
    assert "2 open alarms" in overview
    assert "1 series without a night since" in overview
    assert called(monkeypatch, "history", SLOWER, "--history", str(store.path), "--all") == 0
    shown = capsys.readouterr().out
    assert "1.02x slower" in shown
    assert "is confirmed" in shown
    assert re.search(rf"{day(BROKEN)} +2\.22\.0\.dev\d+ +died", shown)
    assert years.BROKEN_REASON in " ".join(shown.split())


def test_confirmations_cost_little_all_year_round(year: Year) -> None:
    stages = ("screen", "confirm")
    screened, again = (sum(point.rounds for point in year.points if point.stage == stage) for stage in stages)
    assert again < 0.6 * screened


def test_the_site_shows_both_alarms_and_every_case(store: Store, tmp_path: Path) -> None:
    built = site.build_site(store, tmp_path / "site")
    assert (built.cases, built.warnings) == (len(years.CASES), ())
    alarms = (tmp_path / "site" / "alarms.html").read_text(encoding="utf-8")
    for case in (SLOWER, FASTER):
        assert case in alarms
        assert (tmp_path / "site" / wording.page_of(case)).exists()
