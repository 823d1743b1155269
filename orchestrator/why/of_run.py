"""The question about a run that shows a difference: its two targets, its case, and how it measured."""

from dataclasses import replace
from pathlib import Path

from orchestrator.catalog import changed, program
from orchestrator.catalog.version import FlavourName
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.metrics.followed import Followed
from orchestrator.model import Case, Evaluation, Plan
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions
from orchestrator.results.evaluation import judge_run
from orchestrator.results.more_rounds import check_sources
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.sealed import require_seal
from orchestrator.why.state import WhyQuestion


def ask_about_run(
    path: Path, case: str, metric: Followed, environments: EngineOptions, *, rounds: int | None, seed: int | None
) -> WhyQuestion:
    """Return the question about the largest difference of a run, or of one of its cases."""
    folder = RunFolder.open(path)
    evaluation = judge_run(folder, metrics=None if metric == "time" else (metric,))
    plan, manifest = evaluation.plan, evaluation.manifest
    # The code of the run is executed again.
    require_seal(folder, plan, manifest)
    check_sources(plan, manifest, folder, None)
    if plan.large:
        raise UsageError(
            f"{path} measured data outside of its folder: name two targets, --workload-folder and --case instead"
        )
    wanted = _find_case(plan, case)
    label, old, new = _find_difference(evaluation, metric, wanted)
    texts = {name: name for name in (old, new)}
    device: FlavourName = "gpu" if plan.device == "gpu" else "cpu"
    texts |= {changed.find_changed(text, device).name: text for text in plan.definitions}
    chosen = next(each for each in plan.cases if each.label == label)
    own = folder.workloads if folder.workloads.is_dir() else None
    options = RunOptions(
        selected=() if plan.program else (label,),
        own_workloads=own if plan.program or _is_own(chosen, own) else None,
        engine=plan.engine,
        environments=replace(
            environments,
            gpu=plan.device == "gpu",
            gpus=plan.gpus,
            exclusive=plan.exclusive,
            lock_mhz=plan.lock_mhz,
            cpus=plan.cpus,
            memory_mb=plan.memory_mb,
            runtime=plan.runtime,
            keeps_xla_code=plan.keeps_xla_code,
            variables=tuple(manifest.variables.items()),
        ),
        rounds=rounds,
        seed=seed,
        margin=plan.margin,
        margins=dict(plan.margins),
        judge=plan.judge,
        threads=plan.threads,
        untuned_datasets=plan.untuned_datasets,
        timeout_s=plan.timeout_s,
        isolation=plan.isolation,
        program=plan.program,
        requirements=plan.requirements,
    )
    return WhyQuestion(old=texts[old], new=texts[new], run=options, budget_s=0.0, metric=metric)


def _is_own(case: Case, own: Path | None) -> bool:
    workloads = program.find_measurable((), (), own)
    return case.workload in workloads and not workloads[case.workload].builtin


def _find_case(plan: Plan, text: str) -> str:
    """Return the label of the case that a text names, or '' for all."""
    if not text:
        return ""
    labels = {case.label for case in plan.cases}
    if text in labels:
        return text
    found = [case.label for case in plan.cases if case.workload == text.partition("[")[0]]
    if len(found) == 1:
        return found[0]
    listed = "\n".join(f"  '{label}'" for label in sorted(found or labels)[:5])
    raise UsageError(f"{text!r} is not one case of the run; name one of them:\n{listed}")


def _find_difference(evaluation: Evaluation, metric: Followed, wanted: str) -> tuple[str, str, str]:
    """Return the case and the two targets that differ most, or that one of which died."""
    died = [
        (arm.case.label, str(evaluation.plan.targets[0]), str(arm.target))
        for arm in evaluation.died
        if arm.target != evaluation.plan.targets[0] and wanted in ("", arm.case.label)
    ]
    best: tuple[float, tuple[str, str, str]] | None = None
    for comparison in (*evaluation.comparisons, *evaluation.metrics.get(metric, ())):
        pair = comparison.pair
        if pair.kind != "target" or pair.metric != metric or wanted not in ("", pair.arms[0].case):
            continue
        if pair.candidate.control or comparison.report_verdict not in ("slower", "faster"):
            continue
        found = (pair.arms[0].case, str(pair.baseline), str(pair.candidate))
        if best is None or comparison.distance > best[0]:
            best = (comparison.distance, found)
    if best:
        return best[1]
    for output in evaluation.outputs if metric == "output" else ():
        if output.verdict == "differs" and wanted in ("", output.case.label):
            return output.case.label, str(output.baseline), str(output.candidate)
    if died:
        return died[0]
    raise NothingSelected(f"there is nothing to explain: no {metric} of {wanted or 'this run'} is shown to differ")
