"""The documentation as a site: it builds without a warning, no link is broken, and nothing is loaded from elsewhere."""

import os
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.conftest import ROOT

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]


class Page(HTMLParser):
    """What a page of the site refers to, and what can be referred to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names, self.links, self.loaded = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "src" in given:
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """Every page by its path, and every other file as an empty one; mkdocs fails at pages and links without a place."""
    if find_spec("material") is None:
        pytest.skip("no mkdocs-material: `make test` installs it")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    pages = {
        path.relative_to(folder).as_posix(): Page(path.read_text() if path.suffix == ".html" else "")
        for path in folder.rglob("*")
        if path.is_file()
    }
    # A web server shows it at any address, so its links begin at the root of the site.
    del pages["404.html"]
    return pages


@pytest.mark.slow
def test_every_link_of_the_site_leads_to_a_page_and_a_place_in_it(site: dict[str, Page]):
    lost = [
        f"{path}: {link}" for path, page in site.items() for link in page.links if not leads_somewhere(site, path, link)
    ]
    assert lost == []


def leads_somewhere(site: dict[str, Page], path: str, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return parts.scheme in ("https", "http", "mailto")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path))) if parts.path else path
    if not target.endswith(".html"):
        return target == "." or target in site or (ROOT / "docs" / target).exists()
    return target in site and unquote(parts.fragment) in site[target].names


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site: dict[str, Page]):
    assert [one for page in site.values() for one in page.loaded if urlsplit(one).netloc] == []
    assert len(site) > 20


def links() -> Iterator[tuple[Path, str]]:
    for page in (*PAGES, *sorted((ROOT / "docs").glob("*.md"))):
        for match in LINK.finditer(page.read_text()):
            if "://" not in match["target"]:
                yield page, match["target"]


def test_every_link_between_pages_leads_to_a_file_and_a_heading():
    lost = []
    for page, link in links():
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(f"{page.name}: {link}")
    assert lost == []


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page are found, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    words = (re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-") for text in words}
