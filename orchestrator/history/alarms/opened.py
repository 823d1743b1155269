"""Creates the alarm for a change: what changed with it, and the commands that look for its cause."""

import hashlib
import re
import shlex
from datetime import datetime
from pathlib import Path

from orchestrator.history.model import Alarm, Change, Point, Series
from orchestrator.history.surroundings import list_changes, weekday_change
from orchestrator.metrics.followed import SIZE, TIME

DATED = re.compile(r".*\.dev(\d{8})$")
COMMITS = "https://github.com/tensorflow/tensorflow/compare/{}...{}"


def open_alarm(
    series: Series,
    change: Change,
    between: tuple[Point, Point] | None,
    now: datetime,
    runs: Path,
    said: str = "",
    *,
    proven: bool = True,
    undoes: str = "",
) -> Alarm:
    """Return the alarm of a change that tonight has shown; `between` are the points before and after it."""
    key, latest = series.key, series.latest
    today = latest.night
    good = bad = commits = ""
    if between and between[0].build != between[1].build:
        before, after = between
        good, bad, commits = before.build, after.build, compare_link(before.commit, after.commit)
    reproduce = ["tfcompare", "run", "--versions", f"{latest.reference},{latest.build}", *_flags_of_series(latest)]
    return Alarm(
        id=hashlib.sha256(f"{key.id} {change.first} {today}".encode()).hexdigest()[:6],
        key=key,
        found_by="night" if change.first == today else "history",
        change=change,
        surroundings=(*list_changes(*between), *weekday_change(*between)) if between else (),
        run=latest.run,
        reproduce=shlex.join([*reproduce, "--control", *_judging_flags(latest)]),
        bisect=_bisect(*between, runs) if between else "",
        why=_ask_why(latest, good or latest.reference, bad or latest.build),
        opened=now,
        night=today,
        said=said,
        proven=proven,
        undoes=undoes,
        good=good,
        bad=bad,
        commits=commits,
    )


def compare_link(earlier: str, later: str) -> str:
    """Return the page that lists the commits between two commits of TensorFlow, or '' if one is unknown."""
    return COMMITS.format(earlier, later) if earlier and later and earlier != later else ""


def _ask_why(point: Point, earlier: str, later: str) -> str:
    """Return the command that finds out why both versions differ, or '' for sizes, which are not measured in rounds."""
    if point.metric == SIZE:
        return ""
    words = ["tfcompare", "why", earlier, later, *_flags_of_series(point), *_judging_flags(point)]
    return shlex.join(words)


def _flags_of_series(point: Point) -> list[str]:
    return ["--case", point.case, "--engine", point.engine, *(["--gpu"] if point.device == "gpu" else [])]


def _bisect(before: Point, after: Point, runs: Path) -> str:
    """Return the command that finds out which day's wheel caused a change.

    If the version is the same wheel as before, there is nothing to search; the command then compares the runs of both
    nights.
    """
    if before.build == after.build:
        return shlex.join(["tfcompare", "compare", str(runs / before.run), str(runs / after.run)])
    good, bad = (DATED.sub(r"nightly-\1", point.build) for point in (before, after))
    words = ["tfcompare", "bisect", "--good", good, "--bad", bad, *_flags_of_series(after), *_judging_flags(after)]
    return shlex.join(words)


def _judging_flags(point: Point) -> list[str]:
    metric = [] if point.metric == TIME else ["--metric", point.metric]
    return [*metric, *(["--judge", point.judge] if point.judge != "wall" else [])]
