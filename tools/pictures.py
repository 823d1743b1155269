"""Draw the pictures of README from a run: its table as SVG, and its page as PNG; or from an upgrade, its page as SVG.

    python tools/pictures.py runs/20261123-093000-1a2b "make run"
    python tools/pictures.py runs/upgrade-20261129-170000 "tfcompare upgrade 2.8 2.16 --workload-folder mine"

The second argument is the title of the terminal. For a run, the default title is the run's own command.
The page needs Chromium and its driver. Look at both pictures before you commit them.
"""

import io
import re
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console, RenderableType
from rich.terminal_theme import TerminalTheme

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from orchestrator.reports import html, matrix  # noqa: E402
from orchestrator.results.run import load_run  # noqa: E402
from orchestrator.upgrade.report import UpgradeAnswer, layout_upgrade  # noqa: E402
from orchestrator.upgrade.run import read_upgrade_outcome  # noqa: E402
from orchestrator.upgrade.state import holds_upgrade  # noqa: E402

DOCS = ROOT / "docs"
COLUMNS = 90
WIDTH, HEIGHT = 1180, 1240
# These are red, green, yellow, blue, magenta and cyan, all dark enough for white paper.
COLOURS = [(179, 38, 30), (26, 115, 70), (138, 90, 0), (37, 99, 168), (107, 79, 160), (0, 120, 130)]
THEME = TerminalTheme(
    (253, 253, 253), (28, 33, 40),
    [(28, 33, 40), *COLOURS, (200, 205, 210)],
    [(87, 96, 106), *COLOURS, (28, 33, 40)],
)  # fmt: skip


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    path = Path(sys.argv[1])
    if holds_upgrade(path):
        answer = UpgradeAnswer(read_upgrade_outcome(path))
        (DOCS / "upgrade.svg").write_text(draw(layout_upgrade(answer, COLUMNS), sys.argv[-1], "upgrade"))
        return
    run = load_run(path)
    title = sys.argv[2] if len(sys.argv) == 3 else " ".join(["tfcompare", *run.manifest.command])
    (DOCS / "first-run.svg").write_text(draw(matrix.layout(run.evaluation, COLUMNS), title, "first-run"))
    screenshot(path, DOCS / "report.png")


def draw(page: RenderableType, title: str, name: str) -> str:
    """Return what a terminal shows, without fonts from elsewhere."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(page)
    svg = console.export_svg(title=title, theme=THEME, unique_id=name)
    return re.sub(r"\s*@font-face \{.*?\}\n", "\n", svg, flags=re.DOTALL)


def screenshot(path: Path, picture: Path) -> None:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    options = Options()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", f"--window-size={WIDTH},{HEIGHT}", "--hide-scrollbars"):
        options.add_argument(argument)
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "report.html"
        page.write_text(html.make_page(path)[0])
        browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            browser.get(page.as_uri())
            WebDriverWait(browser, 30).until(lambda each: each.find_elements(By.CSS_SELECTOR, "#overview svg"))
            browser.save_screenshot(str(picture))
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
