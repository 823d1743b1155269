"""The report of a search: the answer, the path with one line per visited version, and the steps; also as an object."""

import heapq
import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.bisect.search import BisectFinding, PathPart, SearchResult, latest
from orchestrator.bisect.state import State
from orchestrator.bisect.wording import conclusions, share
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS, TIME, Followed, describe_followed
from orchestrator.model import Magnitude
from orchestrator.plan.pairs import ALPHA
from orchestrator.reports.columns import Notes, format_verdict
from orchestrator.reports.grid import Grid
from orchestrator.reports.magnitudes import show_estimate, show_interval
from orchestrator.reports.ratio_table import RatioColumn, RatioPoint, ratio_table
from orchestrator.reports.table import below
from orchestrator.stats.scale import RATIOS
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.strict_json import OF_DIFFERENCE, OF_RATIO, pick
from orchestrator.terminal.text import safe_text


@dataclass(frozen=True, kw_only=True)
class JoinedRatio(Magnitude):
    """A ratio or a difference joined over `over` runs; with one run, it is that run's."""

    over: int


def join_ratios(first: str, findings: Iterable[BisectFinding], metric: Followed) -> dict[str, JoinedRatio]:
    """Return the ratio of each version, joined over the path that leaves the narrowest interval."""
    scale = RATIOS if metric == RESULTS else METRICS[metric].scale
    edges: dict[str, list[tuple[str, float, float, float]]] = {}
    for finding in latest(findings).values():
        theta, ends = finding.estimate, finding.ends
        if theta is None or ends is None:
            continue
        below, above = (theta - ends[0]) ** 2, (ends[1] - theta) ** 2
        edges.setdefault(finding.earlier, []).append((finding.later, theta, below, above))
        edges.setdefault(finding.later, []).append((finding.earlier, -theta, above, below))
    done: dict[str, JoinedRatio] = {}
    ahead = [(0.0, 0, first, 0.0, 0.0, 0.0)]
    while ahead:
        _, over, version, theta, below, above = heapq.heappop(ahead)
        if version in done:
            continue
        ends = theta - math.sqrt(below), theta + math.sqrt(above)
        done[version] = JoinedRatio(**scale.as_fields(theta, ends), over=over)
        for other, step, low, high in edges.get(version, ()):
            if other not in done:
                sides = below + low, above + high
                heapq.heappush(ahead, (sum(sides), over + 1, other, theta + step, *sides))
    return done


SCHEMA = "tfcompare.bisect/1"
FINDING = f"earlier later verdict size {OF_RATIO} {OF_DIFFERENCE} rounds reason?"
WIDE = 100
# A narrower table of three-part versions has no room for the count of versions that were left out.
COUNTS_FROM = 70
BETWEEN = "between"
PLOT = "plot: ratio to {first} with its interval on a log scale, multiplied over the runs on the way · "
LEGEND = "step: {figure} to the row above, both measured in one run · share: of the whole change"
RATIO, DIFFERENCE = "ratio", "difference"
LEGEND_OF_COUNTS = " · between: how many versions before this one were not measured"


def layout_search(state: State, result: SearchResult, width: int) -> RenderableType:
    notes = Notes()
    head = (
        safe_text(f"tfcompare bisect {state.case.label}", style="bold"),
        safe_text(describe_search(state), style="dim"),
    )
    parts: list[RenderableType] = [Text("\n").join(head)]
    for index, line in enumerate(conclusions(state, result)):
        parts.append(safe_text(line, style="bold" if index == 0 else ""))
    if result.overall is not None:
        path = _path_table(state, result, width, notes)
        parts += [Text(), path]
        counts = LEGEND_OF_COUNTS if BETWEEN in path.headers else ""
        figure = name_figure(state.question.metric)
        plot = "" if figure == DIFFERENCE else PLOT.format(first=state.question.good)
        parts.append(safe_text(plot + LEGEND.format(figure=figure) + counts, style="dim"))
    left_out = state.skipped.values()
    if left_out or state.notes:
        parts.append(Text())
    for skipped in left_out:
        reason = skipped.reason.partition("\n")[0]
        parts.append(safe_text(f"{skipped.version} was left out: {reason}", style="yellow"))
    parts += [safe_text(note, style="yellow") for note in state.notes]
    return Group(*parts, *below(notes.lines(ALPHA)))


def describe_search(state: State) -> str:
    """Return where and how the search was measured, in one line."""
    host, run = state.host, state.question.run
    device = run.environments.device
    machine = f"{host.get('cpu')}, {host.get('usable_cores')} cores"
    changes = shlex.join(state.question.changes)
    with_changes = f"every version with {changes}" if changes else ""
    if over := state.question.over:
        held = " ".join(filter(None, (state.question.version, changes)))
        what = f"commits of {state.question.package}" if state.question.is_over_commits else f"releases of {over}"
        with_changes = f"{what}, with TensorFlow {held} and its other packages held fixed"
    metric = state.question.metric
    about = "" if (metric, run.judge) == (TIME, "wall") else describe_followed(metric, run.judge)
    # Results have no margin, because any difference beyond the tolerance counts.
    margin = "" if metric == RESULTS else f"margin {METRICS[metric].scale.show_margin(state.question.margin)}"
    seconds = sum(step.seconds for step in state.steps)
    effort = f"{format_count(len(state.measured), 'step')} in {seconds / 60:.1f} min"
    parts = (about, state.engine, device, machine, with_changes, margin, effort)
    return " · ".join(str(part) for part in parts if part)


def name_figure(metric: Followed) -> str:
    """Return what versions are compared by: their ratio or, for a metric like leaks, their difference."""
    return DIFFERENCE if metric != RESULTS and METRICS[metric].units else RATIO


@dataclass(frozen=True)
class PathRow:
    """A version on the path, with its ratio to the first version and, except for the first, the part that leads to it.

    `share` is the part's share of the whole change.
    """

    metric: Followed
    version: str
    joined: JoinedRatio | None
    part: PathPart | None
    share: float | None

    @property
    def finding(self) -> BisectFinding | None:
        return self.part.finding if self.part else None

    @property
    def ratio_text(self) -> str:
        return show_estimate(self.joined, self.metric) if self.joined else ""

    @property
    def interval_text(self) -> str:
        return show_interval(self.joined, self.metric) if self.joined and self.joined.over else ""

    @property
    def step_ratio_text(self) -> str:
        return show_estimate(self.finding, self.metric) if self.finding else ""

    @property
    def step_interval_text(self) -> str:
        return show_interval(self.finding, self.metric) if self.finding else ""

    @property
    def share_text(self) -> str:
        return f"{self.share:.0%}" if self.share is not None and self.finding and self.finding.changed else ""

    @property
    def between(self) -> tuple[str, ...]:
        """The versions between this one and the one before it on the path."""
        return self.part.inside if self.part else ()


def path_rows(state: State, result: SearchResult) -> list[PathRow]:
    metric = state.question.metric
    ratios = join_ratios(state.question.good, state.findings, metric)
    first = result.parts[0].earlier
    return [
        PathRow(metric, first, ratios.get(first), None, None),
        *(
            PathRow(metric, part.later, ratios.get(part.later), part, share(part, result.overall))
            for part in result.parts
        ),
    ]


def _path_table(state: State, result: SearchResult, width: int, notes: Notes) -> Grid:
    rows = path_rows(state, result)
    visited = join_ratios(state.question.good, state.findings, state.question.metric).values()
    changed = result.overall is not None and result.overall.changed
    between_column = RatioColumn[PathRow](
        header=BETWEEN, cell=lambda row: str(len(row.between) or ""), right=True, since=COUNTS_FROM
    )
    return ratio_table(
        safe_text("versions measured", style="bold"),
        rows,
        width,
        before=(
            RatioColumn(header="version", cell=lambda row: row.version),
            RatioColumn(header=name_figure(state.question.metric), cell=lambda row: row.ratio_text, right=True),
            RatioColumn(header="interval", cell=lambda row: row.interval_text, right=True, since=WIDE),
        ),
        point=_ratio_point,
        after=(
            RatioColumn(header="step", cell=lambda row: row.step_ratio_text, right=True),
            RatioColumn(header="interval", cell=lambda row: row.step_interval_text, right=True, since=WIDE),
            RatioColumn(header="verdict", cell=lambda row: _verdict(row.part, notes)),
            RatioColumn(header="share", cell=lambda row: row.share_text if changed else "", right=True),
            *([between_column] if any(row.between for row in rows) else []),
        ),
        # The axis also covers visited versions that are not on the path.
        also=[(joined.ratio, joined.ci_low, joined.ci_high) for joined in visited],
    )


def _ratio_point(row: PathRow) -> RatioPoint:
    if row.joined is None or row.joined.ratio is None:
        return RatioPoint()
    verdict = row.finding.shown_verdict if row.finding else None
    if not row.joined.over:
        return RatioPoint(row.joined.ratio, verdict=verdict)
    return RatioPoint(row.joined.ratio, row.joined.ci_low, row.joined.ci_high, verdict)


KINDS = {
    "spread": "spread over several versions: neither half of the interval differs by more than the margin",
    "between": "the versions between do not show which one brought it",
    "open": "not searched to the end: --resume continues",
}


def _verdict(part: PathPart | None, notes: Notes) -> Text:
    if part is None or part.finding is None:
        return Text()
    why = "; ".join(filter(None, (part.finding.reason, KINDS.get(part.kind, ""))))
    return format_verdict(part.finding, why, notes, metric=part.finding.metric)


def search_as_object(state: State, result: SearchResult) -> dict[str, Any]:
    """Return the `tfcompare.bisect/1` object, which is part of the interface."""
    ratios = join_ratios(state.question.good, state.findings, state.question.metric)
    return {
        "schema": SCHEMA,
        **pick(state, "created workload=case.workload params=case.params engine host notes"),
        **pick(state.question, "good bad over? version? measured_with=changes margin metric"),
        **pick(state.question.run, "device=environments.device judge"),
        "finished": not result.wanted,
        "conclusions": list(conclusions(state, result)),
        "whole": pick(result.overall, FINDING) if result.overall else None,
        "changes": [_part_object(part, result.overall) for part in result.parts if part.changed],
        "way": [_part_object(part, result.overall) for part in result.parts],
        "versions": [
            {"version": version, **pick(ratios[version], f"{OF_RATIO} {OF_DIFFERENCE} runs=over")}
            for version in state.candidates
            if version in ratios
        ],
        "left_out": [pick(skipped, "version reason") for skipped in state.skipped.values()],
        "steps": [
            {
                **pick(step, "kind versions run"),
                "seconds": round(step.seconds, 1),
                "findings": [pick(finding, FINDING) for finding in step.findings],
            }
            for step in state.steps
        ],
    }


def _part_object(part: PathPart, overall: BisectFinding | None) -> dict[str, Any]:
    of = share(part, overall)
    return {
        **pick(part, "earlier later kind between=inside"),
        "share": of if of is not None and math.isfinite(of) else None,
        "finding": pick(part.finding, FINDING) if part.finding else None,
    }
