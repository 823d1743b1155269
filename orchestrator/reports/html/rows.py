"""The rows of the page's tables: an arm with its comparison, or a comparison alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from orchestrator.metrics import describe_verdict, scale_of
from orchestrator.model import (
    ArmResult,
    Case,
    Comparison,
    Metric,
    Pair,
    Plan,
    ShownVerdict,
    Target,
    TargetPair,
    params_text,
)
from orchestrator.reports.case_names import by_workload, separate_params
from orchestrator.reports.columns import MARKS, MEASURES, OTHER_MARKS
from orchestrator.reports.html.escape import round_figure
from orchestrator.reports.magnitudes import show_figures
from orchestrator.terminal.durations import format_time

EXPLORATORY = "exploratory: more rounds were taken after the error was spent; confirm it by a new run"


@dataclass(frozen=True)
class Verdict:
    """A word and its mark; `rank` is its position when a table is sorted by it, most important first."""

    word: str
    mark: str
    rank: int
    # This is shown instead of the word; filters select by the word.
    shown: str = ""

    @property
    def style(self) -> str:
        return self.word.replace(" ", "-")


RANKED = (
    "died", "slower", "faster", "inconclusive", "postponed", "not measured", "refused", "slightly slower",
    "slightly faster", "same", "baseline", "not compared",
)  # fmt: skip
MARK_OF: Mapping[str, str] = dict([*MARKS.items(), *OTHER_MARKS.items()])
VERDICTS: Mapping[str, Verdict] = {word: Verdict(word, MARK_OF[word], rank) for rank, word in enumerate(RANKED)}


def verdict_by(metric: Metric, verdict: ShownVerdict) -> Verdict:
    """Return a verdict with the word that its metric has for it."""
    return replace(VERDICTS[verdict], shown=describe_verdict(metric, verdict))


class TableCell(NamedTuple):
    """The text of a cell and, if it shows a figure, the value to sort by."""

    text: str = ""
    value: float | None = None


class TableColumn(NamedTuple):
    name: str
    header: str
    figure: bool = False


NAMES = (TableColumn("workload", "Workload"), TableColumn("case", "Case"), TableColumn("target", "Target"))
JUDGED = (
    TableColumn("verdict", "Verdict"),
    TableColumn("ratio", "Ratio", True),
    TableColumn("interval", "Interval", True),
)
TIMES = (
    TableColumn("time", "Time per step", True),
    TableColumn("first", "First call", True),
    TableColumn("build", "Build", True),
    TableColumn("rounds", "Rounds", True),
)
ARM_COLUMNS = (*NAMES, *JUDGED, *TIMES)
# A program is timed as a whole: nothing is built, and no call is the first.
NOT_OF_PROGRAMS = ("build", "first", "second")
COMPARISON_COLUMNS = (*NAMES, *JUDGED, TableColumn("rounds", "Rounds", True))
MEASURED_COLUMNS = (*NAMES, TableColumn("measure", "Measure"), *JUDGED, TableColumn("rounds", "Rounds", True))


def fit_columns(columns: Sequence[TableColumn], plan: Plan) -> tuple[TableColumn, ...]:
    """Return the columns that apply to what the plan measures, workloads or a program."""
    time = "Whole time" if plan.program else "Time per step"
    left = (column for column in columns if not plan.program or column.name not in NOT_OF_PROGRAMS)
    if plan.judge == "cpu":
        time = "Whole CPU time" if plan.program else "CPU time per step"
    return tuple(column._replace(header=time) if column.name == "time" else column for column in left)


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row of a table; `anchor` names the section of its case, and a search also finds the words in `also`."""

    anchor: str
    workload: str
    case: str
    target: str
    verdict: Verdict
    notes: tuple[str, ...]
    cells: Mapping[str, TableCell]
    also: str = ""
    measure: str = ""


@dataclass(frozen=True)
class Names:
    """The names of cases in tables, made of the parameters that a workload's cases do not all share."""

    cases: Mapping[str, Case]
    own: Mapping[Case, str]
    shared: Mapping[Case, str]
    anchors: Mapping[str, str]

    @classmethod
    def of(cls, cases: Iterable[Case]) -> "Names":
        distinct = tuple(dict.fromkeys(cases))
        own: dict[Case, str] = {}
        shared: dict[Case, str] = {}
        for of_workload in by_workload(distinct).values():
            common, rest = separate_params(of_workload)
            if len(of_workload) == 1:
                # A workload's only case is named by all its parameters.
                common, rest = (), {of_workload[0]: of_workload[0].params}
            for case, params in rest.items():
                own[case] = params_text(params) or "no parameters"
                shared[case] = params_text(common)
        anchors = {case.label: f"case-{number}" for number, case in enumerate(distinct)}
        return cls({case.label: case for case in distinct}, own, shared, anchors)


def arm_row(arm: ArmResult, comparison: Comparison | None, baseline: Target, names: Names) -> TableRow:
    return TableRow(
        anchor=names.anchors[arm.case.label],
        workload=arm.case.workload,
        case=names.own[arm.case],
        target=str(arm.target),
        verdict=verdict_of(arm, comparison, baseline),
        notes=notes_of(arm, comparison),
        cells={
            **build_ratio_cells(comparison if arm.time_ms is not None else None),
            "time": time_cell(arm.time_ms),
            "first": time_cell(arm.figures.get("first")),
            "second": time_cell(arm.second_ms),
            "build": time_cell(arm.figures.get("build")),
            "rounds": TableCell(str(arm.rounds), arm.rounds) if arm.rounds else TableCell(),
        },
        also=names.shared[arm.case],
    )


def verdict_of(arm: ArmResult, comparison: Comparison | None, baseline: Target) -> Verdict:
    """Return the verdict of an arm.

    If the arm has no time, its outcome says more than an inconclusive comparison.
    """
    if arm.time_ms is None or (arm.outcome != "measured" and comparison is None):
        return VERDICTS[arm.outcome]
    if comparison is not None:
        return VERDICTS[comparison.shown_verdict]
    return VERDICTS["baseline" if arm.target == baseline else "not compared"]


def notes_of(arm: ArmResult, comparison: Comparison | None) -> tuple[str, ...]:
    """Return the notes of an arm, each reason once: the comparison's reason may quote that of the arm."""
    reason = comparison.reason if comparison else ""
    drift = str(arm.drift) if arm.drift else ""
    notes = [
        reason,
        "" if arm.reason in reason else arm.reason,
        "" if drift in reason else drift,
        EXPLORATORY if comparison and comparison.exploratory else "",
        margin_of(comparison.pair) if comparison else "",
    ]
    return tuple(filter(None, notes))


def margin_of(pair: Pair) -> str:
    """Return the margin that a claim requires, if it differs from the run's margin."""
    margin = pair.margin
    return "" if margin is None else f"judged against a margin of {scale_of(pair.metric).show_margin(margin)}"


def comparison_row(comparison: Comparison, names: Names) -> TableRow:
    """Return the row of a comparison other than those between the versions' times."""
    pair = comparison.pair
    notes = (comparison.reason, EXPLORATORY if comparison.exploratory else "", margin_of(pair))
    return TableRow(
        anchor=names.anchors.get(pair.arms[1].case, ""),
        workload=pair.workload,
        case=describe_pair(pair, names),
        target=str(pair.arms[1].target),
        verdict=verdict_by(pair.metric, comparison.shown_verdict),
        notes=tuple(filter(None, notes)),
        cells={
            **build_ratio_cells(comparison),
            "rounds": TableCell(str(comparison.rounds), comparison.rounds) if comparison.rounds else TableCell(),
        },
        measure=MEASURES[pair.metric],
    )


def describe_pair(pair: Pair, names: Names) -> str:
    """Return what distinguishes two cases and what they share or, for versions, the case."""
    if isinstance(pair, TargetPair):
        return f"{names.own.get(pair.case, pair.case.label)} against {pair.baseline}"
    old, new = map(params_text, pair.differing_params)
    shared = params_text(pair.params)
    return f"{new} against {old}" + (f" ({shared})" if shared else "")


def build_ratio_cells(comparison: Comparison | None) -> dict[str, TableCell]:
    if comparison is None:
        return {"ratio": TableCell(), "interval": TableCell()}
    figure, more = show_figures(comparison)
    order, low = comparison.difference, comparison.difference_low
    if order is None:
        order, low = comparison.seen_ratio, comparison.ci_low
    return {
        "ratio": TableCell(figure, round_figure(order, 6)),
        "interval": TableCell(more, None if comparison.missing else round_figure(low, 6)),
    }


def time_cell(milliseconds: float | None) -> TableCell:
    return TableCell() if milliseconds is None else TableCell(format_time(milliseconds), round_figure(milliseconds, 6))
