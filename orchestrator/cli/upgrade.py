"""The `tfcompare upgrade` command: reads the flags, measures what the answer needs, and prints the page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import parse
from orchestrator.cli.options import (
    BudgetFlags,
    FailOnFlags,
    InstallationFlags,
    JudgeFlags,
    MachineFlags,
    MarginFlags,
    MeasuringGpuFlags,
    RunFolderFlags,
    SeedFlags,
    SelectionFlags,
    TargetFlags,
    VerbosityFlags,
    choice,
    names_of,
    refuse_others,
    run_options,
    say_ignored,
    with_options,
)
from orchestrator.cli.run import choose_targets, find_subject, split_file
from orchestrator.cli.runs import find_upgrade
from orchestrator.errors import ArmsDied, OutcomeFound, TfCompareError, UsageError
from orchestrator.metrics import with_output
from orchestrator.metrics.gates import DIED, parse_gates
from orchestrator.terminal import strict_json
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.text import print_table

if TYPE_CHECKING:
    from orchestrator.plan.request import RunOptions
    from orchestrator.upgrade.report import UpgradeAnswer
    from orchestrator.upgrade.state import UpgradeState

FORMATS = ("table", "markdown", "json", "html")
# These metrics are on the page even if no gate asks for them.
OF_PAGE = ("import", "size")
# Both ends are measured this long, and everything that follows takes this many times as long together.
BUDGET_S, MORE_TIMES = 300.0, 3
# These flags go with --resume. The rest was fixed when the upgrade began.
WITH_RESUME = names_of(VerbosityFlags) | {"resume", "format", "index_url", "no_remedies"}

app = typer.Typer()


@app.command("upgrade")
@with_options
def upgrade(
    context: typer.Context,
    changed: TargetFlags,
    selection: SelectionFlags,
    seed: SeedFlags,
    budget: BudgetFlags,
    margin: MarginFlags,
    judge: JudgeFlags,
    machine: MachineFlags,
    gpu: MeasuringGpuFlags,
    installation: InstallationFlags,
    folder: RunFolderFlags,
    alarm: FailOnFlags,
    verbosity: VerbosityFlags,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="The target that you have, and the one that you want. Without OLD, the active environment is "
            "compared with NEW; without both, with the newest version. You can also name the file of a workload "
            "or program.",
            metavar="[OLD] NEW",
            show_default=False,
        ),
    ] = None,
    requirements: Annotated[
        Path | None,
        typer.Option(
            help="File of packages that the program after -- needs, one per line.",
            metavar="FILE",
            rich_help_panel=SelectionFlags.panel,
        ),
    ] = None,
    no_remedies: Annotated[
        bool,
        typer.Option(
            "--no-remedies",
            help="If something is in the way, do not search for its cause, for remedies, or for releases in between "
            "that would work.",
        ),
    ] = False,
    format: Annotated[str, choice("--format", "format", FORMATS, "Output format.", rich_help_panel="Output")] = "table",
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Continue the upgrade in this folder (`last`: the newest).",
            metavar="FOLDER",
            parser=find_upgrade,
            show_default=False,
        ),
    ] = None,
) -> None:
    r"""Find out whether you may move to another TensorFlow: go, go with a flag, or not yet.

    Both targets run your program, or your workloads. One page says what gets
    slower, what needs more memory, what returns other results, what dies, and
    what will break next. If something is in the way, tfcompare searches for
    its cause, and measures remedies and releases between the two.

    The outcomes that --fail-on lists are in the way. Default: slower>10%,
    memory:more>25%, died and, for workloads, output:differs. The exit code is
    0 for go, 1 for not yet, and 6 if something dies.

    [bold]Examples[/bold]

      tfcompare upgrade 2.8 2.20 -- python train.py

      tfcompare upgrade 2.20 -- python train.py

      tfcompare upgrade 2.15 2.20 --workload-folder mine --judge cpu

      tfcompare upgrade 2.8 2.16 train.py --format markdown > page.md

      tfcompare upgrade --resume last
    """
    from orchestrator.upgrade import run as upgrading
    from orchestrator.upgrade.judgement import OF_PROGRAMS, OF_WORKLOADS

    if resume:
        refuse_others(context, WITH_RESUME, "--resume continues an upgrade as it began", "start another one")
        path, state = resume, upgrading.resume_upgrade(resume, index_url=installation.index_url)
        state = replace(state, question=replace(state.question, remedies=not no_remedies))
    else:
        named, file = split_file(words or ())
        margins = parse.margin(margin.margin)
        options = run_options(
            machine,
            gpu,
            installation,
            None,
            **find_subject(context, selection, requirements, None, file, verbosity.view),
            seed=seed.seed,
            margin=margins.share,
            margins=margins.of_metrics,
            judge=judge.judge,
        )
        gates = alarm.fail_on or (OF_PROGRAMS if options.program else OF_WORKLOADS)
        ends = choose_targets(context, {"words": named, "target": changed.target or ()})
        path, state = _begin(ends, options, gates, folder, verbosity, budget=budget, remedies=not no_remedies)
    say_ignored(state.question.run.environments, verbosity.view)
    with verbosity.watch() as watching:
        outcome = upgrading.answer_upgrade(path, state, watching)
    from orchestrator.upgrade import page
    from orchestrator.upgrade.report import UpgradeAnswer, layout_upgrade, upgrade_as_object

    answer = UpgradeAnswer(outcome)
    if format == "json":
        print(strict_json.dump(upgrade_as_object(answer), indent=2))
    elif format == "markdown":
        print(page.render_upgrade_markdown(answer))
    elif format == "table":
        print_table(lambda width: layout_upgrade(answer, width))
    verbosity.say(f"page: {page.write_upgrade_page(answer)}")
    if error := outcome.error or _find_error(answer):
        raise error


def _begin(
    ends: Sequence[str],
    options: "RunOptions",
    gates: str,
    folder: RunFolderFlags,
    verbosity: VerbosityFlags,
    *,
    budget: BudgetFlags,
    remedies: bool,
) -> "tuple[Path, UpgradeState]":
    """Return the folder and the state of a new upgrade, or of the same one if the folder holds it."""
    from orchestrator.metrics.gates import choose_for_gates
    from orchestrator.plan.request import find_metrics
    from orchestrator.upgrade.run import begin_upgrade
    from orchestrator.upgrade.state import UpgradeQuestion

    if len(ends) > 2:
        raise UsageError(
            f"{len(ends)} targets are named, but an upgrade has two ends: the target that you have, and the one that "
            "you want; `tfcompare run` compares any number of targets"
        )
    parse.check_targets(ends)
    keys, outputs = find_metrics(options)
    added = choose_for_gates(
        parse_gates(gates),
        with_output((*keys, *OF_PAGE), outputs=outputs),
        None,
        program=bool(options.program),
        gpu=options.environments.gpu,
        judge=options.judge,
    )
    budget_s = parse.budget(budget.budget) or BUDGET_S
    question = UpgradeQuestion(
        old=ends[0] if len(ends) == 2 else "",
        new=ends[-1] if ends else "latest",
        run=replace(options, of_gates=(*OF_PAGE, *added)),
        gates=gates,
        budget_s=budget_s,
        more_s=budget_s * MORE_TIMES,
        remedies=remedies,
    )
    return begin_upgrade(question, folder.output, verbosity.view)


def _find_error(answer: "UpgradeAnswer") -> TfCompareError | None:
    if answer.decision == "not measured" and answer.evaluation and answer.evaluation.died:
        return ArmsDied("not measured: what was to be compared died, also in the old target")
    if answer.decision != "not yet" or answer.judged is None:
        return None
    died = [each for each in answer.judged.tripped if each.metric == DIED]
    if died:
        return ArmsDied(f"not yet: {format_count(len(died), 'case')} no longer run{'s' * (len(died) == 1)}")
    return OutcomeFound(f"not yet: {format_count(len(answer.judged.tripped), 'gate')} tripped")
