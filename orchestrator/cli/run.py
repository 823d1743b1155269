"""`tfcompare run`: versions are measured and compared."""

import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.console import Console

from orchestrator import redact
from orchestrator.cli import parse
from orchestrator.cli.options import (
    FORMATS,
    ArrangementFlags,
    FailOnFlags,
    FleetFlags,
    InstallationFlags,
    JudgeFlags,
    MachineFlags,
    MarginFlags,
    MeasuringFlags,
    MeasuringGpuFlags,
    MetricFlags,
    PlaceFlags,
    ReportFormatFlags,
    RunFolderFlags,
    SelectionFlags,
    TargetFlags,
    VerbosityFlags,
    choice,
    engine_options,
    find_given_flags,
    names_of,
    refuse_others,
    run_options,
    say_ignored,
    with_options,
)
from orchestrator.cli.runs import find_run
from orchestrator.cli.settings import is_setting
from orchestrator.errors import ArmsDied, UsageError
from orchestrator.metrics import with_output
from orchestrator.metrics.gates import check_compared, choose_for_gates
from orchestrator.model import Isolation, Pairing
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import safe_text
from orchestrator.terminal.view import View

if TYPE_CHECKING:
    from orchestrator.cli.show import ReportChoice
    from orchestrator.fleet.model import FleetOptions
    from orchestrator.measure.forecast import Forecast
    from orchestrator.measure.run import Done
    from orchestrator.plan.request import RunOptions

# These flags go with --resume: how long to continue, how to install, what to print. The run's plan has the rest.
WITH_RESUME = names_of(
    InstallationFlags, ReportFormatFlags, ArrangementFlags, FailOnFlags, VerbosityFlags, PlaceFlags
) | {"resume", "workload_folder", "rounds", "budget", "gpu_request", "dry_run", "keep_going"}

# These flags do not apply to a program after --, which is measured as it is.
NOT_OF_PROGRAMS = {"suite", "case", "threads", "shard"}
# These flags choose workloads; a workload file among the targets already does that.
OF_WORKLOADS = {"suite", "workload_folder"}
# This matches a word of a program's command line among the targets.
PROGRAM = re.compile(r"-.*|python[\d.]*|.*\.(py|sh)|\.?/.*")

app = typer.Typer()


@app.command()
@with_options
def run(
    context: typer.Context,
    changed: TargetFlags,
    selection: SelectionFlags,
    measuring: MeasuringFlags,
    margin: MarginFlags,
    judge: JudgeFlags,
    metric: MetricFlags,
    machine: MachineFlags,
    gpu: MeasuringGpuFlags,
    installation: InstallationFlags,
    machines: FleetFlags,
    folder: RunFolderFlags,
    report: ReportFormatFlags,
    arrangement: ArrangementFlags,
    alarm: FailOnFlags,
    verbosity: VerbosityFlags,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="Targets to compare, the baseline first, each as one argument, e.g. 2.13 '2.13 py=3.8'. You can also "
            "name the file of a workload or program.",
            metavar="TARGET",
            show_default=False,
        ),
    ] = None,
    versions: Annotated[
        str | None,
        typer.Option(
            help="Versions to compare, the baseline first, e.g. 1.14,2.0,2.13.", show_default=False, metavar="VERSIONS"
        ),
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
    pairs: Annotated[
        str,
        choice(
            "--pairs",
            "pairing",
            get_args(Pairing),
            "Compare each target with the first, with the one before it (neighbours), or with all others.",
            rich_help_panel=TargetFlags.panel,
        ),
    ] = "first",
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Continue this run (`last`: the newest) with the cases that were not measured or are inconclusive.",
            metavar="RUN",
            parser=find_run,
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="Measure only this part of the cases, e.g. 2/5; `tfcompare merge` combines the runs of all parts.",
            metavar="I/N",
            show_default=False,
            rich_help_panel=SelectionFlags.panel,
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
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="Do not stop measuring the program given after -- when the rounds left in its budget can no longer "
            "decide anything.",
            rich_help_panel=MeasuringFlags.panel,
        ),
    ] = False,
    isolation: Annotated[
        str,
        choice(
            "--isolation",
            "isolation",
            get_args(Isolation),
            "Run each replicate in a fork of a worker, a separate process, or a separate container.",
            rich_help_panel=MeasuringFlags.panel,
        ),
    ] = "fork",
    control: Annotated[
        bool,
        typer.Option(
            "--control",
            help="Measure the baseline twice as a check: the verdict between the two must be `same`.",
            rich_help_panel=MeasuringFlags.panel,
        ),
    ] = False,
) -> None:
    r"""Compare TensorFlow versions and targets: install each, measure them in turn, print verdicts.

    A target is a version, optionally with changes: packages as pip pins them
    (keras==3.8.0), environment variables (NAME=VALUE), another Python (py=3.8) or
    Keras 2 (keras=2). `today` takes the packages that pip would install now, and
    freeze=FILE those in a `pip freeze` file. A wheel or image that you built is
    also a target: wheel=FILE, image=NAME. Append `as NAME` to name a target.

    To measure an unmodified program, put its command after --. It runs in a
    scratch folder with a copy of the working directory, or of
    --workload-folder. You can also name only the file of a program or workload.

    Without targets, the TensorFlow of the active environment is compared with the newest release.

    [bold]Examples[/bold]

      tfcompare run --versions 1.14,2.0,2.13

      tfcompare run --versions 2.0,2.13 --case 'train_loop\[mode=eager,model=small]'

      tfcompare run --versions 1.14,2.0 --suite smoke --engine venv --output runs/first

      tfcompare run 2.15 '2.15 TF_ENABLE_ONEDNN_OPTS=0 as onednn-off'

      tfcompare run '2.20 keras==3.5.0' '2.20 keras==3.8.0'

      tfcompare run 2.20 --vary keras=3.5,3.8,3.11 --pairs neighbours

      tfcompare run --versions 2.0,2.13 --workload-folder mine

      tfcompare run 2.8 2.15 2.20 -- python train.py --epochs 1

      tfcompare run train.py

      tfcompare run --versions 2.0,2.13 --format json --quiet > comparison.json

      tfcompare run --resume last --budget 10m
    """
    words, file = split_file(targets or ())
    named = choose_targets(context, {"versions": (versions or "",), "targets": words, "target": changed.target or ()})
    if resume:
        refuse_others(context, WITH_RESUME, "--resume continues a run as it was planned", "start a new run")
        from orchestrator.cli.show import choose_report

        how = choose_report(report.format, arrangement)
        _check_gates_of(resume, alarm)
        fleet = machines.fleet_options
        if not fleet.is_local:
            if measuring.rounds or measuring.budget or measuring.dry_run:
                given = "--rounds, --budget, --dry-run"
                raise UsageError(f"{given}: a fleet only measures what the run still lacks, as it was planned")
            from orchestrator.fleet.conduct import continue_on_fleet

            _measure_and_show(partial(continue_on_fleet, resume, fleet), how, alarm, verbosity)
            return
        environments = engine_options(machine, gpu, installation)
        budget_s = parse.budget(measuring.budget)
        from orchestrator.measure.forecast import forecast_more
        from orchestrator.measure.resume import add_rounds
        from orchestrator.results.more_rounds import ResumeOptions

        asked = ResumeOptions(
            run=resume,
            rounds=measuring.rounds,
            budget_s=budget_s,
            keep_going=keep_going,
            own_workloads=selection.workload_folder,
            environments=environments,
            command=redact.redact_words(sys.argv[1:]),
        )
        if measuring.dry_run:
            _print_forecast(forecast_more(asked, verbosity.view), report.format)
            return
        _measure_and_show(partial(add_rounds, asked), how, alarm, verbosity)
        return
    named = named or find_own_and_newest(verbosity.view)
    parse.check_targets(named)
    margins = parse.margin(margin.margin)
    options = run_options(
        machine,
        gpu,
        installation,
        measuring.budget,
        versions=named,
        **find_subject(context, selection, requirements, parse.shard(shard), file, verbosity.view),
        out=folder.output,
        rounds=measuring.rounds,
        keep_going=keep_going,
        margin=margins.share,
        margins=margins.of_metrics,
        judge=judge.judge,
        control=control,
        pairing=pairs,
        metrics=metric.names,
        seed=measuring.seed,
        isolation=isolation,
        command=redact.redact_words(sys.argv[1:]),
    )
    if vary:
        from orchestrator.catalog.vary import cross

        options = replace(options, versions=cross(named, vary, options.environments.device))
    run_and_show(
        options, report, arrangement, alarm, verbosity, dry_run=measuring.dry_run, fleet=machines.fleet_options
    )


def split_file(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Separate the file of a workload or of a program from the targets; '' if none is named."""
    names = [word for word in words if parse.names_file(word)]
    others = tuple(word for word in words if not parse.names_file(word))
    if len(names) > 1 and not any(map(PROGRAM.fullmatch, others)):
        raise UsageError(f"{shlex.join(names)}: name one file; --workload-folder measures all workloads of a folder")
    # A command line stays whole, so that the error about it also names its file.
    return (tuple(words), "") if any(map(PROGRAM.fullmatch, others)) else (others, "".join(names))


def find_own_and_newest(view: View) -> tuple[str, ...]:
    """Return the TensorFlow of the active environment and the newest release."""
    from orchestrator import catalog
    from orchestrator.catalog.active import find_active

    advice = "name versions, the baseline first, e.g. --versions 1.14,2.0,2.13"
    own, newest = find_active(), catalog.releases()[-1].number
    if own is None:
        raise UsageError(f"there is nothing to compare: {advice}")
    if own.number == newest:
        raise UsageError(f"there is nothing to compare: TensorFlow {newest} of {own.prefix} is the newest; {advice}")
    view.say(
        f"comparing TensorFlow {own.number} of {own.prefix} with the newest, {newest}; to compare others, name them"
    )
    return own.number, newest


def choose_targets(context: typer.Context, given: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the targets that are typed or, without any, those of the folder's settings; refuse words of a program."""
    from orchestrator.catalog import targets

    typed = {name for name, words in given.items() if any(words) and not is_setting(context, name)}
    found: list[str] = []
    for words in (words for name, words in given.items() if not typed or name in typed):
        if programs := [word for word in words if PROGRAM.fullmatch(word)]:
            raise UsageError(
                f"unexpected: {shlex.join(programs)}. To measure a program, put its command after --, e.g. "
                "tfcompare run 2.8 2.15 -- python train.py --epochs 1"
            )
        found += targets.split_targets(words)
    return tuple(found)


def find_subject(
    context: typer.Context,
    selection: SelectionFlags,
    requirements: Path | None,
    shard: tuple[int, int] | None,
    file: str,
    view: View,
) -> dict[str, Any]:
    """Return the options that say what is measured: workloads, or the program behind `--`."""
    command: tuple[str, ...] | None = context.obj
    if file:
        selection, command = _recognise(context, file, selection, view)
    if command is None:
        if requirements:
            raise UsageError("--requirements is for a program after --; a workload file has REQUIREMENTS")
        if "keep_going" in find_given_flags(context):
            raise UsageError(
                "--keep-going is for a program after --; workloads are measured to the end of their budget"
            )
        return {
            "suite": selection.suite,
            "selected": tuple(selection.case or ()),
            "shard": shard,
            "own_workloads": selection.workload_folder,
            "outside": selection.find_allowed(selection.workload_folder),
            "hash_data": selection.hash_data,
        }
    from orchestrator.catalog import program

    if not command:
        raise UsageError("there is no program after --, e.g. tfcompare run 2.8 2.15 -- python train.py --epochs 1")
    given = find_given_flags(context)
    if others := [given[name][0] for name in sorted(NOT_OF_PROGRAMS & given.keys())]:
        raise UsageError(f"{', '.join(others)}: not for a program after --, which is measured as it is")
    # A folder in the settings is for workloads, and does not apply to a program.
    folder = selection.workload_folder if "workload_folder" in given and selection.workload_folder else Path(".")
    program.check_program(command, folder)
    # Data that a link leads to appear under the link's name; other data keep their own names.
    links = [text for text in selection.data or () if (folder / text.partition("=")[0]).is_symlink()]
    data = [Path(text) for text in selection.data or () if text not in links]
    packages = program.read_requirements(requirements) if requirements else ()
    return {
        "own_workloads": folder,
        "program": command,
        "requirements": packages,
        "data": program.find_data(data, folder),
        "outside": replace(selection, data=links).find_allowed(folder),
        "hash_data": selection.hash_data,
    }


def _recognise(
    context: typer.Context, file: str, selection: SelectionFlags, view: View
) -> tuple[SelectionFlags, tuple[str, ...] | None]:
    """Return the flags that select the workload in a file, or, if the file is a program, its command."""
    from orchestrator.catalog import workloads

    if context.obj is not None:
        raise UsageError(f"{file}: there is already a program after --; leave one of them out")
    given = find_given_flags(context)
    folder = selection.workload_folder if "workload_folder" in given and selection.workload_folder else Path()
    path = folder / file
    if not path.is_file():
        raise UsageError(f"there is no {file} in {folder.resolve()}")
    try:
        is_workload = workloads.is_workload(path)
    except UsageError as error:
        raise UsageError(f"{error}; to run it as a program, use -- python {file}") from error
    if not is_workload:
        view.say(f"{file} is not a workload (no build(tf, params)), so it runs as a program: -- python {file}")
        return selection, ("python", file)
    if others := [given[name][0] for name in sorted(OF_WORKLOADS & given.keys())]:
        raise UsageError(f"{', '.join(others)}: {file} is a workload, which is measured alone; leave one of them out")
    cases = list(selection.case or ()) if "case" in given else [path.stem]
    view.say(f"{file} is a workload: --workload-folder {path.parent} {shlex.join(f'--case={case}' for case in cases)}")
    return replace(selection, workload_folder=path.parent, case=cases, suite=None), None


def run_and_show(
    options: "RunOptions",
    report: ReportFormatFlags,
    arrangement: ArrangementFlags,
    alarm: FailOnFlags,
    verbosity: VerbosityFlags,
    *,
    dry_run: bool,
    fleet: "FleetOptions",
) -> None:
    from orchestrator.plan.planning import plan_elsewhere, plan_run

    say_ignored(options.environments, verbosity.view)
    options = _add_metrics(options, alarm, verbosity.view)
    # A user's mistake is reported here, before the slow import of the code that measures.
    planned = (plan_run if fleet.is_local else plan_elsewhere)(options, verbosity.view)
    from orchestrator.cli.show import choose_report

    how = choose_report(report.format, arrangement)
    if not fleet.is_local:
        from orchestrator.fleet import conduct

        if dry_run:
            print("\n".join(conduct.forecast_fleet(planned, fleet, verbosity.view)))
            return
        _measure_and_show(partial(conduct.measure_on_fleet, planned, fleet), how, alarm, verbosity)
        return
    from orchestrator.measure.forecast import forecast
    from orchestrator.measure.run import measure

    if dry_run:
        _print_forecast(forecast(planned, verbosity.view), report.format)
        return
    _measure_and_show(partial(measure, planned), how, alarm, verbosity)


def _add_metrics(options: "RunOptions", alarm: FailOnFlags, view: View) -> "RunOptions":
    """Return the options with the metrics that --fail-on needs; raise UsageError for one that this run cannot have."""
    from orchestrator.plan.request import find_metrics

    keys, outputs = find_metrics(replace(options, metrics=None))
    usual = with_output(keys, outputs=outputs)
    added = choose_for_gates(
        alarm.gates,
        usual,
        options.metrics,
        program=bool(options.program),
        gpu=options.environments.gpu,
        judge=options.judge,
    )
    if added:
        view.say(f"comparing {', '.join(added)} as well, for --fail-on")
    return replace(options, of_gates=added)


def _check_gates_of(run: Path, alarm: FailOnFlags) -> None:
    """Raise UsageError for gates on metrics that a run does not compare; its plan fixed what it compares."""
    if alarm.gates:
        from orchestrator.results.gated import name_compared
        from orchestrator.results.run_folder import RunFolder
        from orchestrator.results.sealed import read_request

        plan, _ = read_request(RunFolder.open(run, unprepared=True))
        compared = name_compared(plan)
        advice = f"leave it out, and judge it afterwards: tfcompare report {run} --metric {{metrics}} --fail-on ..."
        check_compared(alarm.gates, compared, "this run was not planned to compare", advice)


def _print_forecast(forecast: "Forecast", format: str) -> None:
    if format not in FORMATS:
        raise UsageError(f"--dry-run prints a plan: --format must be {' or '.join(FORMATS)}")
    print(strict_json.dump(forecast.as_object(), indent=2) if format == "json" else "\n".join(forecast.lines()))


def _measure_and_show(
    measure: "Callable[[View], Done]", how: "ReportChoice", alarm: FailOnFlags, verbosity: VerbosityFlags
) -> None:
    """Measure, print the comparison, and raise the error that determines the exit code.

    The last line is the command that continues the run.
    """
    from orchestrator.reports.matrix import layout_tables
    from orchestrator.reports.next_step import next_line
    from orchestrator.results.gated import gate_run

    with verbosity.watch(layout_tables) as watching:
        done = measure(watching)
    errors = Console(stderr=True)
    try:
        how.show(done.evaluation, done.path)
    finally:
        # This is printed even if stdout cannot be written, because the run is kept.
        if not verbosity.quiet:
            errors.print(safe_text(f"run folder: {done.path}"), soft_wrap=True)
    following = "" if verbosity.quiet else next_line(done.path, done.evaluation)
    error = done.error or alarm.find_error(gate_run(done.evaluation), verbosity.view)
    if error:
        # Without --quiet, every death was reported when it happened.
        told = str(error) if verbosity.quiet or not isinstance(error, ArmsDied) else error.headline
        raise type(error)(f"{told}\n{following}" if following else told)
    if following:
        errors.print(safe_text(following), soft_wrap=True)
