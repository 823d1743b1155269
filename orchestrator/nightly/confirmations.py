"""Repeats the measurement of what looks changed, in the same night and in small steps."""

from collections.abc import Sequence
from dataclasses import replace

from orchestrator import catalog
from orchestrator.history.alarms import steps
from orchestrator.history.model import Key, Point
from orchestrator.history.points import of_run
from orchestrator.history.series import all_arrays, last_segments
from orchestrator.nightly.options import NightContext, NightOptions
from orchestrator.nightly.stages import count_cells, describe_ending, read_history, run_stage
from orchestrator.nightly.subprocess_run import Child
from orchestrator.terminal.counts import name_some
from orchestrator.terminal.view import View


def settle(
    options: NightOptions, night: NightContext, points: Sequence[Point], child: Child, view: View
) -> tuple[list[Point], list[str]]:
    """Repeat the measurement of series that look changed, little by little, until they are reported or cleared."""
    screened = {point.key for point in points if point.has_value}
    cells = last_segments(all_arrays(read_history(night).table), screened)
    flagged, wander = steps.suspects(cells), steps.find_wander(cells)
    if not flagged:
        return [], []
    chosen = steps.limit_suspects(flagged, count_cells(points))
    suspicious, repeated = (len(steps.list_cells(keys)) for keys in (flagged, chosen))
    which = "which" if repeated == suspicious else f"{repeated} of which, the most suspicious,"
    view.say(f"{suspicious} of {count_cells(points)} look changed, {which} are measured again: {_format_cases(chosen)}")
    again: list[Point] = []
    for number, times in enumerate(steps.CONFIRM_TIMES):
        if number:
            still = len(steps.list_cells(chosen))
            view.say(f"{still} of them may still have changed, so more rounds follow: {_format_cases(chosen)}")
        points, warnings = _confirm(options, night, chosen, child, times)
        again += points
        if warnings or not points:
            return again, warnings
        cells = last_segments(all_arrays(read_history(night).table), chosen)
        if not (chosen := steps.find_unsettled(cells, wander)):
            break
    return again, []


def _confirm(
    options: NightOptions, night: NightContext, flagged: Sequence[Key], child: Child, times: int
) -> tuple[list[Point], list[str]]:
    """Measure the flagged series again in the same night, with new rounds.

    Other results that come with them are also kept.
    """
    names = dict.fromkeys(str(key.target) for key in flagged)
    resolved = night.resolved
    builds = [build for build in resolved.versions if resolved.names.get(build, _number(build)) in names]
    only = replace(night, resolved=replace(resolved, versions=(resolved.versions[0], *builds)))
    cases = dict.fromkeys(key.case for key in flagged)
    run, ended = run_stage(options, only, "confirm", child, cases, options.rounds * times)
    warnings = describe_ending(ended, "a second measuring")
    if run is None:
        return [], warnings
    points = of_run(run, "confirm", night.date, resolved.names)
    night.store.append(points)
    return points, warnings


def _number(name: str) -> str:
    version = catalog.find_version(name)
    return version.number if version else name


def _format_cases(keys: Sequence[Key]) -> str:
    named = [f"{case} in {version}" for case, version in steps.list_cells(keys)]
    return name_some(named)
