"""What a night says of its table of saved models; `tfcompare models` itself is real in tests/engines/test_models.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.nightly.run import ending
from orchestrator.errors import OutcomeFound
from orchestrator.history.model import Night, NightReport
from orchestrator.history.site import build_site
from orchestrator.history.store import Store
from orchestrator.nightly import night as nights
from orchestrator.nightly import versions
from orchestrator.nightly.message import compose, summarize_night
from orchestrator.nightly.night import run_night
from orchestrator.nightly.options import NightOptions
from orchestrator.nightly.subprocess_run import Child, ChildEnd
from orchestrator.results.run_folder import RunFolder
from orchestrator.saved_models.report import write_models
from orchestrator.terminal.view import View
from tests.support.builders import MS, finished, manifest, plan, rows, run_folder, write_stream
from tests.support.saved_tables import table

OLD, NEW = "1.13.0", "2.0.0"
FINE = ChildEnd(exit_code=0, hung=False, last_lines="")
BREAKS = {(OLD, NEW, "nested"): ("dies", "ValueError: no such layer")}
DIFFERS = {(OLD, NEW, "nested"): ("differs", "returns different values, by 50%")}
LOST = {(source, NEW, name): ("not run", "") for source in (OLD, NEW) for name in ("functional", "nested")}
# A version that does not start also saves nothing.
UNSAVED = {
    **LOST,
    **{(NEW, target, name): ("not saved", "") for target in (OLD, NEW) for name in ("functional", "nested")},
}


@dataclass
class World:
    """What the versions do with saved models: a table for each call, the last one for all that follow."""

    tables: list[Mapping[tuple[str, str, str], tuple[Any, str]] | ChildEnd] = field(default_factory=lambda: [{}])
    targets: tuple[str, ...] = (OLD, NEW)
    packages: str = "3.0"
    day: int = 0
    made: list[list[str]] = field(default_factory=list)

    def run(self, words: Sequence[str]) -> ChildEnd:
        path = Path(words[words.index("--output") + 1])
        facts = manifest()
        facts = replace(
            facts,
            environments={
                target: replace(each, packages={"keras": self.packages}) for target, each in facts.environments.items()
            },
        )
        if words[0] == "run":
            asked = replace(plan(looks=(2,)), run=f"20260715-{self.day:06}-made")
            folder = run_folder(path, asked, environments=facts.environments)
            for version in asked.targets:
                batches = [
                    rows(version=version, round=n, replicate=n, bursts=[10 * MS] * 3, run=asked.run) for n in (1, 2)
                ]
                write_stream(folder.settled / f"{version}-1.arrow", batches)
            folder.record(finished(how="", seconds=9.0))
            return FINE
        self.made.append(list(words))
        found = self.tables.pop(0) if len(self.tables) > 1 else self.tables[0]
        if isinstance(found, ChildEnd):
            return found
        with RunFolder.begin(path, words) as folder:
            folder.write_manifest(facts)
        answer = table(path, self.targets, found)
        lost = {NEW: "import failed"} if found in (LOST, UNSAVED) else {}
        write_models(replace(answer, outcome=replace(answer.outcome, lost=lost)))
        return FINE


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World()

    class Today(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Today":
            return cls(2026, 7, 15, 2, 30, tzinfo=UTC).astimezone(tz) + timedelta(days=made.day)

    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(nights, "datetime", Today)
    monkeypatch.setattr(Child, "run", lambda self, words: made.run(words))
    return made


@pytest.fixture
def options(tmp_path: Path) -> NightOptions:
    return NightOptions(history=tmp_path / "history", names=("1.13", "2.0"), suite="made", models=("--formats", "h5"))


def night(world: World, options: NightOptions, *tables: Any, packages: str | None = None) -> NightReport:
    """The next night: another build of Keras, unless it is named, and these tables."""
    world.day += 1
    world.packages = packages or f"3.{world.day}"
    world.tables = list(tables) or [{}]
    world.made.clear()
    return run_night(options, View())


def test_a_first_table_is_told_and_is_no_alarm(world: World, options: NightOptions):
    report = night(world, options, BREAKS)
    assert (report.broken, report.mended, report.warnings) == ((), (), ())
    assert report.night.models == "saved models: 8 loads: 7 ok, 1 dies; there is no earlier table to compare it with"
    assert ending(report) is None
    assert Path(report.models_page).is_relative_to(options.history / "runs" / report.night.models_run)
    assert Path(report.models_page).is_file()
    text = compose(report).text
    assert "saved models: 8 loads: 7 ok, 1 dies" in text
    assert f"{report.night.models_run}/report.html" in "".join(text.split())
    assert world.made[0][:1] + world.made[0][3:] == [
        "models", "--versions", "1.13.2,2.0.0", "--formats", "h5", "--format", "html",
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", [BREAKS, DIFFERS], ids=["dies", "differs"])
def test_what_was_ok_and_no_longer_is_ends_the_night_with_1_and_is_told(
    world: World, options: NightOptions, wrong: Any
):
    night(world, options)
    report = night(world, options, wrong)
    [(verdict, reason)] = wrong.values()
    assert report.broken == (f"1.13.0 as h5 in 2.0.0: {verdict}: {reason} (nested)",)
    assert report.happened
    assert isinstance(ending(report), OutcomeFound)
    message = compose(report, "host")
    assert "saved models broke" in message.title
    assert message.gravity == "warning"
    assert reason in " ".join(message.text.split())
    # A break is reported on one night only; the count of loads is in every report.
    later = night(world, options, wrong)
    assert (later.broken, later.mended, ending(later)) == ((), (), None)
    assert "1 di" in later.night.models
    mended = night(world, options)
    assert mended.mended == ("1.13.0 as h5 in 2.0.0: nested",)
    assert ending(mended) is None
    assert (summarize_night(mended), compose(mended).gravity) == ("saved models are ok again", "success")


def test_equal_tables_are_no_alarm(world: World, options: NightOptions):
    night(world, options, BREAKS)
    for _ in range(3):
        report = night(world, options, BREAKS)
        assert (report.broken, report.mended, report.warnings, report.happened) == ((), (), (), False)
        assert len(world.made) == 1


def test_what_breaks_in_one_of_two_tables_only_is_no_alarm(world: World, options: NightOptions):
    night(world, options)
    report = night(world, options, BREAKS, {})
    assert len(world.made) == 2
    assert (report.broken, report.night.models) == ((), "saved models: 8 loads: 8 ok")
    # The night after it counts it as ok as well.
    report = night(world, options)
    assert (report.broken, report.mended) == ((), ())


def test_a_second_table_that_fails_hides_no_break(world: World, options: NightOptions):
    night(world, options)
    report = night(world, options, BREAKS, ChildEnd(4, hung=False, last_lines="no engine"))
    assert report.broken == ("1.13.0 as h5 in 2.0.0: dies: ValueError: no such layer (nested)",)
    assert report.warnings == ("the table of saved models ended with exit code 4: no engine",)


@pytest.mark.parametrize("lost", [LOST, UNSAVED], ids=["lost", "unsaved"])
def test_a_version_that_could_not_work_is_compared_with_its_last_table(world: World, options: NightOptions, lost: Any):
    night(world, options)
    report = night(world, options, lost)
    assert (report.broken, ending(report)) == ((), None)
    assert night(world, options, BREAKS).broken
    assert not night(world, options, lost).mended
    assert night(world, options).mended


def test_without_a_change_the_table_is_not_made_again(world: World, options: NightOptions):
    first = night(world, options, BREAKS, packages="3.0")
    report = night(world, options, packages="3.0")
    assert world.made == []
    assert report.night.models == "saved models: 8 loads: 7 ok, 1 dies, as on 2026-07-16: nothing changed since"
    assert (report.night.models_run, report.models_page) == (first.night.models_run, first.models_page)
    assert not report.happened
    # Another build, other flags, --again, and a target that could not work.
    for changed, packages, tables in (
        (replace(options, models=("--formats", "keras")), "3.0", ()),
        (options, "3.1", ()),
        (replace(options, again=True), "3.1", (LOST,)),
        (options, "3.1", ()),
    ):
        night(world, changed, *tables, packages=packages)
        assert world.made


def test_a_wheel_of_another_day_is_compared_under_its_name(
    world: World, options: NightOptions, monkeypatch: pytest.MonkeyPatch
):
    wheels = ["2.23.0.dev20260715", "2.23.0.dev20260716"]
    reports = []
    for wheel, wrong in zip(wheels, ({}, {(OLD, wheels[1], "nested"): ("dies", "no")}), strict=True):
        resolved = versions.ResolvedVersions(versions=(OLD, wheel), names={wheel: "nightly"})
        monkeypatch.setattr(versions, "resolve_followed", lambda *asked, resolved=resolved, **named: resolved)
        world.targets = (OLD, wheel)
        reports.append(night(world, replace(options, names=("1.13", "nightly")), wrong))
    assert [report.broken for report in reports] == [(), (f"1.13.0 as h5 in {wheels[1]}: dies: no (nested)",)]


FAILURES = {
    "it hangs": (ChildEnd(-9, hung=True, last_lines=""), "the table of saved models took too long and was ended"),
    "no engine": (ChildEnd(4, hung=False, last_lines="no engine"), "ended with exit code 4: no engine"),
    "nothing can be installed": (
        ChildEnd(5, hung=False, last_lines="no disk"),
        "there is no table of saved models: no disk",
    ),
}


@pytest.mark.parametrize(("ended", "words"), FAILURES.values(), ids=FAILURES)
def test_a_table_that_fails_costs_nothing_that_was_measured(
    world: World, options: NightOptions, ended: ChildEnd, words: str
):
    report = night(world, options, ended)
    assert [words in warning for warning in report.warnings] == [True]
    assert (report.night.outcome, report.night.models, report.models_page) == ("measured", "", "")
    assert Store(options.history).read().points()
    assert ending(report) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("a bug"), OSError(28, "No space left on device")])
def test_an_error_costs_the_table_alone(
    world: World, options: NightOptions, monkeypatch: pytest.MonkeyPatch, error: BaseException
):
    measure = world.run

    def fail(words: Sequence[str]) -> ChildEnd:
        if words[0] == "models":
            raise error
        return measure(words)

    monkeypatch.setattr(Child, "run", lambda self, words: fail(words))
    report = night(world, options)
    [warning] = report.warnings
    assert warning.startswith("the table of saved models was not finished: ")
    assert [event for event in Store(options.history).events()[0] if isinstance(event, Night)] == [report.night]


def test_an_earlier_table_that_is_damaged_is_a_warning_and_the_one_before_it_counts(
    world: World, options: NightOptions
):
    night(world, options)
    damaged = night(world, options)
    path = options.history / "runs" / damaged.night.models_run / "models.json"
    path.write_text(path.read_text().replace('"ok"', '"fine"'))
    report = night(world, options, BREAKS)
    assert report.broken
    [warning] = report.warnings
    assert str(path) in warning


def test_texts_of_a_table_are_no_markup_and_no_lines_of_a_message(world: World, options: NightOptions):
    night(world, options)
    evil = "<img src=x onerror=alert(1)> @everyone [x](http://evil)\x1b[31m\nRecovered: 99"
    message = compose(night(world, options, {(OLD, NEW, "nested"): ("dies", evil)}))
    assert "<img" not in message.html
    assert "\nRecovered" not in message.text
    assert "\x1b" not in message.text
    assert all("`" in line for line in message.markdown.splitlines() if "evil" in line)


def test_a_night_without_the_flag_makes_no_table(world: World, options: NightOptions):
    report = night(world, replace(options, models=()))
    assert (world.made, report.night.models) == ([], "")
    assert "saved models" not in compose(report).text


def test_the_site_links_the_table_of_each_night(world: World, options: NightOptions, tmp_path: Path):
    first, second = night(world, options, BREAKS, packages="3.0"), night(world, options, packages="3.0")
    page = build_site(Store(options.history), tmp_path / "site").index.read_text()
    link = f'<a href="../history/runs/{first.night.models_run}/report.html">{first.night.models}</a>'
    assert link in page
    assert f'/report.html">{second.night.models}</a>' in page
    foreign = replace(second.night, models_run="../../secret", models="<b>8 loads</b>", night=date(2026, 7, 20))
    Store(options.history).record(foreign)
    page = build_site(Store(options.history), tmp_path / "site").index.read_text()
    assert "secret" not in page
    assert "&lt;b&gt;8 loads" in page
