"""Builds the site: reads the history, draws it case by case, and writes the pages."""

from collections import defaultdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.history.alarms import state
from orchestrator.history.model import Night
from orchestrator.history.series import day
from orchestrator.history.site import BuiltSite, case, feed, overview, wording
from orchestrator.history.site.data import SeriesSetup, Sources, runs_at
from orchestrator.history.site.overview import OverviewRow
from orchestrator.history.store import Store
from orchestrator.metrics.followed import TIME
from orchestrator.reports.html import assets
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.text import escape_unprintable, natural_key

FOLDER = Path(__file__).parent
# A site is recognised by these names, and nothing else is ever replaced.
INDEX, ALARMS, FEED, CASES = "index.html", "alarms.html", "feed.xml", "cases"
MARK = '<meta name="generator" content="tfcompare history site">'
LATEST_NIGHTS = 14


def write_site_files(store: Store, folder: Path, runs_url: str | None, title: str) -> BuiltSite:
    runs = runs_at(store.runs, folder, runs_url)
    _prepare(folder)
    read = store.read()
    events, unread = store.events()
    alarms = state.current(events)
    warnings = (*read.warnings, *unread)
    sources = Sources(read.table, alarms, runs)
    pages: set[str] = set()
    rows: dict[SeriesSetup, list[OverviewRow]] = defaultdict(list)
    for name, by_setup in sorted(sources.cases.items(), key=lambda item: natural_key(item[0])):
        sections = []
        for setup, keys in sorted(by_setup.items(), key=lambda item: item[0].rank):
            drawables = sources.draw_case(keys)
            sections.append(case.section(sources, setup, drawables))
            if setup.metric == TIME:
                rows[setup].append(overview.row(sources, name, setup, drawables))
        page = wording.page_of(name)
        pages.add(page)
        of_case = [wording.show_alarm(alarm, sources.cases) for alarm in alarms if alarm.key.case == name]
        _write_page(
            folder / page,
            "case.html.j2",
            home=case.HOME,
            case=name,
            sections=sections,
            alarms=of_case,
            run_link=runs.link,
        )
    descriptions = [wording.show_alarm(alarm, sources.cases) for alarm in alarms]
    descriptions.sort(key=lambda description: not description.open)
    _write_page(
        folder / ALARMS,
        "alarms.html.j2",
        home="",
        alarms=descriptions,
        where=wording.describe_series,
        run_link=runs.link,
    )
    first_run = sources.columns["run"].text(0) if len(read.table) else ""
    _put(folder / FEED, feed.atom(feed.entries(events), first_run, sources.cases))
    nights = [event for event in events if isinstance(event, Night)]
    # The first page is written last, so that everything that it links to already exists.
    _write_page(
        folder / INDEX,
        "overview.html.j2",
        home="",
        site=title,
        grids=overview.grids(rows),
        open=[description for description in descriptions if description.open],
        facts=_facts(sources),
        nights=nights[: -LATEST_NIGHTS - 1 : -1],
        run_link=runs.link,
        left_out=len(warnings),
        built=datetime.now(UTC),
    )
    for stale in {f"{CASES}/{path.name}" for path in (folder / CASES).glob("*.html")} - pages:
        (folder / stale).unlink()
    return BuiltSite(
        index=folder / INDEX,
        pages=len(pages) + 2,
        cases=len(sources.cases),
        series=len(sources.series),
        alarms=len(alarms),
        warnings=warnings,
    )


def _prepare(folder: Path) -> None:
    with files.writing(f"the site {folder}", "name another folder with --output"):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        # A folder that an interrupted build left has no first page yet.
        is_site = {name for name in names if not name.startswith(".")} <= {CASES, ALARMS, FEED}
        if (folder / INDEX).is_file():
            is_site = MARK in (folder / INDEX).read_text(encoding="utf-8", errors="replace")[:4096]
        if names and not is_site:
            raise UsageError(
                f"{folder} contains files that are not part of a site; name an empty or a new folder with --output"
            )
        (folder / CASES).mkdir(parents=True, exist_ok=True)


def _facts(sources: Sources) -> str:
    if not sources.series:
        return "The history holds no night yet; `tfcompare nightly run` measures one."
    targets = len({key.target for key in sources.series if not key.is_control})
    first, last = int(sources.night.min()), int(sources.night.max())
    counted = f"{format_count(len(sources.cases), 'case')} in {format_count(targets, 'version')}"
    return f"{counted}, nights from {day(first)} to {day(last)}."


@cache
def _environment() -> jinja2.Environment:
    environment = assets.template_environment(FOLDER)
    environment.filters["utc"] = lambda moment: f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    environment.filters["breakable"] = _breakable
    style = assets.asset("page.css") + (FOLDER / "site.css").read_text(encoding="utf-8")
    script = (FOLDER / "site.js").read_text(encoding="utf-8")
    environment.globals |= {
        "policy": assets.policy(style, script),
        # These are this package's own files, so they need no escaping.
        "style": Markup(style),  # noqa: S704
        "script": Markup(script),  # noqa: S704
        "generator": Markup(MARK),  # noqa: S704
    }
    return environment


def _breakable(name: object) -> Markup:
    """Return the name of a case that may continue in the next line after a comma, and not inside a word."""
    return Markup.escape(escape_unprintable(str(name))).replace(",", Markup(",<wbr>"))


def _write_page(path: Path, template: str, **context: Any) -> None:
    _put(path, _environment().get_template(template).render(**context).encode())


def _put(path: Path, data: bytes) -> None:
    with files.writing(path, "make room, or name another folder with --output"):
        files.write_atomically(path, data, durable=False)
