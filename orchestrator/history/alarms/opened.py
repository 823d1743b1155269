"""Makes the alarm of a change: what changed with it, and the commands that look for its cause."""

import hashlib
import re
import shlex
from datetime import datetime
from pathlib import Path

from orchestrator.history.model import Alarm, Change, Point, Series
from orchestrator.history.surroundings import differences, weekday_change
from orchestrator.metrics import TIMES
from orchestrator.metrics.followed import RESULTS, TIME, name_followed

DATED = re.compile(r".*\.dev(\d{8})$")


def open_alarm(
    series: Series,
    change: Change,
    between: tuple[Point, Point] | None,
    now: datetime,
    runs: Path,
    said: str = "",
    *,
    proven: bool = True,
) -> Alarm:
    """Return the alarm of a change that tonight has shown; `between` are the points before and after it."""
    key, latest = series.key, series.latest
    today = latest.night
    return Alarm(
        id=hashlib.sha256(f"{key.id} {change.first} {today}".encode()).hexdigest()[:6],
        key=key,
        found_by="night" if change.first == today else "history",
        change=change,
        surroundings=(*differences(*between), *weekday_change(*between)) if between else (),
        run=latest.run,
        reproduce=_reproduce(latest),
        bisect=_bisect(*between, runs) if between else "",
        profile=_profile(latest),
        opened=now,
        night=today,
        said=said,
        proven=proven,
    )


def _reproduce(point: Point) -> str:
    return shlex.join([*_command("run", point), "--control", *_metric(point)])


def _profile(point: Point) -> str:
    """Return the command that looks into both versions, or '' where a profile says nothing, as of memory."""
    if point.metric not in (RESULTS, *TIMES):
        return ""
    return shlex.join([*_command("profile", point), *(["--explain-output"] if point.metric == RESULTS else [])])


def _command(name: str, point: Point) -> list[str]:
    words = ["tfcompare", name, "--versions", f"{point.reference},{point.build}", "--case", point.case]
    return [*words, "--engine", point.engine, *(["--gpu"] if point.device == "gpu" else [])]


def _bisect(before: Point, after: Point, runs: Path) -> str:
    """Return the command that finds out which day's wheel caused a change.

    If the version is the same wheel as before, there is nothing to search; the command then compares the runs of both
    nights.
    """
    if before.build == after.build:
        return shlex.join(["tfcompare", "compare", str(runs / before.run), str(runs / after.run)])
    good, bad = (DATED.sub(r"nightly-\1", point.build) for point in (before, after))
    words = ["tfcompare", "bisect", "--good", good, "--bad", bad, "--case", after.case]
    words += ["--engine", after.engine, *(["--gpu"] if after.device == "gpu" else [])]
    return shlex.join([*words, *_metric(after)])


def _metric(point: Point) -> list[str]:
    return [] if point.metric == TIME else ["--metric", name_followed(point.metric)]
