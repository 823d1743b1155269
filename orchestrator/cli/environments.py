"""`tfcompare environments pack`, `unpack` and `prune`."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli import parse
from orchestrator.cli.options import DownloadsFlags, IndexFlags, VerbosityFlags, with_options
from orchestrator.cli.talk import confirm
from orchestrator.errors import EnvironmentFailed, NothingSelected
from orchestrator.options import EngineOptions
from orchestrator.terminal.text import print_table

app = typer.Typer(
    help="Take virtual environments to a machine without a network, or remove them.",
    no_args_is_help=True,
)


@app.command("pack")
@with_options
def pack_environments(
    installation: IndexFlags,
    downloads: DownloadsFlags,
    verbosity: VerbosityFlags,
    versions: Annotated[
        list[str],
        typer.Argument(help="Versions, e.g. 2.13 or 2.8..2.13.", metavar="VERSION", show_default=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", metavar="FILE", show_default=False)],
    gpu: Annotated[bool, typer.Option("--gpu", help="Pack the packages for a GPU; this needs no GPU.")] = False,
) -> None:
    """Download everything that the environments of some versions are installed from, and write it into one file.

    The packages and Pythons are for machines with the same processor architecture as this one.

    [bold]Examples[/bold]

      tfcompare environments pack 2.13 2.16 -o environments.tar

      tfcompare environments pack 2.18 2.21 --gpu -o environments.tar
    """
    from orchestrator import catalog
    from orchestrator.catalog import targets
    from orchestrator.images import packed, sizes

    names = [name for text in versions for name in parse.parse_names(text)]
    if not all(map(targets.is_plain, names)):
        raise NothingSelected(
            f"{' '.join(versions)}: a target with changes cannot be packed. Pack its version, and for its packages "
            "carry a folder of wheels over, which --wheelhouse names there"
        )
    named = catalog.resolve_versions(names, fewest=1)
    options = EngineOptions(
        gpu=gpu,
        ca_bundle=installation.ca_bundle,
        index_url=installation.index_url,
        wheelhouse=installation.wheelhouse,
        python_downloads=not downloads.no_python_downloads,
    )
    with verbosity.watch() as watching:
        packed.pack(named, options, output, watching)
    verbosity.say(
        f"written: {output} ({sizes.format_size(output.stat().st_size)}); on the other machine: "
        f"tfcompare environments unpack {output.name}"
    )


@app.command("unpack")
@with_options
def unpack_environments(
    verbosity: VerbosityFlags,
    file: Annotated[Path, typer.Argument(help="File of `environments pack`.", metavar="FILE", show_default=False)],
) -> None:
    """Install the environments of a file that `environments pack` wrote; this needs no network.

    [bold]Examples[/bold]

      tfcompare environments unpack environments.tar
    """
    from orchestrator.images import packed

    with verbosity.watch() as watching:
        ready, problems = packed.unpack(file, EngineOptions(), watching)
    if ready:
        verbosity.say(f"ready with --engine venv: {', '.join(ready)}")
    if problems:
        raise EnvironmentFailed("\n".join(problems))


@app.command("prune")
@with_options
def prune_environments(
    all: Annotated[bool, typer.Option("--all", help="Also remove what is current.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove virtual environments that no version or target uses any more; this needs no Docker engine.

    [bold]Examples[/bold]

      tfcompare environments prune

      tfcompare environments prune --all --yes
    """
    from orchestrator import catalog, files
    from orchestrator.images import report, sizes, venv_cache

    found = venv_cache.list_environments() if all else venv_cache.find_outdated(catalog.all_versions())
    used = [path for path in found if venv_cache.in_use(path)]
    freed = {path: files.tree_size(path) for path in found if path not in used}
    for path in used:
        print(f"left alone: {path.name}: it is in use")
    if not freed:
        print("nothing to free")
        return
    print_table(lambda width: report.of_environments(freed))
    confirm("Remove all of this?", yes, "removed")
    for path in list(freed):
        if not venv_cache.remove_environment(path):
            del freed[path]
            print(f"left alone: {path.name}: it is in use, or not yours to remove")
    print(f"freed {sizes.format_size(sum(freed.values()))}")
