""""""

import base64
from pathlib import Path

from axe_core_python.selenium import Axe
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By


def opened(browser: WebDriver, address: str) -> WebDriver:
    browser.get("about:blank")
    browser.get(address)
    assert_drawn(browser, "#overview")
    return browser


def assert_drawn(browser: WebDriver, within: str) -> None:
    """Every plot in there has marks that can be seen."""
    script = (
        "return [...document.querySelectorAll(arguments[0] + ' .drawing')].every(one => "
        "[...one.querySelectorAll('.mark, .marks text, .dots, .line')]"
        ".some(mark => mark.getBoundingClientRect().width > 0))"
    )
    assert browser.execute_script(script, within)


def complaints(browser: WebDriver) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


def open_case(browser: WebDriver, case: str) -> str:
    browser.find_element(By.CSS_SELECTOR, f"#{case} > summary").click()
    assert_drawn(browser, f"#{case}")
    return f"#{case}"


WIDTH, HEIGHT = 1200, 900


def resized(browser: WebDriver, width: int) -> None:
    metrics = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def themed(browser: WebDriver, theme: str, media: str = "") -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def pictured(browser: WebDriver, file: Path) -> None:
    """All of the page, not only what the window shows."""
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"})
    file.write_bytes(base64.b64decode(taken["data"]))


def violations(browser: WebDriver) -> list[str]:
    """What axe-core finds, a line per rule and element."""
    found = Axe().run(browser)["violations"]
    return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]
