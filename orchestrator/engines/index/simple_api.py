"""Pages of a package index, as pip reads them: the links of another index's page, and a page of our own."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

# These tell pip which files suit it. Others point to signatures and metadata, which would also have to be served.
KEPT = ("data-requires-python", "data-yanked")


@dataclass(frozen=True)
class Link:
    """A file that an index offers: its location, the hash that the index states, and what pip asks about it."""

    filename: str
    url: str
    hash: str = ""
    attributes: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """The id of the file, which is the same in every build and reveals nothing."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:24]


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base = ""
        self.tags: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "base" and not self.base:
            self.base = attributes.get("href", "")
        elif tag == "a" and attributes.get("href"):
            self.tags.append(attributes)


def links(text: str, url: str) -> tuple[Link, ...]:
    """Return the files that the page at `url` offers."""
    anchors = _Anchors()
    anchors.feed(text)
    anchors.close()
    base = urljoin(url, anchors.base)
    files = []
    for anchor in anchors.tags:
        target, fragment = urldefrag(urljoin(base, anchor["href"]))
        filename = unquote(urlsplit(target).path.rpartition("/")[2])
        if filename and urlsplit(target).scheme in ("http", "https"):
            attributes = tuple((name, anchor[name]) for name in KEPT if name in anchor)
            files.append(Link(filename, target, fragment, attributes))
    return tuple(files)


def make_index_page(offered: Iterable[Link]) -> str:
    """Return a page of the offered files, each under /file/ID/NAME of the server that serves the page."""
    lines = ["<!DOCTYPE html>", "<html>", "<body>"]
    for link in offered:
        target = f"/file/{link.id}/{quote(link.filename)}{'#' if link.hash else ''}{link.hash}"
        attributes = "".join(f' {name}="{escape(value)}"' for name, value in link.attributes)
        lines.append(f'<a href="{escape(target)}"{attributes}>{escape(link.filename)}</a><br>')
    return "\n".join([*lines, "</body>", "</html>", ""])
