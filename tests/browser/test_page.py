"""The page in a real browser: it opens without a complaint, filters, sorts, draws, and lets nothing run."""

import base64
import json
import math
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from orchestrator.reports import html
from orchestrator.results.run import load_run
from tests.support import page_runs as runs
from tests.support.browser import (
    WIDTH,
    assert_drawn,
    complaints,
    open_case,
    opened,
    pictured,
    resized,
    themed,
    violations,
)

KINDS = ["spread", "forest", "calls", "phases"]


def rows(browser: WebDriver, table: str = "results-table") -> list[list[str]]:
    """The words of the rows that are shown."""
    script = (
        "return [...document.getElementById(arguments[0]).tBodies[0].rows].filter(row => row.offsetParent)"
        ".map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return browser.execute_script(script, table)


def column(browser: WebDriver, header: str) -> list[str]:
    heads = [head.text for head in browser.find_elements(By.CSS_SELECTOR, "#results-table thead button")]
    place = next(place for place, head in enumerate(heads) if head.startswith(header))
    return [row[place] for row in rows(browser)]


def head(browser: WebDriver, header: str) -> WebElement:
    found = browser.find_elements(By.CSS_SELECTOR, "#results-table thead button")
    return next(button for button in found if button.text.startswith(header))


def test_it_opens_from_a_file_without_complaints_and_asks_the_network_for_nothing(browser, page: str):
    opened(browser, page)
    open_case(browser, "case-0")
    assert complaints(browser) == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    assert set(asked) <= {page, "about:blank"}


def test_the_page_allows_no_evaluation(browser, page: str):
    opened(browser, page)
    browser.execute_script("setTimeout('window.evaluated = 1')")
    WebDriverWait(browser, 5).until(lambda browser: "unsafe-eval" in "".join(complaints(browser)))
    assert browser.execute_script("return window.evaluated === undefined")


def test_the_text_filter_keeps_the_rows_with_all_its_words(browser, page: str):
    opened(browser, page)
    everything = rows(browser)
    browser.find_element(By.ID, "filter-text").send_keys("FIT graph")
    found = rows(browser)
    assert [row[1:3] for row in found] == [["loop=fit mode=graph", version] for version in runs.VERSIONS]
    shown = "return [...document.querySelectorAll('details.case')].filter(one => one.offsetParent).length"
    assert browser.execute_script(shown) == 1
    assert "rows shown" in browser.find_element(By.ID, "filter-count").text
    browser.find_element(By.CSS_SELECTOR, "#filter button[type=reset]").click()
    WebDriverWait(browser, 5).until(lambda browser: rows(browser) == everything)


@pytest.mark.parametrize("verdict", ["slower", "faster", "same", "inconclusive", "refused", "baseline"])
def test_the_verdict_filter_keeps_its_verdict_only(browser, page: str, verdict: str):
    opened(browser, page)
    Select(browser.find_element(By.ID, "filter-verdict")).select_by_visible_text(verdict)
    found = column(browser, "Verdict")
    assert found
    assert all(verdict in told.splitlines()[0] for told in found)


def test_filters_by_version_and_workload_add_up(browser, page: str):
    opened(browser, page)
    Select(browser.find_element(By.ID, "filter-target")).select_by_visible_text("2.0.0")
    assert set(column(browser, "Target")) == {"2.0.0"}
    Select(browser.find_element(By.ID, "filter-workload")).select_by_visible_text("power")
    assert {(row[0], row[2]) for row in rows(browser)} == {("power", "2.0.0")}
    assert len(rows(browser)) == len(runs.POWERS)


def test_a_header_sorts_both_ways_with_what_has_no_figure_last(browser, page: str):
    opened(browser, page)
    button = head(browser, "Ratio")
    for direction in ("ascending", "descending"):
        button.click()
        assert button.find_element(By.XPATH, "..").get_attribute("aria-sort") == direction
        told = column(browser, "Ratio")
        ratios = [float(one.removesuffix("x")) for one in told if one]
        assert len(ratios) > 5
        assert ratios == sorted(ratios, reverse=direction == "descending")
        assert told[len(ratios) :] == [""] * (len(told) - len(ratios))
    sorted_by = browser.find_elements(By.CSS_SELECTOR, "#results-table th:not([aria-sort=none])[aria-sort]")
    assert len(sorted_by) == 1


def test_sorting_and_opening_work_by_keyboard(browser, page: str):
    opened(browser, page)
    button = head(browser, "Target")
    button.send_keys(Keys.ENTER)
    assert column(browser, "Target") == sorted(column(browser, "Target"), key=lambda one: runs.VERSIONS.index(one))
    button.send_keys(Keys.SPACE)
    assert column(browser, "Target")[0] == "2.13.0"
    browser.find_element(By.CSS_SELECTOR, "#case-1 > summary").send_keys(Keys.ENTER)
    assert_drawn(browser, "#case-1")


def test_a_case_has_its_plots_as_wide_as_their_place(browser, page: str):
    opened(browser, page)
    case = open_case(browser, "case-0")
    plots = browser.find_elements(By.CSS_SELECTOR, f"{case} .plot")
    assert [plot.get_attribute("data-kind") for plot in plots] == KINDS
    for plot in plots:
        drawing = plot.find_element(By.CSS_SELECTOR, ".drawing")
        assert drawing.get_attribute("role") == "img"
        assert "2.13.0" in drawing.get_attribute("aria-label")
        assert drawing.size["height"] > 60
        assert plot.find_element(By.CSS_SELECTOR, ".body").size["width"] > 250
    titles = browser.find_elements(By.CSS_SELECTOR, f"{case} [data-kind=spread] .dots title")
    assert len(titles) == len(runs.VERSIONS)
    dots = [title.find_element(By.XPATH, "..").get_attribute("d").count("m") for title in titles]
    assert dots == [runs.ROUNDS] * len(runs.VERSIONS)


def test_marks_stand_where_their_ratios_are_and_in_their_rows(browser, page: str):
    opened(browser, page)
    case = open_case(browser, "case-0")
    middle = "const box = arguments[0].getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]"
    marks = browser.find_elements(By.CSS_SELECTOR, f"{case} [data-kind=forest] .mark")
    rows = browser.find_elements(By.CSS_SELECTOR, f"{case} [data-kind=forest] .names span")
    told = browser.find_element(By.CSS_SELECTOR, f"{case} [data-kind=forest] .drawing").get_attribute("aria-label")
    assert len(marks) == len(rows) > 0
    ratios = []
    for mark, row in zip(marks, rows, strict=True):
        title = mark.find_element(By.TAG_NAME, "title").get_attribute("textContent")
        name, _, figure = title.partition(": ")
        assert name == row.text
        assert f"{name}: {figure.split()[0]}" in told
        ratios.append((float(figure.split("x")[0]), browser.execute_script(middle, mark)[0]))
        assert abs(browser.execute_script(middle, mark)[1] - browser.execute_script(middle, row)[1]) < 4
    assert sorted(ratios) == sorted(ratios, key=lambda each: each[1])


def test_the_figures_of_the_plots_stand_in_tables_beneath(browser, page: str):
    opened(browser, page)
    case = open_case(browser, "case-0")
    for name, least in (("rounds", runs.ROUNDS), ("calls", 40 * len(runs.VERSIONS))):
        inner = f"{case} details[data-table={name}]"
        browser.find_element(By.CSS_SELECTOR, f"{inner} > summary").click()
        WebDriverWait(browser, 5).until(lambda browser, at=inner: browser.find_elements(By.CSS_SELECTOR, f"{at} table"))
        assert len(browser.find_elements(By.CSS_SELECTOR, f"{inner} tbody tr")) == least


def test_the_table_of_calls_has_the_figures_that_were_measured(browser, page: str):
    opened(browser, page)
    case = open_case(browser, "case-1")
    browser.find_element(By.CSS_SELECTOR, f"{case} details[data-table=calls] > summary").click()
    script = (
        "return [...document.querySelectorAll(arguments[0])].map(row => [...row.cells].map(one => one.textContent))"
    )
    found = browser.execute_script(script, f"{case} details[data-table=calls] tbody tr")
    calls = html.Calls()
    run = load_run(Path(page.removeprefix("file://")).parent, calls.add)
    courses = calls.courses(replicate.number for replicate in run.replicates)
    arms = [arm for arm in run.evaluation.arms if arm.case == run.evaluation.plan.cases[1] and arm.key in courses]
    expected = [
        [str(arm.target), str(call), *(f"{value - 1:+.1%}" for value in (middle, low, high))]
        for arm in arms
        for call, (low, middle, high) in enumerate(
            zip(courses[arm.key].low, courses[arm.key].middle, courses[arm.key].high, strict=True), 1
        )
        if not math.isnan(middle)
    ]
    assert len(found) == len(expected) > 100
    assert len({tuple(row[2:]) for row in found}) > 50
    for row, right in zip(found, expected, strict=True):
        assert row[:2] == right[:2]
        for figure, exact in zip(row[2:], right[2:], strict=True):
            assert abs(float(figure[:-1]) - float(exact[:-1])) < 0.11


def test_a_link_in_the_table_opens_its_case(browser, page: str):
    opened(browser, page)
    browser.find_element(By.CSS_SELECTOR, "#results-table a[href='#case-2']").click()
    assert_drawn(browser, "#case-2")
    assert browser.find_element(By.ID, "case-2").get_attribute("open") is not None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_follows_the_reader_and_the_button_turns_it(browser, page: str, theme: str, screenshots: Path):
    themed(browser, theme)
    opened(browser, page)
    open_case(browser, "case-1")
    pictured(browser, screenshots / f"{theme}.png")
    paper = "return getComputedStyle(document.body).backgroundColor"
    first = browser.execute_script(paper)
    assert (first == "rgb(255, 255, 255)") == (theme == "light")
    label = "return getComputedStyle(document.querySelector('#case-1 svg .tick')).fill"
    before = browser.execute_script(label)
    browser.find_element(By.ID, "theme").click()
    assert (browser.execute_script(paper) == "rgb(255, 255, 255)") == (theme == "dark")
    assert browser.execute_script(label) != before
    browser.find_element(By.ID, "theme").click()
    assert browser.execute_script(paper) == first


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_page_never_scrolls_sideways(browser, page: str, width: int, screenshots: Path):
    resized(browser, width)
    opened(browser, page)
    open_case(browser, "case-0")
    assert (
        browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        <= 0
    )
    assert browser.execute_script("return innerWidth") == width
    pictured(browser, screenshots / f"narrow-{width}.png")


def test_a_plot_follows_the_width_of_the_window_and_its_text_keeps_its_size(browser, page: str):
    opened(browser, page)
    open_case(browser, "case-0")
    size = "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.width, box.height]"
    body, tick = "#case-0 [data-kind=spread] .body", "#case-0 [data-kind=spread] .tick"
    before, text = browser.execute_script(size, body), browser.execute_script(size, tick)
    resized(browser, 360)
    assert browser.execute_script(size, body)[0] < before[0]
    assert browser.execute_script(size, tick) == text
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


def test_hostile_names_run_nothing_and_make_no_elements(browser, hostile_page: str, page: str, screenshots: Path):
    opened(browser, page)
    kinds = "return [...new Set([...document.querySelectorAll('body *')].map(one => one.localName))].sort()"
    usual = set(browser.execute_script(kinds))
    opened(browser, hostile_page)
    for case in ("case-0", "case-1"):
        open_case(browser, case)
        for inner in browser.find_elements(By.CSS_SELECTOR, f"#{case} .figures > summary"):
            inner.click()
    pictured(browser, screenshots / "hostile.png")
    assert browser.execute_script("return window.pwned === undefined")
    assert set(browser.execute_script(kinds)) <= usual | {"ul", "li", "table", "thead", "tbody", "tr", "td", "th"}
    assert browser.execute_script("return document.images.length") == 0
    assert browser.execute_script("return document.querySelectorAll('script:not([type])').length") == 1
    assert complaints(browser) == []
    body = browser.find_element(By.TAG_NAME, "body").text
    assert "onerror=" in body
    assert "\\u202e" in body
    assert "{{7*7}}" in body


def test_hostile_names_do_not_make_a_phone_scroll_sideways(browser, hostile_page: str):
    resized(browser, 360)
    opened(browser, hostile_page)
    open_case(browser, "case-0")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


def test_printed_all_cases_are_open_and_the_controls_are_gone(browser, page: str, screenshots: Path):
    themed(browser, "dark")
    opened(browser, page)
    browser.find_element(By.ID, "open-all").click()
    assert_drawn(browser, "details.case")
    browser.find_element(By.ID, "close-all").click()
    themed(browser, "dark", media="print")
    assert not browser.find_element(By.ID, "filter").is_displayed()
    assert not browser.find_element(By.ID, "theme").is_displayed()
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    seen = "return [...document.querySelectorAll('details.case table')].map(one => one.checkVisibility())"
    assert set(browser.execute_script(seen)) == {True}
    pictured(browser, screenshots / "printed.png")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    file = screenshots / "printed.pdf"
    file.write_bytes(base64.b64decode(printed["data"]))
    assert file.read_bytes().startswith(b"%PDF-")


def test_on_paper_heads_repeat_links_have_addresses_and_no_name_breaks(browser, page: str):
    resized(browser, 700)
    opened(browser, page)
    themed(browser, "light", media="print")
    style = "return getComputedStyle(document.querySelector(arguments[0]), arguments[1])[arguments[2]]"
    assert browser.execute_script(style, "#results-table thead", None, "display") == "table-header-group"
    assert browser.execute_script(style, "#results-table thead", None, "breakInside") == "avoid"
    assert browser.execute_script(style, "#results-table th button", None, "display") == "none"
    assert browser.execute_script(style, "#results-table th", "::before", "content") == '"Workload"'
    assert browser.execute_script(style, ".case > summary", "::before", "content") == "none"
    link = (
        "const a = document.createElement('a'); a.href = 'https://example.org/x'; document.body.append(a); a.id = 'x'"
    )
    browser.execute_script(link)
    assert "https://example.org/x" in browser.execute_script(style, "#x", "::after", "content")
    # As wide as its longest word: nothing in a name had to break.
    narrow = (
        "return [...document.querySelectorAll('.matrix th[scope=row], #results-table tbody th')]"
        ".filter(one => one.scrollWidth > one.clientWidth + 1).length"
    )
    assert browser.execute_script(narrow) == 0


def test_without_javascript_the_results_are_there_and_the_controls_are_not(browser, page: str, screenshots: Path):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page)
        text = browser.find_element(By.TAG_NAME, "main").text
        assert "slower" in text
        assert runs.NO_JIT in text
        assert not browser.find_element(By.ID, "filter").is_displayed()
        assert browser.find_element(By.CSS_SELECTOR, "#overview .mark").is_displayed()
        pictured(browser, screenshots / "no-javascript.png")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_mark_tells_its_figures_as_text(browser, hostile_page: str):
    opened(browser, hostile_page)
    title = browser.find_element(By.CSS_SELECTOR, "#overview .mark title")
    assert ", same" in title.get_attribute("textContent")
    assert "onerror=" in title.get_attribute("textContent")
    assert browser.execute_script("return arguments[0].children.length", title) == 0


def test_the_verdicts_come_first_as_a_table_that_leads_to_the_cases(browser, page: str):
    opened(browser, page)
    marks = [one.text for one in browser.find_elements(By.CSS_SELECTOR, "#across-matrix tbody .mark")]
    assert marks[0] in "▲▼"
    first = "return document.querySelector('#across-matrix tbody').getBoundingClientRect().top"
    table = "return document.getElementById('results').getBoundingClientRect().top"
    assert browser.execute_script(first) < browser.execute_script(table)
    browser.find_element(By.CSS_SELECTOR, "#across-matrix a").click()
    opened_cases = browser.find_elements(By.CSS_SELECTOR, "details.case[open]")
    assert len(opened_cases) == 1


def test_a_phone_shows_a_verdict_within_two_screens(browser, page: str):
    resized(browser, 390)
    opened(browser, page)
    top = "return document.querySelector('#across-matrix tbody .verdict').getBoundingClientRect().top + scrollY"
    assert browser.execute_script(top) < 1000
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_a_phone_cuts_no_column_of_the_verdicts(browser, page: str, screenshots: Path):
    resized(browser, 390)
    opened(browser, page)
    beyond = """
        const table = document.getElementById('across-matrix'), room = table.closest('.scroll');
        return [...table.rows].flatMap(row => [...row.cells])
            .filter(cell => cell.getBoundingClientRect().right > room.getBoundingClientRect().right + 1)
            .map(cell => cell.innerText);
    """
    assert browser.execute_script(beyond) == []
    heads = browser.find_elements(By.CSS_SELECTOR, "#across-matrix thead th")
    assert [head.text for head in heads] == ["Case", "1.14.0", "2.0.0", "2.13.0"]
    pictured(browser, screenshots / "phone-verdicts.png")


def test_the_plot_names_every_case_in_every_version(browser, page: str):
    opened(browser, page)
    names = [row.text for row in browser.find_elements(By.CSS_SELECTOR, "#across-matrix th[scope=row] a")]
    shown = browser.find_elements(By.CSS_SELECTOR, "#overview .names span, #overview b")
    texts = [one.get_attribute("textContent") for one in shown]
    assert names
    assert any(name in texts for name in names)
    assert {"2.0.0", "2.13.0"} <= set(texts)


@pytest.mark.parametrize("width", [WIDTH, 360])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rules_of_accessibility_are_kept(browser, page: str, theme: str, width: int):
    themed(browser, theme)
    resized(browser, width)
    opened(browser, page)
    open_case(browser, "case-0")
    assert violations(browser) == []
