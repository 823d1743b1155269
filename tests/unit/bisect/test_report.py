"""What is told of a search, to the letter; `UPDATE_SNAPSHOTS=1 pytest tests/unit/bisect` writes it anew for review."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from orchestrator.bisect import page, report
from orchestrator.bisect.search import BisectFinding, PlannedStep, SearchResult, search
from orchestrator.bisect.state import State, Step
from orchestrator.bisect.wording import announce_step, conclusions
from orchestrator.terminal.text import render_plain
from tests.conftest import ROOT
from tests.support.kept import kept
from tests.support.searches import SCENES, told
from tests.support.worlds import MARGIN, finding, stepped

SCHEMA = json.loads((ROOT / "docs" / "schema" / "bisect-1.json").read_text())


def text(known: State) -> str:
    return render_plain(lambda width: report.layout_search(known, known.search_result, width)) + "\n"


@pytest.mark.parametrize("scene", ["several", "stepped-over", "unfinished"])
@pytest.mark.parametrize("width", [60, 80, 110])
def test_it_is_what_the_snapshot_shows(monkeypatch: pytest.MonkeyPatch, scene: str, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    found = text(SCENES[scene]())
    assert found == kept(f"bisect-{scene}-{width}", found)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("width", [60, 70, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, scene: str, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    shown = text(SCENES[scene]())
    for line in shown.splitlines():
        assert cell_len(line) <= width
    # No name of a version breaks.
    if table := shown.partition("versions measured")[2]:
        known = SCENES[scene]()
        assert all(row.version in table for row in report.path_rows(known, known.search_result))


@pytest.mark.parametrize("width", [70, 80, 100, 120])
def test_no_name_of_a_commit_breaks(monkeypatch: pytest.MonkeyPatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    commits = [f"keras-{number:012x}" for number in range(9)]
    known = told(stepped(commits, {3: -4.4}), commits, most=3)
    table = text(known).partition("versions measured")[2]
    assert all(row.version in table for row in report.path_rows(known, known.search_result))
    explained = "how many versions before this one" in " ".join(table.split())
    assert ("between" in table.splitlines()[1]) == explained == (width >= 80)


def first(scene: str) -> tuple[str, ...]:
    known = SCENES[scene]()
    return conclusions(known, known.search_result)


def test_one_change_is_named_with_its_share():
    whole, line = first("one")
    assert whole == "2.6.5 is slower than 1.14.0: 17.3x (17.1-17.5)."
    assert line == "2.1.4 is slower than 2.0.0: 17.3x (17.1-17.5), 100% of the change"


def test_several_changes_are_told_the_largest_first_and_what_one_takes_back():
    _, several, *lines = first("several")
    assert several == "Several steps add up:"
    assert [line.partition(" is ")[0] for line in lines] == ["2.1.4", "2.4.4", "1.15.5"]
    assert "104% of the change" in lines[0]
    assert lines[1].endswith("which takes back 11% of the change")
    assert "7% of the change" in lines[2]


def test_versions_that_cannot_be_measured_share_the_blame():
    assert "it came with 2.0.0 or 2.1.4: versions in between cannot be measured" in first("stepped-over")[1]


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        ("same", "2.6.5 is the same as 1.14.0: 1.00x (0.99-1.01). There is nothing to find."),
        (
            "undecided",
            "2.6.5 cannot be distinguished from 1.14.0: 1.04x inconclusive (0.85-1.27). Nothing can be found.",
        ),
        ("nothing", "Nothing was measured yet."),
    ],
)
def test_where_nothing_was_found_that_is_the_answer(scene: str, words: str):
    assert first(scene) == (words,)


def test_what_is_spread_over_many_versions_is_told_so():
    assert (
        "spread over several versions: neither half of the interval differs by more than the margin"
        in first("spread")[1]
    )


def test_what_was_not_followed_is_told():
    lines = first("unfinished")
    assert any("not measured yet" in line or "not searched to the end" in line for line in lines)


def test_each_step_says_what_it_measures_and_why():
    of = finding("1.14.0", "2.6.5", 1.0, 0.1)
    said = {
        kind: announce_step(PlannedStep(kind, versions, of, 7), 4)
        for kind, versions in (
            ("ends", ("1.14.0", "2.6.5")), ("again", ("1.14.0", "2.6.5")),
            ("split", ("1.14.0", "2.2.3", "2.6.5")), ("beside", ("1.14.0", "2.1.4", "2.6.5")),
        )
    }  # fmt: skip
    assert said == {
        "ends": "step 4: do 1.14.0 and 2.6.5 differ?",
        "again": "step 4: 2.6.5 against 1.14.0: 2.72x slower (2.46-3.00), which is not decided; more rounds",
        "split": "step 4: 2.6.5 against 1.14.0: 2.72x slower (2.46-3.00); 2.2.3, in the middle of the 7 versions "
        "between them",
        "beside": "step 4: 2.6.5 against 1.14.0: 2.72x slower (2.46-3.00), and what was tried of the 7 versions "
        "between them does not show where; 2.1.4, next to it",
    }


@pytest.mark.parametrize("scene", SCENES)
def test_the_object_keeps_its_schema(scene: str):
    Draft202012Validator.check_schema(SCHEMA)
    known = SCENES[scene]()
    found = json.loads(json.dumps(report.search_as_object(known, known.search_result), allow_nan=False))
    Draft202012Validator(SCHEMA).validate(found)
    assert found["schema"] == "tfcompare.bisect/1"
    assert found["finished"] == (scene not in ("unfinished", "nothing"))


def test_the_object_tells_each_change_with_its_share():
    known = SCENES["several"]()
    changes = report.search_as_object(known, known.search_result)["changes"]
    assert [(one["earlier"], one["later"], one["kind"]) for one in changes] == [
        ("1.14.0", "1.15.5", "change"), ("2.0.0", "2.1.4", "change"), ("2.3.4", "2.4.4", "change"),
    ]  # fmt: skip
    assert sum(one["share"] for one in changes) == pytest.approx(1.0)


class Reader(HTMLParser):
    """The tags of a page, each closed where it should be, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.parametrize("scene", SCENES)
def test_the_page_is_whole_and_runs_and_loads_nothing(scene: str):
    known = SCENES[scene]()
    found = Reader(page.render_search(known, known.search_result))
    assert "script" not in found.tags
    assert ("svg" in found.tags) == (scene != "nothing")
    assert not {"src", "href", "srcset", "onload", "style"} & {name for name, _ in found.attributes}
    words = re.sub(r"\s+", " ", found.words)
    for line in conclusions(known, known.search_result):
        assert line in words


def test_the_page_draws_every_version_that_was_visited():
    known = SCENES["several"]()
    words = Reader(page.render_search(known, known.search_result)).words
    for part in known.search_result.parts:
        assert part.later in words


def test_text_from_elsewhere_is_never_markup(tmp_path: Path):
    known = SCENES["stepped-over"]()
    attack = '</title><script>alert(1)</script><img src=x onerror="x">\u202e'
    hostile = replace(
        known,
        host={"cpu": attack, "usable_cores": 2},
        notes=(attack,),
        steps=tuple(
            replace(step, skipped=tuple(replace(one, reason=attack) for one in step.skipped)) for step in known.steps
        ),
    )
    written = page.write_page(hostile, hostile.search_result, tmp_path).read_text()
    found, harmless = Reader(written), Reader(page.render_search(known, replace_notes(known)))
    assert set(found.tags) <= set(harmless.tags) | {"div", "ul", "li"}
    assert "\u202e" not in written
    assert "\\u202e" in written
    assert attack.replace("\u202e", "\\u202e") in found.words
    assert "\u202e" not in text(hostile)


def replace_notes(known: State) -> SearchResult:
    return search(known.candidates, known.findings, known.skipped, MARGIN)


def test_a_deadline_is_told_where_a_ratio_would_stand():
    late = BisectFinding(earlier="1.14.0", later="2.6.5", verdict="slower", reason="2.6.5 exceeded the deadline")
    known = replace(SCENES["nothing"](), candidates=("1.14.0", "2.6.5"))
    step = Step(kind="ends", versions=("1.14.0", "2.6.5"), run="steps/01", seconds=1.0, findings=(late,))
    known = replace(known, steps=(step,))
    assert conclusions(known, known.search_result) == (
        "2.6.5 against 1.14.0: slower (2.6.5 exceeded the deadline).",
        "2.6.5 is slower than 1.14.0: 2.6.5 exceeded the deadline",
    )
    assert "slower (1)" in text(known)
