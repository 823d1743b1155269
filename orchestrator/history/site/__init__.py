"""The history as static pages: an overview, a page a case, one of alarms, and a feed. They open from a file.

What draws them is imported when it is asked for: jinja2 takes its time to come.
"""

from dataclasses import dataclass
from pathlib import Path

from orchestrator.history.store import Store

__all__ = ["Built", "build"]


@dataclass(frozen=True, kw_only=True)
class Built:
    """`index` is the page to open; a warning names a file of the history that could not be used."""

    index: Path
    pages: int
    cases: int
    series: int
    alarms: int
    warnings: tuple[str, ...]


def build(store: Store, out: Path, *, runs_url: str | None = None) -> Built:
    """Writes the site into a folder that is empty or holds one. `runs_url` is where run directories are published,
    if not beside the history."""
    from orchestrator.history.site.builder import write

    return write(store, out, runs_url)
