"""The comparison at a glance: a row per case, a column per version, the largest change first, open cases last."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.model import Evaluation, Plan, Target
from orchestrator.plan.pairs import find_pairing
from orchestrator.reports.case_rows import (
    CaseBlock,
    CaseCell,
    CaseRow,
    block_of_cases,
    block_of_pairs,
    further_blocks,
)
from orchestrator.reports.closing_rows import ClosingRow, closing_rows
from orchestrator.reports.columns import LONGEST, MARKS, SMALL_MARKS, STAR, STYLES
from orchestrator.reports.cpu_times import describe_cpu_times
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.goes_with import find_companions
from orchestrator.reports.grid import Grid
from orchestrator.reports.metric_sentences import describe_other_results
from orchestrator.reports.reasons import describe_reasons
from orchestrator.reports.table import (
    MOST_CASES,
    describe_hosts,
    describe_machine,
    note_what_is_left_out,
    render_companions,
    render_differences,
    render_losses,
    render_warnings,
)
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.durations import format_minutes_seconds
from orchestrator.terminal.text import clip, render_plain, safe_text

# A report of more rows than these leaves pairs of cases inside targets, and all facts but one, to the details.
MOST_ROWS, MOST_FACTS = 10, 2
# From this many versions on, cells hold a mark and a ratio only; of more than these, a title has the number.
MANY_VERSIONS, MOST_NAMED = 6, 3
# A ratio such as 1.05x is as wide as this, so that intervals begin below each other.
RATIO_WIDTH = 5


def render_matrix(evaluation: Evaluation, arrangement: Arrangement | None = None) -> str:
    return render_plain(lambda width: layout(evaluation, width, arrangement))


def layout(evaluation: Evaluation, width: int, arrangement: Arrangement | None = None) -> RenderableType:
    """Lay out the matrix; versions that do not fit continue in further blocks with the same rows."""
    arrangement = arrangement or Arrangement()
    (across, *others), left = _choose_blocks(evaluation, arrangement)
    companions = find_companions(evaluation)
    if left:
        companions = tuple(each for each in companions if each.is_across)
    facts, most = list(render_companions(companions)), 1 if left else MOST_FACTS
    closing = [] if arrangement.only else closing_rows(evaluation, _case_rows(across))
    left_out = [note_what_is_left_out(evaluation, arrangement)] if arrangement.only else []
    notes = (*describe_reasons(evaluation), *describe_other_results(evaluation), *describe_cpu_times(evaluation))
    below = [*([] if arrangement.only else across.describe_means()), _describe_rest(left, facts[most:])]
    return Group(
        safe_text(f"{describe_compared(evaluation.plan)}, {_name_time(evaluation.plan)}", style="bold").append_text(
            safe_text(f" · run {evaluation.plan.run}", style="not bold dim")
        ),
        *(safe_text(line, style="dim") for line in (*_describe_run(evaluation), *left_out)),
        *draw_block(across, width, closing),
        *(grid for block in others for grid in draw_block(block, width)),
        *([Text()] if left else []),
        *facts[:most],
        *(safe_text(clip(line, LONGEST), style="dim") for line in notes),
        *render_losses(evaluation),
        *render_differences(evaluation),
        *render_warnings(evaluation),
        *(safe_text(line, style="dim") for line in _legend(evaluation, (across, *others), closing, below)),
    )


def layout_tables(evaluation: Evaluation, width: int) -> RenderableType:
    """Lay out the tables alone, without anything around them: while a run measures, they are drawn again and again."""
    blocks, _ = _choose_blocks(evaluation, Arrangement())
    return Group(*(grid for block in blocks for grid in draw_block(block, width)))


def _choose_blocks(evaluation: Evaluation, arrangement: Arrangement) -> tuple[list[CaseBlock], CaseBlock | None]:
    """Return the tables to draw, that of the cases first, and the table inside targets if the details keep it."""
    across, inside = block_of_cases(evaluation, arrangement), block_of_pairs(evaluation, arrangement)
    blocks = [across, *further_blocks(evaluation, arrangement)]
    if across.targets and inside.rows and len(across.rows) + len(inside.rows) > MOST_ROWS:
        return blocks, inside
    return [*blocks, inside], None


def describe_compared(plan: Plan) -> str:
    """Return which targets are compared, as in `2.0.0 and 2.13.0 against 1.14.0`."""
    baseline, *others = map(str, plan.targets)
    if not others:
        return baseline
    pairing = find_pairing(plan)
    if pairing == "all":
        return f"{len(plan.targets)} targets, each against all others"
    against = f"against {baseline}"
    if pairing == "neighbours":
        against = f"each against the one before, from {baseline} on"
    if len(others) > MOST_NAMED:
        return f"{len(others)} targets{', ' if pairing == 'neighbours' else ' '}{against}"
    *first, last = others
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"{listed}{', ' if pairing == 'neighbours' else ' '}{against}"


def draw_block(block: CaseBlock, width: int, closing: Sequence[ClosingRow] = ()) -> Iterator[RenderableType]:
    """Yield as many grids as it takes for all versions to fit into the width, each with as many as fit.

    A table inside targets leaves out its intervals instead, if it fits then: it repeats what the main table begins.
    """
    left = block.targets
    short = len(left) >= MANY_VERSIONS
    if block.is_inside and left and not short:
        short = _draw(block, left, closing, short=False).full_width > width
    while left:
        count = len(left)
        while count > 1 and _draw(block, left[:count], closing, short=short).least_width > width:
            count -= 1
        yield _draw(block, left[:count], closing, short=short)
        left = left[count:]


def _draw(block: CaseBlock, targets: Sequence[Target], closing: Sequence[ClosingRow], *, short: bool) -> Grid:
    words = [word for row in (*block.rows, *closing) for word in row.name.split()]
    times = [str(block.baseline)] if block.has_times else []
    grid = Grid(
        title=Text(),
        headers=("" if times else block.title, *times, *map(str, targets)),
        right=(False, *(True for _ in times), *(False for _ in targets)),
        # A word never breaks.
        narrowest=max(map(len, words), default=1),
    )
    for row in (*block.ranked, *closing):
        cells = [_draw_cell(row.cell(target), short=short) for target in targets]
        grid.add(row.name, *([row.time] if times else []), *cells)
    return grid


def _draw_cell(cell: CaseCell, *, short: bool) -> str | Text:
    if not cell.mark and cell.word:
        return cell.word
    more = "" if short else cell.more
    figure = cell.figure.ljust(RATIO_WIDTH) if more and cell.figure else cell.figure
    text = f"{cell.mark or ' '} {' '.join(filter(None, (figure, more)))}{cell.notes}"
    if cell.verdict is None:
        return cell.word or (text if cell.figure else "")
    return Text(text, style=STYLES[cell.verdict])


def _name_time(plan: Plan) -> str:
    return f"{'CPU time' if plan.judge == 'cpu' else 'time'} {'of the program' if plan.program else 'per step'}"


def _case_rows(block: CaseBlock) -> list[CaseRow]:
    return [row for row in block.rows if isinstance(row, CaseRow)]


def _describe_run(evaluation: Evaluation) -> Iterator[str]:
    """Yield what was measured, and where; and which machine measured which cases, if there were several."""
    rounds = sorted({arm.rounds for arm in evaluation.arms if arm.rounds})
    several = f"{rounds[0]} to {rounds[-1]} rounds" if len(rounds) > 1 else ""
    count = several or (format_count(rounds[0], "round") if rounds else "")
    took = format_minutes_seconds(evaluation.seconds) if evaluation.seconds else ""
    # The rounds and the time say it already, unless the run ended before its budget did.
    ended = evaluation.ended_by_budget
    is_full = ended.startswith("the budget of ") and bool(took)
    parts = (
        describe_machine(evaluation),
        count,
        f"{took}, budget spent" if is_full else took,
        "" if is_full else ended,
    )
    yield " · ".join(filter(None, parts))
    yield from describe_hosts(evaluation.manifest, MOST_CASES)


def _legend(
    evaluation: Evaluation, blocks: Sequence[CaseBlock], closing: Sequence[ClosingRow], below: Sequence[str]
) -> Iterator[str]:
    """Yield what the marks mean that are shown, and where the rest is."""
    rows: Iterable[CaseRow | ClosingRow] = (*(row for block in blocks for row in _case_rows(block)), *closing)
    targets = evaluation.plan.targets
    shown = {cell.mark for row in rows for cell in map(row.cell, targets) if cell.verdict}
    within = f" within {format_margin(evaluation.plan.margin)}"
    marks = [
        f"{mark} {verdict}{within if verdict == 'same' else ''}"
        for verdict, mark in MARKS.items()
        if shown.intersection((mark, SMALL_MARKS[verdict]))
    ]
    described = dict.fromkeys(line for block in blocks for line in block.describe_marks(evaluation.plan.alpha))
    marks += [line.partition(":")[0] for line in described if not line.startswith(STAR)]
    yield " · ".join(filter(None, ["  ".join(marks), *below]))
    yield from (line for line in described if line.startswith(STAR))


def _describe_rest(inside: CaseBlock | None, facts: Sequence[Text]) -> str:
    """Say where the details are, and what only they have."""
    rest = []
    if inside:
        pairs = [each for row in _case_rows(inside) for each in row.comparisons.values()]
        differing = sum(each.verdict in ("slower", "faster") for each in pairs)
        rest.append(f"{format_count(len(pairs), 'pair')} inside targets, of which {differing} differ")
    if facts:
        rest.append(format_count(len(facts), "more fact"))
    listed = f" ({'; '.join(rest)})" if rest else ""
    return f"more: --table details{listed}"
