"""What the HTML page says, and that nothing from elsewhere becomes part of its markup."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import cache, partial
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from orchestrator.model import Drift, Evaluation, VerdictName
from orchestrator.reports import html, matrix
from orchestrator.reports.case_rows import block_of_cases, block_of_pairs
from orchestrator.reports.columns import MARKS, OTHER_MARKS
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.html.escape import escape_value, round_figure, script_data
from orchestrator.reports.summary import sentences
from orchestrator.results.run import Run
from tests.support import page_runs as runs
from tests.support import scenes
from tests.support.builders import (
    MS,
    OLD,
    arm,
    case,
    comparison,
    evaluation,
    manifest,
    plan,
    rows,
    run_folder,
    target,
    version_pair,
    write_stream,
)

VOID = {"meta", "input", "br", "link"}
FOLDER = Path(html.__file__).parent
ATTACKS = ("</script><img src=x onerror=alert(1)>", '"><b onclick="x">', "<!--<script>", "&lt;i&gt;", "{{7*7}}{% x %}")
SCENES = {
    "everything": scenes.everything,
    "exploratory": scenes.exploratory,
    "hostile": scenes.hostile,
    "poisoned": partial(scenes.poisoned, ATTACKS[0]),
    "one version": lambda: replace(
        evaluation(), plan=plan([case()], (OLD,)), manifest=manifest((OLD,)), arms=(arm(case(), OLD),), comparisons=()
    ),
    "nothing": lambda: replace(evaluation(), arms=(), comparisons=()),
}


@dataclass
class Element:
    tag: str
    attrs: dict[str, str | None]
    parent: "Element | None"
    inside: list["Element | str"] = field(default_factory=list)

    def all(self, *tags: str) -> list["Element"]:
        own = [one for one in self.inside if isinstance(one, Element)]
        return [found for one in own for found in (*([one] if not tags or one.tag in tags else []), *one.all(*tags))]

    @property
    def text(self) -> str:
        return "".join(one if isinstance(one, str) else one.text for one in self.inside)


class Reader(HTMLParser):
    """The page as a tree; an element that is not closed where it should be is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = self.here = Element("", {}, None)
        self.feed(text)
        self.close()
        assert self.here is self.root, f"<{self.here.tag}> is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        made = Element(tag, dict(attrs), self.here)
        self.here.inside.append(made)
        if tag not in VOID:
            self.here = made

    def handle_endtag(self, tag: str) -> None:
        assert self.here.tag == tag, f"</{tag}> closes <{self.here.tag}>"
        assert self.here.parent is not None
        self.here = self.here.parent

    def handle_data(self, data: str) -> None:
        self.here.inside.append(data)


def written(of: Evaluation) -> str:
    return html.render_run_page(Run(Path("run"), of, (), ()), html.Calls())


@cache
def read(scene: str) -> Element:
    return Reader(written(SCENES[scene]())).root


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Element:
    """The page of a run folder, with replicates and calls."""
    return Reader(html.make_page(runs.everything(tmp_path_factory.mktemp("run") / "run"))[0]).root


def with_id(root: Element, id: str) -> Element:
    return next(one for one in root.all() if one.attrs.get("id") == id)


def script(root: Element, id: str) -> object:
    return json.loads(with_id(root, id).text)


def words(element: Element) -> str:
    return re.sub(r"\s+", " ", element.text)


def test_every_verdict_is_told_by_word_and_mark(measured: Element):
    table = words(with_id(measured, "results"))
    for verdict in get_args(VerdictName):
        assert f"{MARKS[verdict]} {verdict}" in table
    assert f"{OTHER_MARKS['refused']} refused" in table
    assert f"{OTHER_MARKS['baseline']} baseline" in table
    assert f"{OTHER_MARKS['died']} died" in words(with_id(measured, "missing"))


def test_slight_differences_and_few_rounds_are_told_as_what_they_are():
    slight, few = case("slight"), case("few")
    of = evaluation(
        plan=plan([slight, few]),
        arms=tuple(arm(one, version) for one in (slight, few) for version in (OLD, "2.0.0")),
        comparisons=(
            comparison(version_pair(slight), 1.02, size="slight"),
            comparison(version_pair(few), 1.5, "inconclusive", "too few rounds", ci_low=None, ci_high=None, rounds=3),
        ),
    )
    page = Reader(written(of)).root
    rows = [words(row) for row in with_id(page, "results-table").all("tr")[1:]]
    assert "△ slightly slower" in rows[1]
    assert "? inconclusive why too few rounds 1.50x" in rows[3]
    labels = [element.attrs["aria-label"] for element in page.all() if "Ratios of times" in str(element.attrs)]
    assert any(label.endswith("2.0.0: 1.02x (0.99-1.05), slightly slower.") for label in labels)
    assert any(label.endswith("2.0.0: 1.50x, inconclusive.") for label in labels)


def test_every_arm_has_a_row_with_its_figures_and_its_reasons():
    page, of = read("everything"), scenes.everything()
    found = [words(row) for row in with_id(page, "results-table").all("tr")[1:]]
    assert len(found) == len(of.arms)
    assert "2.13.0 ▲ slower" in found[2]
    assert "250x" in found[2]
    assert "1.35 s" in found[2]
    assert "no steady state: later calls take +12.0% against earlier ones" in found[2]
    assert "too noisy: 6 rounds show slowdowns from 12% on" in found[1]
    assert "refused why tf.function has no jit switch before TensorFlow 2.1." in found[6]
    told = words(page)
    for one in (*of.arms, *of.comparisons):
        assert one.reason in told


def test_comparisons_inside_a_version_have_a_table_of_their_own():
    found = [words(row) for row in with_id(read("everything"), "inside-table").all("tr")[1:]]
    assert len(found) == 3
    assert "mode=graph against mode=eager (loop=fit model=small)" in found[0]
    assert "1.14.0 ▼ faster" in found[0]
    assert "0.87x" in found[0]


def test_metrics_that_changed_and_results_that_differ_have_a_table():
    root = read("everything")
    memory = [words(row) for row in with_id(root, "memory-matrix").all("tr")[1:]]
    assert "▲ more 1.84x" in memory[0]
    [first, other] = [words(row) for row in with_id(root, "results-matrix").all("tr")[1:]]
    assert "≈ equal within tolerance 2e-07" in first
    assert "≠ differs 3.1%" in first
    assert "? not comparable" in other
    # Where nothing changed there is a sentence.
    quiet = replace(scenes.everything(), metrics={}, outputs=())
    ids = {element.attrs.get("id") for element in Reader(written(quiet)).root.all("table")}
    assert ids.isdisjoint({"memory-matrix", "results-matrix"})


def test_the_summary_and_the_warnings_stand_before_the_results():
    of = replace(scenes.everything(), broken=("a stream is broken",))
    page = words(Reader(written(of)).root.all("main")[0])
    told = [*sentences(of), "a stream is broken", *of.warnings, "All figures"]
    places = [page.index(one) for one in told]
    assert places == sorted(places)


def test_what_was_measured_after_the_error_was_spent_is_marked():
    assert words(with_id(read("exploratory"), "results")).count("exploratory: more rounds were taken") == 2
    summary = words(with_id(read("exploratory"), "summary"))
    assert summary.count("*") == words(with_id(read("exploratory"), "across-matrix")).count("*") + 1
    assert "* exploratory: measured after the error of 5 % was spent; a new run can confirm it" in summary


def test_the_summary_has_the_mean_of_the_cases_that_all_versions_have():
    assert "geometric mean of 2 cases2.00x 1.94–2.060.87x" in words(with_id(read("everything"), "across-matrix"))
    lacking = Reader(written(replace(scenes.everything(), means=()))).root
    assert "geometric mean" not in words(with_id(lacking, "across-matrix"))
    assert "no geometric mean: no two cases have an interval in every version" in words(with_id(lacking, "summary"))


@pytest.mark.parametrize(("drifting", "marked"), [(0, "~ 11.0 ms"), (1, "2.00x ~")])
def test_times_that_do_not_settle_are_marked_in_the_summary(drifting: int, marked: str):
    of, versions = case("train_loop"), ("1.14.0", "2.0.0")
    arms = [arm(of, version, time=time) for version, time in zip(versions, (11.0, 22.0), strict=True)]
    arms[drifting] = replace(arms[drifting], drift=Drift(rise=0.2))
    found = comparison(version_pair(of, *versions), 2.0, "slower")
    page = written(evaluation(plan=plan([of], versions), arms=tuple(arms), comparisons=(found,)))
    summary = words(with_id(Reader(page).root, "summary"))
    assert marked in summary
    assert "~ not settled: its calls do not reach a steady state" in summary
    assert summary.count("~") == 2


def test_refusals_and_deaths_are_listed_with_their_reasons(measured: Element):
    table = words(with_id(measured, "missing"))
    assert table.count(runs.NO_JIT) == 2
    assert runs.KILLED in table


def test_the_command_is_quoted_for_a_shell():
    of = replace(evaluation(), manifest=manifest(command=("run", "--case", "train_loop[mode=eager|graph]")))
    assert "tfcompare run --case 'train_loop[mode=eager|graph]'" in with_id(Reader(written(of)).root, "reproduce").text


def test_facts_of_environments_say_where_they_differ():
    workers = {"1.14.0": {"python": "3.7.16"}, "2.0.0": {"python": "3.7.16"}, "2.13.0": {"python": "3.11.7"}}
    of = replace(scenes.everything(), manifest=manifest(scenes.VERSIONS, workers=workers))
    facts = {words(row.all("th")[0]): words(row) for row in with_id(Reader(written(of)).root, "machine").all("tr")[1:]}
    assert "differs" in facts["python"]
    assert "differs" not in facts["kind"]


def test_a_margin_of_its_own_is_told_and_drawn():
    both, loose = evaluation(), 0.25
    pair = replace(both.comparisons[0].pair, margin=loose)
    page = Reader(written(replace(both, comparisons=(replace(both.comparisons[0], pair=pair),)))).root
    assert "judged against a margin of 25%" in words(with_id(page, "results"))
    assert "the shaded band the margin of 25%." in words(with_id(page, "case-0"))
    # From 1 / 1.25 to 1.25, beside the line at 1.
    forest = next(one for one in with_id(page, "case-0").all("figure") if one.attrs["data-kind"] == "forest")
    [band] = [one.attrs["d"] or "" for one in forest.all("path") if one.attrs.get("class") == "band"]
    [middle] = [one.attrs["d"] or "" for one in forest.all("path") if one.attrs.get("class") == "one"]
    left, right = (int(re.findall(r"\d+", band)[place]) for place in (0, 2))
    assert right - int(re.findall(r"\d+", middle)[0]) == pytest.approx(int(re.findall(r"\d+", middle)[0]) - left, abs=1)
    assert right - left > 100


def test_a_case_holds_its_replicates_and_calls(measured: Element):
    data = script(measured, "data-case-1")
    assert data["targets"] == list(runs.VERSIONS)
    assert data["numbers"] == list(range(1, runs.ROUNDS + 1))
    assert [len(times) for times in data["times"]] == [runs.ROUNDS] * 3
    phases = next(one for one in with_id(measured, "case-1").all("figure") if one.attrs["data-kind"] == "phases")
    builds = next(one for one in phases.all("g") if "phase-build" in str(one.attrs["class"]))
    assert builds.all("title")[0].text == "500 ms"
    rising, level = middles(measured, "case-1")[2], middles(measured, "case-1")[0]
    assert len(rising) == 40
    assert rising[-1] - rising[0] > 200
    assert abs(level[-1] - level[0]) < 40


def middles(page: Element, case: str) -> list[list[int]]:
    """The lines of calls over time, in thousandths."""
    drawings = [one for one in with_id(page, case).all("svg") if "data-width" in one.attrs]
    paths = [
        next(path.attrs["d"] or "" for path in one.all("path") if path.attrs["class"] == "line") for one in drawings
    ]
    return [[-sum(steps) for steps in accumulate_pairs(list(map(int, re.findall(r"-?\d+", d))))] for d in paths]


def accumulate_pairs(figures: list[int]) -> list[list[int]]:
    """The moves upwards until each point."""
    return [figures[1 : 2 * point + 2 : 2] for point in range(len(figures) // 2)]


def test_each_plot_says_in_words_what_it_shows_and_what_was_summed_up(measured: Element):
    section = with_id(measured, "case-1")
    labels = [one.attrs["aria-label"] or "" for one in section.all("div") if one.attrs.get("role") == "img"]
    assert len(labels) == 4
    for label in labels:
        assert "2.13.0" in label
        assert "ms" in label or "%" in label or "interval" in label
    assert "Each point is one call." in words(section)


def test_a_replicate_of_many_calls_is_summed_up_and_the_caption_says_so(tmp_path: Path):
    of, asked = case(style="eager"), plan([case(style="eager")])
    run = run_folder(tmp_path / "run", asked)
    for place, version in enumerate(asked.targets):
        batches = [rows(of, version, round=1, replicate=place + 1, bursts=[MS] * 1000)]
        write_stream(run.settled / f"{version}-1.arrow", batches)
    page = Reader(html.make_page(run.path)[0]).root
    assert f"a point is the median of 16 calls of {asked.targets[0]}" in words(with_id(page, "case-0"))
    assert len(middles(page, "case-0")[0]) == 63


def test_the_run_comes_back_with_the_page_and_a_broken_stream_is_told(tmp_path: Path):
    path = runs.everything(tmp_path / "run")
    (path / "streams" / "9-1.arrow").write_bytes(b"no stream")
    text, run = html.make_page(path)
    assert len(run.evaluation.broken) == 1
    assert "is not an Arrow stream" in words(with_id(Reader(text).root, "summary"))


@pytest.mark.parametrize("scene", SCENES)
def test_headings_are_in_order_and_there_is_one_title(scene: str):
    levels = [int(one.tag[1]) for one in read(scene).all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


@pytest.mark.parametrize("scene", SCENES)
def test_ids_are_unique_and_all_that_refers_to_one_finds_it(scene: str):
    page = read(scene)
    ids = [one.attrs["id"] for one in page.all() if "id" in one.attrs]
    assert len(set(ids)) == len(ids)
    for one in page.all():
        for name in ("for", "aria-labelledby"):
            assert one.attrs.get(name) in {None, *ids}
        if (target := one.attrs.get("href")) is not None:
            assert target.startswith("#")
            assert target[1:] in ids


@pytest.mark.parametrize("scene", SCENES)
def test_every_field_button_region_and_heading_cell_has_a_name(scene: str):
    page = read(scene)
    labelled = {one.attrs["for"] for one in page.all("label") if words(one).strip()}
    for one in page.all("input", "select"):
        assert one.attrs["id"] in labelled
    for one in page.all("button", "a", "summary"):
        assert words(one).strip()
    for one in page.all():
        if one.attrs.get("role") in ("img", "region", "search", "note"):
            assert one.attrs["aria-label"]
    for one in page.all("th"):
        assert one.attrs["scope"] in ("row", "col", "rowgroup")
    assert page.all("html")[0].attrs["lang"] == "en"


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_from_elsewhere_is_never_markup(attack: str):
    of = scenes.poisoned(attack)
    of = replace(
        of, manifest=replace(of.manifest, command=("run", attack), workers={target(OLD): {f"x{attack}": attack}})
    )
    page, harmless = Reader(written(of)).root, Reader(written(scenes.poisoned("x"))).root
    assert {one.tag for one in page.all()} == {one.tag for one in harmless.all()}
    assert {name for one in page.all() for name in one.attrs} == {name for one in harmless.all() for name in one.attrs}
    assert len(page.all("script")) == len(harmless.all("script"))
    text = words(page)
    for told in (f"warned{attack}", f"broken{attack}", f"died{attack}", f"refused{attack}", f"noisy{attack}"):
        assert told in text
    assert any(title.text.startswith(f"w{attack}") for title in with_id(page, "overview").all("title"))


def test_what_cannot_be_printed_is_shown_and_what_ends_a_script_is_escaped():
    page = written(scenes.poisoned("a\u202eb\x1b[31m\x00\ud800c\u2028d"))
    assert not re.search("[\u202e\x1b\x00\ud800\u2028]", page)
    assert "a\\u202eb\\x1b[31m\\x00\\ud800c\\u2028d" in page
    assert script_data(["</script>&\u2028"]) == '["\\u003c/script\\u003e\\u0026\\u2028"]'
    assert json.loads(script_data(["</script>&\u2028"])) == ["</script>&\u2028"]
    assert escape_value("two\n lines") == "two lines"


def test_figures_are_short_and_always_json():
    assert [round_figure(value) for value in (1.23456, 1353.2, 12345678.0, None, float("nan"), float("inf"))] == [
        1.235, 1353, 12350000, None, None, None,
    ]  # fmt: skip


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(measured: Element):
    policy = next(one.attrs["content"] or "" for one in measured.all("meta") if "http-equiv" in one.attrs)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    running = [one for one in measured.all("script") if one.attrs.get("type") != "application/json"]
    assert rules == {
        "default-src": "'none'",
        "script-src": " ".join(map(digest, running)),
        "style-src": digest(measured.all("style")[0]),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(running) == 1
    for one in measured.all():
        assert not {"src", "style", "srcset"} & one.attrs.keys()
        assert not any(name.startswith("on") for name in one.attrs)


def digest(of: Element) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(of.text.encode()).digest()).decode()}'"


def test_the_dark_theme_is_the_same_by_preference_and_by_button():
    light, by_preference, by_button = themes()
    assert by_preference == by_button
    assert by_button.keys() == light.keys()


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_by_at_least_four_and_a_half_to_one(theme: int):
    colours = themes()[theme]
    words = ("ink", "dim", "accent", "slower", "faster", "same", "inconclusive", "refused")
    pairs = [(word, ground) for word in words for ground in ("paper", "raised")] + [("ink", "warn"), ("paper", "ink")]
    for word, ground in pairs:
        assert contrast_ratio(colours[word], colours[ground]) >= 4.5, (word, ground)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_marks_of_plots_stand_out_by_at_least_three_to_one(theme: int):
    colours = themes()[theme]
    for mark in ("build", "first", "second", "burst", "slower", "faster", "same", "inconclusive", "accent"):
        assert contrast_ratio(colours[mark], colours["paper"]) >= 3


def themes() -> list[dict[str, str]]:
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", style)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks]


def contrast_ratio(one: str, other: str) -> float:
    """As WCAG 2 has it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_what_draws_is_not_imported_before_a_page_is_asked_for():
    late = ["altair", "jinja2", "vl_convert"]
    code = f"import sys, orchestrator.reports.html; print([name for name in {late} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("scene", ["everything", "exploratory"])
def test_a_terminal_and_the_page_show_the_same_cells(scene: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "400")
    of = SCENES[scene]()
    drawn, count = matrix.render_matrix(of), 0
    for block in (block_of_cases(of, Arrangement()), block_of_pairs(of, Arrangement())):
        table = words(with_id(read(scene), f"{block.id}-matrix")) if block.targets else ""
        for cell in (row.cell(each) for row in block.rows for each in block.targets):
            shown = f"{cell.mark} {cell.figure:5} {cell.more}{cell.notes}" if cell.verdict else cell.figure or cell.word
            assert shown in drawn
            figure = re.sub(r"(?<=\d)-(?=\d)", "–", cell.more)
            on_page = f"{cell.mark} {cell.word} {cell.figure}{cell.notes} {figure}" if cell.verdict else shown
            assert on_page in table
            count += bool(cell.verdict)
    assert count, "a scene without a verdict shows nothing"
