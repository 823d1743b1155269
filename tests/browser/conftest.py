"""A real Chromium without a window; REQUIRE_CHROMIUM=1 turns a missing one into a failure.

`TFCOMPARE_SCREENSHOTS=FOLDER` keeps the pictures that the tests take.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver

from orchestrator.reports import html
from tests.support import page_runs as runs
from tests.support.browser import WIDTH, resized

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def missing(what: str) -> None:
    reason = f"no {what} on PATH; on Debian: apt-get install chromium chromium-driver"
    if os.environ.get("REQUIRE_CHROMIUM") == "1":
        pytest.fail(f"REQUIRE_CHROMIUM=1, but {reason}")
    pytest.skip(f"no browser: {reason}")


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    if binary is None:
        missing("chromium")
    driver = shutil.which("chromedriver")
    if driver is None:
        missing("chromedriver")
    options = Options()
    options.binary_location = binary
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    browser.set_page_load_timeout(60)
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium: WebDriver) -> WebDriver:
    """As a reader with a wide window and a light theme has it."""
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    resized(chromium, WIDTH)
    chromium.get_log("browser")
    chromium.get_log("performance")
    return chromium


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _written(runs.everything(tmp_path_factory.mktemp("everything") / "run"))


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _written(runs.hostile(tmp_path_factory.mktemp("hostile") / "run"))


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("TFCOMPARE_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _written(run: Path) -> str:
    """The address of a run's page, written as the command writes it."""
    text, _ = html.make_page(run)
    file = run / "report.html"
    file.write_text(text, encoding="utf-8")
    return file.as_uri()
