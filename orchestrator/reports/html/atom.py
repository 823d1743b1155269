"""Atom feeds, in which no text can add an element or a line."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree import ElementTree

from orchestrator.terminal.text import escape_unprintable

ATOM = "http://www.w3.org/2005/Atom"
# A feed without entries has this date, which is that of the first TensorFlow.
NOTHING_YET = "2015-11-09T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class FeedItem:
    """An entry; its `key` distinguishes it from all others, and `updated` is a time in UTC."""

    key: str
    title: str
    updated: str
    link: str
    categories: tuple[str, ...]
    lines: tuple[str, ...]


def render_feed(title: str, key: str, items: Iterable[FeedItem], *, alternate: str) -> bytes:
    """Return a feed; `key` distinguishes it from other feeds, and `alternate` is the page with the same content."""
    items = list(items)
    feed = ElementTree.Element("feed", xmlns=ATOM)
    _add(feed, "id", _urn(key))
    _add(feed, "title", title)
    _add(feed, "updated", max((item.updated for item in items), default=NOTHING_YET))
    ElementTree.SubElement(feed, "link", rel="self", type="application/atom+xml", href="feed.xml")
    ElementTree.SubElement(feed, "link", rel="alternate", type="text/html", href=alternate)
    _add(ElementTree.SubElement(feed, "author"), "name", "tfcompare")
    for item in items:
        entry = ElementTree.SubElement(feed, "entry")
        _add(entry, "id", _urn(item.key))
        _add(entry, "title", item.title)
        _add(entry, "updated", item.updated)
        _add(entry, "published", item.updated)
        ElementTree.SubElement(entry, "link", rel="alternate", type="text/html", href=item.link or alternate)
        for category in item.categories:
            ElementTree.SubElement(entry, "category", term=escape_unprintable(category))
        _add(entry, "content", "\n".join(map(escape_unprintable, item.lines)), type="text")
    ElementTree.indent(feed)
    return bytes(ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add(parent: ElementTree.Element, name: str, text: str, **attributes: str) -> None:
    # Only the feed's own line ends are kept: those in texts from elsewhere have been escaped before.
    safe = "\n".join(escape_unprintable(line) for line in text.split("\n"))
    ElementTree.SubElement(parent, name, attributes).text = safe


def _urn(text: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, f"tfcompare\n{text}").urn
