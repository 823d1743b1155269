"""The pages, the feed, the tables and the text of an atlas, from figures that are made up."""

import csv
import io
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from orchestrator.atlas import feed, tables
from orchestrator.atlas.figures import make_figures_object, read_figures
from orchestrator.atlas.site import FILES, INDEX, write_atlas_site
from orchestrator.atlas.summary import MOST_LINES, list_atlas_changes
from orchestrator.cli import atlas as command
from orchestrator.errors import ContractBroken, UsageError
from orchestrator.reports.html import atom
from tests.conftest import ROOT
from tests.support.atlases import figures, ratio
from tests.support.commands import called
from tests.support.sites import HOSTILE

SCHEMA = json.loads((ROOT / "docs" / "schema" / "atlas-1.json").read_text())
ATOM = f"{{{atom.ATOM}}}"


def test_a_site_has_a_page_per_case_a_feed_and_files(tmp_path: Path):
    index = write_atlas_site([figures()], tmp_path / "site")
    assert index == tmp_path / "site" / INDEX
    assert {path.name for path in (tmp_path / "site").iterdir()} == {INDEX, "cases", *FILES}
    assert len(list((tmp_path / "site" / "cases").iterdir())) == 2
    text = index.read_text()
    assert "▲" in text
    assert "Why: Keras" in text
    assert "It is slow (tf#1)" in text
    assert "1.50x (1.46–1.54)" in text


def test_a_page_of_a_case_shows_each_release(tmp_path: Path):
    write_atlas_site([figures()], tmp_path / "site")
    [page] = (tmp_path / "site" / "cases").glob("power*.html")
    text = page.read_text()
    assert text.count("<tr>") == 5
    assert "▲ slower 1.50x (1.46–1.54)" in text
    assert 'class="sign slower"' in text
    assert "2.2.0 against 2.1.0: differs, by up to 50% of a value" in text


def test_the_same_figures_make_the_same_pages(tmp_path: Path):
    for name in ("one", "two"):
        write_atlas_site([figures()], tmp_path / name)
    for path in (tmp_path / "one").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


def test_machines_stand_in_sections_and_are_not_mixed(tmp_path: Path):
    other = replace(figures(), machine={"cpu": "Another CPU", "engine": "venv", "device": "cpu"})
    text = write_atlas_site([figures(), other], tmp_path / "site").read_text()
    assert text.count('<section aria-labelledby="atlas-') == 2
    assert "Another CPU, venv, cpu" in text
    assert read_figures(tmp_path / "site" / "2-figures.json") == other
    # The next build has one machine and may replace the site.
    write_atlas_site([figures()], tmp_path / "site")


@pytest.mark.parametrize("name", ["photo.jpg", "index.html"])
def test_a_folder_with_other_files_is_not_touched(tmp_path: Path, name: str):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match="not part of an atlas"):
        write_atlas_site([figures()], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_no_text_of_another_person_is_markup_or_moves_a_cursor(tmp_path: Path):
    # Without levels, nothing else ties the reference to a release.
    made = replace(figures(text=HOSTILE), reference=HOSTILE, levels=())
    write_atlas_site([made], tmp_path / "site")
    for path in (tmp_path / "site").rglob("*"):
        if path.suffix in (".html", ".xml", ".txt", ".csv"):
            text = path.read_text()
            if path.suffix in (".html", ".xml"):
                assert "<script>alert" not in text, path
                assert "<img" not in text, path
            assert "\x1b" not in text, path
            assert "\u202e" not in text, path
    ElementTree.fromstring((tmp_path / "site" / "feed.xml").read_bytes())
    assert all(path.parent == tmp_path / "site" / "cases" for path in (tmp_path / "site" / "cases").iterdir())


@pytest.mark.parametrize("releases", [3, 4, 26, 60])
def test_the_text_has_at_most_forty_lines(releases: int):
    made = figures(releases)
    case = made.cases[0].label
    numbers = [release.name for release in made.releases]
    busy = replace(made, steps=tuple(ratio(case, new, old, 1.5) for old, new in pairwise(numbers)))
    lines = list_atlas_changes(busy)
    assert len(lines) <= MOST_LINES
    assert lines[3].startswith(f"{made.releases[1].short}: slower: power 1.50x")
    assert max(map(len, lines)) <= 440


def test_a_step_that_may_be_chance_is_not_named():
    made = figures()
    uncertain = replace(made, steps=tuple(replace(step, row_only=True) for step in made.steps))
    assert "2.1, 2.2, 2.3: no certain change" in "\n".join(list_atlas_changes(replace(uncertain, results=())))
    assert uncertain.largest == ()


def test_the_feed_has_an_entry_per_certain_step():
    tree = ElementTree.fromstring(feed.write_feed([figures()]))
    [entry] = tree.iter(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "2.1.0: power is slower, 1.50x (1.46-1.54)"
    assert entry.findtext(f"{ATOM}updated") == "2026-02-01T00:00:00Z"
    assert "Why: Keras" in entry.findtext(f"{ATOM}content")


def test_tables_have_a_row_per_figure_with_its_step_and_its_level():
    made = figures()
    rows = list(csv.DictReader(io.StringIO(tables.make_csv(made))))
    assert len(rows) == 8
    [row] = [row for row in rows if (row["workload"], row["release"]) == ("power", "2.1.0")]
    assert (row["previous"], row["metric"], row["unit"], row["figure"]) == ("2.0.0", "time", "s", "0.01")
    assert (row["step_verdict"], row["step_ratio"], row["level_verdict"]) == ("slower", "1.5", "same")
    table = pq.read_table(pa.BufferReader(tables.make_parquet(made)))
    assert table.column_names == list(tables.COLUMNS)
    assert table.num_rows == 8


def test_the_object_is_as_its_schema_says():
    Draft202012Validator(SCHEMA).validate(make_figures_object(figures()))
    assert set(SCHEMA["properties"]) == set(make_figures_object(figures()))


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.pop("steps"),
        lambda made: made.update(extra=1),
        lambda made: made["steps"].append({"case": "x"}),
        lambda made: made["steps"][0].update(metric="fame"),
        lambda made: made["steps"][0].update(verdict="lovely"),
        lambda made: made.update(schema="tfcompare.atlas/2"),
        lambda made: made.update(title="x" * 3000),
        # Each value has the right type, and no page can be made of them.
        lambda made: made["steps"][0].update(ratio=0.0),
        lambda made: made["steps"][0].update(ratio=None, difference=1.0),
        lambda made: made["steps"][0].update(case="another"),
        lambda made: made["levels"][0].update(older=made["levels"][0]["newer"]),
        lambda made: made.update(reference="2.99"),
        lambda made: made["releases"].append(made["releases"][0]),
        lambda made: made["machine"].update(memory_mb="lots"),
    ],
)
def test_figures_that_no_atlas_has_written_are_refused(tmp_path: Path, change):
    made = make_figures_object(figures())
    change(made)
    path = tmp_path / "figures.json"
    path.write_text(json.dumps(made))
    with pytest.raises(ContractBroken, match=r"is not what|cannot be used"):
        read_figures(path)


def test_a_file_that_is_no_atlas_is_one_line(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "figures.json").write_text("{}")
    words = ("atlas", "--figures", str(tmp_path / "figures.json"), "--site", str(tmp_path / "site"))
    assert called(monkeypatch, *words) == 7
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "site").exists()


def test_pages_are_made_of_figures_alone(tmp_path: Path, monkeypatch, capsys):
    write_atlas_site([figures()], tmp_path / "first")
    words = ("atlas", "--figures", str(tmp_path / "first" / "figures.json"))
    assert called(monkeypatch, *words) == 2
    assert "--figures needs --site" in capsys.readouterr().err
    assert called(monkeypatch, *words, "--site", str(tmp_path / "second"), "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == make_figures_object(figures())
    assert (tmp_path / "second" / INDEX).read_bytes() == (tmp_path / "first" / INDEX).read_bytes()


@pytest.mark.parametrize(
    ("releases", "vary", "expected"),
    [
        ("1.14,2.0,2.13", None, ("1.14.0", "2.0.0", "2.13.0")),
        ("2.13,2.0", None, ("2.0.0", "2.13.0")),
        # A release that is in no table is locked later.
        ("2.13,2.10.0", None, ("2.10.0", "2.13.0")),
        ("2.20", "keras=3.8,3.5", ("2.20.0 keras==3.5.0", "2.20.0 keras==3.8.0")),
    ],
)
def test_releases_are_in_order(releases, vary, expected):
    assert command._list_releases(releases, vary, gpu=False) == expected


@pytest.mark.parametrize("refused", [True, False])
def test_a_refused_case_has_its_sign_and_no_open_verdict(tmp_path: Path, refused: bool):
    made = figures(3)
    label, release = made.cases[0].label, made.releases[1].name
    cells = tuple(
        replace(cell, outcome="refused", reason="it has no graph mode")
        if refused and (cell.case, cell.release) == (label, release)
        else cell
        for cell in made.cells
    )
    # Without an estimate, a pair has no verdict that could be shown.
    empty = {"verdict": "inconclusive", "size": None, "ratio": None, "ci_low": None, "ci_high": None, "p": None}
    steps = tuple(
        replace(step, **empty) if (step.case, step.newer) == (label, release) else step for step in made.steps
    )
    levels = tuple(level for level in made.levels if (level.case, level.newer) != (label, release))
    text = write_atlas_site([replace(made, cells=cells, steps=steps, levels=levels)], tmp_path / "site").read_text()
    assert ("2.1.0: refused: it has no graph mode" in text) == refused
    assert (">–<" in text, ">?<" in text) == (refused, not refused)


def test_a_case_without_any_level_has_a_table_and_no_chart(tmp_path: Path):
    made = figures()
    outside = tuple(replace(level, older="2.9.0", ratio=None, ci_low=None, ci_high=None) for level in made.levels)
    for levels in (outside, ()):
        write_atlas_site([replace(made, reference="2.9.0", levels=levels)], tmp_path / "site")
        [page] = (tmp_path / "site" / "cases").glob("power*.html")
        text = page.read_text()
        assert "▲ slower 1.50x (1.46–1.54)" in text or not levels
        assert 'class="ratios"' not in text


@pytest.mark.parametrize(
    ("against", "releases", "vary", "expected"),
    [
        ("2.13", "2.0,2.8", None, "2.13.0"),
        ("2.8", "2.0,2.8", None, ""),
        ("3.8", "2.20", "keras=3.5,3.6", "2.20.0 keras==3.8.0"),
        ("3.6", "2.20", "keras=3.5,3.6", ""),
    ],
)
def test_the_release_of_the_levels_is_a_target_like_the_others(against, releases, vary, expected):
    followed = command._list_releases(releases, vary, gpu=False)
    assert command._find_reference(against, followed, releases, vary, gpu=False) == expected


@pytest.mark.parametrize(
    ("against", "said"), [("2.0,2.1", "name one release"), ("2.0", "--releases follows it and newer ones")]
)
def test_levels_are_against_one_release_that_is_the_newest_or_not_followed(against: str, said: str):
    followed = command._list_releases("2.0,2.8", None, gpu=False)
    with pytest.raises(UsageError, match=said):
        command._find_reference(against, followed, "2.0,2.8", None, gpu=False)


def test_all_releases_are_the_default():
    assert len(command._list_releases("all", None, gpu=False)) >= 24
