"""The `tfcompare atlas` command: reads the flags, measures units, and writes the pages."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import parse
from orchestrator.cli.options import (
    FORMATS,
    InstallationFlags,
    MachineFlags,
    MarginFlags,
    MeasuringGpuFlags,
    MetricFlags,
    RunFolderFlags,
    SeedFlags,
    SelectionFlags,
    VerbosityFlags,
    choice,
    names_of,
    number,
    refuse_others,
    run_options,
    say_ignored,
    with_options,
)
from orchestrator.cli.runs import find_atlas
from orchestrator.errors import TfCompareError, UsageError
from orchestrator.terminal.counts import format_count

if TYPE_CHECKING:
    from orchestrator.atlas.figures import AtlasFigures

# These flags go with --resume. The rest was fixed when the atlas began.
WITH_RESUME = names_of(VerbosityFlags) | {"resume", "format", "budget", "index_url", "dry_run", "site"}
# Pages are made of the figures of finished atlases.
WITH_FIGURES = names_of(VerbosityFlags) | {"figures", "format", "site"}
ALL, SUITE, TITLE = "all", "atlas", "An atlas of TensorFlow"
METRICS = ("first", "memory", "import", "output")

app = typer.Typer()


@app.command("atlas")
@with_options
def make_atlas(
    context: typer.Context,
    selection: SelectionFlags,
    metric: MetricFlags,
    seed: SeedFlags,
    margin: MarginFlags,
    machine: MachineFlags,
    gpu: MeasuringGpuFlags,
    installation: InstallationFlags,
    folder: RunFolderFlags,
    verbosity: VerbosityFlags,
    releases: Annotated[
        str,
        typer.Option(
            "--releases",
            help="Releases to follow, e.g. 1.14,2.0..2.8. With --vary, the one TensorFlow to use.",
            metavar="VERSIONS",
        ),
    ] = ALL,
    vary: Annotated[
        str | None,
        typer.Option(
            "--vary",
            help="Follow the releases of this package instead, at one TensorFlow, e.g. keras=3.5..3.15.",
            metavar="PACKAGE=VERSIONS",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="Release that levels are shown against. Default: the newest of those that are followed.",
            metavar="VERSION",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            "-b",
            help="How long to measure now, e.g. 8h; --resume continues. Default: until every unit is finished.",
            metavar="DURATION",
            show_default=False,
        ),
    ] = None,
    explain: Annotated[
        int,
        number("--explain", 0, 100, "Explain this many of the largest steps with `why`, once everything is measured."),
    ] = 10,
    title: Annotated[str, typer.Option("--title", help="Title of the pages.", metavar="TEXT")] = TITLE,
    site: Annotated[
        Path | None,
        typer.Option("--site", help="Folder for the pages. Default: site, inside the atlas.", metavar="FOLDER"),
    ] = None,
    figures: Annotated[
        list[Path] | None,
        typer.Option(
            "--figures",
            help="Measure nothing: make the pages of these figures.json files, one section per file; repeatable.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    format: Annotated[str, choice("--format", "format", FORMATS, "Output format.", rich_help_panel="Output")] = "table",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan, and measure and install nothing.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Continue the atlas in this folder (`last`: the newest).",
            metavar="FOLDER",
            parser=find_atlas,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show how cases changed from release to release: speed, memory, start-up and results.

    Each release is measured in the same rounds as the one before it (its step)
    and the newest (its level). Both have verdicts. `why` explains the largest
    steps. An atlas takes hours, can be interrupted and resumed, and writes
    pages, a feed and tables into its folder `site`.

    [bold]Examples[/bold]

      tfcompare atlas --budget 8h --output tensorflow

      tfcompare atlas --resume tensorflow --budget 8h

      tfcompare atlas --releases 1.14,2.0..2.8 --suite quick --dry-run

      tfcompare atlas --releases 2.20 --vary keras=3.5..3.15 --output keras

      tfcompare atlas --figures here/site/figures.json --figures there.json --site both
    """
    if figures:
        refuse_others(context, WITH_FIGURES, "--figures makes pages of what was measured", "measure a new atlas")
        if site is None:
            raise UsageError("--figures needs --site FOLDER for the pages")
        from orchestrator.atlas.figures import read_figures

        _show([read_figures(path) for path in figures], site, format, verbosity)
        return
    from orchestrator.atlas.run import begin_atlas, list_lost, measure_atlas, plan_atlas, resume_atlas
    from orchestrator.atlas.state import SITE

    budget_s = parse.budget(budget)
    if resume:
        refuse_others(context, WITH_RESUME, "--resume continues an atlas as it began", "start a new atlas")
        path, state = resume, resume_atlas(resume, index_url=installation.index_url)
    else:
        margins = parse.margin(margin.margin)
        options = run_options(
            machine,
            gpu,
            installation,
            None,
            suite=selection.suite or (None if selection.workload_folder else SUITE),
            selected=tuple(selection.case or ()),
            own_workloads=selection.workload_folder,
            outside=selection.find_allowed(selection.workload_folder),
            hash_data=selection.hash_data,
            margin=margins.share,
            margins=margins.of_metrics,
            metrics=metric.names or METRICS,
            seed=seed.seed,
        )
        from orchestrator.atlas.state import AtlasQuestion

        followed = _list_releases(releases, vary, gpu=gpu.gpu)
        question = AtlasQuestion(
            title=title,
            releases=followed,
            against=_find_reference(against, followed, releases, vary, gpu=gpu.gpu) if against else "",
            run=options,
            explained=explain,
        )
        path, state = begin_atlas(question, folder.output, verbosity.view)
    say_ignored(state.question.run.environments, verbosity.view)
    plan = plan_atlas(state, verbosity.view)
    if dry_run:
        if format != "table":
            raise UsageError("--dry-run prints a plan in lines: leave --format out")
        print("\n".join(plan))
        return
    for line in plan:
        verbosity.say(line)
    with verbosity.watch() as watching:
        outcome = measure_atlas(path, state, watching, budget_s)
    _show([outcome.figures], site or path / SITE, format, verbosity)
    if lost := list_lost(outcome.figures):
        verbosity.say(f"not measured: {', '.join(lost)}")
    if outcome.open_units and not outcome.error:
        left = format_count(outcome.open_units, "unit")
        verbosity.say(f"{left} open; continue with: tfcompare atlas --resume {path}")
    if outcome.error:
        raise outcome.error


def _list_releases(releases: str, vary: str | None, *, gpu: bool) -> tuple[str, ...]:
    from packaging.version import Version

    from orchestrator import catalog
    from orchestrator.catalog.vary import cross

    if vary:
        if releases == ALL:
            releases = catalog.LATEST
        versions = catalog.resolve_versions(parse.parse_names(releases), fewest=1)
        if len(versions) > 1:
            raise UsageError("--vary follows one package at one TensorFlow: name one with --releases")
        targets = cross([versions[0].number], [vary], "gpu" if gpu else "cpu")
        return tuple(sorted(targets, key=lambda text: Version(text.rpartition("==")[2])))
    if releases == ALL:
        return tuple(version.number for version in catalog.releases())
    names = parse.parse_names(releases)
    parse.check_versions(names)
    # A release that is in no table is locked before it is measured.
    known = {name: catalog.find_version(name) for name in names if catalog.EXACT.fullmatch(name)}
    exact = [name for name, version in known.items() if version is None]
    others = [name for name in names if name not in exact]
    numbers = [version.number for version in catalog.resolve_versions(others, fewest=0)] if others else []
    return tuple(sorted({*numbers, *exact}, key=Version))


def _find_reference(against: str, followed: tuple[str, ...], releases: str, vary: str | None, *, gpu: bool) -> str:
    """Return the target that levels are against, or '' if it is the newest of the releases that are followed."""
    varied = f"{vary.partition('=')[0]}={against}" if vary else None
    found = _list_releases(releases if vary else against, varied, gpu=gpu)
    if len(found) != 1:
        raise UsageError(f"--against {against}: name one release")
    if found[0] in followed[:-1]:
        raise UsageError(
            f"--against {against}: --releases follows it and newer ones: name their newest, or one that is not followed"
        )
    return "" if found[0] == followed[-1] else found[0]


def _show(figures: "list[AtlasFigures]", site: Path, format: str, verbosity: VerbosityFlags) -> None:
    """Write the pages, and print what changed in each release or, as JSON, all figures of the first atlas."""
    from orchestrator.atlas.figures import figures_as_json
    from orchestrator.atlas.site import write_atlas_site
    from orchestrator.atlas.summary import list_atlas_changes

    failed: TfCompareError | None = None
    try:
        index = write_atlas_site(figures, site)
        verbosity.say(f"pages: {index}")
    except TfCompareError as error:
        failed = error
    # What was measured is printed even if the pages cannot be written.
    print(
        figures_as_json(figures[0])
        if format == "json"
        else "\n\n".join("\n".join(list_atlas_changes(each)) for each in figures)
    )
    if failed:
        raise failed
