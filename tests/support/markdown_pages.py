"""Markdown as a reader of comments renders it."""

from html.parser import HTMLParser

from markdown_it import MarkdownIt


class Page(HTMLParser):
    """The tags of a page, its text outside of code, and each code's text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside = ""
        self.codes: list[str] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(MarkdownIt("commonmark").enable("table").render(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open.append(tag)
        if tag == "code":
            self.codes.append("")
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "code" in self._open:
            self.codes[-1] += data
        else:
            self.outside += data
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data
