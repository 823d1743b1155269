"""The `tfcompare why` command: reads the flags, asks, and prints the answer."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import parse
from orchestrator.cli.options import (
    InstallationFlags,
    JudgeFlags,
    MachineFlags,
    MarginFlags,
    MeasuringFlags,
    MeasuringGpuFlags,
    OwnWorkloadsFlags,
    ReportFormatFlags,
    RunFolderFlags,
    VerbosityFlags,
    choice,
    names_of,
    refuse_others,
    run_options,
    say_ignored,
    with_options,
)
from orchestrator.cli.runs import LAST, find_question, find_run
from orchestrator.errors import UsageError
from orchestrator.metrics import NAMES
from orchestrator.metrics.followed import from_name
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import print_table

if TYPE_CHECKING:
    from orchestrator.why.run import WhyOutcome
    from orchestrator.why.state import WhyQuestion, WhyState

# These flags go with --resume. The rest was fixed when the question was asked.
WITH_RESUME = names_of(ReportFormatFlags, VerbosityFlags) | {"resume", "budget", "index_url"}
# These go with a run, whose plan has the others.
WITH_RUN = names_of(ReportFormatFlags, VerbosityFlags, InstallationFlags, RunFolderFlags) | {
    "words", "metric", "budget", "rounds", "seed", "dry_run", "no_search",
}  # fmt: skip
# All ladders, the remedies and the search together measure this long.
BUDGET_S = 900.0

app = typer.Typer()


@app.command("why")
@with_options
def ask_why(
    context: typer.Context,
    own: OwnWorkloadsFlags,
    measuring: MeasuringFlags,
    margin: MarginFlags,
    judge: JudgeFlags,
    machine: MachineFlags,
    gpu: MeasuringGpuFlags,
    installation: InstallationFlags,
    folder: RunFolderFlags,
    report: ReportFormatFlags,
    verbosity: VerbosityFlags,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="The run that shows the difference (`last`: the newest) and, if it has several, the case; or two "
            "targets, the old one first, with --case or with a program after --.",
            metavar="RUN [CASE] | OLD NEW",
            show_default=False,
        ),
    ] = None,
    case: Annotated[
        str | None,
        typer.Option(
            "--case",
            "-c",
            help="The case: name or name\\[param=value,...].",
            metavar="CASE",
            show_default=False,
            rich_help_panel=OwnWorkloadsFlags.panel,
        ),
    ] = None,
    requirements: Annotated[
        Path | None,
        typer.Option(
            help="File of packages that the program after -- needs, one per line.",
            metavar="FILE",
            rich_help_panel=OwnWorkloadsFlags.panel,
        ),
    ] = None,
    metric: Annotated[str, choice("--metric", "metric", NAMES, "Metric that changed.")] = "time",
    no_search: Annotated[
        bool, typer.Option("--no-search", help="Do not search for the release that brought the largest change.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Continue the `why` run in this folder (`last`: the newest).",
            metavar="FOLDER",
            parser=find_question,
            show_default=False,
        ),
    ] = None,
) -> None:
    r"""Find out why a case differs between two targets, and what helps.

    Each change between the two targets is undone in turn: Keras, other packages,
    Python, variables, and defaults of TensorFlow. All of these targets are
    measured in the same rounds, so the table shows what each change
    contributes. Then tfcompare searches for the release that brought the largest
    change, profiles the case on both sides, and measures remedies. The default
    budget is 15 minutes for all of it.

    [bold]Examples[/bold]

      tfcompare why last

      tfcompare why 2.15 2.20 --case 'train_loop\[loop=fit,mode=eager,model=small]'

      tfcompare why '2.20 keras==3.5.0' '2.20 keras==3.8.0' --case 'train_tiny\[model=mlp,loop=train_on_batch]'

      tfcompare why 2.8 2.20 -- python train.py

      tfcompare why --resume last
    """
    from orchestrator.why import run as asking

    budget_s = parse.budget(measuring.budget)
    if resume:
        refuse_others(context, WITH_RESUME, "--resume continues a question as it was asked", "ask again")
        path, state = resume, asking.resume(resume, index_url=installation.index_url)
        if budget_s:
            state = replace(state, question=replace(state.question, budget_s=budget_s + state.seconds))
    else:
        question = _read_question(
            context, words or [], case, requirements, own, measuring, margin, judge, machine, gpu, installation, metric
        )
        question = replace(question, budget_s=budget_s or BUDGET_S, search=not no_search)
        say_ignored(question.run.environments, verbosity.view)
        path, state = asking.begin_question(question, folder.output)
    if measuring.dry_run:
        _print_plan(state)
        return
    with verbosity.watch() as watching:
        outcome = asking.answer(path, state, watching)
    show_outcome(outcome, report.format, verbosity)


def _read_question(
    context: typer.Context, words: list[str], case: str | None, requirements: Path | None, own: OwnWorkloadsFlags,
    measuring: MeasuringFlags, margin: MarginFlags, judge: JudgeFlags, machine: MachineFlags, gpu: MeasuringGpuFlags,
    installation: InstallationFlags, metric: str,
) -> "WhyQuestion":  # fmt: skip
    from orchestrator.why.state import WhyQuestion

    command: tuple[str, ...] | None = context.obj
    if words and (words[0] == LAST or (Path(words[0]) / "plan.json").is_file()):
        from orchestrator.cli.options import engine_options
        from orchestrator.why.of_run import ask_about_run

        refuse_others(context, WITH_RUN, "a run was planned with its flags", "name two targets instead of the run")
        if len(words) > 2 or command is not None:
            raise UsageError("why RUN [CASE]: name the run and at most one case; or two targets and --case")
        return ask_about_run(
            find_run(words[0]),
            "".join(words[1:]),
            from_name(metric),
            engine_options(machine, gpu, installation),
            rounds=measuring.rounds,
            seed=measuring.seed,
        )
    if len(words) != 2:
        raise UsageError(
            "name the run that shows the difference, e.g. `tfcompare why last`, or two targets, e.g. `tfcompare why "
            "2.15 2.20 --case 'power[style=function]'`"
        )
    parse.check_targets(words)
    margins = parse.margin(margin.margin)
    if (case is None) == (command is None):
        raise UsageError("name one case with --case, or a program after --, and not both")
    options = run_options(
        machine,
        gpu,
        installation,
        None,
        rounds=measuring.rounds,
        seed=measuring.seed,
        margin=margins.share,
        margins=margins.of_metrics,
        judge=judge.judge,
        **(_read_program(own, command, requirements) if command is not None else _read_case(own, case, requirements)),
    )
    return WhyQuestion(old=words[0], new=words[1], run=options, budget_s=BUDGET_S, metric=from_name(metric))


def _read_case(own: OwnWorkloadsFlags, case: str | None, requirements: Path | None) -> dict[str, Any]:
    if requirements:
        raise UsageError("--requirements is for a program after --; a workload file has REQUIREMENTS")
    return {
        "selected": (case,),
        "own_workloads": own.workload_folder,
        "outside": own.find_allowed(own.workload_folder),
    }


def _read_program(own: OwnWorkloadsFlags, command: tuple[str, ...], requirements: Path | None) -> dict[str, Any]:
    from orchestrator.catalog import program

    if not command:
        raise UsageError("there is no program after --, e.g. tfcompare why 2.8 2.20 -- python train.py")
    folder = own.workload_folder or Path(".")
    program.check_program(command, folder)
    return {
        "own_workloads": folder,
        "program": command,
        "requirements": program.read_requirements(requirements) if requirements else (),
        "outside": own.find_allowed(folder),
    }


def _print_plan(state: "WhyState") -> None:
    question = state.question
    print(
        f"plan: {state.case.label}, {question.new} against {question.old}: both are installed, what differs is undone "
        f"one by one, and all of it is measured within {question.budget_s / 60:.0f} min"
    )


def show_outcome(outcome: "WhyOutcome", format: str, verbosity: VerbosityFlags) -> None:
    """Print an answer, write its page, and raise the error that cut it short."""
    from orchestrator.why import page, report

    answer = report.WhyAnswer(outcome)
    if format == "json":
        print(strict_json.dump(report.answer_as_object(answer), indent=2))
    elif format == "table":
        print_table(lambda width: report.layout_answer(answer, width))
    written = page.write_why_page(answer)
    verbosity.say(f"page: {written}")
    if outcome.error:
        raise outcome.error
