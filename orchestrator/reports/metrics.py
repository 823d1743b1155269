"""The full report on everything but times: for each metric, one row per case and one column per version."""

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.metrics import METRICS, find_margin
from orchestrator.model import Evaluation
from orchestrator.reports.case_rows import OUTPUT_MARKS, CaseBlock, block_of_metric, block_of_results
from orchestrator.reports.closing_rows import mean_row
from orchestrator.reports.columns import LONGEST, STYLES, Notes
from orchestrator.reports.grid import Grid
from orchestrator.reports.matrix import draw_block
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.reports.table import below, describe_place, render_warnings
from orchestrator.terminal.text import clip, safe_text

LEGEND = (
    "  ".join(f"{mark} {verdict}" for verdict, mark in OUTPUT_MARKS.items()),
    "results of the first and the fifth call, and the largest difference of one value, relative to its size or to",
    "the typical size; if values were sampled, it may be larger. Tolerance: 1e-4 for float32, 1e-8 for float64",
)
NOTHING = "only times were compared; name other metrics with --metric"
NARROWEST = 8


def layout(evaluation: Evaluation, width: int) -> RenderableType:
    plan, notes = evaluation.plan, Notes()
    head = [
        safe_text(f"tfcompare run {plan.run}", style="bold"),
        safe_text(describe_place(evaluation), style="dim"),
        *map(safe_text, metric_sentences(evaluation) or [NOTHING]),
    ]
    parts: list[RenderableType] = [Text("\n").join(head), *render_warnings(evaluation)]
    for metric in evaluation.metrics:
        spec, block = METRICS[metric], block_of_metric(evaluation, metric)
        if not block.rows:
            # No arm has a figure, and a sentence above says why.
            continue
        margin = spec.scale.show_margin(find_margin(plan, metric))
        mean = mean_row(evaluation, metric, evaluation.metrics[metric])
        tables = draw_block(block, width, [mean] if mean.cells else [])
        parts += [Text(), safe_text(f"{spec.about}, margin {margin}", style="bold"), *tables]
        parts += [safe_text(line, style="dim") for line in block.describe_means()]
    if evaluation.outputs:
        results = _draw_results(block_of_results(evaluation), notes)
        parts += [Text(), results, *(safe_text(line, style="dim") for line in LEGEND)]
    return Group(*parts, *below(notes.lines(plan.alpha)))


def _draw_results(block: CaseBlock, notes: Notes) -> Grid:
    targets = block.targets
    grid = Grid(
        title=safe_text(block.title, style="bold"),
        headers=("", *map(str, targets)),
        right=(False,) * (1 + len(targets)),
        narrowest=NARROWEST,
    )
    for row in block.rows:
        cells: list[Text] = []
        for cell in map(row.cell, targets):
            figure = f" {cell.figure}" if cell.figure else ""
            text = f"{cell.mark}{figure}{notes.mark(clip(cell.reason, LONGEST))}"
            cells.append(Text(text, style=STYLES[cell.verdict] if cell.verdict else ""))
        grid.add(row.name, *cells)
    return grid
