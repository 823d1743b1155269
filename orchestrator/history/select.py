"""Selects which series and nights of the history are shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator import catalog
from orchestrator.errors import NothingSelected
from orchestrator.history.model import Key, Series
from orchestrator.history.series import KEY, all_series
from orchestrator.metrics.followed import TIME, Followed
from orchestrator.model import Case, Target

# A series without a night for this long has left the suite, and an overview shows only what is still measured.
RECENT = timedelta(days=60)


@dataclass(frozen=True, kw_only=True)
class SeriesSelection:
    """A user's selection of series and nights.

    For each kind of name, a series must match one of those given; if none are given, all match.
    """

    case: str | None = None
    targets: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    metrics: tuple[Followed, ...] = (TIME,)
    last: int | None = None
    since: date | None = None
    whole: bool = False


@dataclass(frozen=True, kw_only=True)
class ShownPart:
    """The series that are shown, and the first night that is shown of them."""

    series: tuple[Series, ...]
    # These count all nights of each series, including those that are not shown.
    nights: dict[Key, int]
    first: date
    newest: date
    # This many series are not shown, since they have no night from `first` on.
    ended: int = 0

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.key.case for series in self.series))


def pick_series(table: pa.Table, asked: SeriesSelection, others: Sequence[str] = ()) -> ShownPart:
    """Return the selected series of a history that is not empty.

    `others` are words that the user may have meant instead of a case.
    """
    table = _select_metrics(table, asked.metrics)
    labels = _unique(table, "case")
    cases = matching(asked.case, labels) if asked.case else tuple(labels)
    if not cases:
        near = catalog.did_you_mean(
            asked.case or "", [*labels, *(case_of(label).workload for label in labels), *others]
        )
        raise NothingSelected(
            f"no case of the history is named {asked.case!r}, or has that in its name{near}; "
            "`tfcompare history` lists them"
        )
    table = _only(table, "case", cases)
    for name, wanted in (("host", asked.hosts), ("engine", asked.engines), ("device", asked.devices)):
        table = _only(table, name, _match_names(name, wanted, _unique(table, name)))
    targets = _targets(asked, _unique(table, "target"))
    wanted = _only(table, "target", targets)
    nights = _unique(wanted, "night")
    first = _first(nights, asked, usual=max(nights[0], nights[-1] - RECENT) if len(cases) > 1 else nights[0])
    # A single case is read as a whole, for its segments and changes; otherwise, only the shown nights are read.
    read = table.filter(pc.greater_equal(table["night"], first)) if len(cases) > 1 else table
    by_case = [series for key, series in all_series(read).items() if str(key.target) in targets]
    by_case.sort(key=lambda series: (series.key.case, _age(str(series.key.target))))
    shown = tuple(series for series in by_case if any(point.night >= first for point in series.points))
    counts = _nights(wanted)
    return ShownPart(
        series=shown,
        nights={series.key: counts[series.key] for series in shown},
        first=first,
        newest=nights[-1],
        ended=len(counts) - len(shown),
    )


def _select_metrics(table: pa.Table, metrics: Sequence[Followed]) -> pa.Table:
    """Return the rows of these metrics; raise NothingSelected if there are none."""
    rows = _only(table, "metric", metrics)
    if not rows.num_rows:
        there = ", ".join(name for name in _unique(table, "metric"))
        raise NothingSelected(f"--metric {','.join(metrics)}: no night of the history has it; available: {there}")
    return rows


def matching(asked: str, cases: Sequence[str]) -> tuple[str, ...]:
    """Return the cases that match a text.

    It can be the full name of a case, a workload with some of its parameters, or part of a name. The first of these
    that matches anything is used.
    """
    if asked in cases:
        return (asked,)
    wanted = case_of(asked)
    pairs = ((label, case_of(label)) for label in cases)
    by_params = tuple(
        label for label, case in pairs if case.workload == wanted.workload and {*wanted.params} <= {*case.params}
    )
    return by_params or tuple(label for label in cases if asked.casefold() in label.casefold())


def case_of(label: str) -> Case:
    """Read a case from its label. A comma in a value ends the value.

    Labels are read back nowhere else: whatever measures or reports has the case itself. A history has only labels,
    since a point stores its case as one text.
    """
    workload, _, inside = label.partition("[")
    params = (item.partition("=") for item in inside.removesuffix("]").split(",") if item)
    return Case(workload, tuple((name, value) for name, _, value in params))


def _age(target: str) -> tuple[int, Number, str]:
    """Return a key that sorts versions from old to new, with names that are followed after all numbers."""
    try:
        return 0, Number(target), ""
    except InvalidVersion:
        return 1, Number("0"), target


def _targets(asked: SeriesSelection, in_history: Sequence[str]) -> tuple[str, ...]:
    """Return the versions to show, which may be named as in the history or as in the catalogue.

    The control arm is shown if it is named, or if everything is shown.
    """
    if asked.targets:
        names = []
        for name in asked.targets:
            target = None if name in in_history else catalog.find_version(name)
            names.append(target.number if target else name)
        return _match_names("version", names, in_history)
    without = tuple(target for target in in_history if not Target.parse(target).control)
    return tuple(in_history) if asked.whole or not without else without


def _match_names(what: str, wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the known names that match the wanted ones.

    Hosts have long names, so the beginning of a name is enough for them.
    """
    if not wanted:
        return tuple(names)
    matches: list[str] = []
    for name in wanted:
        hits = [of for of in names if of == name or (what == "host" and of.startswith(name))]
        if not hits:
            raise NothingSelected(
                f"--{what} {name!r} matches nothing in this selection{catalog.did_you_mean(name, names)}; "
                f"available: {', '.join(names)}"
            )
        matches += hits
    return tuple(matches)


def _first(nights: Sequence[date], asked: SeriesSelection, usual: date) -> date:
    if asked.since and asked.since > nights[-1]:
        raise NothingSelected(f"--since {asked.since}: the newest night of this selection is {nights[-1]}")
    if asked.last is None and asked.since is None:
        return nights[0] if asked.whole else usual
    by_number = nights[-min(asked.last, len(nights))] if asked.last else nights[0]
    return max(by_number, asked.since) if asked.since else by_number


def _nights(table: pa.Table) -> dict[Key, int]:
    counted = table.group_by(KEY).aggregate([("night", "count_distinct")])
    keys = zip(*(counted[name].to_pylist() for name in KEY), strict=True)
    return {
        Key.parse(*key): count for key, count in zip(keys, counted["night_count_distinct"].to_pylist(), strict=True)
    }


def _unique(table: pa.Table, name: str) -> list[Any]:
    return sorted(pc.unique(table[name]).to_pylist())


def _only(table: pa.Table, name: str, values: Sequence[str]) -> pa.Table:
    return table.filter(pc.is_in(table[name], pa.array(values, table[name].type)))
