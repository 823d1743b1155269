"""What is compared in addition to times, in full: a row per case and a column per version for each metric."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.metrics import METRICS, find_margin
from orchestrator.model import Evaluation, OutputComparison, OutputVerdict, ShownVerdict, Target
from orchestrator.reports.case_names import short_names
from orchestrator.reports.columns import LONGEST, STYLES, Notes
from orchestrator.reports.grid import Grid
from orchestrator.reports.matrix import CaseBlock, describe_means, draw_blocks, means_of, rows_of_metric
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.reports.table import below, describe_place, render_warnings
from orchestrator.results.sketches import show_share
from orchestrator.terminal.text import clip, safe_text

OUTPUT_MARKS: Mapping[OutputVerdict, str] = {
    "equal": "=", "equal within tolerance": "≈", "differs": "≠", "not comparable": "?",
}  # fmt: skip
# Whose colours they have.
LIKE_VERDICTS: Mapping[OutputVerdict, ShownVerdict] = {
    "equal": "same", "equal within tolerance": "same", "differs": "slower", "not comparable": "inconclusive",
}  # fmt: skip
LEGEND = (
    "  ".join(f"{mark} {verdict}" for verdict, mark in OUTPUT_MARKS.items()),
    "what the first and the fifth call returned, and the largest difference of one value, relative to its size or to",
    "the typical size; where values were sampled, at least this. Tolerance: 1e-4 for float32, 1e-8 for float64",
)
NOTHING = "nothing was compared in addition to times; --metric names what to compare"
NARROWEST = 8


def layout(evaluation: Evaluation, width: int) -> RenderableType:
    plan, notes = evaluation.plan, Notes()
    head = [
        safe_text(f"tfcompare run {plan.run}", style="bold"),
        safe_text(describe_place(evaluation), style="dim"),
        *map(safe_text, metric_sentences(evaluation) or [NOTHING]),
    ]
    parts: list[RenderableType] = [Text("\n").join(head), *render_warnings(evaluation)]
    baseline, *others = plan.targets
    for metric in evaluation.metrics:
        spec = METRICS[metric]
        rows, means = rows_of_metric(evaluation, metric), means_of(evaluation, metric)
        margin = spec.scale.show_margin(find_margin(plan, metric))
        parts += [Text(), safe_text(f"{spec.about}, margin {margin}", style="bold")]
        parts += draw_blocks(CaseBlock(str(baseline), rows, means, True, metric), others, width)
        parts += [safe_text(line, style="dim") for line in describe_means(rows, means)]
    if evaluation.outputs:
        parts += [Text(), _outputs(evaluation, notes), *(safe_text(line, style="dim") for line in LEGEND)]
    return Group(*parts, *below(notes.lines(plan.alpha)))


def outputs_by_case(evaluation: Evaluation) -> dict[str, dict[Target, OutputComparison]]:
    rows: dict[str, dict[Target, OutputComparison]] = {}
    for each in evaluation.outputs:
        rows.setdefault(each.case.label, {})[each.candidate] = each
    return rows


def _outputs(evaluation: Evaluation, notes: Notes) -> Grid:
    names = short_names(arm.case for arm in evaluation.arms)
    targets = list(dict.fromkeys(each.candidate for each in evaluation.outputs))
    grid = Grid(
        title=safe_text(f"results, against {evaluation.plan.targets[0]}", style="bold"),
        headers=("", *map(str, targets)),
        right=(False,) * (1 + len(targets)),
        narrowest=NARROWEST,
    )
    for label, of_case in outputs_by_case(evaluation).items():
        grid.add(names[label], *(_cell(of_case.get(target), notes) for target in targets))
    return grid


def _cell(output: OutputComparison | None, notes: Notes) -> Text:
    if output is None:
        return Text()
    size = f" {show_share(output.difference)}" if output.difference else ""
    text = f"{OUTPUT_MARKS[output.verdict]}{size}{notes.mark(clip(output.reason, LONGEST))}"
    return Text(text, style=STYLES[LIKE_VERDICTS[output.verdict]])
