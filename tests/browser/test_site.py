"""The site of a history in a real browser: read, filtered, walked through by keyboard, on a phone, without a script."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from orchestrator.history import site
from orchestrator.history.model import AlarmOpened, StateChanged
from orchestrator.history.site import wording
from tests.support.browser import complaints, pictured, resized, themed, violations
from tests.support.nights import FIRST, history
from tests.support.sites import HOSTILE, alarm, at, changed, kept

CASE, OTHER = "power[style=function]", "train_loop[data=small,input=numpy,loop=train_on_batch,mode=graph,model=small]"
PAGES = ("index.html", "alarms.html", wording.page_of(CASE), wording.page_of(OTHER))
SIDEWAYS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("site")
    points = changed(history(120, [CASE, OTHER], steps={(CASE, "2.13.0"): {40: 1.1, 90: 0.9}}), 70, image="other")
    dead = [
        replace(one, effect=None, error=None, rounds=0, outcome="died", reason="killed by SIGKILL")
        if one.case == OTHER and one.target == "2.0.0" and 20 <= (one.night - FIRST).days < 30
        else one
        for one in points
    ]
    store = kept(path / "history", [*dead, *history(20, [CASE], seed=2, host="other-host")])
    (store.runs / dead[-1].run).mkdir(parents=True)
    (store.runs / dead[-1].run / "report.html").write_text("<!doctype html><title>The run</title>")
    store.record(AlarmOpened(at=at(40), alarm=alarm(CASE, surroundings=("kernel: 6.1 -> 6.6",))))
    store.record(StateChanged(at=at(41), alarm="a1", state="known", note="It is the new allocator."))
    store.record(AlarmOpened(at=at(10), alarm=alarm(OTHER, id="a0", number=10)))
    store.record(StateChanged(at=at(15), alarm="a0", state="recovered"))
    site.build_site(store, path / "site")
    return path / "site"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile")
    case = f"case{HOSTILE}"
    points = [
        replace(
            one, case=case, build=f"b{HOSTILE}", suite=HOSTILE, surroundings=replace(one.surroundings, kernel=HOSTILE)
        )
        for one in history(3, ["x"], versions=(f"2{HOSTILE}",), reference=f"1{HOSTILE}", host=f"h{HOSTILE}")
    ]
    store = kept(path / "history", points)
    told = alarm(case, surroundings=(HOSTILE,), run=HOSTILE, reproduce=HOSTILE, bisect=HOSTILE)
    store.record(AlarmOpened(at=at(1), alarm=replace(told, key=replace(told.key, host=HOSTILE))))
    store.record(StateChanged(at=at(2), alarm="a1", state="muted", note=HOSTILE))
    site.build_site(store, path / "site")
    return path / "site"


def opened(browser: WebDriver, folder: Path, page: str = "index.html", place: str = "") -> WebDriver:
    browser.get("about:blank")
    browser.get((folder / page).as_uri() + place)
    return browser


def rows(browser: WebDriver) -> list[str]:
    script = (
        "return [...document.querySelectorAll('.cells tbody tr')].filter(one => one.offsetParent)"
        ".map(one => one.cells[0].innerText)"
    )
    return browser.execute_script(script)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_from_a_file_without_complaints_and_asks_the_network_for_nothing(browser, folder: Path, page: str):
    opened(browser, folder, page)
    assert complaints(browser) == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    assert set(asked) <= {(folder / page).as_uri(), "about:blank"}


def test_the_overview_shows_a_line_a_version_and_leads_to_the_case(browser, folder: Path):
    opened(browser, folder)
    lines = browser.find_elements(By.CSS_SELECTOR, ".cells .spark")
    assert len(lines) == 9
    for line in lines:
        assert line.size["width"] > 80
        assert line.get_attribute("aria-label")
    assert rows(browser) == [CASE, OTHER, CASE]
    verdicts = browser.find_elements(By.CSS_SELECTOR, ".cells b.verdict")
    assert verdicts
    assert {one.get_attribute("class").split()[1] for one in verdicts} <= {"slower", "faster", "same", "inconclusive"}
    plain = browser.find_element(By.CSS_SELECTOR, ".cells .dim").value_of_css_property("color")
    for one in verdicts:
        # The mark and a spoken word say it as well as the colour.
        assert one.find_element(By.CSS_SELECTOR, ".mark").text in "▲▼=?"
        assert one.find_element(By.CSS_SELECTOR, ".spoken").get_attribute("textContent") in one.get_attribute("class")
        assert one.value_of_css_property("color") != plain or "same" in one.get_attribute("class")
    browser.find_element(By.LINK_TEXT, OTHER).click()
    assert browser.find_element(By.TAG_NAME, "h1").text == OTHER
    browser.find_element(By.LINK_TEXT, "Overview").click()
    assert browser.find_element(By.TAG_NAME, "h1").text == "tfcompare, every night"


def test_a_chart_marks_its_steps_its_alarms_and_its_segments(browser, folder: Path, screenshots: Path):
    opened(browser, folder, wording.page_of(CASE))
    chart = next(
        one for one in browser.find_elements(By.CSS_SELECTOR, ".series") if one.find_elements(By.CSS_SELECTOR, ".sign")
    )
    signs = [one.text for one in chart.find_elements(By.CSS_SELECTOR, ".sign")]
    assert signs == ["▲", "▼", "◆"]
    # Told by shape and by words, not by colour alone.
    text = chart.text
    assert "◆ known ▲ 1.10x slower (1.08-1.12) since 2024-02-10" in text
    assert re.search(r"▼ [\d.]+x faster \([\d.-]+\) since 2024-03-31", text)
    assert "2024-03-11: image of the version: venv-made -> other" in text
    for path in ("band", "dots", "level", "cut", "grid"):
        box = chart.find_element(By.CSS_SELECTOR, f"path.{path}").rect
        assert box["width"] > 0 or box["height"] > 100, path
    pictured(browser, screenshots / "site-case.png")


@pytest.mark.parametrize("width", [900, 1200])
def test_no_figure_breaks_and_no_date_is_cut_off(browser, folder: Path, width: int):
    resized(browser, width)
    opened(browser, folder)
    lines = "return [...document.querySelectorAll('.cells .dim')].map(one => one.getClientRects().length)"
    assert set(browser.execute_script(lines)) == {1}
    opened(browser, folder, wording.page_of(CASE))
    beyond = (
        "return [...document.querySelectorAll('.date')].map(one => one.getBoundingClientRect())"
        ".filter(one => one.left < 0 || one.right > document.documentElement.clientWidth).length"
    )
    assert browser.execute_script(beyond) == 0


def test_a_night_is_told_by_pointer_and_by_keyboard(browser, folder: Path):
    opened(browser, folder, wording.page_of(CASE))
    figure = browser.find_element(By.CSS_SELECTOR, ".series")
    body, told = figure.find_element(By.CSS_SELECTOR, ".body"), figure.find_element(By.TAG_NAME, "output")
    ActionChains(browser).move_to_element(body).perform()
    WebDriverWait(browser, 5).until(lambda browser: told.text)
    assert told.text.startswith(("2024-02-29: ", "2024-03-01: "))
    chart = figure.find_element(By.CSS_SELECTOR, ".chart")
    chart.send_keys(Keys.HOME)
    assert told.text.startswith("2024-01-01: ")
    chart.send_keys(Keys.ARROW_RIGHT)
    assert told.text.startswith("2024-01-02: ")
    chart.send_keys(Keys.END)
    assert told.text.startswith("2024-04-29: ")
    chart.send_keys(Keys.ARROW_LEFT)
    row = browser.find_element(By.CSS_SELECTOR, ".nights tbody tr:nth-child(2)")
    cells = browser.execute_script("return [...arguments[0].cells].map(one => one.textContent.trim())", row)
    assert told.text == f"{cells[0]}: {cells[1]}"


def test_the_table_of_nights_opens_and_leads_to_the_run(browser, folder: Path):
    opened(browser, folder, wording.page_of(CASE))
    browser.find_element(By.CSS_SELECTOR, ".nights > summary").send_keys(Keys.ENTER)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".nights:first-of-type tbody tr")) >= 120
    browser.find_element(By.CSS_SELECTOR, ".nights a").click()
    assert browser.title == "The run"


def test_the_filter_keeps_cases_by_their_words_and_by_open_alarms(browser, folder: Path):
    opened(browser, folder)
    browser.find_element(By.ID, "filter-text").send_keys("LOOP graph")
    assert rows(browser) == [OTHER]
    assert browser.find_element(By.ID, "filter-count").text == "1 of 3 rows shown"
    browser.find_element(By.ID, "filter-text").clear()
    browser.find_element(By.ID, "filter-open").send_keys(Keys.SPACE)
    assert rows(browser) == [CASE]


@pytest.mark.parametrize("by", ["size", "alarms"])
def test_cases_are_sorted_by_the_size_of_their_change_and_by_open_alarms(browser, folder: Path, by: str):
    opened(browser, folder)
    assert rows(browser)[:2] == [CASE, OTHER]
    larger = "document.querySelectorAll('.cells tbody tr')[1].dataset[arguments[0]] = 9"
    browser.execute_script(larger, by)
    Select(browser.find_element(By.ID, "sort-by")).select_by_value(by)
    assert rows(browser)[:2] == [OTHER, CASE]
    Select(browser.find_element(By.ID, "sort-by")).select_by_value("name")
    assert rows(browser)[:2] == [CASE, OTHER]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_follows_the_reader_and_is_kept_from_page_to_page(
    browser, folder: Path, theme: str, screenshots: Path
):
    themed(browser, theme)
    opened(browser, folder)
    pictured(browser, screenshots / f"site-{theme}.png")
    paper = "return getComputedStyle(document.body).backgroundColor"
    dots = "return getComputedStyle(document.querySelector('.spark path:last-child')).stroke"
    first, line = browser.execute_script(paper), browser.execute_script(dots)
    assert (first == "rgb(255, 255, 255)") == (theme == "light")
    browser.find_element(By.ID, "theme").click()
    try:
        turned = browser.execute_script(paper)
        assert (turned == "rgb(255, 255, 255)") == (theme == "dark")
        assert browser.execute_script(dots) != line
        browser.find_element(By.LINK_TEXT, "Alarms").click()
        WebDriverWait(browser, 30).until(lambda browser: browser.current_url.endswith("alarms.html"))
        WebDriverWait(browser, 30).until(lambda browser: _looks_like(browser, paper, turned))
    finally:
        browser.execute_script("localStorage.clear()")


def _looks_like(browser, paper: str, wanted: str) -> bool:
    """Whether the page has this colour; if not, load it again, as a busy browser stores a choice a little later."""
    if browser.execute_script(paper) == wanted:
        return True
    browser.refresh()
    return False


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_page_never_scrolls_sideways(browser, folder: Path, page: str, width: int, screenshots: Path):
    resized(browser, width)
    opened(browser, folder, page)
    for inner in browser.find_elements(By.TAG_NAME, "summary"):
        inner.click()
    assert browser.execute_script(SIDEWAYS) <= 0
    pictured(browser, screenshots / f"site-{width}-{PAGES.index(page)}.png")


def test_every_control_is_reached_by_the_keyboard_and_seen_where_it_is(browser, folder: Path):
    opened(browser, folder, wording.page_of(CASE))
    reached = []
    script = (
        "const one = document.activeElement;return [one.localName, one.className, getComputedStyle(one).outlineStyle]"
    )
    for _ in range(25):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        reached.append(tuple(browser.execute_script(script)))
    assert {"a", "button", "div", "summary"} <= {name for name, _, _ in reached}
    assert ("div", "chart", "solid") in reached
    assert {outline for name, _, outline in reached if name != "body"} == {"solid"}


@pytest.mark.parametrize("page", PAGES[:3])
def test_without_javascript_everything_but_the_controls_is_there(browser, folder: Path, page: str):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(browser, folder, page)
        assert "1.10x slower (1.08-1.12)" in browser.find_element(By.TAG_NAME, "main").text
        assert not browser.find_element(By.ID, "theme").is_displayed()
        drawn = browser.find_elements(By.CSS_SELECTOR, ".spark, .body")
        assert all(one.is_displayed() for one in drawn)
        assert bool(drawn) == (page != "alarms.html")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_hostile_names_run_nothing_and_make_no_elements(browser, hostile: Path, screenshots: Path):
    for page in sorted(hostile.rglob("*.html")):
        resized(browser, 360)
        opened(browser, hostile, str(page.relative_to(hostile)))
        for inner in browser.find_elements(By.TAG_NAME, "summary"):
            inner.click()
        assert browser.execute_script("return document.images.length") == 0
        assert browser.execute_script("return document.scripts.length") == 1
        assert complaints(browser) == []
        assert browser.execute_script(SIDEWAYS) <= 0
        body = browser.find_element(By.TAG_NAME, "body").text
        assert "onerror=" in body
        assert "\\u202e" in body
        assert "{{7*7}}" in body
        pictured(browser, screenshots / f"site-hostile-{page.stem[:6]}.png")


def test_printed_it_is_black_on_white(browser, folder: Path):
    themed(browser, "dark", media="print")
    opened(browser, folder, wording.page_of(CASE))
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.find_element(By.ID, "theme").is_displayed()


@pytest.mark.parametrize("page", PAGES[:3])
def test_a_page_is_named_and_structured_for_those_who_cannot_see_it(browser, folder: Path, page: str):
    opened(browser, folder, page)
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = {node["role"]["value"]: node.get("name", {}).get("value") for node in nodes if "role" in node}
    unnamed = [
        node
        for node in nodes
        if not node["ignored"]
        and node["role"]["value"] in ("link", "button", "image", "img", "region", "textbox", "checkbox")
        and not node.get("name", {}).get("value")
    ]
    assert unnamed == []
    assert "main" in named
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].map(one => +one.localName[1])"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rules_of_accessibility_are_kept(browser, folder: Path, page: str, theme: str):
    themed(browser, theme)
    opened(browser, folder, page)
    assert violations(browser) == []
