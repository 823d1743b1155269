"""The pilot: one visit of every case, from which each arm's effort and the length of a round follow."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

from orchestrator.contract import PILOT_ROUND
from orchestrator.measure.round_range import RoundRange
from orchestrator.measure.visit import Group, TimedArm, Visit, Visitor
from orchestrator.metrics import METRICS
from orchestrator.metrics.table import FEWEST_FOR_PERCENTILES, PERCENTILES
from orchestrator.model import Arm, ArmKey, Calibrated, Plan
from orchestrator.plan.pairs import FURTHER_LOOKS, has_single_call_visits
from orchestrator.results.more_rounds import RESERVE
from orchestrator.stats import calibrate
from orchestrator.stats.calibrate import count_calls
from orchestrator.stats.comparisons import DIFFERENCE_ERROR
from orchestrator.stats.looks import FEWEST_ROUNDS, Stretch, make_schedule
from orchestrator.stats.paired import detectable, freedom_of
from orchestrator.stats.slowdown import LARGEST_SHOWN, format_margin
from orchestrator.stats.verdict import rounds_for, smallest_shown
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.durations import format_budget, format_minutes, format_minutes_seconds

# What rounds differ by even where bursts do not; a pilot of one visit cannot tell it.
BETWEEN_ROUNDS = 0.02
# From this one on, the efforts that a pilot suggests are not generous and have no visits for first calls alone.
USUAL = 3


def patient_cases(plan: Plan) -> frozenset[str]:
    """Return the cases that take the same time according to a claim."""
    expectations = (expectation for claim in plan.claims for expectation in claim.expectations)
    pairs = (expectation.pair for expectation in expectations if expectation.effect == "same")
    return frozenset(label for pair in pairs if pair.metric == "time" for label, _ in pair.arms)


def cold_cases(plan: Plan) -> frozenset[str]:
    """Return the cases whose building or first call is compared: a pilot opens them cold, and is no round of theirs."""
    return frozenset(label for pair in plan.pairs if pair.metric in ("first", "build") for label, _ in pair.arms)


@dataclass(frozen=True)
class Calibration:
    """What the pilot of a group suggests for its rounds: efforts from the fullest down to what the pilot itself did.

    The first ones have more slow calls where these scatter, or visits for first calls alone. They are for a budget that
    holds enough rounds.
    """

    group: Group
    visit: Visit
    efforts: Sequence[Mapping[Arm, calibrate.Effort]]
    may_count: bool
    # That its cases had before, by case.
    rounds: Mapping[str, int]

    def is_round(self, efforts: Mapping[Arm, calibrate.Effort]) -> bool:
        """Return whether the pilot is a round of these efforts: every arm did what it will do, and undisturbed."""
        alike = all(_is_alike(self.visit.timed[arm], effort) for arm, effort in efforts.items())
        return self.may_count and alike and not self.visit.cause and not self.visit.is_divided

    def record(self, visitor: Visitor, efforts: Mapping[Arm, calibrate.Effort]) -> None:
        """Journal the efforts of these arms; of several records of an arm the last one counts."""
        counts = self.is_round(efforts)
        for arm, effort in efforts.items():
            visitor.session.folder.record(
                Calibrated(case=arm.case.label, target=arm.target, counts=counts, **asdict(effort))
            )


def calibrate_group(visitor: Visitor, group: Group, order: Sequence[Arm], *, may_count: bool) -> Calibration:
    """Visit the cases of a group once, and find the efforts of those arms that have none."""
    visit, progress = visitor.visit(order, PILOT_ROUND), visitor.progress
    if visit.lacks_arm:
        visit = visitor.visit([arm for arm in order if arm.key not in progress.ended], PILOT_ROUND)
    new = [arm for arm in visit.timed if arm.key not in progress.efforts]

    def effort(arm: Arm, *, modest: bool) -> calibrate.Effort:
        if visitor.plan.program:
            return calibrate.ONCE
        return calibrate.effort(
            visit.timed[arm].pilot, patient=arm.case.label in visitor.patient, modest=modest,
            least_burst_s=visitor.least_burst_s,
        )  # fmt: skip

    wanted, modest = (
        {arm: progress.efforts.get(arm.key) or effort(arm, modest=modest) for arm in visit.timed}
        for modest in (False, True)
    )
    # The calls that the metrics need that the whole run or a pair of these arms compares.
    keys = {arm.key for arm in wanted}
    of_pairs = (pair.metric for pair in visitor.plan.pairs if keys.intersection(pair.arms))
    compared = (*visitor.plan.metrics, *of_pairs) if keys else ()
    least_calls = max((METRICS[metric].least_calls for metric in compared), default=0)
    call_s = {arm: timed.pilot.call_s for arm, timed in visit.timed.items()}
    as_pilot = {arm: replace(visit.timed[arm].effort, calls=effort.calls) for arm, effort in wanted.items()}
    generous, usual, least = (calibrate.align_efforts(each, call_s, least_calls) for each in (wanted, modest, as_pilot))
    # How often a round visits all of these arms again for their first call alone.
    once = 0
    if has_single_call_visits(visitor.plan):
        whole_s = sum(calibrate.replicate_s(timed.pilot, generous[arm]) for arm, timed in visit.timed.items())
        once = calibrate.plan_once(visit.open_s, whole_s)
    fullest, fuller = ({arm: replace(effort, once=once) for arm, effort in each.items()} for each in (generous, usual))
    choices = tuple({arm: each[arm] for arm in new} for each in (fullest, generous, fuller, usual, least))
    return Calibration(
        group, visit, choices, may_count, {arm.case.label: progress.rounds[arm.case.label] for arm in new}
    )


def _is_alike(timed: TimedArm, effort: calibrate.Effort) -> bool:
    """Return whether a pilot did what a round will do; a worker extends a burst by itself until it is long enough."""
    return effort.warmup == 0 and effort.bursts == timed.effort.bursts and effort.calls <= calibrate.MOST_BY_ITSELF


def visit_s(visit: Visit, efforts: Mapping[ArmKey, calibrate.Effort]) -> float:
    """Estimate what a visit of these arms takes in a round."""
    return sum(
        calibrate.replicate_s(timed.pilot, efforts[arm.key]) * len(timed.replicates)
        for arm, timed in visit.timed.items()
    )


def typical_spread(visits: Sequence[Visit], per_round: int) -> float:
    """Estimate by how much the ratio of two arms will differ from round to round, from the bursts of their pilots."""
    spreads = [
        math.sqrt(2 * (BETWEEN_ROUNDS**2 + calibrate.error_of_bursts(timed.pilot) ** 2 / per_round))
        for visit in visits
        for timed in visit.timed.values()
    ]
    return median(spreads) if spreads else 0.0


def prolong(rounds: RoundRange, most: int, fit: int, spread: float, margin: float) -> RoundRange:
    """Return the rounds with as many further looks as show the margin, if the planned ones do not and the budget fits.

    Of `most` rounds, `fit` fit into the budget.
    """
    planned = rounds.looks
    further = [look for look in FURTHER_LOOKS if planned[-1] < look <= min(most, fit)]
    for count in range(len(further) + 1):
        looks = (*planned, *further[:count])
        level = make_schedule([Stretch(looks)]).level(looks[-1], DIFFERENCE_ERROR)
        if smallest_shown(spread, looks[-1], level) <= margin:
            return replace(rounds, looks=looks)
    return rounds


def describe_percentiles(
    plan: Plan, visits: Sequence[Visit], efforts: Mapping[ArmKey, calibrate.Effort], per_round: int
) -> list[str]:
    """Name the percentiles that some case cannot show, with the calls of a round that they need and that it makes."""
    last = plan.looks[-1]
    level = make_schedule([Stretch(plan.looks)]).level(last, DIFFERENCE_ERROR)
    # Of an arm in a round: with it, all rounds together show the margin.
    error = math.log1p(plan.margin) * math.sqrt(last / 2) / detectable(level, freedom_of(last))
    lines = []
    for metric in plan.metrics:
        if metric not in PERCENTILES or last < FEWEST_ROUNDS:
            continue
        lacking = {
            arm.case.label: (needed, made)
            for visit in visits
            for arm, timed in visit.timed.items()
            if (needed := max(count_calls(timed.pilot.calls_ns, PERCENTILES[metric], error), FEWEST_FOR_PERCENTILES))
            > (made := efforts[arm.key].bursts * efforts[arm.key].calls * per_round)
        }
        if lacking:
            case, (needed, made) = max(lacking.items(), key=lambda each: each[1][0] / each[1][1])
            more = f" ({format_count(len(lacking) - 1, 'other case')} also make too few)" if len(lacking) > 1 else ""
            lines.append(
                f"{metric} needs about {needed:,} calls in a round to show {format_margin(plan.margin)}; {case} makes "
                f"{made:,}{more}"
            )
    return lines


def describe_rounds(
    rounds: RoundRange, fit: int, round_s: float, spread: float | None, margin: float, remedy: str = ""
) -> str:
    """Say how many rounds fit into the budget, what they can show, and which budget would show the margin.

    If they are too few for a verdict, `remedy` says what would be enough. Without a budget, say how long the rounds up
    to the first and the last look take. The spread may still be unknown, and with it what rounds can show.
    """
    budget_s, last = rounds.budget_s, rounds.looks[-1]
    length = f"{round_s:.0f}" if round_s >= 10 else f"{round_s:.1f}"
    text = f"a round takes about {length} s"
    if budget_s is None:
        times = [f"{look} rounds about {format_minutes(look * round_s)} min" for look in (rounds.looks[0], last)]
        return f"{text}: {', '.join(dict.fromkeys(times))}"
    fit = min(fit, last)
    count = f"all {last} fit" if fit == last else "1 fits" if fit == 1 else f"{fit} fit"
    text = f"{text}: {count} into the budget of {budget_s:.0f} s"
    schedule = make_schedule([Stretch(rounds.looks, fit)])
    if fit < schedule.fewest:
        # Where too few rounds were asked for, the plan has said so.
        return text if last < schedule.fewest else f"{text}; a verdict needs {schedule.fewest}{remedy}"
    if spread is None:
        return f"{text}; what they can show is known after the first look, in round {rounds.looks[0]}"
    level = schedule.level(fit, DIFFERENCE_ERROR)
    visible = smallest_shown(spread, fit, level)
    shown = "not even a factor of two" if visible > LARGEST_SHOWN else f"differences from about {visible:.0%} on"
    text = f"{text}; they show {shown}"
    needed = rounds_for(spread, margin, level, beyond=fit - 1)
    if needed is None or needed > last or needed == fit:
        return text
    return f"{text}; --budget {format_budget(budget_s + (needed - fit) * round_s)} would show {format_margin(margin)}"


def describe_remedy(needed_s: float, cases: int, first: int, only: Sequence[str]) -> str:
    """Say which budget holds verdicts on all cases if the given one holds those of the `first` few, or of none.

    A run of `only` some of them would get along with the given one.
    """
    budget = f"use --budget {format_budget(needed_s * RESERVE)}"
    took = f"about {format_minutes_seconds(needed_s)}"
    if first:
        return f": {first} of {cases} cases come first and get them; all take {took}: {budget}"
    selected = "".join(f" -c {shlex.quote(label)}" for label in only)
    return f", {took}{' for all cases' if cases > 1 else ''}: {budget}{f', or{selected}' if selected else ''}"
