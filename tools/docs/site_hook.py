"""Add the pages outside docs/ to the site of the documentation, with README as its first page."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {
    "README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "report-a-vulnerability.md",
    "CHANGELOG.md": "changelog.md",
}  # fmt: skip
LINK = re.compile(r"(?P<text>\[[^\]]*\])\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


@event_priority(-100)
def on_config(config: Any) -> Any:
    """Leave out what the theme would load from other sites to search pages that are opened without a server."""
    config.extra["polyfills"] = [url for url in config.extra.get("polyfills", ()) if "://" not in url]
    return config


def on_files(files: Any, config: Any) -> Any:
    for source, page in OUTSIDE.items():
        text = rewrite((ROOT / source).read_text(encoding="utf-8"), "")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    outside = page.file.src_uri in OUTSIDE.values()
    return markdown if outside else rewrite(markdown, "docs")


def rewrite(markdown: str, folder: str) -> str:
    """Return a page whose links lead to pages of the site; links to other files become plain text."""

    def replace(link: re.Match[str]) -> str:
        if "://" in link["target"]:
            return link[0]
        path = posixpath.normpath(posixpath.join(folder, link["target"]))
        anchor = link["anchor"] or ""
        if path in OUTSIDE:
            return f"{link['text']}({OUTSIDE[path]}{anchor})"
        if path.startswith("docs/") and (ROOT / path).is_file():
            return f"{link['text']}({path.removeprefix('docs/')}{anchor})"
        return link["text"][1:-1]

    return LINK.sub(replace, markdown)
