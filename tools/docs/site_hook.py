"""Add the pages outside docs/ to the site of the documentation, README as its first page, and those of the atlas."""

import posixpath
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from orchestrator.atlas.site import INDEX, write_atlas_site  # noqa: E402
from tools.docs.atlas_page import PAGE, read_parts  # noqa: E402

OUTSIDE = {
    "README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "report-a-vulnerability.md",
    "CHANGELOG.md": "changelog.md",
}  # fmt: skip
# The site has the pages of the atlas in this folder.
ATLAS = "atlas-pages"
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
    with TemporaryDirectory() as folder:
        write_atlas_site(list(read_parts().values()), Path(folder))
        for path in sorted(filter(Path.is_file, Path(folder).rglob("*"))):
            name = f"{ATLAS}/{path.relative_to(folder).as_posix()}"
            files.append(File.generated(config, name, content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    outside = page.file.src_uri in OUTSIDE.values()
    shown = markdown if outside else rewrite(markdown, "docs")
    if page.file.src_uri == PAGE:
        head, picture, rest = shown.partition("![")
        shown = f"{head}[A page per case, with charts]({ATLAS}/{INDEX}).\n\n{picture}{rest}"
    return shown


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
