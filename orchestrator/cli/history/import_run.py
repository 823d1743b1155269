"""`tfcompare history import`: a run becomes a night of the history."""

from collections.abc import Sequence
from contextlib import nullcontext
from os import W_OK, access
from typing import Annotated

import typer

from orchestrator.cli.history.common import open_store, parse_day
from orchestrator.cli.options import HistoryFlags, with_options
from orchestrator.cli.report import RunFolder
from orchestrator.cli.talk import say
from orchestrator.errors import ContractBroken, NothingSelected, UsageError
from orchestrator.terminal.counts import format_count

app = typer.Typer()


@app.command("import")
@with_options
def import_run(
    history: HistoryFlags,
    run: RunFolder,
    night: Annotated[
        str | None,
        typer.Option("--night", help="Date to record the run under. Default: the day the run started.", metavar="DATE"),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="Name under which the history follows a version, e.g. 2.22.0.dev20261121=nightly; repeatable.",
            metavar="BUILD=NAME",
        ),
    ] = None,
) -> None:
    """Add the comparisons of a run to the history as a separate night. The run folder stays where it is.

    [bold]Examples[/bold]

      tfcompare history import runs/first

      tfcompare history import runs/tuesday --night 2026-11-17 --name 2.22.0.dev20261117=nightly
    """
    from orchestrator.history.points import of_run
    from orchestrator.results.run import load_run
    from orchestrator.results.run_folder import RunFolder

    day = parse_day("--night", night)
    store = open_store(history)
    folder = RunFolder.open(run)
    # A run that is still being measured would be imported as it is now, and never completed.
    with folder.hold() if access(run, W_OK) else nullcontext():
        loaded = load_run(run)
    if loaded.evaluation.broken:
        raise ContractBroken(
            f"{run} is not imported, because imports are permanent: {'; '.join(loaded.evaluation.broken)}"
        )
    plan = loaded.plan
    if plan.run in store.list_runs():
        raise UsageError(f"run {plan.run} is already in the history {store.path}; nothing was added")
    points = of_run(loaded, "screen", day, _names(name or (), [str(version) for version in plan.targets]))
    if not points:
        raise NothingSelected(
            f"{run} compares no version with its first one, {plan.targets[0]}; a history consists of such comparisons"
        )
    path = store.append(points)
    timed = sum(point.effect is not None for point in points)
    say(
        f"added as the night of {points[0].night}: {format_count(len(points), 'comparison')}, {timed} of them with a "
        f"time, in {path}"
    )


def _names(texts: Sequence[str], versions: Sequence[str]) -> dict[str, str]:
    names_by_build = {}
    for text in texts:
        build, _, name = text.partition("=")
        if not build or not name:
            raise UsageError(f"--name {text!r}: expected BUILD=NAME, e.g. 2.22.0.dev20261121=nightly")
        if build not in versions[1:]:
            from orchestrator.catalog import did_you_mean

            raise UsageError(
                f"--name {text!r}: the run compares {', '.join(versions[1:])}{did_you_mean(build, versions[1:])}"
            )
        names_by_build[build] = name
    return names_by_build
