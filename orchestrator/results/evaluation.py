"""Reads and judges a run folder: the same way at every look during the run and for every report afterwards."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import median

import pyarrow as pa

from orchestrator import contract
from orchestrator.metrics import METRICS, choose_metrics, find_margin, is_counted, scale_of
from orchestrator.metrics.spec import find_figure
from orchestrator.model import (
    Arm,
    ArmKey,
    ArmResult,
    Comparison,
    Evaluation,
    Manifest,
    Metric,
    Pair,
    Plan,
    Replicate,
)
from orchestrator.plan.pairs import metric_pairs, neighbour_pairs, reference_pairs
from orchestrator.results.announced import read_journal_record
from orchestrator.results.counts import INCONCLUSIVE, find_disagreement
from orchestrator.results.endings import Endings, join_endings, summarise_endings
from orchestrator.results.outputs import compare_outputs
from orchestrator.results.parts import number_parts, shift_numbers
from orchestrator.results.replicates import cpu_rise, judge_by_cpu, load_replicates
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.samples import ByArm, find_import_ms, group_by_arm
from orchestrator.results.two_speeds import check_two_speeds, find_two_speeds
from orchestrator.results.warnings import (
    check_control,
    check_crowd,
    check_dependence,
    check_noise,
    check_run,
    is_crowded,
)
from orchestrator.results.whole_report import correct_for_report, find_means, find_set_means
from orchestrator.stats.comparisons import (
    SHORTEST_MS,
    Rises,
    Samples,
    Schedule,
    compare_figures,
    find_dependence_of_rounds,
    judge_pairs,
    leave_open,
)
from orchestrator.stats.drift import drift
from orchestrator.stats.looks import LookSchedule

FIRST_ROUND = 1
POSTPONED = "too few rounds fit into the budget; --resume measures it"


@dataclass(frozen=True)
class RunContents:
    """Contents of a run folder, without discarded replicates."""

    plan: Plan
    manifest: Manifest
    endings: Endings
    replicates: tuple[Replicate, ...]
    # These replicates do not count.
    pilots: tuple[Replicate, ...]
    # The build and the first call of these replicates count.
    openings: tuple[Replicate, ...]
    problems: tuple[str, ...]
    broken: tuple[str, ...]

    @cached_property
    def by_arm(self) -> ByArm:
        return ByArm.of(self.replicates, self.openings)


def gather(run: RunFolder, also: Callable[[pa.Table], None] | None = None, *, at_look: bool = False) -> RunContents:
    """Read a run folder; `also` is called with the rows of each stream, which are not kept.

    If a run is still measuring, only the rounds up to its last look count, unless it is taking a look now. A merged run
    is read part by part.
    """
    if not run.parts:
        return _gather_whole(run, also, at_look=at_look)
    parts = []
    for folder, first in number_parts(run):
        shifted = partial(_pass_on, also, first) if also else None
        part = _gather_whole(folder, shifted, at_look=False)
        replicates, pilots, openings = (
            tuple(each._replace(number=each.number + first) for each in those)
            for those in (part.replicates, part.pilots, part.openings)
        )
        parts.append(replace(part, replicates=replicates, pilots=pilots, openings=openings))
    journal = run.read_journal()
    endings = join_endings(summarise_endings(journal.entries), [(part.plan, part.endings) for part in parts])
    return RunContents(
        plan=run.read_plan(),
        manifest=run.read_manifest(),
        endings=replace(endings, going=endings.finished is None and run.is_held_elsewhere),
        replicates=tuple(each for part in parts for each in part.replicates),
        pilots=tuple(each for part in parts for each in part.pilots),
        openings=tuple(each for part in parts for each in part.openings),
        problems=(*filter(None, [journal.skipped]), *(line for part in parts for line in part.problems)),
        broken=tuple(line for part in parts for line in part.broken),
    )


def _pass_on(also: Callable[[pa.Table], None], first: int, table: pa.Table) -> None:
    also(shift_numbers(table, first))


def _gather_whole(run: RunFolder, also: Callable[[pa.Table], None] | None, *, at_look: bool) -> RunContents:
    """Read a run that was not merged from others."""
    plan, manifest = run.read_plan(), run.read_manifest()
    journal = run.read_journal()
    endings = summarise_endings(journal.entries)
    if endings.finished is None:
        endings = replace(endings, going=at_look or run.is_held_elsewhere)
    announced = read_journal_record(plan, journal)
    loaded = load_replicates(run.worker_output.streams(), plan.run, also, announced)
    missing, unsynced = announced.missing(loaded.unread | endings.unread) if announced else ([], [])
    if loaded.replicates and not run.journal.exists():
        missing.append(f"{run.journal} is missing: it is not known which rounds were disturbed")
    replicates = loaded.replicates
    if plan.judge == "cpu":
        replicates = tuple(map(judge_by_cpu, replicates))
    rounds, pilots = _split_pilots((each for each in replicates if not each.once), endings)
    openings = _find_openings(replicates, rounds, endings)
    plan = replace(plan, looks=endings.looks or plan.looks)
    if endings.going and not at_look:
        looks = endings.schedule(plan.looks).looks
        rounds, openings = _until_look(rounds, looks), _until_look(openings, looks)
    problems = (*filter(None, [journal.skipped]), *loaded.problems, *unsynced)
    return RunContents(
        plan, manifest, endings, rounds, pilots, openings, problems, (*loaded.broken, *endings.broken, *missing)
    )


def _split_pilots(
    replicates: Iterable[Replicate], endings: Endings
) -> tuple[tuple[Replicate, ...], tuple[Replicate, ...]]:
    """Separate the rounds from the pilots; a pilot that counts is its arm's first round."""
    rounds, pilots = [], []
    for replicate in replicates:
        if replicate.number in endings.redone:
            continue
        if replicate.round != contract.PILOT_ROUND:
            rounds.append(replicate)
        elif replicate.number in endings.counted:
            rounds.append(replicate._replace(round=FIRST_ROUND))
        else:
            pilots.append(replicate)
    return tuple(rounds), tuple(pilots)


def _until_look(replicates: Sequence[Replicate], looks: Sequence[int]) -> tuple[Replicate, ...]:
    """Return the replicates of each arm up to the last look that it has reached; before the first, return all."""
    reached: dict[ArmKey, int] = defaultdict(int)
    for each in replicates:
        reached[each.arm] = max(reached[each.arm], each.round)
    last = {arm: max((look for look in looks if look <= rounds), default=rounds) for arm, rounds in reached.items()}
    return tuple(each for each in replicates if each.round <= last[each.arm])


def _find_openings(
    written: Iterable[Replicate], rounds: Iterable[Replicate], endings: Endings
) -> tuple[Replicate, ...]:
    """Return the replicates whose build and first call count: those of rounds, and those that made a single call.

    A pilot that counts as a first round was the first to read its files, so it is left out if that round has others.
    """
    openings = [*rounds, *(each for each in written if each.once and each.number not in endings.redone)]
    warm = {each.arm for each in openings if each.round == FIRST_ROUND and each.number not in endings.counted}
    return tuple(each for each in openings if each.number not in endings.counted or each.arm not in warm)


def judge_run(run: RunFolder, *, at_look: bool = False, metrics: Iterable[str] | None = None) -> Evaluation:
    """Judge a run folder.

    A look delays the measurement, so it judges only what decides whether rounds end. `metrics` replace those of the
    plan that are compared in addition to times.
    """
    gathered = gather(run, at_look=at_look)
    if metrics is not None:
        keys, outputs = choose_metrics(metrics)
        gathered = replace(gathered, plan=replace(gathered.plan, metrics=keys, outputs=outputs))
    return judge_gathered(gathered, flip=not at_look)


def judge_gathered(gathered: RunContents, *, flip: bool = True) -> Evaluation:
    plan, endings = gathered.plan, gathered.endings
    arms, comparisons = compute_comparisons(
        plan, gathered.replicates, endings, gathered.pilots, gathered.openings, flip=flip
    )
    arms = _with_environments(arms, gathered.manifest)
    if flip and plan.judge == "wall":
        comparisons = _add_cpu_times(gathered, comparisons, arms)
    metrics = judge_metrics(gathered, plan.metrics if flip else plan.decides, arms)
    judged = (*comparisons, *(each for of_metric in metrics.values() for each in of_metric))
    of_all = gathered.by_arm.samples(replace(plan, pairs=tuple(each.pair for each in judged)))

    def find_looks(case: str) -> LookSchedule:
        return endings.of(case).schedule(plan.looks)

    speeds = find_two_speeds(gathered.replicates, endings.loads) if flip and plan.judge == "wall" else {}
    judged_alone = Evaluation(
        plan=plan,
        manifest=gathered.manifest,
        arms=arms,
        comparisons=comparisons,
        neighbours=further(gathered, neighbour_pairs(plan, arms), arms) if flip else (),
        references=further(gathered, reference_pairs(plan, arms), arms) if flip else (),
        warnings=(
            *check_control(comparisons),
            *check_noise(plan, comparisons),
            *check_crowd(plan, endings),
            *check_two_speeds(speeds, tuned=not plan.untuned_datasets),
            *check_dependence(
                find_dependence_of_rounds(plan, gathered.by_arm.samples(plan), endings.find_parts(plan.looks))
            ),
            *check_run(plan, gathered.manifest, endings, gathered.problems),
        ),
        broken=gathered.broken,
        crowded=is_crowded(endings),
        ended_by_budget=endings.ended_by_budget,
        seconds=endings.seconds,
        shares=endings.shares,
        metrics=metrics,
        outputs=compare_outputs(plan, gathered.replicates) if flip and plan.outputs else (),
        means=tuple(find_means(plan, judged, of_all, find_looks)) if flip else (),
        set_means=find_set_means(plan, of_all, find_looks),
    )
    # A look judges only what ends rounds, and reports nothing.
    return correct_for_report(judged_alone) if flip else judged_alone


def _add_cpu_times(
    gathered: RunContents, comparisons: Sequence[Comparison], arms: Sequence[ArmResult]
) -> tuple[Comparison, ...]:
    """Add the result of CPU times to each comparison of times; CPU times are judged alike, as a separate family."""
    pairs = {each.pair: replace(each.pair, metric="cpu") for each in comparisons if each.pair.metric == "time"}
    of_cpu = dict(zip(pairs, further(gathered, tuple(pairs.values()), arms), strict=True))
    with_verdicts = gathered.plan.device == "cpu"
    return tuple(
        replace(
            comparison,
            cpu_ratio=cpu.ratio,
            cpu_low=cpu.ci_low,
            cpu_high=cpu.ci_high,
            cpu_spread=cpu.spread,
            cpu_verdict=cpu.verdict if with_verdicts else None,
        )
        if (cpu := of_cpu.get(comparison.pair)) and cpu.has_interval
        else comparison
        for comparison in comparisons
    )


def _with_environments(arms: Sequence[ArmResult], manifest: Manifest) -> tuple[ArmResult, ...]:
    """Add the size of its environment to each arm, measured or not; a control arm has the size of its version's."""
    sizes = {target.name: facts.size_bytes for target, facts in manifest.environments.items() if facts.size_bytes}
    return tuple(
        replace(arm, figures={**arm.figures, "size": float(size)}) if (size := sizes.get(arm.target.name)) else arm
        for arm in arms
    )


def judge_metrics(
    gathered: RunContents, metrics: Sequence[Metric], arms: Sequence[ArmResult]
) -> dict[Metric, tuple[Comparison, ...]]:
    """Judge each of these metrics across versions, except those for which no arm has a figure."""
    judged = {}
    for metric in metrics:
        spec = METRICS[metric]
        if gathered.endings.going and spec.of_openings and metric not in gathered.plan.decides:
            # Such a metric is judged once, when the rounds have ended.
            continue
        if is_counted(metric) or any(metric in arm.figures for arm in arms):
            pairs = metric_pairs(gathered.plan, spec, arms)
            if not spec.exact:
                judged[metric] = further(gathered, pairs, arms)
                continue
            # These figures are exact. A pair that lacks one of them is left out, unless it says why it was not counted.
            measured = {arm.key for arm in arms if arm.outcome == "measured"}
            compared, margin = [], find_margin(gathered.plan, metric)
            for pair in pairs:
                disagreement = find_disagreement(spec, pair, gathered.by_arm.replicates, gathered.manifest.workers)
                baseline, candidate = (find_figure(spec, arms, key) for key in pair.arms)
                if baseline and candidate:
                    exact = compare_figures(pair, baseline, candidate, margin)
                    compared.append(replace(exact, **INCONCLUSIVE, reason=disagreement) if disagreement else exact)
                elif disagreement and measured.issuperset(pair.arms):
                    compared.append(leave_open(pair, disagreement))
            judged[metric] = tuple(compared)
    return judged


def compute_comparisons(
    plan: Plan,
    replicates: Iterable[Replicate],
    endings: Endings,
    pilots: Iterable[Replicate] = (),
    openings: Iterable[Replicate] | None = None,
    *,
    flip: bool,
) -> tuple[tuple[ArmResult, ...], tuple[Comparison, ...]]:
    """Compute arms and comparisons from replicates and endings, without reading any file."""
    by_arm, pilots_by_arm = ByArm.of(replicates, openings), group_by_arm(pilots)
    arms = tuple(
        _result(arm, by_arm.replicates[arm.key], pilots_by_arm[arm.key], by_arm.openings[arm.key], endings)
        for arm in plan.arms()
    )
    imports = {target: find_import_ms(by_arm.replicates, target) for target in {arm.target for arm in arms}}
    arms = tuple(
        replace(arm, figures={**arm.figures, "import": took_ms})
        if "import" in arm.figures and (took_ms := imports[arm.target])
        else arm
        for arm in arms
    )
    if not any("step" in arm.figures for arm in arms):
        # The program does not say how long its steps take.
        plan = replace(plan, pairs=tuple(pair for pair in plan.pairs if pair.metric != "step"))
    return arms, _compare(plan, by_arm, endings, arms, flip=flip)


def further(gathered: RunContents, pairs: tuple[Pair, ...], arms: Sequence[ArmResult]) -> tuple[Comparison, ...]:
    """Return a separate family of comparisons, for which no rounds were measured."""
    if not pairs:
        return ()
    ends_rounds = {*gathered.plan.decides, *(pair.metric for pair in gathered.plan.pairs)}
    is_bystander = all(METRICS[pair.metric].of_openings and pair.metric not in ends_rounds for pair in pairs)
    plan = replace(gathered.plan, pairs=pairs)
    return _compare(plan, gathered.by_arm, gathered.endings, arms, flip=False, is_bystander=is_bystander)


def _compare(
    plan: Plan,
    by_arm: ByArm,
    endings: Endings,
    arms: Sequence[ArmResult],
    *,
    flip: bool,
    is_bystander: bool = False,
) -> tuple[Comparison, ...]:
    schedule = endings.bystander_schedule(plan.looks) if is_bystander else endings.schedule(plan.looks)
    parts = endings.find_parts(plan.looks, is_bystander=is_bystander)
    of_arms = by_arm.samples(plan)
    rises: Rises | None = None
    if any(pair.metric in ("time", "cpu") for pair in plan.pairs):
        rises = {
            "time": by_arm.figures(lambda replicate: (replicate.rise,)),
            "cpu": by_arm.figures(lambda replicate: (cpu_rise(replicate),)),
        }
    comparisons = judge_pairs(plan, of_arms, arms, schedule, rises, parts=parts, scale_of=scale_of, flip=flip)
    marked = []
    for comparison in comparisons:
        label = comparison.pair.arms[0].case
        own = endings.of(label)
        if own.exploratory or own.postponed:
            looks = parts[label].schedule if label in parts else schedule
            comparison = _mark(comparison, own, looks, of_arms)
        marked.append(comparison)
    return tuple(marked)


def _mark(comparison: Comparison, own: Endings, looks: Schedule, of_arms: Samples) -> Comparison:
    """Mark a comparison that has rounds after its last look, or whose case was postponed."""
    baseline, candidate = (of_arms.get((*name, comparison.pair.metric), {}) for name in comparison.pair.arms)
    rounds = baseline.keys() & candidate.keys()
    exploratory = any(
        looks.judges_last([number for number in rounds if number <= end]) and max(rounds) > end
        for end in own.exploratory
    )
    reason = comparison.reason
    is_postponed = own.postponed.intersection(label for label, _ in comparison.pair.arms)
    if comparison.verdict == "inconclusive" and is_postponed:
        # A case that was never begun has nothing to add.
        so_far = comparison.so_far if comparison.seen_ratio is not None else ""
        reason = "; ".join(filter(None, [f"postponed: {POSTPONED}", so_far]))
    return replace(comparison, exploratory=exploratory, reason=reason)


def _figures(replicates: Sequence[Replicate], openings: Sequence[Replicate]) -> dict[Metric, float]:
    """Return the figure of an arm for every metric that it has."""
    figures = {metric: spec.typical(openings if spec.of_openings else replicates) for metric, spec in METRICS.items()}
    return {metric: figure for metric, figure in figures.items() if figure is not None}


def _median_ms(times_ns: Iterable[float | None]) -> float | None:
    known = [time_ns for time_ns in times_ns if time_ns]
    return median(known) / 1e6 if known else None


def _read_losses(text: str | None) -> tuple[float, ...]:
    """Return the loss of each epoch; a worker is not trusted to have written a list of numbers."""
    try:
        # NaN and the infinities are stored as words.
        return tuple(map(float, json.loads(text))) if text else ()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return ()


def _result(
    arm: Arm,
    replicates: Sequence[Replicate],
    pilots: Sequence[Replicate],
    openings: Sequence[Replicate],
    endings: Endings,
) -> ArmResult:
    """Return the result of an arm; one that has no round yet shows the times of its pilot."""
    case, target = arm
    endings = endings.of(case.label)
    rounds = len({replicate.round for replicate in replicates})
    openings = openings if replicates else pilots
    replicates = replicates or pilots
    if arm.key in endings.refused:
        return ArmResult(case=case, target=target, outcome="refused", reason=endings.refused[arm.key])
    death = endings.died.get(arm.key)
    reason = death.reason if death else ""
    refuted = bool(death and death.refutes)
    failure, external = (death.failure, death.external) if death else (None, False)
    if not reason and not replicates:
        loss = endings.lost.get(target)
        if loss is None and case.label in endings.postponed:
            return ArmResult(case=case, target=target, outcome="postponed", reason=POSTPONED)
        if loss is None:
            return ArmResult(case=case, target=target, outcome="not measured", reason=endings.why_unmeasured(arm.key))
        reason, failure, external = f"{loss.stage}: {loss.reason}", loss.failure, loss.external
    if not replicates:
        return ArmResult(
            case=case, target=target, outcome="died", reason=reason, refuted=refuted, failure=failure,
            external=external,
        )  # fmt: skip
    sizes_kb = [replicate.resident_kb for replicate in replicates if replicate.resident_kb]
    figures = _figures(replicates, openings)
    # A program has no first call.
    steps = replicates[-1].first_call_ns / replicates[-1].first_ns if replicates[-1].first_ns else 1.0
    # Such calls consist of readings of the clock, which would drift, and not the workload.
    is_too_short = figures.get("time", 0.0) * steps < SHORTEST_MS
    return ArmResult(
        case=case,
        target=target,
        outcome="died" if reason else "measured",
        reason=reason,
        refuted=refuted,
        failure=failure,
        external=external,
        rounds=rounds,
        figures=figures,
        steps=steps,
        second_ms=_median_ms(replicate.second_ns for replicate in replicates),
        train_s=median(replicate.calls_ns for replicate in replicates) / 1e9,
        resident_bytes=median(sizes_kb) * 1024.0 if sizes_kb else None,
        wall_ms=_median_ms(replicate.wall_ns for replicate in replicates),
        items=replicates[-1].items,
        first_step_ms=_median_ms(replicate.first_step_ns for replicate in replicates),
        losses=_read_losses(replicates[-1].losses),
        drift=None if is_too_short else drift([replicate.rise for replicate in replicates]),
    )
