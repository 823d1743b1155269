"""Turns a run into points: every version against the reference, in the rounds that both shared."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from orchestrator.history.model import REFERENCE_PREFIX, Point, Stage, Surroundings
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS
from orchestrator.model import ArmResult, Comparison, EnvironmentFacts, Manifest, Outcome, Plan, Target, TargetPair
from orchestrator.results.rewritten import WORKER
from orchestrator.results.run import Run
from orchestrator.results.samples import samples
from orchestrator.stats.comparisons import estimate_pair

UNKNOWN = "unknown"
HostFacts = Mapping[str, str | int | float | None]
# This matches `git describe`: the last tag and, unless the commit has that tag, the number of commits since and a hash.
DESCRIBED = re.compile(r"(?P<tag>v\d+(\.\d+)+(-rc\d+)?)(-\d+-g(?P<commit>[0-9a-f]{7,40}))?(-dirty)?")


def of_run(run: Run, stage: Stage, night: date | None = None, names: Mapping[str, str] | None = None) -> list[Point]:
    """Return the points of a run: its times, its other metrics, and whether its results are equal.

    Series consist of ratios, so metrics that are judged by differences, such as leaks, have no points.
    `names` are the names under which builds are followed, if these differ from their numbers.
    """
    plan, evaluation = run.plan, run.evaluation
    times = (comparison for comparison in run.comparisons if comparison.pair.across)
    comparisons = {
        comparison.pair: comparison
        for comparison in (*times, *evaluation.of_metrics)
        if isinstance(comparison.pair, TargetPair)
        and comparison.pair.baseline == plan.targets[0]
        and METRICS[comparison.pair.metric].units is None
    }
    by_arm = samples(replace(plan, pairs=tuple(comparisons)), run.replicates, run.openings)
    arms = {arm.key: arm for arm in run.arms}
    points = []
    for pair, comparison in comparisons.items():
        between = [arms[name] for name in pair.arms]
        outcome, reason = _outcome(between, comparison)
        measured = estimate_pair(by_arm, pair)
        found = measured.estimate if measured else None
        reference_figure, target_figure = (arm.figures.get(pair.metric) for arm in between)
        point = replace(
            _without_value(run, pair),
            outcome=outcome,
            reason=reason,
            effect=found.theta if found else None,
            error=found.standard_error if found else None,
            rounds=found.rounds if found else 0,
            verdict=comparison.verdict,
            reference_figure=reference_figure,
            target_figure=target_figure,
        )
        points.append(point)
    for output in evaluation.outputs:
        pair = TargetPair(case=output.case, baseline=output.baseline, candidate=output.candidate)
        if pair.baseline == plan.targets[0]:
            point = replace(_without_value(run, pair), metric=RESULTS, judge="wall", target_figure=output.difference)
            points.append(replace(point, verdict=output.verdict, reason=output.reason))
    followed_as = names or {}
    return [
        replace(point, stage=stage, night=night or point.night, target=followed_as.get(point.build, point.build))
        for point in points
    ]


def _without_value(run: Run, pair: TargetPair) -> Point:
    """Return a point that says what was compared and where, but does not have a value yet."""
    plan, manifest, build = run.plan, run.manifest, pair.candidate
    host = _find_host(manifest, pair.case.label)
    return Point(
        night=plan.created.astimezone().date(),
        started=plan.created,
        run=plan.run,
        stage="screen",
        suite=plan.suite,
        host=str(host.get("id", UNKNOWN)),
        engine=plan.engine,
        device=plan.device,
        reference=str(pair.baseline),
        target=str(build),
        build=str(build),
        case=pair.case.label,
        outcome="measured",
        reason="",
        effect=None,
        error=None,
        rounds=0,
        verdict="inconclusive",
        metric=pair.metric,
        reference_figure=None,
        target_figure=None,
        surroundings=_surroundings(plan, manifest, host, pair),
        commit=commit_of(manifest, build),
        judge=plan.judge if pair.across else "wall",
    )


def commit_of(manifest: Manifest, build: Target) -> str:
    """Return the commit that a build says it was made from, by `git describe`; '' if it says nothing usable."""
    described = str(manifest.workers.get(build, {}).get("tensorflow_git") or "")
    found = DESCRIBED.fullmatch(described)
    return (found["commit"] or found["tag"]) if found else ""


def _outcome(between: list[ArmResult], comparison: Comparison) -> tuple[Outcome, str]:
    """Return the worse outcome of a pair's arms, and the reason for it.

    Without a time for the reference, the pair has no result either.
    """
    ends = {arm.outcome: arm for arm in between}
    without = (ends.get(outcome) for outcome in ("died", "refused", "postponed", "not measured"))
    worst = next(filter(None, without), between[1])
    if worst is between[0] and worst.outcome != "measured":
        return worst.outcome, f"{REFERENCE_PREFIX}{worst.target}: {worst.reason}"
    return worst.outcome, worst.reason or comparison.reason


def _find_host(manifest: Manifest, case: str) -> HostFacts:
    """Return the facts about the machine that measured a case, since a merged run has several machines."""
    return next((each.host for each in manifest.hosts if case in each.cases), manifest.host)


def _surroundings(plan: Plan, manifest: Manifest, host: HostFacts, pair: TargetPair) -> Surroundings:
    reference, build = pair.baseline, pair.candidate

    def environment(target: Target) -> EnvironmentFacts | None:
        return manifest.environments.get(target) or manifest.environments.get(Target(target.name))

    def image(target: Target) -> str:
        facts = environment(target)
        if not facts:
            return ""
        # An image that is rebuilt from the same parts has another id. If it names its base by digest, its recipe names
        # everything in it, and identifies it.
        return facts.details["spec"] if "@" in facts.details.get("base", "") else facts.identity

    def variables(target: Target) -> str:
        facts = environment(target)
        if not facts:
            return ""
        own = manifest.variables | facts.variables
        return " ".join(f"{name}={value}" for name, value in sorted(own.items())) or "none"

    worker = manifest.workers.get(build, {})
    return Surroundings(
        image=image(build),
        reference_image=image(reference),
        source=manifest.sources.get(pair.workload, ""),
        driver=str(host.get("gpus") or "") if plan.device == "gpu" else "",
        kernel=str(host.get("kernel") or ""),
        python=str(worker.get("python") or ""),
        machine=str(host.get("cpu") or ""),
        tool=manifest.tool,
        worker=manifest.sources.get(WORKER, ""),
        variables=variables(build),
        reference_variables=variables(reference),
        boot=" ".join(str(host[name]) for name in ("booted", "boot") if host.get(name)),
        microcode=str(host.get("microcode") or ""),
        governor=str(host.get("governor") or ""),
        packages=" ".join(f"{name}=={number}" for name, number in sorted(own.packages.items()))
        if (own := environment(build))
        else "",
        settings="; ".join(
            filter(
                None,
                (
                    f"threads {','.join(map(str, plan.threads))}" if plan.threads else "",
                    "datasets untuned" if plan.untuned_datasets else "",
                    "XLA code kept" if plan.keeps_xla_code else "",
                ),
            )
        ),
    )
