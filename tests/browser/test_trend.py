"""Charts of many versions in a real browser: a trend in the page of a run, and the page of a search."""

from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By

from orchestrator.bisect import page as search_page
from orchestrator.reports import html
from tests.support.browser import complaints, open_case, opened, pictured, resized, themed, violations
from tests.support.searches import SCENES
from tests.support.trends import RELEASES, STEPS, written


@pytest.fixture(scope="module")
def trend_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = written(tmp_path_factory.mktemp("trend") / "run")
    file = run / "report.html"
    file.write_text(html.make_page(run)[0], encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> str:
    known = SCENES["several"]()
    return search_page.write_page(known, known.search_result, tmp_path_factory.mktemp("search")).as_uri()


def texts(browser: WebDriver, within: str) -> list[str]:
    return [one.text for one in browser.find_elements(By.CSS_SELECTOR, f"{within} svg text") if one.text]


def test_every_version_stands_in_order_with_its_ratio_and_its_time(browser, trend_page: str, screenshots: Path):
    opened(browser, trend_page)
    case = open_case(browser, "case-0")
    for kind in ("trend", "pace"):
        shown = texts(browser, f"{case} [data-kind={kind}]")
        assert [one for one in shown if one in RELEASES] == list(RELEASES)
    marks = browser.find_elements(By.CSS_SELECTOR, f"{case} [data-kind=trend] .mark")
    assert len(marks) == len(RELEASES)
    places = [mark.location["x"] for mark in marks]
    assert places == sorted(places)
    lines = browser.find_elements(By.CSS_SELECTOR, f"{case} [data-kind=trend] .step")
    assert len(lines) == len(next(iter(STEPS.values())))
    assert complaints(browser) == []
    pictured(browser, screenshots / "trend.png")


def test_a_case_whose_baseline_has_no_time_has_a_trend_too(browser, trend_page: str):
    opened(browser, trend_page)
    case = open_case(browser, "case-1")
    assert "Trend of the ratio to 1.14.0" in browser.find_element(By.CSS_SELECTOR, f"{case} [data-kind=trend]").text
    marks = browser.find_elements(By.CSS_SELECTOR, f"{case} [data-kind=trend] .mark")
    assert len(marks) == len(RELEASES) - 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_of_a_search_shows_its_plot_and_complains_of_nothing(
    browser, search: str, theme: str, screenshots: Path
):
    themed(browser, theme)
    browser.get("about:blank")
    browser.get(search)
    assert complaints(browser) == []
    shown = texts(browser, ".drawing")
    assert [one for one in shown if one in RELEASES][:3] == ["1.14.0", "1.15.5", "2.0.0"]
    assert browser.find_element(By.CSS_SELECTOR, ".drawing .body").size["width"] > 500
    label = "return getComputedStyle(document.querySelector('.drawing svg .tick')).fill"
    dim = "return getComputedStyle(document.querySelector('.dim')).color"
    assert browser.execute_script(label) == browser.execute_script(dim)
    pictured(browser, screenshots / f"search-{theme}.png")


def test_the_page_of_a_search_is_read_on_a_phone(browser, search: str):
    resized(browser, 360)
    browser.get(search)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rules_of_accessibility_are_kept(browser, trend_page: str, search: str, theme: str):
    themed(browser, theme)
    for page in (trend_page, search):
        opened(browser, page)
        assert violations(browser) == []
