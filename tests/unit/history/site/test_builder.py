"""The site: what stands on its pages, where its links lead, and that nothing from elsewhere gets into its markup."""

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from orchestrator.errors import UsageError
from orchestrator.history import schema, site
from orchestrator.history.model import AlarmOpened, Key, StateChanged
from orchestrator.history.site import wording
from orchestrator.history.store import Store
from orchestrator.model import Target
from tests.support.nights import FIRST, REFERENCE, SURROUNDINGS, history, of_metric, of_results
from tests.support.sites import CASES, HOSTILE, alarm, at, changed, everything, kept

BUILT = re.compile(rb"<time id=\"built\".*?</time>")


def pages(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def text_of(out: Path, case: str) -> str:
    return (out / wording.page_of(case)).read_text(encoding="utf-8")


def test_a_site_has_a_page_a_case_and_they_lead_to_each_other(tmp_path: Path):
    built = site.build_site(kept(tmp_path / "history", everything()), tmp_path / "site")
    assert (built.cases, built.pages, built.alarms, built.warnings) == (2, 4, 0, ())
    found = pages(tmp_path / "site")
    assert sorted(found) == sorted(["alarms.html", "feed.xml", "index.html", *map(wording.page_of, CASES)])
    for name, text in found.items():
        for link in re.findall(rb'href="([^"#]+)', text):
            assert (tmp_path / "site" / name).parent.joinpath(link.decode()).exists(), link
    index = found["index.html"].decode()
    assert "2 cases in 3 versions, nights from 2024-01-01 to 2024-01-30." in index
    assert "No alarm is open." in index
    assert "Against 1.14.0 on other, venv, cpu" in index


def test_the_packages_of_a_version_are_no_fact_of_its_machine(tmp_path: Path):
    points = history(3, CASES[:1], surroundings=replace(SURROUNDINGS, packages="keras==3.8.0 numpy==2.1.3"))
    site.build_site(kept(tmp_path / "history", points), tmp_path / "site")
    assert SURROUNDINGS.kernel in text_of(tmp_path / "site", CASES[0])


def test_a_case_has_a_section_for_each_metric_and_the_overview_has_times(tmp_path: Path):
    points = history(20, CASES[:1], ("2.0.0",))
    other = [*of_metric(points, "memory"), *of_results(points[-2:], "differs", 0.02)]
    site.build_site(kept(tmp_path / "history", [*points, *other]), tmp_path / "site")
    text = text_of(tmp_path / "site", CASES[0])
    titles = re.findall(r'<h2 id="place-\d">(.*?) against|<h2 id="place-\d">(Against)', text)
    assert [first or second for first, second in titles] == ["Against", "Peak memory", "Results"]
    assert "256 MiB; no step" in text
    assert "differs on 2024-01-20" in text
    assert "<td>differs" in text
    index = (tmp_path / "site" / "index.html").read_text()
    assert index.count('<h2 id="grid-') == 1


@pytest.mark.parametrize(
    ("verdict", "mark"), [("slower", "▲"), ("faster", "▼"), ("same", "="), ("inconclusive", "?"), ("", "")]
)
def test_the_overview_shows_the_verdict_of_the_last_night_by_mark_word_and_colour(
    tmp_path: Path, verdict: str, mark: str
):
    """All nights before the last one have another verdict."""
    points = history(10, CASES[:1], ("2.0.0",), control=False)
    others = [replace(each, verdict="slower" if verdict == "same" else "same") for each in points[:-1]]
    site.build_site(kept(tmp_path / "history", [*others, replace(points[-1], verdict=verdict)]), tmp_path / "site")
    index = (tmp_path / "site" / "index.html").read_text()
    mark_and_word = (
        r'class="verdict (\w+)"><span class="mark" aria-hidden="true">(.)</span> <span class="spoken">(\w+)<'
    )
    assert re.findall(mark_and_word, index) == ([(verdict, mark, verdict)] if mark else [])


def test_a_case_tells_its_segments_steps_and_nights_without_a_ratio(tmp_path: Path):
    points = changed(history(60, CASES, steps={(CASES[0], "2.13.0"): {40: 1.25}}), 20, driver="550.2")
    dead = [
        replace(one, effect=None, error=None, rounds=0, outcome="died", reason="killed by SIGKILL")
        if one.target == "2.0.0" and 5 <= (one.night - FIRST).days < 9
        else one
        for one in points
    ]
    site.build_site(kept(tmp_path / "history", dead), tmp_path / "site")
    text = text_of(tmp_path / "site", CASES[0])
    assert "2024-01-21: driver: 550.2" in text.replace("driver:  -&gt; ", "driver: ")
    assert "2024-01-06 to 2024-01-09, 4 nights: died: killed by SIGKILL" in text
    assert re.search(r"▲ 1\.2\dx slower \(1\.2\d-1\.2\d\) since 2024-02-10", text)
    assert text.count('<path class="cut"') == 3
    row = next(line for line in text.splitlines() if line.startswith("<tr><th>2024-01-07"))
    cells = row.split("<td>")
    assert cells[1] == "died"
    assert re.fullmatch(r"\d\.\d{3} \(\d\.\d{3}–\d\.\d{3}\) <i>[\d.]+ ms</i>", cells[2])
    assert len(re.findall(r"<tr><th>2024", text)) == 60


def test_the_control_arm_has_a_chart_but_no_steps(tmp_path: Path):
    points = history(40, CASES[:1], steps={(CASES[0], str(Target(REFERENCE, control=True))): {20: 1.5}})
    site.build_site(kept(tmp_path / "history", points), tmp_path / "site")
    text = text_of(tmp_path / "site", CASES[0])
    assert "the reference against itself, whose true ratio is 1" in text
    control = text[text.index('class="series control-arm"') :]
    assert "slower" not in control
    assert '<path class="level"' not in control


def test_an_alarm_is_told_on_the_overview_its_own_page_and_that_of_its_case(tmp_path: Path):
    store = kept(tmp_path / "history", history(60, CASES, steps={(CASES[0], "2.13.0"): {40: 1.1}}))
    store.record(AlarmOpened(at=at(40), alarm=alarm()))
    store.record(StateChanged(at=at(41), alarm="a1", state="known", note="It is the new allocator."))
    store.record(AlarmOpened(at=at(20), alarm=alarm("vanished[x=1]", id="a0", number=20)))
    store.record(StateChanged(at=at(25), alarm="a0", state="recovered"))
    built = site.build_site(store, tmp_path / "site")
    assert built.alarms == 2
    found = {name: text.decode() for name, text in pages(tmp_path / "site").items()}
    for name in ("index.html", "alarms.html", wording.page_of(CASES[0])):
        assert "1.10x slower (1.08-1.12)" in found[name]
        assert "It is the new allocator." in found[name]
        assert "known" in found[name]
    assert "1 open, 1 recovered." in found["alarms.html"]
    assert "vanished[x=1]" in found["alarms.html"]
    assert "vanished" not in found["index.html"]
    assert "kernel: 6.1 -&gt; 6.6" in found["alarms.html"]
    assert "tfcompare bisect --case" in found["alarms.html"]
    assert found[wording.page_of(CASES[1])].count("◆") == found[wording.page_of(CASES[1])].count("◆ open alarms")


def test_runs_are_linked_where_they_are_and_named_where_they_are_not(tmp_path: Path):
    points = history(3, CASES[:1])
    store = kept(tmp_path / "history", points)
    first, second, third = dict.fromkeys(point.run for point in points)
    (store.runs / first).mkdir(parents=True)
    (store.runs / second).mkdir()
    (store.runs / second / "report.html").write_text("made")
    site.build_site(store, tmp_path / "deep" / "site")
    text = text_of(tmp_path / "deep" / "site", CASES[0])
    assert f'<a href="../../../history/runs/{first}/">{first}</a>' in text
    assert f'<a href="../../../history/runs/{second}/report.html">{second}</a>' in text
    assert f"<td>{third}" in text


@pytest.mark.parametrize(
    ("url", "link"),
    [
        ("https://nights.example/runs/", "https://nights.example/runs/"),
        ("/runs", "/runs/"),
        ("runs", "../runs/"),
    ],
)
def test_runs_that_are_published_elsewhere_are_linked_there(tmp_path: Path, url: str, link: str):
    points = history(1, CASES[:1])
    site.build_site(kept(tmp_path / "history", points), tmp_path / "site", runs_url=url)
    assert f'<a href="{link}{points[0].run}/">' in text_of(tmp_path / "site", CASES[0])


def test_an_address_that_would_run_something_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="http or https"):
        site.build_site(Store(tmp_path / "history"), tmp_path / "site", runs_url="javascript:alert(1)//")


def test_the_same_history_makes_the_same_bytes_but_for_the_time_of_build(tmp_path: Path):
    store = kept(tmp_path / "history", everything())
    store.record(AlarmOpened(at=at(20), alarm=alarm(number=20)))
    for name in ("one", "two"):
        site.build_site(store, tmp_path / name)
    one, two = (pages(tmp_path / name) for name in ("one", "two"))
    assert len(BUILT.findall(one["index.html"])) == 1
    one["index.html"], two["index.html"] = (BUILT.sub(b"", found["index.html"]) for found in (one, two))
    assert one == two


def test_building_again_adds_what_is_new_and_takes_away_what_is_no_more(tmp_path: Path):
    out = tmp_path / "site"
    site.build_site(kept(tmp_path / "one", history(3, CASES)), out)
    site.build_site(kept(tmp_path / "two", history(3, ["other[x=1]"])), out)
    assert sorted(path.name for path in (out / "cases").iterdir()) == [Path(wording.page_of("other[x=1]")).name]
    assert CASES[0] not in (out / "index.html").read_text()


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "index.html").write_text("my own page")
    with pytest.raises(UsageError, match="not part of a site"):
        site.build_site(Store(tmp_path / "history"), out)
    assert [path.name for path in out.iterdir()] == ["index.html"]
    (out / "index.html").rename(out / "thesis.tex")
    with pytest.raises(UsageError, match="not part of a site"):
        site.build_site(Store(tmp_path / "history"), out)


def test_a_site_cannot_be_written_into_a_file(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write the site"):
        site.build_site(Store(tmp_path / "history"), tmp_path / "file" / "site")


def test_an_empty_history_has_a_site_that_says_so(tmp_path: Path):
    built = site.build_site(Store(tmp_path / "history"), tmp_path / "site")
    assert (built.cases, built.pages) == (0, 2)
    assert "no night yet" in built.index.read_text()


@pytest.mark.parametrize("nights", [1, 2, 3])
def test_a_series_of_few_nights_is_drawn(tmp_path: Path, nights: int):
    site.build_site(kept(tmp_path / "history", history(nights, CASES[:1])), tmp_path / "site")
    text = text_of(tmp_path / "site", CASES[0])
    assert f"no step in {nights} night" in text
    assert text.count("nan") == 0
    assert len(re.findall(r'<path class="dots"', text)) == 3


def test_a_case_that_never_had_a_time_has_a_page_that_says_why(tmp_path: Path):
    points = [
        replace(one, effect=None, error=None, rounds=0, outcome="refused", reason="No JIT before 2.1.")
        for one in history(3, CASES[:1])
    ]
    site.build_site(kept(tmp_path / "history", points), tmp_path / "site")
    text = text_of(tmp_path / "site", CASES[0])
    assert "never measured" in text
    assert "3 nights: refused: No JIT before 2.1." in text


def test_a_broken_file_of_the_history_is_named_and_the_rest_is_shown(tmp_path: Path):
    store = kept(tmp_path / "history", history(3, CASES[:1]))
    broken = store.path / "points" / "2024-01" / "20240102-broken-screen.parquet"
    broken.write_bytes(b"PAR1 no more")
    built = site.build_site(store, tmp_path / "site")
    assert len(built.warnings) == 1
    assert broken.name in built.warnings[0]
    index = built.index.read_text()
    assert "1 file of the history could not be used" in index
    assert str(tmp_path) not in index


def test_hostile_names_and_notes_make_no_markup(tmp_path: Path):
    case = f"case{HOSTILE}"
    points = [
        replace(
            one, case=case, run=f"../run{HOSTILE}", build=f"b{HOSTILE}", reason=HOSTILE, host=f"h{HOSTILE}",
            engine=f"e{HOSTILE}", device=f"d{HOSTILE}", outcome="died" if one.night.day == 2 else "measured",
            surroundings=replace(SURROUNDINGS, driver=f"{one.night}{HOSTILE}", kernel=HOSTILE),
        )
        for one in history(3, CASES[:1], versions=(f"2{HOSTILE}",), reference=f"1{HOSTILE}")
    ]  # fmt: skip
    points = [replace(one, effect=None, rounds=0) if one.outcome == "died" else one for one in points]
    store = Store(tmp_path / "history")
    # Such a run's name makes no file's name.
    store.append([replace(one, run="plain") for one in points[:1]])
    [path] = store.path.glob("points/*/*.parquet")
    pq.write_table(schema.to_table(points), path)
    key = Key.parse(case, f"2{HOSTILE}", f"1{HOSTILE}", f"d{HOSTILE}", f"e{HOSTILE}", f"h{HOSTILE}")
    told = alarm(case, key=key, surroundings=(HOSTILE,), run=HOSTILE, reproduce=HOSTILE, bisect=HOSTILE)
    store.record(AlarmOpened(at=at(1), alarm=told))
    store.record(StateChanged(at=at(2), alarm="a1", state="known", note=HOSTILE))
    site.build_site(store, tmp_path / "site")
    for name, text in pages(tmp_path / "site").items():
        assert b"<img" not in text, name
        assert text.count(b"<script") == (0 if name == "feed.xml" else 1), name
        assert "\u202e".encode() not in text, name
        assert b"\x1b" not in text, name
        assert b"{{7*7}}" in text, name
    assert "&lt;script&gt;" in text_of(tmp_path / "site", case)


def test_two_years_of_a_case_are_a_page_of_less_than_a_megabyte(tmp_path: Path):
    points = history(730, CASES[:1])
    store = kept(tmp_path / "history", points)
    for run in {point.run for point in points}:
        (store.runs / run).mkdir(parents=True)
        (store.runs / run / "report.html").touch()
    site.build_site(store, tmp_path / "site")
    assert len(text_of(tmp_path / "site", CASES[0]).encode()) < 400_000


def test_two_hundred_cases_are_an_overview_of_less_than_a_megabyte(tmp_path: Path):
    built = site.build_site(kept(tmp_path / "history", history(70, 200)), tmp_path / "site")
    assert (built.cases, built.series) == (200, 600)
    assert built.index.stat().st_size < 600_000


def test_what_is_not_measured_any_more_says_since_when(tmp_path: Path):
    points = [one for one in history(10, CASES) if one.target != "2.0.0" or one.night < date(2024, 1, 6)]
    built = site.build_site(kept(tmp_path / "history", points), tmp_path / "site")
    assert built.index.read_text().count("not in the suite since 2024-01-05") == 2
    assert "not measured since" in text_of(tmp_path / "site", CASES[0])
