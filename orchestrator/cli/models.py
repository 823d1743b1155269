"""The `tfcompare models` command: which saved models load where, and whether they return the same."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator import redact
from orchestrator.cli import parse
from orchestrator.cli.options import (
    BudgetFlags,
    GpuFlags,
    InstallationFlags,
    MachineFlags,
    RunFolderFlags,
    SeedFlags,
    TargetFlags,
    VerbosityFlags,
    choice,
    run_options,
    say_ignored,
    with_options,
)
from orchestrator.cli.run import choose_targets
from orchestrator.errors import ArmsDied, NothingSelected, OutcomeFound, TfCompareError, UsageError
from orchestrator.saved_models.question import FORMATS, MODELS, ModelsQuestion, check_code, choose, find_saved
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import print_table

if TYPE_CHECKING:
    from orchestrator.saved_models.report import ModelsAnswer

# The words of --fail-on, and the verdict that each is about.
GATES = {"died": "dies", "differs": "differs", "refused": "refused", "slower": "slower"}
# Each target that saved is the baseline of a run of this length.
BUDGET_S = 300.0
ANSWERS = ("table", "markdown", "json", "html")
PANEL = "Models"

app = typer.Typer()


@app.command("models")
@with_options
def compare_saved(
    context: typer.Context,
    changed: TargetFlags,
    machine: MachineFlags,
    gpu: GpuFlags,
    installation: InstallationFlags,
    seed: SeedFlags,
    budget: BudgetFlags,
    folder: RunFolderFlags,
    verbosity: VerbosityFlags,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="Targets that save and load, each as one argument, e.g. 2.8 '2.16 keras=2'.",
            metavar="TARGET",
            show_default=False,
        ),
    ] = None,
    versions: Annotated[
        str | None,
        typer.Option(help="Versions that save and load, e.g. 2.8,2.16,2.20.", show_default=False, metavar="VERSIONS"),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            help="Cross every target with releases of a package, e.g. keras=3.5,3.8 or keras=3.5..3.8; repeatable.",
            metavar="PACKAGE=VERSIONS",
            rich_help_panel=TargetFlags.panel,
        ),
    ] = None,
    formats: Annotated[
        str | None,
        choice("--formats", "format", FORMATS, "Formats to save in.", several=True, rich_help_panel=PANEL),
    ] = None,
    models: Annotated[
        str | None,
        choice("--models", "name", MODELS, "Built-in models to save.", several=True, rich_help_panel=PANEL),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="File that defines build(tf), which returns your model, and optionally inputs(tf) and "
            "custom_objects(tf). Replaces the built-in models.",
            metavar="FILE",
            rich_help_panel=PANEL,
        ),
    ] = None,
    saved: Annotated[
        Path | None,
        typer.Option(
            "--saved",
            help="Folder of models that were saved before (.keras, .h5, SavedModel), or one of them. They are loaded "
            "in every target; if they need custom objects or inputs, pass --model FILE.",
            metavar="FOLDER",
            rich_help_panel=PANEL,
        ),
    ] = None,
    format: Annotated[str, choice("--format", "format", ANSWERS, "Output format.", rich_help_panel="Output")] = "table",
    details: Annotated[
        bool, typer.Option("--details", help="Also print each model, with sizes and times.", rich_help_panel="Output")
    ] = False,
    time: Annotated[
        bool,
        typer.Option(
            "--time",
            help="Afterwards, also measure how long models take to load, compared with the target that saved them. "
            "Each target that saved models takes another --budget (default: 5 minutes).",
            rich_help_panel="Measuring",
        ),
    ] = False,
    fail_on: Annotated[
        str | None,
        choice(
            "--fail-on",
            "outcome",
            GATES,
            "Exit with 1 if a model has one of these outcomes: differs, refused, slower (loads slower) or died; with "
            "6 if died is the only one.",
            several=True,
            rich_help_panel="Output",
        ),
    ] = None,
) -> None:
    r"""Save models in every target, load them in all targets, and compare what they return.

    A row of the table is what a target saved, and a column is the target that
    loads it. A model that loads must return what it returned before it was
    saved, by the same rule as results of `tfcompare run`. A SavedModel is also
    loaded by tf.saved_model.load, without Keras.

    [bold]Examples[/bold]

      tfcompare models --versions 2.8,2.13,2.16,2.20

      tfcompare models 2.20 --vary keras=3.5,3.8 --formats keras,weights

      tfcompare models --versions 2.8,2.16 --model mine/model.py

      tfcompare models --versions 2.13,2.16,2.20 --saved old-models
    """
    given = {"versions": [versions or ""], "targets": targets or (), "target": changed.target or ()}
    named = choose_targets(context, given)
    if not named:
        raise UsageError("name the targets, e.g. tfcompare models --versions 2.8,2.13,2.16,2.20")
    parse.check_targets(named)
    question = _read_question(formats, models, model, saved)
    options = run_options(
        machine,
        gpu,
        installation,
        versions=named,
        seed=seed.seed,
        out=folder.output,
        command=redact.redact_words(sys.argv[1:]),
    )
    if vary:
        from orchestrator.catalog.vary import cross

        options = replace(options, versions=cross(named, vary, options.environments.device))
    say_ignored(options.environments, verbosity.view)
    from orchestrator.saved_models.judge import judge_models
    from orchestrator.saved_models.run import compare_models
    from orchestrator.saved_models.timing import time_loads

    if (budget_s := parse.budget(budget.budget)) and not time:
        raise UsageError("--budget limits what --time measures: add --time")
    if time and saved:
        raise UsageError(
            "--time compares with the target that saved a model, which is unknown of --saved: leave it out"
        )
    with verbosity.watch() as watching:
        outcome = compare_models(question, options, watching)
        judged = judge_models(outcome)
        if time:
            judged = time_loads(outcome, judged, options, budget_s or BUDGET_S, watching)
    from orchestrator.saved_models.markdown import render_models_markdown
    from orchestrator.saved_models.report import ModelsAnswer, layout_models, models_as_object, write_models
    from orchestrator.saved_models.run import find_failure

    answer = ModelsAnswer(outcome, judged)
    if format == "json":
        print(strict_json.dump(models_as_object(answer), indent=2))
    elif format == "markdown":
        print(render_models_markdown(answer))
    elif format == "table":
        print_table(lambda width: layout_models(answer, width, details=details))
    verbosity.say(f"page: {write_models(answer)}")
    if error := find_failure(outcome) or _find_gate_error(answer, parse.parse_names(fail_on or "")):
        raise error


def _read_question(formats: str | None, models: str | None, model: Path | None, saved: Path | None) -> ModelsQuestion:
    if models and (model or saved):
        raise UsageError("--models chooses among the built-in models: leave it out with --model and --saved")
    if formats and saved:
        raise UsageError("--formats says how models are saved: leave it out with --saved, whose files say it")
    return ModelsQuestion(
        models=choose("--models", models, MODELS),
        formats=choose("--formats", formats, FORMATS),
        code=check_code(model, builds=saved is None) if model else None,
        saved=find_saved(saved) if saved else (),
    )


def _find_gate_error(answer: "ModelsAnswer", gates: tuple[str, ...]) -> TfCompareError | None:
    """Return the error for the outcomes that were asked for."""
    if gates and not answer.models:
        return NothingSelected("--fail-on: no model was loaded")
    counts = {gate: sum(each.verdict == GATES[gate] for each in answer.models) for gate in gates}
    found = {gate: count for gate, count in counts.items() if count}
    if not found:
        return None
    listed = ", ".join(f"{count} {gate}" for gate, count in found.items())
    failure = ArmsDied if set(found) == {"died"} else OutcomeFound
    return failure(f"--fail-on {','.join(gates)}: {listed} of {len(answer.models)} loads")
