"""The pages of an atlas: an overview of all cases and releases, a page per case, a feed, and the figures as files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from orchestrator import files
from orchestrator.atlas import chart, feed, summary, tables
from orchestrator.atlas.figures import AtlasCell, AtlasFigures, AtlasRatio, figures_as_json, shorten_release
from orchestrator.errors import UsageError
from orchestrator.history.site.wording import page_of
from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.metrics.followed import TIME, describe_change
from orchestrator.model import Metric
from orchestrator.reports.columns import MARKS, OTHER_MARKS
from orchestrator.reports.html import assets
from orchestrator.reports.magnitudes import show_estimate, show_magnitude
from orchestrator.results.sketches import show_share

FOLDER = Path(__file__).parent
SHARED = FOLDER.parent / "history" / "site"
INDEX, CASES = "index.html", "cases"
FEED, JSON, CSV, PARQUET, TEXT = "feed.xml", "figures.json", "figures.csv", "figures.parquet", "changes.txt"
FILES = (TEXT, FEED, JSON, CSV, PARQUET)
# A site is recognised by this, and nothing else is ever replaced.
MARK = '<meta name="generator" content="tfcompare atlas">'
MOST_STEPS = 10
# This mark stands for a difference that is certain in its row, and not among all comparisons.
UNCERTAIN = "~"


@dataclass(frozen=True, kw_only=True)
class MatrixCell:
    """A case in a release: its level, and the mark of the step to it; `tip` says both in words."""

    mark: str
    level: str
    style: str
    tip: str


def write_atlas_site(figures: Sequence[AtlasFigures], folder: Path) -> Path:
    """Write the pages of one atlas or of several, one section per machine; return the first page.

    The files of figures are those of the first atlas; other machines have numbered ones.
    """
    _prepare(folder)
    names = list(FILES)
    for number, each in enumerate(figures):
        of_machine = [name if not number else f"{number + 1}-{name}" for name in (TEXT, JSON, CSV, PARQUET)]
        contents = (
            "\n".join(summary.list_atlas_changes(each)).encode() + b"\n", figures_as_json(each).encode() + b"\n",
            tables.make_csv(each).encode(), tables.make_parquet(each),
        )  # fmt: skip
        for name, data in zip(of_machine, contents, strict=True):
            _put(folder / name, data)
        names += [name for name in of_machine if name not in names]
    _put(folder / FEED, feed.write_feed(figures))
    with files.writing(folder, "make room, or name another folder with --site"):
        (folder / CASES).mkdir(exist_ok=True)
    labels = dict.fromkeys(case.label for each in figures for case in each.cases)
    pages = {label: page_of(label) for label in labels}
    for label, page in pages.items():
        _write_page(folder / page, "case.html.j2", home="../", files=names, **_describe_case(figures, label))
    for stale in {path.name for path in (folder / CASES).glob("*.html")} - {Path(page).name for page in pages.values()}:
        (folder / CASES / stale).unlink()
    # The first page is written last, so that everything that it links to already exists.
    _write_page(
        folder / INDEX,
        "overview.html.j2",
        home="",
        files=names,
        title=figures[0].title,
        atlases=[_describe_atlas(each, pages) for each in figures],
    )
    return folder / INDEX


def _prepare(folder: Path) -> None:
    with files.writing(f"the site {folder}", "name another folder with --site"):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        # A folder that an interrupted build left has no first page yet, and the first of the files.
        known = re.compile(rf"{CASES}|(\d+-)?({'|'.join(map(re.escape, FILES))})|\..*")
        is_site = TEXT in names and all(map(known.fullmatch, names))
        if (folder / INDEX).is_file():
            is_site = MARK in (folder / INDEX).read_text(encoding="utf-8", errors="replace")[:4096]
        if names and not is_site:
            raise UsageError(
                f"{folder} contains files that are not part of an atlas; name an empty or a new folder with --site"
            )
        folder.mkdir(parents=True, exist_ok=True)


def _heading(figures: AtlasFigures) -> str:
    machine = figures.machine
    return ", ".join(machine[name] for name in ("cpu", "engine", "device") if machine.get(name))


def _describe_atlas(figures: AtlasFigures, pages: Mapping[str, str]) -> dict[str, Any]:
    names = summary.name_cases(figures)
    text = summary.list_atlas_changes(figures)
    cores, memory = figures.machine.get("usable_cores"), figures.machine.get("memory_mb")
    facts = [text[1], f"{cores} cores" if cores else "", f"{int(memory) // 1024} GiB" if memory else ""]
    return {
        "heading": _heading(figures),
        "facts": "; ".join([*filter(None, facts), f"tfcompare {figures.tool}, built on {figures.built}"]),
        "releases": [release.short for release in figures.releases],
        "reference": shorten_release(figures.reference),
        "rows": list(_list_matrix(figures, names, pages)),
        "steps": [describe_atlas_step(figures, step, names, pages) for step in figures.largest[:MOST_STEPS]],
        "lines": text[3:],
        "notes": figures.notes,
    }


def _list_matrix(figures: AtlasFigures, names: Mapping[str, str], pages: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield a row per case, about times, and one per metric that all cases of a release share."""
    for case in figures.cases:
        cells = [_make_cell(figures, case.label, TIME, release.name) for release in figures.releases]
        certain = any(each.is_named for each in figures.steps if each.case == case.label)
        yield {"name": names[case.label], "page": pages[case.label], "cells": cells, "certain": certain}
    for metric, spec in METRICS.items():
        of_metric = [each for each in (*figures.steps, *figures.levels) if each.metric == metric]
        if spec.of_targets and of_metric:
            # Each comparison is about one case of the release, whichever it is.
            steps = {each.newer: each for each in figures.steps if each.metric == metric}
            levels = {each.newer: each for each in figures.levels if each.metric == metric}
            cells = [
                _draw_cell(figures, metric, each.name, steps.get(each.name), levels.get(each.name), None)
                for each in figures.releases
            ]
            yield {
                "name": spec.about,
                "page": "",
                "cells": cells,
                "certain": any(each.is_named for each in of_metric),
            }


def _make_cell(figures: AtlasFigures, case: str, metric: Metric, release: str) -> MatrixCell:
    key = (case, metric, release)
    cell = figures.by_cell.get((case, release))
    return _draw_cell(figures, metric, release, figures.by_step.get(key), figures.by_level.get(key), cell)


def _draw_cell(
    figures: AtlasFigures,
    metric: Metric,
    release: str,
    step: AtlasRatio | None,
    level: AtlasRatio | None,
    cell: AtlasCell | None,
) -> MatrixCell:
    is_reference = release == figures.reference
    shown = f"{level.ratio:.2f}" if level and level.ratio else "1" if is_reference and (step or cell) else ""
    words = [release]
    has_figures = any(each is not None and each.estimate is not None for each in (step, level))
    if cell and cell.outcome != "measured" and not has_figures:
        reason = f": {cell.reason}" if cell.reason else ""
        return MatrixCell(
            mark=OTHER_MARKS.get(cell.outcome, ""), level="", style=cell.outcome.replace(" ", "-"),
            tip=f"{release}: {cell.outcome}{reason}"[:300],
        )  # fmt: skip
    mark, style = "", "baseline"
    if step:
        mark = UNCERTAIN if step.row_only and step.verdict != "same" else MARKS[step.shown_verdict]
        style = f"{step.shown_verdict.replace(' ', '-')}{' certain' if step.is_named else ''}"
        style = "inconclusive" if mark == UNCERTAIN else style
        word = describe_change(metric, step.verdict)
        words.append(f"{word} than {step.older}, {show_magnitude(step, metric)}" if step.verdict in ("slower", "faster")
                    else f"{word} against {step.older}")  # fmt: skip
    if level and level.ratio:
        words.append(f"{show_magnitude(level, metric)} against {level.older}")
    return MatrixCell(mark=mark, level=shown, style=style, tip="; ".join(words))


def describe_atlas_step(
    figures: AtlasFigures, step: AtlasRatio, names: Mapping[str, str], pages: Mapping[str, str]
) -> dict[str, Any]:
    """Return the texts about a step: of which case, what changed, by how much, why, and who published it."""
    spec = METRICS[step.metric]
    what = describe_verdict(step.metric, step.verdict)
    return {
        "newer": step.newer,
        "name": spec.about if spec.of_targets else names[step.case],
        "page": "" if spec.of_targets else pages.get(step.case, ""),
        "what": what if step.metric == TIME else f"{spec.about}: {what}",
        "style": step.verdict,
        "size": show_magnitude(step, step.metric),
        "cause": figures.find_cause(step),
        "claims": [f"{claim.title} ({claim.source})" for claim in figures.find_claims(step)],
    }


def _describe_case(all_figures: Sequence[AtlasFigures], label: str) -> dict[str, Any]:
    having = [each for each in all_figures if any(case.label == label for case in each.cases)]
    case = next(each for each in having[0].cases if each.label == label)
    return {
        "name": summary.name_cases(having[0])[label],
        "label": label,
        "summary": case.summary,
        "atlases": [
            {
                "heading": _heading(each),
                "reference": shorten_release(each.reference),
                "charts": list(_list_charts(each, label)),
                "results": [
                    f"{result.newer} against {result.older}: {result.verdict}"
                    + (f", by up to {show_share(result.difference)} of a value" if result.difference else "")
                    for result in each.results
                    if result.case == label and result.verdict != "equal"
                ],
            }
            for each in having
        ],
    }


def _list_charts(figures: AtlasFigures, label: str) -> Iterator[dict[str, Any]]:
    for metric in figures.charted:
        levels = {each.newer: each for each in figures.levels if (each.case, each.metric) == (label, metric)}
        steps = {each.newer: each for each in figures.steps if (each.case, each.metric) == (label, metric)}
        if not levels and not steps:
            continue
        spec = METRICS[metric]
        title = f"{spec.about[0].upper()}{spec.about[1:]}"
        yield {
            "title": title,
            "drawing": ""
            if spec.units
            else chart.draw_levels(
                figures.releases,
                figures.reference,
                levels,
                steps,
                f"{title} of {label}, release by release; the table has the figures",
            ),
            "rows": [_describe_release(figures, label, metric, release.name) for release in figures.releases],
        }


def _describe_release(figures: AtlasFigures, label: str, metric: Metric, release: str) -> dict[str, Any]:
    spec, key = METRICS[metric], (label, metric, release)
    step, level, cell = figures.by_step.get(key), figures.by_level.get(key), figures.by_cell.get((label, release))
    figure = cell.figures.get(metric) if cell else None
    if figure is not None and spec.unit == "ms":
        figure *= 1e3
    ended = "" if cell is None or cell.outcome == "measured" else cell.outcome
    more: list[str] = []
    text = ""
    if step:
        verdict = describe_verdict(metric, step.shown_verdict)
        text = f"{MARKS[step.shown_verdict]} {verdict} {show_magnitude(step, metric)}"
        if step.row_only and step.verdict != "same":
            more.append("not certain among all comparisons")
        if step.verdict == "inconclusive" and step.reason:
            more.append(step.reason)
        more += [*figures.find_cause(step), *(f"published: {claim.title}" for claim in figures.find_claims(step))]
    elif cell and cell.reason:
        more.append(cell.reason)
    return {
        "release": release,
        "figure": ended if figure is None else spec.show(figure),
        "style": step.shown_verdict.replace(" ", "-") if step else "",
        "step": text,
        "more": more,
        "level": show_estimate(level, metric) if level and level.estimate is not None else "",
    }


@cache
def _environment() -> jinja2.Environment:
    environment = assets.template_environment(FOLDER)
    style = "".join(
        (assets.asset("page.css"), (SHARED / "site.css").read_text("utf-8"), (FOLDER / "atlas.css").read_text("utf-8"))
    )
    script = (SHARED / "site.js").read_text(encoding="utf-8")
    environment.globals |= {
        "policy": assets.policy(style, script),
        # These are this package's own files, so they need no escaping.
        "style": Markup(style),  # noqa: S704
        "script": Markup(script),  # noqa: S704
        "generator": Markup(MARK),  # noqa: S704
    }
    return environment


def _write_page(path: Path, template: str, **context: Any) -> None:
    _put(path, _environment().get_template(template).render(**context).encode())


def _put(path: Path, data: bytes) -> None:
    with files.writing(path, "make room, or name another folder with --site"):
        files.write_atomically(path, data, durable=False)
