"""The history as static pages: an overview, one page per case, one for alarms, and a feed.

The pages can be opened from a file. The code that draws them is imported only when needed, since jinja2 is slow to
import.
"""

from dataclasses import dataclass
from pathlib import Path

from orchestrator.history.store import Store

TITLE = "tfcompare, every night"


@dataclass(frozen=True, kw_only=True)
class BuiltSite:
    """A site that was built.

    `index` is the page to open. Each warning names a file of the history that could not be used.
    """

    index: Path
    pages: int
    cases: int
    series: int
    alarms: int
    warnings: tuple[str, ...]


def build_site(store: Store, folder: Path, *, runs_url: str | None = None, title: str | None = None) -> BuiltSite:
    """Write the site into a folder that is empty or already holds one.

    `runs_url` is where run folders are published, if not next to the history.
    """
    from orchestrator.history.site.builder import write_site_files

    return write_site_files(store, folder, runs_url, title or TITLE)
