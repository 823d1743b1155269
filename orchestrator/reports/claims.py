"""The report on claims: what was claimed, what was measured here, and whether the two agree."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orchestrator.catalog.found import all_found
from orchestrator.errors import UsageError
from orchestrator.metrics import METRICS
from orchestrator.model import (
    ArmMetric,
    Bound,
    CaseSet,
    Claim,
    Evaluation,
    Expectation,
    Pair,
    Part,
    Returns,
    Share,
    Statement,
    TargetPair,
    params_label,
)
from orchestrator.reports import table
from orchestrator.reports.case_names import set_against
from orchestrator.reports.columns import MEASURES, Notes, ratio
from orchestrator.reports.json import run_object
from orchestrator.reports.magnitudes import show_magnitude
from orchestrator.results.claims import SHARE_SEEN, Answer, ClaimCheck, ClaimResult, judge_claims
from orchestrator.results.outputs import describe_output
from orchestrator.terminal import strict_json
from orchestrator.terminal.strict_json import OF_DIFFERENCE, OF_RATIO, pick
from orchestrator.terminal.text import render_plain, safe_text

SCHEMA = "tfcompare.claims/1"
# A report of at most this many claims also shows the last committed results.
MOST_IN_FULL = 3

STYLES: dict[Answer, str] = {
    "reproduced": "bold green", "reproduced, smaller": "green", "not reproduced": "bold red", "inconclusive": "yellow",
    "needs a GPU": "dim",
}  # fmt: skip
MARKS: dict[Answer, str] = {
    "reproduced": "✓", "reproduced, smaller": "✓", "not reproduced": "✗", "inconclusive": "?", "needs a GPU": "-",
}  # fmt: skip
# Each answer has the colour of the verdict that comes closest to it.
COLOURS: dict[Answer, str] = {
    "reproduced": "faster", "reproduced, smaller": "slightly-faster", "not reproduced": "slower",
    "inconclusive": "inconclusive", "needs a GPU": "refused",
}  # fmt: skip
# Each figure of an arm has a name and a unit.
FIGURES: dict[ArmMetric, tuple[str, str]] = {
    "traces": ("traces", ""), "traces_per_call": ("traces per call", ""), "memory_mb": ("peak memory", " MB"),
    "import_s": ("import", " s"), "build_s": ("build", " s"), "first_s": ("first call", " s"),
    "time_s": ("time per step", " s"), "first_over_time": ("first call over a later one", "x"),
}  # fmt: skip


def render_claims(evaluation: Evaluation) -> str:
    return render_plain(lambda width: layout(evaluation, width))


def layout(evaluation: Evaluation, width: int) -> RenderableType:
    claims, notes = judge_planned_claims(evaluation), Notes()
    grid = _frame()
    for claim in claims:
        _claim(grid, claim, notes, in_full=len(claims) <= MOST_IN_FULL)
        grid.add_section()
    head = Text("\n").join(
        [
            safe_text(f"tfcompare reproduce {evaluation.plan.run}", style="bold"),
            safe_text(table.describe_measurement(evaluation), style="dim"),
            safe_text(summarize_claims(claims)),
        ]
    )
    return Group(
        head, *table.render_warnings(evaluation), Padding(grid, (1, 0, 0, 0)), *notes.lines(evaluation.plan.alpha)
    )


def judge_planned_claims(evaluation: Evaluation) -> tuple[ClaimResult, ...]:
    if not evaluation.plan.claims:
        raise UsageError(f"run {evaluation.plan.run} tested no claims; `tfcompare reproduce` does")
    return judge_claims(evaluation, evaluation.plan.claims)


def summarize_claims(claims: Sequence[ClaimResult]) -> str:
    counts = {answer: sum(1 for claim in claims if claim.answer == answer) for answer in MARKS}
    listing = "; ".join(f"{count} {answer}" for answer, count in counts.items() if count)
    return f"{len(claims)} {'claim' if len(claims) == 1 else 'claims'}: {listing}."


def _frame() -> Table:
    grid = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0))
    grid.pad_edge = False
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("claim: what was measured, and what is expected", overflow="fold", ratio=1)
    return grid


def _claim(grid: Table, result: ClaimResult, notes: Notes, *, in_full: bool) -> None:
    claim = result.claim
    withdrawn = " (withdrawn by its reporter)" if claim.withdrawn else ""
    grid.add_row(
        Text(f"{MARKS[result.answer]} {result.answer}{notes.mark(result.reason)}", style=STYLES[result.answer]),
        Text.assemble(safe_text(claim.name, style="bold"), "\n", safe_text(claim.title + withdrawn)),
    )
    for about in _about(claim) if in_full else [format_said_of(claim)]:
        grid.add_row("", safe_text(about, style="dim"))
    for finding in result.findings:
        mark = MARKS[finding.answer] if len(result.findings) > 1 else " "
        expected, measured = f"expected: {format_expected(finding.statement)}", format_seen(finding)
        seen = f"{measured} · {expected}" if measured else expected
        text = Text.assemble(seen, "\n", safe_text(subject_of(finding.statement), style="dim"))
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_row(mark, text)
        grid.add_row("", line)


def _about(claim: Claim) -> Iterator[str]:
    """Yield what is known of a claim before it is measured here."""
    yield f"source: {claim.source}"
    if claim.quote:
        yield f'in its words: "{claim.quote}"'
    yield format_said_of(claim)
    if before := all_found().get(claim.name):
        yield f"found before: {before}"


def format_seen(finding: ClaimCheck) -> str:
    """Return what was measured for a statement, or ''."""
    statement, seen, output = finding.statement, finding.seen, finding.output
    if output is not None:
        return describe_output(output.verdict, output.difference, output.reason)
    if seen is None or (seen.ratio is None and seen.difference is None):
        return ""
    if isinstance(statement, Bound):
        return f"{seen.ratio:.3g}{FIGURES[statement.metric][1]}"
    if isinstance(statement, Share | Part):
        return f"{seen.ratio:.0%}"
    if finding.wins:
        return f"{finding.wins[0]} slower, {finding.wins[1]} faster"
    return show_magnitude(seen, statement.pairs[0].metric if statement.pairs else "time")


def subject_of(statement: Statement) -> str:
    """Return what is compared with what, candidate first."""
    if isinstance(statement, Expectation):
        return subject_of_pair(statement.pair)
    if isinstance(statement, CaseSet):
        targets = {f"{pair.candidate} v {pair.baseline}" for pair in statement.pairs if isinstance(pair, TargetPair)}
        workloads = ", ".join(sorted({pair.workload for pair in statement.pairs}))
        return f"{', '.join(sorted(targets))}: {len(statement.pairs)} cases of {workloads}"
    if isinstance(statement, Part):
        return f"part of {subject_of_pair(statement.whole)}: {statement.step.cases[-1].label}"
    if isinstance(statement, Returns):
        return f"results, {subject_of_pair(statement.compared)}"
    figure = ""
    if isinstance(statement, Bound):
        figure = f"{FIGURES[statement.metric][0]}, "
    elif isinstance(statement, Share):
        figure = f"{statement.function}, "
    case, target = statement.arm
    return f"{figure}{target}: {case}"


def subject_of_pair(pair: Pair) -> str:
    of = "" if pair.metric == "time" else f"{MEASURES[pair.metric]}, "
    if isinstance(pair, TargetPair):
        return f"{of}{pair.candidate} v {pair.baseline}: {pair.workload}{params_label(pair.params)}"
    return f"{of}{pair.target}: {pair.workload} {set_against(pair)}{params_label(pair.params)}"


def format_expected(statement: Statement | None) -> str:
    if isinstance(statement, Expectation):
        return _format_effect(statement)
    if isinstance(statement, CaseSet):
        if statement.mean_within:
            return f"the geometric mean within {ratio(statement.mean_within)}"
        return f"more often {statement.more_often} than the other way round"
    if isinstance(statement, Bound):
        unit = FIGURES[statement.metric][1]
        limit = statement.at_most if statement.at_least is None else statement.at_least
        return f"at {'most' if statement.at_least is None else 'least'} {limit:g}{unit}"
    if isinstance(statement, Part):
        return f"at least {statement.at_least:.0%} of the difference, on the log scale"
    if isinstance(statement, Returns):
        return statement.expected
    if isinstance(statement, Share):
        return f"at least {SHARE_SEEN * statement.published:.0%} of the time (published {statement.published:.0%})"
    return "holds"


def _format_effect(expectation: Expectation) -> str:
    pair = expectation.pair
    units = METRICS[pair.metric].units
    bound = units.show(pair.margin or 0.0) if units else ratio(1 + (pair.margin or 0.0))
    if expectation.effect == "same":
        return f"same, within {bound}"
    if expectation.is_control:
        ours = " (a control of ours)" if expectation.ours else ""
        return f"{expectation.effect} by {bound} or more{ours}"
    if figure := _format_figure(expectation):
        return f"{expectation.effect}, at least {bound} ({figure})"
    return expectation.effect


def _format_figure(expectation: Expectation) -> str:
    """Return the ratio that the source gives, or what its words are read as, or ''."""
    if expectation.published is not None:
        return f"published {expectation.published:.3g}x"
    return "" if expectation.read_as is None else f"read as {expectation.read_as:.3g}x"


def format_said_of(claim: Claim) -> str:
    """Return the devices and systems that the source speaks of."""
    return f"said of: {'; '.join(claim.said_of)}"


def as_json(evaluation: Evaluation) -> str:
    return strict_json.dump(claims_as_object(evaluation), indent=2)


def claims_as_object(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": run_object(evaluation),
        "claims": [_object(result) for result in judge_planned_claims(evaluation)],
        "warnings": [*evaluation.broken, *evaluation.warnings],
    }


def _object(result: ClaimResult) -> dict[str, Any]:
    claim, first = result.claim, result.claim.statements[0]
    of_part = isinstance(first, Part)
    return {
        **pick(claim, "claim=name title source suite said_of withdrawn targets"),
        **pick(result, "verdict=answer reason?"),
        **pick(None if of_part else result.headline, OF_RATIO),
        **({} if first.pairs else {"ratio": None}),
        **pick(result.headline, OF_DIFFERENCE),
        "expected": format_expected(first),
        "published": _find_published(first),
        "read_as": first.read_as if isinstance(first, Expectation) else None,
        "checks": [_check(finding) for finding in result.findings],
    }


def _check(finding: ClaimCheck) -> dict[str, Any]:
    statement, seen = finding.statement, finding.seen
    pair = statement.pair if isinstance(statement, Expectation) else None
    is_figure = not statement.pairs or isinstance(statement, Part)
    return {
        **pick(finding, "verdict=answer reason?"),
        **pick(None if is_figure else seen, OF_RATIO),
        **pick(seen, OF_DIFFERENCE),
        "subject": subject_of(finding.statement),
        "expected": format_expected(statement),
        "at_least": _least(statement),
        "at_most": statement.at_most if isinstance(statement, Bound) else None,
        "below": _find_below(statement),
        "ours": isinstance(statement, Expectation) and statement.ours,
        "published": _find_published(statement),
        "read_as": statement.read_as if isinstance(statement, Expectation) else None,
        "metric": pair.metric if pair else statement.metric if isinstance(statement, Bound) else None,
        "figure": seen.ratio if seen and is_figure else None,
    }


def _find_published(statement: Statement) -> float | None:
    """Return what the source gives for this very statement."""
    return statement.published if isinstance(statement, Expectation | Share) else None


def _find_below(statement: Statement) -> float | None:
    """Return the ratio, or the difference, that a control must stay below."""
    return _bound_of(statement.pair) if isinstance(statement, Expectation) and statement.is_control else None


def _least(statement: Statement) -> float | None:
    """Return the ratio, the difference, the figure or the share that has to be seen."""
    if isinstance(statement, Expectation):
        return None if statement.is_control else _bound_of(statement.pair)
    if isinstance(statement, Bound | Part):
        return statement.at_least
    return SHARE_SEEN * statement.published if isinstance(statement, Share) else None


def _bound_of(pair: Pair) -> float:
    """Return the margin of a pair as a ratio, or unchanged if its metric is judged by differences."""
    return (0.0 if METRICS[pair.metric].units else 1.0) + (pair.margin or 0.0)
