"""`tfcompare images save` and `load`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.images.common import Versions, current_images, find_versions, open_engine
from orchestrator.cli.options import BaseFlags, QuietFlags, with_options
from orchestrator.errors import EnvironmentFailed
from orchestrator.terminal.text import print_table

if TYPE_CHECKING:
    from orchestrator.images.archive import Tell


app = typer.Typer()


ArchiveFile = Annotated[Path, typer.Argument(help="An archive.", metavar="FILE", show_default=False)]


# The engine unpacks gigabytes without a word.
PATIENCE_S = 3600


@app.command("save")
@with_options
def save_images(file: ArchiveFile, installation: BaseFlags, verbosity: QuietFlags, versions: Versions = None) -> None:
    """Write the current images of some versions into one file, for a machine without a registry.

    [bold]Examples[/bold]

      tfcompare images save images.tar 1.14 2.0 2.13
    """
    from orchestrator import catalog
    from orchestrator.images import archive, inventory, sizes

    base, quiet, say = installation.base, verbosity.quiet, verbosity.say

    named = find_versions(versions)
    with open_engine(f"saving {file}", PATIENCE_S) as client:
        chosen = current_images(inventory.take(client, catalog.all_versions(), base), named, base)
        needed = archive.weight(client, chosen)
        say(f"saving {', '.join(status.tag for status in chosen)}: about {sizes.format_size(needed)}")
        with _progress("saving", needed, quiet) as tell:
            archive.save(client, file, chosen, needed, tell)
    say(f"written: {file} ({sizes.format_size(file.stat().st_size)}); there: tfcompare images load {file.name}")


@app.command("load")
@with_options
def load_images(file: ArchiveFile, installation: BaseFlags, verbosity: QuietFlags) -> None:
    """Load images that `images save` wrote, and report which versions are ready with them.

    [bold]Examples[/bold]

      tfcompare images load images.tar
    """
    from orchestrator import catalog
    from orchestrator.catalog import user_data
    from orchestrator.engines.docker.image import base_reference
    from orchestrator.images import archive, inventory, report

    base, quiet, say = installation.base, verbosity.quiet, verbosity.say

    packed = archive.read(file)
    with open_engine(f"loading {file}", PATIENCE_S) as client:
        say(f"loading {', '.join(image.tag for image in packed)}")
        with _progress("loading", file.stat().st_size, quiet) as tell:
            archive.load(client, file, packed, tell)
        tags = {image.tag for image in packed}
        images = inventory.take(client, catalog.all_versions(), base).only(tags)
        other = None if base or images.current() else images.other_base
        flavours = [flavour for version in catalog.all_versions() for flavour in version.flavours]
        adopted = archive.adopt(packed, {base_reference(flavour, base or other) for flavour in flavours})
        catalog.reread()
        images = inventory.take(client, catalog.all_versions(), base or other).only(tags)
    for name, digest in adopted.items():
        say(f"{name} is {digest} from now on, as where the images were made ({user_data.digests_file()})")
    print_table(lambda width: report.of_images(images, missing=False))
    if absent := tags.difference(*(status.image.tags for status in images.images)):
        raise EnvironmentFailed(f"{file}: the engine took it, but does not have {', '.join(sorted(absent))}")
    ready = dict.fromkeys(status.image.version for status in images.current())
    if not ready:
        raise EnvironmentFailed(f"{file}: loaded, but no run would use it: the table above says what differs here")
    with_base = f" with --base '{other}' or TFCOMPARE_BASE" if other else ""
    say(f"ready{with_base}: {', '.join(ready)}")


@contextmanager
def _progress(doing: str, total: int, quiet: bool) -> "Iterator[Tell]":
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda count: progress.update(task, advance=count)
