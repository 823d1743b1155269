"""What changed in each release, as text of at most forty lines."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.atlas.figures import AtlasFigures, AtlasRatio, AtlasRelease
from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.model import Metric, VerdictName
from orchestrator.reports.case_names import short_names
from orchestrator.reports.magnitudes import show_estimate
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.text import escape_unprintable

MOST_LINES, WIDTH = 40, 110
# A line names this many cases of each kind, the largest change first.
MOST_NAMED = 2
DIFFERS = "differs"


def list_atlas_changes(figures: AtlasFigures) -> list[str]:
    """Return one line per release that changed something, and one for neighbours that changed nothing."""
    names = name_cases(figures)
    lines = [f"{figures.title}: what changed in each release", _describe(figures), ""]
    quiet: list[AtlasRelease] = []
    listed: list[str] = []
    for release in figures.releases[1:]:
        text = _describe_release(figures, release, names)
        if not text:
            quiet.append(release)
            continue
        listed += _describe_quiet(figures, quiet)
        quiet = []
        listed.append(f"{release.short}: {text}")
    listed += _describe_quiet(figures, quiet)
    room = MOST_LINES - len(lines) - 1
    if len(listed) > room:
        listed = [*listed[: room - 1], f"and {len(listed) - room + 1} more on the pages"]
    wrapped = [textwrap.shorten(line, 4 * WIDTH, placeholder=" ...") for line in listed]
    last = f"Changes of figures are listed only if they are certain among all {figures.judged_together} comparisons."
    return [escape_unprintable(line) for line in (*lines, *wrapped, last)]


def name_cases(figures: AtlasFigures) -> Mapping[str, str]:
    """Return short names of the cases by their labels."""
    return short_names(case.case for case in figures.cases)


def _describe(figures: AtlasFigures) -> str:
    machine = figures.machine
    place = ", ".join(machine[name] for name in ("cpu", "engine", "device") if name in machine)
    days = sorted({release.measured for release in figures.releases if release.measured})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "nothing measured yet"
    counts = f"{format_count(len(figures.releases), 'release')}, {format_count(len(figures.cases), 'case')}"
    return f"{counts}; {place}; {when}; margin {format_margin(figures.margin)}"


def _describe_release(figures: AtlasFigures, release: AtlasRelease, names: Mapping[str, str]) -> str:
    steps: dict[tuple[Metric, VerdictName], list[AtlasRatio]] = {}
    for each in figures.largest:
        if each.newer == release.name:
            steps.setdefault((each.metric, each.verdict), []).append(each)
    parts = [_describe_metric(*kind, of_kind, names) for kind, of_kind in steps.items()]
    others = [each.case for each in figures.results if each.newer == release.name and each.verdict == DIFFERS]
    if others:
        parts.append(f"different results in {_name_some(others, names)}")
    newly = [
        cell.case
        for cell in figures.cells
        if cell.release == release.name and cell.outcome == "died" and _ran_before(figures, cell.case, release)
    ]
    if newly:
        parts.append(f"{_name_some(newly, names)} no longer run{'s' * (len(newly) == 1)}")
    return "; ".join(parts)


def _ran_before(figures: AtlasFigures, case: str, release: AtlasRelease) -> bool:
    place = [each.name for each in figures.releases].index(release.name)
    before = figures.by_cell.get((case, figures.releases[place - 1].name))
    return before is not None and before.outcome == "measured"


def _describe_metric(
    metric: Metric, verdict: VerdictName, steps: Sequence[AtlasRatio], names: Mapping[str, str]
) -> str:
    spec = METRICS[metric]
    what = "" if metric == "time" else f"{spec.about} "
    if spec.of_targets:
        return f"{what}{show_estimate(steps[0], metric)}"
    named = ", ".join(f"{names[each.case]} {show_estimate(each, metric)}" for each in steps[:MOST_NAMED])
    more = f" and {len(steps) - MOST_NAMED} more" if len(steps) > MOST_NAMED else ""
    return f"{what}{describe_verdict(metric, verdict)}: {named}{more}"


def _name_some(cases: Sequence[str], names: Mapping[str, str]) -> str:
    more = f" and {len(cases) - MOST_NAMED} more" if len(cases) > MOST_NAMED else ""
    return ", ".join(names.get(case, case) for case in cases[:MOST_NAMED]) + more


def _describe_quiet(figures: AtlasFigures, quiet: Sequence[AtlasRelease]) -> Iterator[str]:
    """Yield one line about neighbouring releases that changed nothing, and one about those that were not measured."""
    for word, releases in (
        ("no certain change", [each for each in quiet if each.measured]),
        ("not measured", [each for each in quiet if not each.measured]),
    ):
        if releases:
            yield f"{', '.join(each.short for each in releases)}: {word}"
