"""The `tfcompare bisect` command: reads the flags, measures the steps, and prints the answer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import parse
from orchestrator.cli.options import (
    FormatFlags,
    InstallationFlags,
    JudgeFlags,
    MachineFlags,
    MarginFlags,
    MeasuringFlags,
    MeasuringGpuFlags,
    OwnWorkloadsFlags,
    PlaceFlags,
    RunFolderFlags,
    VerbosityFlags,
    choice,
    names_of,
    number,
    refuse_others,
    run_options,
    say_ignored,
    with_options,
)
from orchestrator.cli.runs import find_search
from orchestrator.errors import UsageError
from orchestrator.metrics import NAMES
from orchestrator.metrics.followed import from_name
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import print_table
from orchestrator.terminal.view import View

if TYPE_CHECKING:
    from orchestrator.bisect.actions import SearchActions
    from orchestrator.bisect.run import SearchOutcome
    from orchestrator.fleet.model import FleetOptions

# These flags go with --resume. The rest was fixed when the search began, except for the index's address, which may hold
# a login and is stored nowhere.
WITH_RESUME = names_of(FormatFlags, VerbosityFlags, PlaceFlags) | {"resume", "steps", "dry_run", "index_url"}

# The command that continues a search gets this many steps for each part that was not searched.
STEPS_TO_A_CHANGE = 3

app = typer.Typer()


@app.command()
@with_options
def bisect(
    context: typer.Context,
    own: OwnWorkloadsFlags,
    measuring: MeasuringFlags,
    margin: MarginFlags,
    judge: JudgeFlags,
    machine: MachineFlags,
    gpu: MeasuringGpuFlags,
    installation: InstallationFlags,
    machines: PlaceFlags,
    form: FormatFlags,
    verbosity: VerbosityFlags,
    good: Annotated[
        str | None,
        typer.Option(
            help="Older end of the search: a version, nightly-YYYYMMDD, or a version with changes, e.g. '2.20 "
            "keras==3.5.0'.",
            show_default=False,
            metavar="VERSION",
        ),
    ] = None,
    bad: Annotated[
        str | None, typer.Option(help="Newer end of the search.", show_default=False, metavar="VERSION")
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
    metric: Annotated[str, choice("--metric", "metric", NAMES, "Metric that changed.")] = "time",
    over: Annotated[
        str | None,
        typer.Option(
            help="Search the releases of this package, e.g. keras, instead of TensorFlow's; --good and --bad must "
            "each pin a release of it. "
            "With @git after its name, search its commits.",
            metavar="PACKAGE",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            help="With --over PACKAGE@git: a checkout of the package. Its commits are built, which runs its code.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    nightlies: Annotated[
        bool,
        typer.Option(
            "--nightlies",
            help="After finding two neighbouring releases, search the nightlies between them that the index still has.",
        ),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Measure every version, even between two that do not differ.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Continue the search in this folder (`last`: the newest search).",
            metavar="FOLDER",
            parser=find_search,
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        number("--steps", 1, 1000, "Take at most this many steps now, largest change first.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder for the search. If it already holds this search, the search continues.",
            metavar="FOLDER",
            show_default=False,
            rich_help_panel=RunFolderFlags.panel,
        ),
    ] = None,
) -> None:
    r"""Find the version that made a case slower or faster, or changed its memory or results.

    Each step of the search is a run. --rounds and --budget apply to one step; the default budget is 10 minutes.

    [bold]Examples[/bold]

      tfcompare bisect --good 1.14 --bad 2.13 --case 'predict\[call=predict,state=uncompiled,model=tiny]'

      tfcompare bisect --good 2.20 --bad 2.21 --nightlies --case 'power\[style=function]' --output runs/hunt

      tfcompare bisect --good 2.8 --bad 2.16 --metric memory --case 'train_loop\[mode=fit,model=small]'

      tfcompare bisect --resume runs/hunt

      tfcompare bisect --good nightly-20260701 --bad nightly --case 'power\[style=function]'

      tfcompare bisect --over keras --good '2.20 keras==3.5.0' --bad '2.20 keras==3.8.0' --case 'power\[style=function]'

      tfcompare bisect --over keras@git --good '2.20 keras==3.6.0' --bad '2.20 keras==3.7.0' --case zeros

      tfcompare bisect --good '2.16 keras=2' --bad '2.20 keras=2' --case 'train_loop\[mode=fit,model=small]'
    """
    fleet, question = machines.fleet(), None
    if resume:
        refuse_others(context, WITH_RESUME, "--resume continues a search as it was asked", "start a new search")
    else:
        missing = [name for name, value in (("good", good), ("bad", bad), ("case", case)) if not value]
        if missing:
            flags = ", ".join(f"--{name}" for name in missing)
            raise UsageError(
                f"{flags} missing: a search needs two versions and one case, e.g. --good 1.14 --bad 2.13 "
                "--case 'predict[call=predict,state=uncompiled,model=tiny]'"
            )
        assert good
        assert bad
        assert case
        margins = parse.margin(margin.margin)
        options = run_options(
            machine,
            gpu,
            installation,
            measuring.budget,
            selected=(case,),
            own_workloads=own.workload_folder,
            outside=own.find_allowed(own.workload_folder),
            rounds=measuring.rounds,
            margin=margins.share,
            margins=margins.of_metrics,
            judge=judge.judge,
            seed=measuring.seed,
        )
        if source and not (over or "").endswith("@git"):
            raise UsageError("--source is a checkout for --over PACKAGE@git; leave it out, or add that")
        if not source and not (over or "").endswith("@git"):
            parse.check_targets((good, bad))
        say_ignored(options.environments, verbosity.view)
        from orchestrator.bisect.state import Question

        question = Question(
            good=good,
            bad=bad,
            over=over or "",
            source=source and source.expanduser().resolve(),
            nightlies=nightlies,
            every=every,
            metric=from_name(metric),
            run=options,
        )
    from orchestrator.bisect import estimate, run
    from orchestrator.bisect.run import DeduplicatingView

    with verbosity.watch() as live:
        watching = DeduplicatingView(live)
        actions = _take_actions(fleet, resume or output, machine.engine, watching)
        if resume:
            folder, state = resume, run.resume_search(resume, index_url=installation.index_url, actions=actions)
        else:
            assert question
            folder, state = run.begin(question, output, watching, actions)
        if state.steps:
            watching.say(f"{folder}: {len(state.measured)} steps are done already, and are not measured again")
        plan = estimate.describe_plan(state, None if actions else watching) if state.search_result.wanted else []
        if measuring.dry_run:
            print("\n".join(plan))
            return
        for line in plan:
            watching.say(line)
        done = run.run_search(folder, state, watching, steps, actions)
    _show(done, form.format, verbosity)


def _take_actions(fleet: "FleetOptions", folder: Path | None, engine: str, view: View) -> "SearchActions | None":
    """Return the functions that measure on one host of a fleet, the same as before, or None for this machine."""
    if fleet.is_local:
        return None
    from orchestrator.bisect import state
    from orchestrator.bisect.actions import SearchActions
    from orchestrator.fleet.single import find_single

    before = state.read_state(folder).host["id"] if folder and state.exists(folder) else None
    host = find_single(fleet, engine, view, before)
    return SearchActions(
        measure=host.measure,
        # A version that a host cannot have is left out of its run, and so of the search.
        obstacle=lambda *about: None,
        host=lambda: host.facts,
        is_here=lambda facts: facts.get("id") == host.facts["id"],
    )


def _show(done: "SearchOutcome", format: str, verbosity: VerbosityFlags) -> None:
    from orchestrator.bisect import commits, page, report

    if format == "json":
        print(strict_json.dump(report.search_as_object(done.state, done.result), indent=2))
    else:
        print_table(lambda width: report.layout_search(done.state, done.result, width))
    written = page.write_page(done.state, done.result, done.path)
    verbosity.say(f"plot: {written}")
    if done.result.wanted:
        steps = f" --steps {len(done.result.wanted) * STEPS_TO_A_CHANGE}" if done.result.main else ""
        verbosity.say(f"to continue the search: tfcompare bisect --resume {done.path}{steps}")
    question = done.state.question
    for part in done.result.parts if question.is_over_commits else ():
        if part.changed:
            verbosity.say(f"the change of {part.later}: {commits.show_commit(question, part.later)}")
    if done.error:
        raise done.error
