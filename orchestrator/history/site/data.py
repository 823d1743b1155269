"""The data behind all pages: the history's columns, its series with their steps, and where runs can be seen."""

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestrator.errors import UsageError
from orchestrator.history.alarms.steps import changes, find_wander
from orchestrator.history.model import Alarm, Change, Key, Value
from orchestrator.history.schema import OF_SURROUNDINGS
from orchestrator.history.series import Coded, SeriesArrays, Values, all_arrays, has_value, last_segments
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS, TIME, Followed, describe_followed
from orchestrator.model import Judge, Target
from orchestrator.plan.pairs import in_order

# A run's folder is looked for only if its name matches this; any other name is shown without a link.
NAME = re.compile(r"\w[\w.+-]*")
COLUMNS = ("run", "build", "outcome", "reason", "verdict")


@dataclass(frozen=True, order=True)
class SeriesSetup:
    """The properties that series have in common if their versions are shown side by side."""

    reference: Target
    host: str
    engine: str
    device: str
    metric: Followed
    judge: Judge = "wall"

    @classmethod
    def of(cls, key: Key) -> "SeriesSetup":
        return cls(key.reference, key.host, key.engine, key.device, key.metric, key.judge)

    @property
    def title(self) -> str:
        place = f"gainst {self.reference} on {self.host}, {self.engine}, {self.device}"
        if (self.metric, self.judge) == (TIME, "wall"):
            return f"A{place}"
        about = describe_followed(self.metric, self.judge)
        return f"{about[0].upper()}{about[1:]} a{place}"

    @property
    def rank(self) -> tuple[Any, ...]:
        """The sort key of setups; times come first."""
        return self.metric != TIME, self


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawableSeries:
    """A series, ready to be drawn."""

    series: SeriesArrays
    changes: tuple[Change, ...]
    alarms: tuple[Alarm, ...]

    @property
    def key(self) -> Key:
        return self.series.key

    @cached_property
    def pieces(self) -> tuple[Values, ...]:
        return tuple(piece.values for piece in self.series.pieces)

    @cached_property
    def widths(self) -> tuple[Any, ...]:
        return tuple(values.half_widths() for values in self.pieces)


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """The location of run folders as seen from the site: next to the history, or where they are published."""

    folder: Path
    address: str
    url: str | None

    def link(self, home: str, run: str) -> str:
        """Return the link to a run, or '' if there is nothing to see.

        `home` is the site's folder as seen from the page.
        """
        if not NAME.fullmatch(run):
            return ""
        path = self.folder / run
        page = "report.html" if (path / "report.html").is_file() else ""
        if self.url is None and not path.is_dir():
            return ""
        base = self.address if self.url is None else self.url
        return f"{'' if '://' in base or base.startswith('/') else home}{base}/{quote(run, safe='')}/{page}"


def runs_at(folder: Path, site_folder: Path, url: str | None) -> Runs:
    if url is not None and urlsplit(url).scheme not in ("", "http", "https"):
        raise UsageError(f"--runs-url {url}: give an http or https address, or a path as seen from the site")
    return Runs(
        folder=folder,
        address=quote(os.path.relpath(folder.resolve(), site_folder.resolve())),
        url=url.rstrip("/") if url is not None else None,
    )


class Sources:
    def __init__(self, table: pa.Table, alarms: Sequence[Alarm], runs: Runs) -> None:
        self.runs = runs
        self.series = all_arrays(table)
        self.wander = find_wander(last_segments(self.series))
        self.night = table.column("night").cast(pa.int32()).to_numpy().astype(np.int64)
        self.timed = has_value(table)
        self.figures = table.column("target_figure").to_numpy(zero_copy_only=False)
        self.of_results = pc.equal(table.column("metric"), RESULTS).to_numpy(zero_copy_only=False)
        self.columns = {name: Coded.of(table, name) for name in COLUMNS}
        latest = table.select(OF_SURROUNDINGS).take(
            pa.array([series.rows[-1] for series in self.series.values()], pa.int64())
        )
        # These are the surroundings of the latest night of each series.
        self.around: dict[Key, dict[str, str]] = dict(zip(self.series, latest.to_pylist(), strict=True))
        self.alarms: dict[Key, list[Alarm]] = defaultdict(list)
        for alarm in alarms:
            self.alarms[alarm.key].append(alarm)
        # The runs of each night are cached, since most cases were measured in the same runs.
        self.runs_by_night: dict[bytes, dict[int, str]] = {}
        # These are the first and last night of each setup, so that all its charts begin and end together.
        self.nights: dict[SeriesSetup, tuple[int, int]] = {}
        self.cases: dict[str, dict[SeriesSetup, list[Key]]] = defaultdict(lambda: defaultdict(list))
        for key, series in self.series.items():
            setup = SeriesSetup.of(key)
            nights = self.night[series.rows]
            first, last = int(nights.min()), int(nights.max())
            span = self.nights.get(setup, (first, last))
            self.nights[setup] = min(first, span[0]), max(last, span[1])
            self.cases[key.case][setup].append(key)

    def latest_figure(self, series: SeriesArrays) -> str:
        """Return the figure of the version on the latest night that has one, or ''."""
        metric = series.key.metric
        figures = self.figures[series.rows]
        known = figures[np.isfinite(figures)]
        return METRICS[metric].show(float(known[-1])) if len(known) and metric != RESULTS else ""

    def draw_case(self, keys: Sequence[Key]) -> list[DrawableSeries]:
        """Return the series of one case and setup: versions in order, the control arm last."""
        by_target = {key.target: key for key in keys}
        own = in_order(by_target)
        control = self.series.get(keys[0].control)
        beside = control.nightly.objects() if control and own else ()
        drawables = [self._draw_series(by_target[target], beside) for target in own]
        return drawables + [self._draw_series(key, ()) for key in sorted(keys) if key.is_control]

    def _draw_series(self, key: Key, beside: Sequence[Value]) -> DrawableSeries:
        series = self.series[key]
        # Every step of the control arm is due to chance.
        segments = () if key.is_control else series.segments(beside)
        steps = tuple(change for segment in segments for change in changes(segment, self.wander.get(key.alike, 0.0)))
        return DrawableSeries(series=series, changes=steps, alarms=tuple(self.alarms.get(key, ())))
