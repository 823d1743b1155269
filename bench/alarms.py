"""How reliable alarms are: simulated nights of many cases on recorded noise, and what other tools find in them.

The cases are screened, confirmed and judged by the very functions that judge real nights. The other tools get the same
series.

An alarm of tfcompare counts when it sets an exit code. For all tools, a step within a week of one that was reported is
the same step. A slowdown counts as found if a slower step is reported on the night of the slowdown or later, and begins
at most three nights before it.
"""

import multiprocessing
import multiprocessing.pool
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from math import sqrt
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from scipy import stats

from bench import alarms_peers, kinds, nights
from bench.alarms_peers import ByNight, Nightly
from bench.figures import Figure, Section
from bench.nights import BEGIN, SCREEN, Cell
from bench.repeated import NOWHERE
from orchestrator.history.alarms import judge, state
from orchestrator.history.alarms import steps as detect
from orchestrator.history.model import AlarmOpened, Event, Key, NightReport, Point, Segment, Series, Value
from orchestrator.history.model import Night as NightOf

SEED = 7
KEY, PINNED = "case{:03}", "2.16.2"
PROCESSES = 2
SPREAD = 0.03
# Of a screened night, and of one round of it.
READINGS = {"3 % from night to night": SPREAD, "3 % from round to round": SPREAD / sqrt(SCREEN)}
# This many hundreds of cases, for four months each.
WORLDS = {SPREAD: 50, SPREAD / sqrt(SCREEN): 20}
CASES, MONTH = 100, 30
# Each history begins with its first night, and lives for four months.
LONG = 120
STEPS = (0.10, 0.05, 0.03)
WITHIN = (1, 3, 6, 14)
# The slowdown comes after three months, in each fifth ten of the cases, which have every noise there is; in this many
# hundreds of cases.
AT, AFTER, REPEATED = 90, 14, 10
SLOWED = tuple(place for place in range(CASES) if place // 10 % 5 == 0)
# Long enough before it that tonight's confirmations are those of a history that is watched.
WATCHED = 30
SAME, EARLY = 7, 3
TARGETS, MOST_FALSE = {0.10: 1, 0.05: 3, 0.03: 6}, 0.05
# The other tools take a third of a second per series and setting: they get fewer nights, and fewer of the cases.
PEERS_FROM, PEERS_WORLDS, PEERS_SLOWED = 60, 2, 40
THRESHOLDS = (0.02, 0.05)
OTAVA = (
    {"max_pvalue": 0.001, "min_magnitude": 0.0},
    {"max_pvalue": 0.001, "min_magnitude": 0.02},
    {"max_pvalue": 1e-5, "min_magnitude": 0.02},
)
NAMES = (
    "asv, threshold 2 %",
    "asv, its default of 5 %",
    "otava, its defaults",
    "otava, magnitude 2 %",
    "otava, magnitude 2 %, p 0.00001",
)


@dataclass(frozen=True)
class Task:
    seed: int
    spread: float
    nights: int
    since: int
    step: float = 0.0
    # One of `bench.kinds`, instead of the recorded noise.
    kind: str = ""


@dataclass(frozen=True)
class Watched:
    """The results for the cases of a task: alarms that set an exit code, and those of any kind, night by night.

    `more` is the ratio of the rounds for confirmations to those for screening, `kept` the series with, `screened`
    those without confirmations.
    """

    task: Task
    found: list[ByNight]
    opened: list[ByNight]
    more: float
    kept: list[Nightly]
    screened: list[Nightly]


def watch(task: Task) -> Watched:
    """Simulate a task night after night.

    All cases are screened. The suspects are confirmed until that is settled; then the night is judged as a real one is.
    """
    rng = np.random.default_rng((SEED, task.seed))
    at = AT if task.step else None
    kind = kinds.KINDS[task.kind] if task.kind else kinds.Kind()
    if task.kind:
        cells = kinds.cells(kind, rng, CASES, task.nights, task.step, at, SLOWED)
    else:
        cells = nights.cells(rng, CASES, task.nights, task.spread, task.step, at, SLOWED)
    world = _World([_Watched(place, cell, kind) for place, cell in enumerate(cells)])
    for night in range(task.nights):
        world.live(night, judged=night >= task.since)
    return Watched(
        task=task,
        found=world.found,
        opened=world.opened,
        more=world.spent / CASES / (task.nights - task.since),
        kept=[_nightly(case.series, task) for case in world.cases],
        screened=[_nightly([night.screened for night in cell.series], task) for cell in cells],
    )


class _Watched:
    """A case as the history has it: its series, that of the control arm, and its points."""

    def __init__(self, place: int, cell: Cell, kind: kinds.Kind) -> None:
        version = PINNED if kind.pinned and place % 2 else "nightly"
        self.key = Key.parse(KEY.format(place), version, "2.13", "cpu", "venv", "host")
        self.cell, self.boot = cell, kind.boot
        self.series: list[Value] = []
        self.control: list[Value] = []
        self.points: list[Point] = []

    def screen(self, night: int) -> None:
        self.series.append(self.cell.series[night].screened)
        self.control.append(self.cell.control[night].screened)
        self.points.append(_point(self.key, self.series[-1], night // self.boot if self.boot else 0))

    def confirm(self, night: int, number: int) -> None:
        self.series[-1] = self.cell.series[night].confirmed[number]
        self.control[-1] = self.cell.control[night].confirmed[number]

    @property
    def segment(self) -> Segment:
        return Segment(values=tuple(self.series), control=tuple(self.control))

    @property
    def whole(self) -> Series:
        return Series(key=self.key, segments=(self.segment,), points=tuple(self.points))


class _World:
    """All cases of a machine, what was reported of each, and the rounds of confirmations, in screens."""

    def __init__(self, cases: list[_Watched]) -> None:
        self.cases = cases
        self.by_key = {case.key: case for case in cases}
        self.places = {case.key: place for place, case in enumerate(cases)}
        self.found: list[ByNight] = [[] for _ in cases]
        self.opened: list[ByNight] = [[] for _ in cases]
        self.events: list[Event] = []
        self.spent = 0

    def live(self, night: int, *, judged: bool) -> None:
        for case in self.cases:
            case.screen(night)
        if judged:
            self._judge(night, self._confirm(night))

    def _confirm(self, night: int) -> list[Key]:
        cells = {case.key: case.segment for case in self.cases}
        suspects, wander = detect.suspects(cells), detect.find_wander(cells)
        first = chosen = list(detect.limit_suspects(suspects, CASES))
        for number, times in enumerate(detect.CONFIRM_TIMES):
            for key in chosen:
                self.by_key[key].confirm(night, number)
            self.spent += len(chosen) * times
            chosen = list(detect.find_unsettled({key: self.by_key[key].segment for key in chosen}, wander))
        return first

    def _judge(self, night: int, suspects: Sequence[Key]) -> None:
        alarms = state.current(self.events)
        # What is no suspect and has no open alarm has nothing new.
        own = {*suspects, *(alarm.key for alarm in filter(state.is_open_alarm, alarms))}
        today = BEGIN + timedelta(night)
        now = datetime.combine(today, time(6), UTC)
        verdict = judge.judge_night(
            {case.key: case.whole for case in self.cases}, alarms, today, now, own, Path("runs")
        )
        self.events += verdict.events
        report = judge.report_events(NightReport(night=_night(now)), verdict, state.current(self.events), today)
        opened = [event.alarm for event in verdict.events if isinstance(event, AlarmOpened)]
        for alarms, found in ((report.certain, self.found), (opened, self.opened)):
            for alarm in alarms:
                first = (alarm.change.first - BEGIN).days
                found[self.places[alarm.key]].append((night, [(first, alarm.change.direction == "slower")]))


def _point(key: Key, value: Value, boot: int) -> Point:
    return Point(
        night=value.night, started=datetime.combine(value.night, time(2), UTC), run=f"{value.night:%Y%m%d}",
        stage="screen", suite="made", host=key.host, engine=key.engine, device=key.device,
        reference=str(key.reference), target=str(key.target),
        build=PINNED if key.target == PINNED else f"2.22.0.dev{value.night:%Y%m%d}",
        case=key.case, outcome="measured", reason="", effect=value.effect, error=value.error, rounds=value.rounds,
        verdict="inconclusive", metric="time",
        reference_figure=1.0, target_figure=1.0, commit="", judge="wall",
        surroundings=replace(NOWHERE, boot=f"2026-01-01 08:00 UTC boot-{boot}"),
    )  # fmt: skip


def _night(now: datetime) -> NightOf:
    return NightOf(
        at=now, night=now.date(), started=now, host="host", suite="made", targets=("nightly",), run="made",
        outcome="measured", said=(), cells=CASES, screened=CASES, confirmed=0, exit_code=0,
        device="cpu", engine="venv", selected=(), flags=(),
    )  # fmt: skip


def _nightly(values: Sequence[Value], task: Task) -> Nightly:
    since = AT if task.step else PEERS_FROM
    return Nightly(tuple(value.effect for value in values), tuple(value.error for value in values), since)


def told(by_night: ByNight) -> list[tuple[int, int, bool]]:
    """Return each alarm: the night it was reported, where it begins, and whether it is slower."""
    alarms: list[tuple[int, int, bool]] = []
    for night, found in by_night:
        for first, slower in found:
            if all(abs(first - known) > SAME for _, known, _ in alarms):
                alarms.append((night, first, slower))
    return alarms


def delay(by_night: ByNight) -> int | None:
    """Return the number of nights until a slowdown was reported, counting the first; None if it was not."""
    own = (night for night, first, slower in told(by_night) if slower and night >= AT and first >= AT - EARLY)
    return next((night - AT + 1 for night in own), None)


@dataclass(frozen=True)
class Record:
    """What a tool reported: the false alarms over this many months of a case, and the nights to find each step."""

    name: str
    false: int
    months: float
    delays: dict[float, list[int | None]]

    @property
    def rate(self) -> str:
        """False alarms per month and 100 cases, with their limits."""
        return f"{100 * self.false / self.months:.3g} ({self.limits})"

    @property
    def limits(self) -> str:
        """The exact interval of a share of this many months of a case."""
        months = round(self.months)
        bounds = stats.binomtest(min(self.false, months), months).proportion_ci(method="exact")
        return f"{100 * bounds.low:.2g} to {100 * bounds.high:.2g}"

    def median(self, step: float) -> float:
        return statistics.median(AFTER + 1 if nights is None else nights for nights in self.delays[step])

    def row(self) -> str:
        cells = [self.name, self.rate]
        for step, delays in self.delays.items():
            median = self.median(step)
            shares = (sum(one is not None and one <= limit for one in delays) / len(delays) for limit in WITHIN)
            word = f"> {AFTER}" if median > AFTER else f"{median:g}"
            cells.append(f"{word} ({', '.join(f'{share:.0%}' for share in shares)})")
        return f"| {' | '.join(cells)} |"


def table(records: Iterable[Record]) -> list[str]:
    within = ", ".join(map(str, WITHIN))
    heads = ["", "false alarms a month and 100 cases", *(f"+{step:.0%}" for step in STEPS)]
    return [
        f"Median nights to find, and in brackets the share found within {within} nights:",
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
        *(record.row() for record in records),
    ]


def section() -> Section:
    lines = _told_of_noise()
    figures: list[Figure] = []
    with multiprocessing.Pool(PROCESSES) as pool:
        for reading, spread in READINGS.items():
            quiet = _done(pool.imap(watch, _quiet(spread)), f"alarms, {reading}: quiet")
            slowed = _done(pool.imap(watch, _slowed(spread)), f"alarms, {reading}: slowed")
            own = _own(quiet, slowed)
            lines += ["", f"### Noise of {reading}"]
            figures += _figures(f"noise of {reading}", own, quiet)
            others = []
            for kind in ("screened", "kept"):
                others += _others(pool, quiet, slowed, kind)
                print(f"alarms, {reading}: others, {kind}", file=sys.stderr)
            lines += ["", *table([own, *others]), "", *_as_soon(own, others)]
    return Section("\n".join(lines), figures)


def _quiet(spread: float) -> list[Task]:
    return [Task(seed, spread, LONG, 0) for seed in range(WORLDS[spread])]


def _slowed(spread: float) -> list[Task]:
    tasks = [(step, number) for step in STEPS for number in range(REPEATED)]
    return [Task(1000 + place, spread, AT + AFTER, AT - WATCHED, step) for place, (step, _) in enumerate(tasks)]


def _done(found: Iterable[Watched], what: str) -> list[Watched]:
    begun, done = monotonic(), []
    for one in found:
        done.append(one)
        if len(done) % 10 == 0:
            print(f"{what}: {len(done)}, {monotonic() - begun:.0f} s", file=sys.stderr)
    return done


def _own(quiet: Sequence[Watched], slowed: Sequence[Watched]) -> Record:
    return Record(
        name="tfcompare",
        false=sum(len(told(cell)) for world in quiet for cell in world.found),
        months=sum(len(world.found) * world.task.nights / MONTH for world in quiet),
        delays={step: [delay(cell) for cell in _slowed_of(slowed, step, "found")] for step in STEPS},
    )


def _slowed_of(slowed: Sequence[Watched], step: float, kind: str) -> list[Any]:
    return [getattr(world, kind)[place] for world in slowed if world.task.step == step for place in SLOWED]


def _others(
    pool: multiprocessing.pool.Pool, quiet: Sequence[Watched], slowed: Sequence[Watched], kind: str
) -> list[Record]:
    """Run the other tools under each setting, on the series with or without the rounds of confirmations."""
    calm = [one for world in quiet[:PEERS_WORLDS] for one in getattr(world, kind)]
    by_step = {step: _slowed_of(slowed, step, kind)[:PEERS_SLOWED] for step in STEPS}
    everything = [calm, *by_step.values()]
    found_by = by_tools(pool, [one for group in everything for one in group])
    months = len(calm) * (LONG - PEERS_FROM) / MONTH
    ending = {"screened": "", "kept": ", with confirmed rounds"}[kind]
    records = []
    for name, of_tool in zip(NAMES, found_by, strict=True):
        found = iter(of_tool)
        false = sum(len(told(next(found))) for _ in calm)
        delays = {step: [delay(next(found)) for _ in group] for step, group in by_step.items()}
        records.append(Record(name + ending, false, months, delays))
    return records


def by_tools(pool: multiprocessing.pool.Pool, series: Sequence[Nightly]) -> list[list[ByNight]]:
    """Return what each of the other tools finds in each series."""
    first = pool.starmap(alarms_peers.by_asv, [(one, THRESHOLDS) for one in series])
    python = alarms_peers.otava()
    chunks = [series[start::PROCESSES] for start in range(PROCESSES)]
    parts = pool.starmap(alarms_peers.by_otava, [(python, chunk, OTAVA) for chunk in chunks])
    second: list[list[ByNight]] = [[] for _ in series]
    for start, part in enumerate(parts):
        second[start::PROCESSES] = part
    tools = zip(*([*by_asv, *by_otava] for by_asv, by_otava in zip(first, second, strict=True)), strict=True)
    return [list(of_tool) for of_tool in tools]


def _figures(reading: str, own: Record, quiet: Sequence[Watched]) -> list[Figure]:
    """Return the figures of a reading of the noise; night 1 is the first one that is slower."""
    more = statistics.fmean(world.more for world in quiet)
    false, detail = 100 * own.false / own.months, f"{own.limits}, of {own.months / 100:.0f} months of 100 cases"
    figures = [Figure(f"{reading}: false alarms a month and 100 cases", false, "count", "least", MOST_FALSE, detail)]
    for step, target in TARGETS.items():
        figures.append(
            Figure(f"{reading}: +{step:.0%} found, the median night", own.median(step), "count", limit=target)
        )
    return [*figures, Figure(f"{reading}: rounds in addition to screens, where nothing changed", more, "share")]


def _as_soon(own: Record, others: Sequence[Record]) -> list[str]:
    """Name the tools that find all steps as soon: fewer false alarms are no merit if steps are found later."""
    soon = [other for other in others if all(other.median(step) <= own.median(step) for step in STEPS)]
    if not soon:
        return ["None of the others finds all three steps as soon, with any of these settings."]
    named = "; ".join(f"{other.name}, with {other.rate}" for other in soon)
    return [f"All three steps are found as soon, at the median, by: {named}. tfcompare: {own.rate}."]


def _told_of_noise() -> list[str]:
    times = ", ".join(map(str, detect.CONFIRM_TIMES))
    return [
        f"Simulated nights of {CASES} cases on the noise of `bench/recorded.json`, drawn in blocks of {nights.BLOCK}",
        f"rounds, {SCREEN} rounds per screen, and confirmations of {times} times as many for",
        f"what is not settled, for at most {CASES // detect.MOST_AGAIN} cases per night; the control arm is",
        f"drawn as well. Of a screened night's variance {nights.share():.0%} is the night's own, in the series and in",
        f"the control arm: no rounds average it out. A history begins with its first night and lives {LONG} nights;",
        f"slowdowns come on night {AT + 1}, in {len(SLOWED)} of a hundred cases. Noise of 3 % is read twice: as what a",
        "screened night strays, and as what a round does. The others get the series of nights, once as screened and",
        f"once as tfcompare kept them with its confirmations, of {PEERS_WORLDS * CASES} of the same cases, and of",
        f"{PEERS_SLOWED} of the slowed ones a step, from night {PEERS_FROM + 1} on, and are run again every night. asv",
        "finds what is slower only. All are judged by the same rule: a step that begins within a week of one already",
        f"reported is the same one, and a slowdown is found by a step that begins at most {EARLY} nights before it.",
    ]
