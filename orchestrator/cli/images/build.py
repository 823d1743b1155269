"""`tfcompare images build` and `sbom`."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli import parse
from orchestrator.cli.options import BaseFlags, FormatFlags, SourcesFlags, VerbosityFlags, number, with_options
from orchestrator.cli.talk import PrintingView, say
from orchestrator.errors import EnvironmentFailed, NothingSelected, UsageError
from orchestrator.options import EngineOptions
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import safe_text
from orchestrator.terminal.view import View

if TYPE_CHECKING:
    from orchestrator.catalog.version import FlavourName, Version
    from orchestrator.images.build import BuiltImage

USUAL = ("1.14", "2.0", "2.13")

app = typer.Typer()

ForGpu = Annotated[bool, typer.Option("--gpu", help="Take GPU images instead of CPU images; this needs no GPU.")]


@app.command("build")
@with_options
def build_images(
    installation: SourcesFlags,
    output: FormatFlags,
    verbosity: VerbosityFlags,
    versions: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Versions, e.g. 1.14 or 2.8..2.13, or all. Default: {', '.join(USUAL)}.",
            metavar="VERSION",
        ),
    ] = None,
    gpu: ForGpu = False,
    at_once: Annotated[
        int | None,
        number("--at-once", 1, 100, "Number of images to build at a time. Default: one per core, at most 4."),
    ] = None,
    sbom: Annotated[
        Path | None, typer.Option("--sbom", help="Folder for an SBOM of each image (CycloneDX).", metavar="FOLDER")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="Additional name for each image, e.g. 'mine:{version}-{flavour}'. When an image is rebuilt, the "
            "name moves to the new image.",
            metavar="NAME",
        ),
    ] = None,
) -> None:
    """Build the image of each named version unless it already exists, without starting it.

    [bold]Examples[/bold]

      tfcompare images build

      tfcompare images build 2.8..2.13 --at-once 2

      tfcompare images build 2.13 --base 'registry.example:5000/python:{python}-slim'

      TFCOMPARE_INDEX_URL=https://user:password@mirror.example/simple tfcompare images build 2.13

      tfcompare images build 2.13 --wheelhouse wheels --sbom sboms
    """
    flavour: FlavourName = "gpu" if gpu else "cpu"
    if name and "{version}" not in name:
        raise UsageError(f"--name {name!r}: without {{version}} in it, every version would take it from the one before")
    base, quiet = installation.base, verbosity.quiet
    options = EngineOptions(
        gpu=gpu,
        base=base,
        ca_bundle=installation.ca_bundle,
        index_url=installation.index_url,
        wheelhouse=installation.wheelhouse,
    )
    with verbosity.watch() as watching:
        asked = _resolve_versions(versions or USUAL, flavour, watching)
        # This is imported here because other commands need no engine, and its client is slow to import.
        from orchestrator.images.build import add_name, build_all

        built = build_all(asked, options, watching, at_once)
        if name:
            # The number of a build has a +, which a tag cannot have.
            add_name(
                built, lambda number: name.replace("{version}", number.replace("+", "_")).replace("{flavour}", flavour)
            )
    if sbom:
        for image in built:
            # An image that is used as it is was not made from a lock.
            if image.tag and not image.version.build:
                path = sbom / f"{image.version.number}-{flavour}.cdx.json"
                _write(path, _sbom(image.version, gpu, base), "--sbom", quiet)
    if output.format == "json":
        print(strict_json.dump([image.as_object() for image in built], indent=2))
    else:
        _print_images(built)
    if failed := [image.reason for image in built if not image.tag]:
        raise EnvironmentFailed("\n".join(failed))


@app.command("sbom")
@with_options
def write_sbom(
    installation: BaseFlags,
    version: Annotated[str, typer.Argument(help="A version.", metavar="VERSION", show_default=False)],
    output: Annotated[str, typer.Option("--output", "-o", help="A file, or - for stdout.", metavar="FILE")] = "-",
    gpu: ForGpu = False,
) -> None:
    """Write the SBOM of a version's image (CycloneDX, JSON).

    [bold]Examples[/bold]

      tfcompare images sbom 2.13 --output 2.13.cdx.json
    """
    resolved = _resolve_versions([version], "gpu" if gpu else "cpu", PrintingView())
    if len(resolved) != 1:
        raise UsageError(
            f"{version}: these are {len(resolved)} versions; `images build --sbom FOLDER` writes one for each"
        )
    text = _sbom(resolved[0], gpu, installation.base)
    if output == "-":
        print(text, end="")
    else:
        _write(Path(output), text, "--output", quiet=False)


def _resolve_versions(texts: Sequence[str], device: "FlavourName", view: View) -> "tuple[Version, ...]":
    from orchestrator import catalog
    from orchestrator.catalog.lock_on_demand import provide_locks

    names = [name for text in texts for name in parse.parse_names(text)]
    return catalog.resolve_versions(provide_locks(names, view, device=device), fewest=1)


def _print_images(built: "Sequence[BuiltImage]") -> None:
    from rich.table import Table

    from orchestrator.images.sizes import format_size

    grid = Table("version", "", "image", "size", "seconds")
    for image in built:
        size = format_size(image.size) if image.tag else ""
        grid.add_row(*map(safe_text, (image.version.number, image.outcome, image.tag, size, f"{image.seconds:.1f}")))
    Console().print(grid)


def _sbom(version: "Version", gpu: bool, base: str | None) -> str:
    from orchestrator.engines.docker.client import asking, connect_engine
    from orchestrator.engines.docker.image import recipe
    from orchestrator.images.sbom import document

    name = "gpu" if gpu else "cpu"
    flavour = next((each for each in version.flavours if each.name == name), None)
    if flavour is None:
        raise NothingSelected(f"{version.number}: the table of versions has no {name} flavour of it")
    if base is None:
        # No engine has to be asked if --base is not given, so this works on machines without one.
        return document(flavour, recipe(None, version, flavour, None))
    with closing(connect_engine()) as client, asking(f"{version.number}: looking at its base", EnvironmentFailed):
        return document(flavour, recipe(client, version, flavour, base))


def _write(path: Path, text: str, flag: str, quiet: bool) -> None:
    from orchestrator.terminal.output_file import write_output, writing_output

    with writing_output(path, flag):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_output(path, text, flag)
    if not quiet:
        say(f"written: {path}")
