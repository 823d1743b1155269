"""The words of a search: each step before it is measured, and the result at the end."""

from orchestrator.bisect.search import BisectFinding, PathPart, PlannedStep, SearchResult
from orchestrator.bisect.state import State
from orchestrator.metrics.followed import phrase_comparison
from orchestrator.reports.magnitudes import show_estimate, show_interval, show_magnitude
from orchestrator.terminal.counts import format_count


def announce_step(wanted: PlannedStep, number: int) -> str:
    earlier, later = wanted.versions[0], wanted.versions[-1]
    if wanted.kind == "ends":
        return f"step {number}: do {earlier} and {later} differ?"
    assert wanted.of is not None
    known = f"step {number}: {later} against {earlier}: {format_finding(wanted.of)}"
    if wanted.kind == "again":
        return f"{known}, which is not decided; more rounds"
    between = _between(wanted.inside)
    if wanted.kind == "beside":
        tried = f"and what was tried of the {between} does not show where"
        return f"{known}, {tried}; {wanted.versions[1]}, next to it"
    return f"{known}; {wanted.versions[1]}, in the middle of the {between}"


def describe_search_progress(state: State) -> str:
    """Return between which versions the largest change is, as far as the search has got; '' while it knows nothing."""
    part = state.search_result.narrowest
    if part is None or part.finding is None:
        return ""
    left = f", {_between(len(part.inside))}" if part.inside else ""
    return f"so far: {part.earlier} -> {part.later}, {format_finding(part.finding)}{left}"


def format_finding(finding: BisectFinding) -> str:
    """Format a verdict with its figures, as in `3.60x slower (3.41-3.80)`."""
    verdict, bounds = finding.words, show_interval(finding, finding.metric)
    if finding.estimate is None:
        return f"{verdict} ({finding.reason})" if finding.reason else verdict
    return f"{show_estimate(finding, finding.metric)} {verdict}" + (f" ({bounds})" if bounds else "")


def conclusions(state: State, result: SearchResult) -> tuple[str, ...]:
    """Return what was found, the answer first."""
    good, bad, overall = state.question.good, state.question.bad, result.overall
    if overall is None:
        return ("Nothing was measured yet.",)
    if not overall.changed and not state.question.every:
        return (_nothing(good, bad, overall, bool(result.wanted)),)
    changed = sorted((part for part in result.parts if part.changed), key=lambda part: -part.distance)
    lines = [_sentence(bad, good, overall)]
    if len(changed) > 1:
        lines.append(f"Several steps add up{', as far as the search got' if result.wanted else ''}:")
    lines += [_line(part, overall) for part in changed]
    if not changed:
        lines.append("No two neighbouring versions are shown to differ.")
    for part in result.parts:
        if part.kind == "open" and not part.changed:
            verdict = f" ({format_finding(part.finding)})" if part.finding else ""
            lines.append(f"{part.earlier} to {part.later} was not searched to the end{verdict}")
    return tuple(lines)


def _nothing(good: str, bad: str, overall: BisectFinding, unfinished: bool) -> str:
    if overall.verdict == "same":
        return f"{_sentence(bad, good, overall)} There is nothing to find."
    what = "The search still takes more rounds." if unfinished else "Nothing can be found."
    why = f" ({overall.reason})" if overall.reason else ""
    return f"{bad} cannot be distinguished from {good}: {format_finding(overall)}{why}. {what}"


def _sentence(later: str, earlier: str, finding: BisectFinding) -> str:
    if finding.estimate is None:
        return f"{later} against {earlier}: {format_finding(finding)}."
    how = {"same": "is the same as", "inconclusive": "cannot be distinguished from"}.get(
        finding.verdict, phrase_comparison(finding.metric, finding.verdict)
    )
    return f"{later} {how} {earlier}: {show_magnitude(finding, finding.metric)}."


def share(part: PathPart, overall: BisectFinding | None) -> float | None:
    """Return a part's share of the whole change on its scale; it is negative in the opposite direction."""
    if part.finding is None or part.finding.estimate is None or overall is None or not overall.estimate:
        return None
    return part.finding.estimate / overall.estimate


def _line(part: PathPart, overall: BisectFinding) -> str:
    assert part.finding is not None
    finding, verdict = part.finding, part.finding.verdict
    figures = finding.reason if finding.estimate is None else show_magnitude(finding, finding.metric)
    what = f"{part.later} {phrase_comparison(finding.metric, verdict)} {part.earlier}: {figures}"
    of = share(part, overall)
    if of is not None and overall.changed:
        back = verdict != overall.verdict
        what += f", which takes back {-of:.0%} of the change" if back else f", {of:.0%} of the change"
    if part.kind == "open":
        return f"{what}; {_between(len(part.inside))} not measured yet"
    if part.kind == "spread":
        return f"{what}; spread over several versions: neither half of the interval differs by more than the margin"
    if part.kind == "between":
        return f"{what}; the versions between do not show which one brought it"
    if part.inside:
        unusable = ", ".join(part.inside)
        return f"{what}; it came with {unusable} or {part.later}: versions in between cannot be measured"
    return what


def _between(count: int) -> str:
    return f"{format_count(count, 'version')} between them"
