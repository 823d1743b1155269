"""`tfcompare trust`: shows what a stranger's folder would do, and lets the user allow it."""

import shlex
from collections.abc import Iterable
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from orchestrator import contract
from orchestrator.cli.options import with_options
from orchestrator.cli.runs import find_run
from orchestrator.cli.settings import Settings, find_folder, read_settings
from orchestrator.cli.talk import confirm
from orchestrator.errors import UsageError
from orchestrator.terminal.text import escape_unprintable

app = typer.Typer()


@app.command("trust")
@with_options
def trust_folder(
    context: typer.Context,
    named: Annotated[
        Path | None,
        typer.Argument(
            help="Folder with settings or workloads, or the folder of a run (`last`: the newest), of a bisect "
            "search, of a `why` run, of an upgrade or of an atlas. Default: the folder of the settings in force.",
            metavar="FOLDER",
            parser=find_run,
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Print the folders that you trust.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="No longer trust the folder and the folders in it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Show which settings of a folder need your trust and which files outside it its workloads read, and allow both.

    Trust lasts until one of these settings or files changes. A run, a bisect search, a `why` run, an upgrade or an
    atlas that another user started can be continued here once you trust it.
    TFCOMPARE_TRUST=1 trusts every folder, for machines that run only reviewed code.

    [bold]Examples[/bold]

      tfcompare trust

      tfcompare trust mine --yes

      tfcompare trust --list
    """
    from orchestrator.catalog import seals, trust
    from orchestrator.catalog.outside import find_outside_places
    from orchestrator.results.find_runs import ATLAS, PLAN, QUESTION, SEARCH, UPGRADE

    if show:
        _print_lines(trust.read_all())
        return
    assert context.parent is not None
    group = context.parent.command
    folder = named or find_folder()
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    is_run = any((folder / name).exists() for name in ("begun.json", PLAN, SEARCH, QUESTION, UPGRADE, ATLAS))
    if remove:
        removed = trust.remove_trust(folder) or ([str(folder)] if is_run and seals.remove_seals(folder) else [])
        _print_lines([f"no longer trusted: {path}" for path in removed] or [f"{folder}: was not trusted"])
        return
    if is_run:
        _trust_run(folder, yes)
        return
    with chdir(folder):
        settings = read_settings(group, only_here=True)
        gated = settings.find_gated() if settings else {}
        outside = {place: find_outside_places(place) for place in _list_folders(settings)}
    lines = []
    for name, setting in gated.items():
        lines.append(f"{name} = {shlex.join(setting.value) if isinstance(setting.value, list) else setting.value}")
    lines += [_describe_place(place, name, path) for place, found in outside.items() for name, path in found.items()]
    if not lines:
        print(f"{escape_unprintable(str(folder))}: nothing here needs your trust")
        return
    if folder != Path():
        _print_lines([f"in {folder}:"])
    _print_lines(lines)
    confirm("Trust this?", yes, "trusted")
    kept = {place: {name: str(path) for name, path in found.items()} for place, found in outside.items()}
    digest = settings.digest if settings and gated else ""
    here = folder.resolve()
    trust.record_trust({place: trust.Trust(digest if place == here else "", found) for place, found in kept.items()})
    print("trusted, until one of these changes")


def _trust_run(folder: Path, yes: bool) -> None:
    """Show what a run or the like of another user would do if it continued, and let the user allow it."""
    from orchestrator.atlas import state as atlases
    from orchestrator.bisect import state
    from orchestrator.results.run_folder import RunFolder
    from orchestrator.results.sealed import describe_run, read_request, seal_run
    from orchestrator.upgrade import state as upgrades
    from orchestrator.why import state as questions

    if atlases.holds_atlas(folder):
        atlas = atlases.read_atlas(folder)
        lines, seal = atlases.list_atlas(atlas), partial(atlases.seal_atlas, folder, atlas)
    elif upgrades.holds_upgrade(folder):
        upgrade = upgrades.read_upgrade(folder)
        lines, seal = upgrades.list_upgrade(upgrade), partial(upgrades.seal_upgrade, folder, upgrade)
    elif questions.holds_question(folder):
        question = questions.read_question(folder)
        lines, seal = questions.list_settings(question), partial(questions.seal_question, folder, question)
    elif state.exists(folder):
        search = state.read_state(folder)
        lines, seal = state.describe_question(search), partial(state.seal, folder, search)
    else:
        run = RunFolder.open(folder, unprepared=True)
        plan, manifest = read_request(run)
        lines, seal = describe_run(run, plan, manifest), partial(seal_run, run, plan, manifest)
    _print_lines(lines)
    confirm("Trust this?", yes, "trusted")
    seal()
    print("trusted, until what it would run is changed")


def _list_folders(settings: Settings | None) -> tuple[Path, ...]:
    """Return the working directory and the workload folders that its settings name, without links."""
    tables = (settings.values, settings.nightly) if settings else ()
    named = [Path(table["workload-folder"].value) for table in tables if "workload-folder" in table]
    return tuple(dict.fromkeys(path.resolve() for path in (Path(), *named) if path.is_dir()))


def _describe_place(folder: Path, name: str, place: Path) -> str:
    *_, workload, data = ("", *name.split("/")) if name.startswith(f"{contract.DATA}/") else ("", "", "")
    what = f"DATA[{data!r}] of {workload}" if data else f"the link {name}"
    return f"{what} in {folder}: {place}"


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(escape_unprintable(line))
