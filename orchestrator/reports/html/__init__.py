"""The report as one HTML file that needs nothing but a browser.

The page needs more than a comparison: it needs the replicates, and every call, of which there may be millions. So
`make_page` reads the run itself, and an accumulator summarizes the calls of each stream as it is read. The other
modules are imported only when needed, because jinja2 is slow to import.
"""

from pathlib import Path

from orchestrator.reports.html.calls import Calls
from orchestrator.results.run import Run, load_run

__all__ = ["Calls", "make_page", "render_run_page"]


def make_page(path: Path) -> tuple[str, Run]:
    """Return the page, and the run that was read for it."""
    calls = Calls()
    run = load_run(path, calls.add)
    return render_run_page(run, calls), run


def render_run_page(run: Run, calls: Calls) -> str:
    from orchestrator.reports.html import document

    return document.render_page(run, calls)
