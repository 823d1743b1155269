"""The comparison at a glance: a row per case, a column per version, worst first; undecided cases are only counted."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.model import Evaluation, Target
from orchestrator.reports.case_rows import (
    ALONE,
    OPEN,
    CaseBlock,
    CaseCell,
    CaseRow,
    block_of_cases,
    block_of_pairs,
)
from orchestrator.reports.columns import LONGEST, MARKS, STYLES, format_ratio, ratio
from orchestrator.reports.cpu_times import describe_cpu_times
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.grid import Grid
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.reports.reasons import describe_reasons
from orchestrator.reports.summary import sentences
from orchestrator.reports.table import (
    MOST_CASES,
    WHOLE_REPORT,
    describe_errors,
    describe_hosts,
    describe_place,
    note_what_is_left_out,
    render_differences,
    render_losses,
    render_warnings,
)
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.text import clip, render_plain, safe_text

# From this many versions on, cells hold a mark and a ratio only.
MANY_VERSIONS = 6
INDENT = "  "


def render_matrix(evaluation: Evaluation, arrangement: Arrangement | None = None) -> str:
    return render_plain(lambda width: layout(evaluation, width, arrangement))


def layout(evaluation: Evaluation, width: int, arrangement: Arrangement | None = None) -> RenderableType:
    """Lay out the matrix; versions that do not fit continue in further blocks with the same rows."""
    arrangement = arrangement or Arrangement()
    blocks = block_of_cases(evaluation, arrangement), block_of_pairs(evaluation, arrangement)
    head = [
        safe_text(f"tfcompare run {evaluation.plan.run}", style="bold"),
        safe_text(describe_place(evaluation), style="dim"),
        *(safe_text(line, style="dim") for line in describe_hosts(evaluation.manifest, MOST_CASES)),
        *map(safe_text, sentences(evaluation)),
        *map(safe_text, metric_sentences(evaluation)),
        *map(safe_text, describe_cpu_times(evaluation)),
    ]
    left_out = note_what_is_left_out(evaluation, arrangement) if arrangement.only else ""
    marks = [mark for block in blocks for mark in block.describe_marks(evaluation.plan.alpha)]
    return Group(
        Text("\n").join(head),
        *([safe_text(left_out, style="dim")] if left_out else []),
        *(grid for block in blocks for grid in draw_block(block, width)),
        Text(),
        *(safe_text(clip(line, LONGEST), style="dim") for line in describe_reasons(evaluation)),
        *render_losses(evaluation),
        *render_differences(evaluation),
        *render_warnings(evaluation),
        _legend(evaluation, [*dict.fromkeys(marks), *([] if arrangement.only else blocks[0].describe_means())]),
    )


def draw_block(block: CaseBlock, width: int) -> Iterator[RenderableType]:
    """Yield as many grids as it takes for all versions to fit into the width, each with as many as fit."""
    left = block.targets
    short = len(left) >= MANY_VERSIONS
    while left:
        count = len(left)
        while count > 1 and _draw(block, left[:count], short=short).least_width > width:
            count -= 1
        # A block without a title begins with the empty line of the title.
        if not block.has_times:
            yield Text()
        yield _draw(block, left[:count], short=short)
        left = left[count:]


def _draw(block: CaseBlock, targets: Sequence[Target], *, short: bool) -> Grid:
    words = [word for row in block.rows for word in row.name.split()]
    times = [str(block.baseline)] if block.has_times else []
    grid = Grid(
        title=Text() if block.has_times else safe_text(block.title, style="bold"),
        headers=("", *times, *map(str, targets)),
        right=(False, *(True for _ in times), *(False for _ in targets)),
        # A word never breaks.
        narrowest=max((len(INDENT) + len(word) for word in words), default=1),
    )
    groups = block.groups
    decided = any(group.title not in (OPEN, ALONE) for group in groups)
    for group in groups:
        style = STYLES[group.verdict] if group.verdict else ""
        grid.add(Text(f"{group.mark} {group.title} ({len(group.rows)})".lstrip(), style=style))
        # Undecided cases hide nothing where there is nothing else to see.
        only_open = group.title == OPEN and decided
        for row in group.rows:
            if not only_open or (isinstance(row, CaseRow) and row.has_progress()):
                cells = [_draw_cell(row.cell(target), short=short) for target in targets]
                grid.add(INDENT + row.name, *([row.time] if times else []), *cells)
    means = [block.means.get(target) for target in targets]
    if any(means):
        grid.end_section()
        figures = [mean and (ratio(mean.ratio) if short else format_ratio(mean)) for mean in means]
        grid.add(block.mean_name, *([""] if times else []), *(f"  {each}" if each else "" for each in figures))
    return grid


def _draw_cell(cell: CaseCell, *, short: bool) -> str | Text:
    if cell.verdict is None:
        return cell.word or (f"  {cell.figure}" if cell.figure else "")
    more = f" ({cell.more})" if cell.more and not short else ""
    return Text(f"{cell.mark} {cell.figure}{more}{cell.notes}", style=STYLES[cell.verdict])


def _legend(evaluation: Evaluation, marks: Sequence[str]) -> Text:
    plan = evaluation.plan
    shown = {comparison.shown_verdict for comparison in evaluation.comparisons}
    unit = "of the whole program" if plan.program else "per step"
    lines = [
        "  ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items() if verdict in shown),
        *marks,
        f"{'CPU time' if plan.judge == 'cpu' else 'time'}: {unit} in {plan.targets[0]} · "
        "ratio: relative to it, paired by round, with its interval",
        f"margin {format_margin(plan.margin)} · {describe_errors(plan)}",
        WHOLE_REPORT,
        "all comparisons with times and reasons: --table details",
    ]
    return Text("\n").join(safe_text(line, style="dim") for line in lines if line)
