"""Alarms on nights of other kinds than those that set the detector's constants (bench.kinds), next to asv and otava."""

import multiprocessing
import multiprocessing.pool
import statistics
from collections.abc import Sequence

from bench import alarms_peers
from bench.alarms import (
    AFTER,
    AT,
    CASES,
    LONG,
    MONTH,
    NAMES,
    PEERS_FROM,
    PROCESSES,
    SLOWED,
    WATCHED,
    Record,
    Task,
    Watched,
    by_tools,
    delay,
    told,
    watch,
)
from bench.figures import Figure, Section
from bench.kinds import KINDS

STEP = 0.05
# Of hundreds of cases, for four months each.
WORLDS = 3
MOST_FALSE = 1.0
# The other tools take long: they get fewer cases.
FEW = 40


def section() -> Section:
    # What cannot be installed is better known before an hour has passed.
    alarms_peers.otava()
    with multiprocessing.Pool(PROCESSES) as pool:
        quiet = pool.map(watch, [_task(kind, number) for kind in KINDS for number in range(WORLDS)])
        slowed = pool.map(watch, [Task(900, 0.0, AT + AFTER, AT - WATCHED, STEP, kind) for kind in KINDS])
        lines = [
            f"{CASES * WORLDS} cases of each kind for {LONG} nights, {CASES * WORLDS * LONG // MONTH} case-months, and",
            f"{len(SLOWED)} that become {STEP:.0%} slower on night {AT + 1}. Rounds stray by 3 % unless the kind says",
            "otherwise; screens, confirmations and judging are those of a real night; an alarm counts when it sets an",
            "exit code, and in the column of any kind whatever it is: provisional and known ones as well. None of",
            "these kinds set a constant. A drift is a true change, and is reported in steps. A start of the machine",
            "explains at most 3 %, and only next to a version that stays the same: what it does to a nightly alone is",
            "an alarm that names it.",
            "",
            f"| nights | alarms of any kind | rounds more | nights to +{STEP:.0%} | missed |",
            "|---|---|---|---|---|",
        ]
        figures: list[Figure] = []
        for kind in KINDS:
            worlds = [world for world in quiet if world.task.kind == kind]
            row, figure = _row(kind, worlds, next(world for world in slowed if world.task.kind == kind))
            lines.append(row)
            figures.append(figure)
        lines += ["", *_of_others(pool, quiet)]
    return Section("\n".join(lines), figures)


def _task(kind: str, number: int) -> Task:
    return Task(800 + number, 0.0, LONG, 0, 0.0, kind)


def _row(kind: str, quiet: Sequence[Watched], slowed: Watched) -> tuple[str, Figure]:
    false = sum(len(told(cell)) for world in quiet for cell in world.found)
    delays = [delay(slowed.found[place]) for place in SLOWED]
    record = Record(kind, false, sum(len(world.found) * world.task.nights / MONTH for world in quiet), {STEP: delays})
    more = statistics.fmean(world.more for world in quiet)
    median = record.median(STEP)
    missed = sum(nights is None or nights > AFTER for nights in delays)
    opened = sum(len(told(cell)) for world in quiet for cell in world.opened)
    rate = 100 * record.false / record.months
    figure = Figure(f"{kind}: false alarms a month and 100 cases", rate, "count", "least", MOST_FALSE, record.limits)
    cells = [kind, f"{100 * opened / record.months:.3g}", f"{more:.0%}"]
    return (
        f"| {' | '.join(cells)} | {'> ' * (median > AFTER)}{min(median, AFTER):g} | {missed} of {len(delays)} |",
        figure,
    )


def _of_others(pool: multiprocessing.pool.Pool, quiet: Sequence[Watched]) -> list[str]:
    """Return a table of the false alarms of the other tools in the screened nights of some of the same cases."""
    calm = {kind: [one for world in quiet if world.task.kind == kind for one in world.screened][:FEW] for kind in KINDS}
    found_by = by_tools(pool, [one for of_kind in calm.values() for one in of_kind])
    months = FEW * (LONG - PEERS_FROM) / MONTH
    rows = []
    for place, kind in enumerate(KINDS):
        own = slice(place * FEW, (place + 1) * FEW)
        counts = [sum(len(told(by_night)) for by_night in of_tool[own]) for of_tool in found_by]
        rows.append(f"| {kind} | {' | '.join(f'{100 * count / months:.3g}' for count in counts)} |")
    return [
        f"The other tools, in the screened nights of {FEW} of these cases from night {PEERS_FROM + 1} on, which are",
        f"{months:.0f} case-months of each kind; false alarms a month and 100 cases:",
        "",
        f"| | {' | '.join(NAMES)} |",
        "|---" * (len(NAMES) + 1) + "|",
        *rows,
    ]
