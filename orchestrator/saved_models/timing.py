"""Measures how long models take to load: a run per target that saved some, which is its baseline."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copyfile, copytree
from tempfile import TemporaryDirectory

from orchestrator.measure.run import plan_and_measure
from orchestrator.model import TargetPair
from orchestrator.plan.request import RunOptions
from orchestrator.saved_models.judge import LoadedModel, find_saved_format
from orchestrator.saved_models.run import CODE, SHELF, ModelsOutcome, compose_folder, name_file
from orchestrator.terminal.view import View

TIMED, RUNS_OF_LOADS = "load_saved", "loads"
EMPTY = "PARAMS = {}"


def time_loads(
    outcome: ModelsOutcome, models: Sequence[LoadedModel], options: RunOptions, budget_s: float, view: View
) -> tuple[LoadedModel, ...]:
    """Return the models with the ratios of their times, as the usual verdicts have them; each run gets the budget."""
    texts = dict(zip(outcome.targets, outcome.texts, strict=True))
    ratios: dict[tuple[str, str, str, str], tuple[str, float | None]] = {}
    for source in dict.fromkeys(each.row.source for each in models):
        loading = [each for each in models if each.row.source == source and each.verdict == "ok"]
        own = {(each.row.format, each.model) for each in loading if each.target == source}
        others = [each for each in loading if (each.row.format, each.model) in own and each.target != source]
        if not others:
            continue
        targets = (source, *dict.fromkeys(each.target for each in others))
        cases = tuple(dict.fromkeys((each.row.format, each.model) for each in others))
        with TemporaryDirectory(prefix="tfcompare-") as scratch:
            folder = Path(scratch) / "own"
            _compose(outcome, source, cases, folder)
            measured = plan_and_measure(
                replace(
                    options,
                    versions=tuple(texts[target] for target in targets),
                    own_workloads=folder,
                    selected=tuple(f"{TIMED}[format={kind},model={model}]" for kind, model in cases),
                    out=outcome.path / RUNS_OF_LOADS / source,
                    budget_s=budget_s,
                    metrics=(),
                ),
                view,
            )
        for comparison in measured.evaluation.comparisons:
            pair = comparison.pair
            if isinstance(pair, TargetPair) and pair.across and pair.metric == "time":
                params = dict(pair.case.params)
                key = (source, params["format"], params["model"], str(pair.candidate))
                ratios[key] = comparison.report_verdict, comparison.ratio
    timed = []
    for each in models:
        verdict, ratio = ratios.get((each.row.source, each.row.format, each.model, each.target), ("", None))
        slower = verdict == "slower" and each.verdict == "ok"
        reason = f"loading takes {ratio:.3g} times as long as in {each.row.source}" if slower and ratio else each.reason
        timed.append(
            replace(each, verdict="slower" if slower else each.verdict, ratio=ratio, reason=reason) if verdict else each
        )
    return tuple(timed)


def _compose(outcome: ModelsOutcome, source: str, cases: Sequence[tuple[str, str]], folder: Path) -> None:
    """Write a workload folder with the models that are loaded, one folder per format."""
    compose_folder(outcome.question, folder, TIMED)
    params: dict[str, tuple[str, ...]] = {
        "format": tuple(dict.fromkeys(kind for kind, _ in cases)),
        "model": tuple(dict.fromkeys(model for _, model in cases)),
    }
    if outcome.question.code:
        params["code"] = (f"{CODE}/{outcome.question.code.name}",)
    workload = folder / f"{TIMED}.py"
    workload.write_text(workload.read_text().replace(EMPTY, f"PARAMS = {params!r}"))
    for kind, model in cases:
        (folder / kind).mkdir(exist_ok=True)
        format = find_saved_format(kind)
        file = name_file(model, format)
        saved = outcome.path / SHELF / f"{source}-{format}" / file
        copytree(saved, folder / kind / file) if saved.is_dir() else copyfile(saved, folder / kind / file)
