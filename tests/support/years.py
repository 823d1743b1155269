"""A year of nights of a machine: what it measures, what it confirms, and what the judge makes of it.

Weekends stray, the machine restarts now and then, one case becomes slower, another one faster, one vanishes, and
one nightly cannot be imported. No constant of the judge was set by these nights.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pyarrow as pa

from orchestrator.history.alarms import judge, state, steps
from orchestrator.history.model import Event, Key, Night, NightReport, Point, Series
from orchestrator.history.schema import to_table
from orchestrator.history.series import all_arrays
from orchestrator.history.store import Store
from orchestrator.history.surroundings import is_weekend
from tests.support.nights import SURROUNDINGS

FIRST = date(2025, 1, 1)
NIGHTS = 365
HOST, REFERENCE = "9f8e7d6c5b4a", "2.13.0"
CASES = tuple(
    f"train_loop[loop={loop},model={model}]" for loop in ("fit", "custom") for model in ("small", "large", "wide")
)
SLOWER, FASTER, GONE = CASES[1], CASES[3], CASES[5]
# From which night on, counted from 0, and by how much.
STEP, RISE, DROP = {SLOWER: 120, FASTER: 200, GONE: 250}, 0.03, -0.08
BROKEN = 300
BROKEN_REASON = "start: import failed: ImportError: libtensorflow_cc.so.2: undefined symbol"
REBOOTS = (55, 100, 160, 230, 330)
ROUNDS = 10
# On the log scale: of a round, of a night, and the most that a start of the machine and a weekend move a case.
ROUND, OF_NIGHT, OF_BOOT, OF_WEEKEND = 0.03, 0.004, 0.01, 0.04


@dataclass
class Year:
    """What has happened so far; `reports` are those of the nights, in order."""

    seed: int
    points: list[Point] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    reports: list[NightReport] = field(default_factory=list)
    table: pa.Table = field(default_factory=lambda: to_table([]))

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        boots = [{case: self.draw.uniform(-OF_BOOT, OF_BOOT) for case in CASES} for _ in range(len(REBOOTS) + 1)]
        weekend = {case: self.draw.uniform(-OF_WEEKEND, OF_WEEKEND) for case in CASES}
        self.level = [
            {
                case: boots[boot_of(number)][case]
                + (weekend[case] if is_weekend(day(number)) else 0.0)
                + self.draw.gauss(0, OF_NIGHT)
                + (RISE if case == SLOWER and number >= STEP[SLOWER] else 0.0)
                + (DROP if case == FASTER and number >= STEP[FASTER] else 0.0)
                for case in CASES
            }
            for number in range(NIGHTS)
        ]

    def live(self) -> None:
        for number in range(NIGHTS):
            screened = list(self._measure(number, CASES, "screen", ROUNDS))
            self._keep(screened)
            again = self._confirm(number, {point.key for point in screened if point.has_value})
            self._judge(number, {point.key for point in screened}, again)

    def _measure(self, number: int, cases: Sequence[str], stage: str, rounds: int) -> Iterator[Point]:
        night = day(number)
        started = datetime.combine(night, time(2 if stage == "screen" else 3, self.draw.randrange(60)), UTC)
        build = f"2.22.0.dev{night:%Y%m%d}"
        boot = f"{booted(number)} 20:00 UTC boot-{boot_of(number)}"
        around = replace(SURROUNDINGS, boot=boot, kernel="6.1", machine="A CPU")
        usual = Point(
            night=night, started=started, run=f"{started:%Y%m%d-%H%M%S}-{number:04x}", stage=stage, suite="quick",
            host=HOST, engine="venv", device="cpu", reference=REFERENCE, target="", build="", case="",
            outcome="measured", reason="", effect=None, error=None, rounds=rounds, verdict="inconclusive",
            metric="time", reference_figure=10.0, target_figure=None, surroundings=around, commit="", judge="wall",
        )  # fmt: skip
        for case in cases:
            if case == GONE and number >= STEP[GONE]:
                continue
            for version, level in (("nightly", 0.2 + self.level[number][case]), (f"{REFERENCE}+control", 0.0)):
                named = replace(usual, case=case, target=version, build=version)
                if version == "nightly":
                    named = replace(named, build=build, surroundings=replace(around, image=f"venv-{build}"))
                if number == BROKEN and version == "nightly":
                    yield replace(named, outcome="died", reason=BROKEN_REASON, rounds=0)
                    continue
                effect = level + self.draw.gauss(0, ROUND / math.sqrt(rounds))
                error = (
                    ROUND / math.sqrt(rounds) * math.sqrt(self.draw.gammavariate((rounds - 1) / 2, 2 / (rounds - 1)))
                )
                yield replace(
                    named,
                    effect=effect,
                    error=error,
                    target_figure=10 * math.exp(effect),
                )

    def _keep(self, points: Sequence[Point]) -> None:
        self.points += points
        self.table = pa.concat_tables([self.table, to_table(points)]).combine_chunks()

    def _confirm(self, number: int, screened: set[Key]) -> int:
        cells = self._segments(screened)
        wander = steps.find_wander(cells)
        chosen: Sequence[Key] = steps.limit_suspects(steps.suspects(cells), len(CASES))
        first = len(chosen)
        for times in steps.CONFIRM_TIMES:
            if not chosen:
                break
            self._keep(
                list(self._measure(number, list(dict.fromkeys(key.case for key in chosen)), "confirm", ROUNDS * times))
            )
            chosen = steps.find_unsettled(self._segments(set(chosen)), wander)
        return first

    def _segments(self, keys: set[Key]):
        by_key = all_arrays(self.table)
        own = sorted(key for key in keys if not key.is_control)
        return {key: by_key[key].segments(by_key[key.control].nightly.objects())[-1] for key in own}

    def _series(self) -> dict[Key, Series]:
        """Return what `all_series` does, which would build every point again each night."""
        by_key = all_arrays(self.table)
        controls = {key: arrays.nightly.objects() for key, arrays in by_key.items() if key.is_control}
        return {
            key: Series(
                key=key,
                segments=arrays.segments(controls.get(key.control, ())),
                points=tuple(self.points[row] for row in arrays.rows.tolist()),
            )
            for key, arrays in by_key.items()
        }

    def _judge(self, number: int, own: set[Key], again: int) -> None:
        today, now = day(number), datetime.combine(day(number), time(6), UTC)
        alarms = state.current(self.events)
        verdict = judge.judge_night(
            self._series(), alarms, today, now, own, Path("runs"), {point.run for point in self.points}
        )
        cells = len(own) // 2
        night = Night(
            at=now, night=today, started=now - timedelta(hours=4), host=HOST, suite="quick",
            targets=("2.13", "nightly"), run=self.points[-1].run, outcome="measured", said=verdict.notes, cells=cells,
            screened=cells, confirmed=again, exit_code=5 if number == BROKEN else 0, device="cpu", engine="venv",
            selected=(), flags=(),
        )  # fmt: skip
        self.events += [*verdict.events, night]
        self.reports.append(judge.report_events(NightReport(night=night), verdict, state.current(self.events), today))

    def kept_in(self, store: Store) -> None:
        by_night: dict[date, list[Point]] = {}
        for point in self.points:
            by_night.setdefault(point.night, []).append(point)
        for points in by_night.values():
            store.append(points)
        for event in self.events:
            store.record(event)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def boot_of(number: int) -> int:
    return sum(number >= reboot for reboot in REBOOTS)


def booted(number: int) -> date:
    """The day before the first night after a start."""
    return day(max((reboot for reboot in REBOOTS if reboot <= number), default=0)) - timedelta(days=1)
