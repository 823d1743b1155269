"""Turns a run into points: every version against the reference, in the rounds that both shared."""

from collections.abc import Mapping
from datetime import date

from orchestrator.history.model import Outcome, Point, Stage, Surroundings
from orchestrator.model import ArmResult, Contrast, EnvironmentFacts, Manifest, Target, VersionPair
from orchestrator.old_flags import RENAMED_SUITES
from orchestrator.results.compare_runs import WORKER
from orchestrator.results.comparison import samples
from orchestrator.results.run import Run
from orchestrator.stats.paired import estimate

UNKNOWN = "unknown"


def of_run(run: Run, stage: Stage, night: date | None = None, names: Mapping[str, str] | None = None) -> list[Point]:
    """Return the points of a run.

    `names` are the names under which builds are followed, if these differ from their numbers.
    """
    plan, manifest = run.plan, run.manifest
    reference = plan.versions[0]
    by_arm = samples(plan, run.replicates)
    arms = {arm.key: arm for arm in run.arms}
    points = []
    for contrast in run.contrasts:
        pair = contrast.pair
        if not isinstance(pair, VersionPair) or not pair.across or pair.baseline != reference:
            continue
        between = [arms[name] for name in pair.arms]
        measured = estimate(*(by_arm.get((*name, pair.metric), {}) for name in pair.arms))
        outcome, reason = _outcome(between, contrast)
        build = pair.candidate
        points.append(
            Point(
                night=night or plan.created.astimezone().date(),
                started=plan.created,
                run=plan.run,
                stage=stage,
                suite=RENAMED_SUITES.get(plan.suite, plan.suite),
                host=str(manifest.host.get("id", UNKNOWN)),
                engine=plan.engine,
                device=plan.device,
                reference=str(reference),
                version=(names or {}).get(str(build), str(build)),
                build=str(build),
                case=pair.case.label,
                outcome=outcome,
                reason=reason,
                effect=measured.theta if measured else None,
                error=measured.standard_error if measured else None,
                rounds=measured.rounds if measured else 0,
                verdict=contrast.verdict,
                reference_ms=between[0].median_ms,
                version_ms=between[1].median_ms,
                surroundings=_surroundings(manifest, pair.workload, reference, build, plan.device),
            )
        )
    return points


def _outcome(between: list[ArmResult], contrast: Contrast) -> tuple[Outcome, str]:
    """Return the worse outcome of a pair's arms, and the reason for it.

    Without a time for the reference, the pair has no result either.
    """
    ends = {arm.outcome: arm for arm in between}
    worst = ends.get("died") or ends.get("refused") or between[1]
    return worst.outcome, worst.reason or contrast.reason


def _surroundings(manifest: Manifest, workload: str, reference: Target, build: Target, device: str) -> Surroundings:
    def environment(target: Target) -> EnvironmentFacts | None:
        return manifest.environments.get(target) or manifest.environments.get(Target(target.name))

    def image(target: Target) -> str:
        facts = environment(target)
        return facts.identity if facts else ""

    def variables(target: Target) -> str:
        facts = environment(target)
        if not facts or not facts.packages:
            # Earlier releases recorded neither packages nor variables.
            return ""
        own = manifest.variables | facts.variables
        return " ".join(f"{name}={value}" for name, value in sorted(own.items())) or "none"

    host = manifest.host
    worker = manifest.workers.get(build, {})
    return Surroundings(
        image=image(build),
        reference_image=image(reference),
        source=manifest.sources.get(workload, ""),
        driver=str(host.get("gpus") or "") if device == "gpu" else "",
        kernel=str(host.get("kernel") or ""),
        python=str(worker.get("python") or ""),
        machine=str(host.get("cpu") or ""),
        tool=manifest.tool,
        worker=manifest.sources.get(WORKER, ""),
        variables=variables(build),
        reference_variables=variables(reference),
    )
