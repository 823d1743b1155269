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

if TYPE_CHECKING:
    from orchestrator.images.archive import ReportProgress


app = typer.Typer()


ArchiveFile = Annotated[Path, typer.Argument(help="Archive file, e.g. images.tar.", metavar="FILE", show_default=False)]


# The engine gives no sign while it unpacks gigabytes.
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
        needed = archive.estimate_archive_size(client, chosen)
        say(f"saving {', '.join(status.tag for status in chosen)}: about {sizes.format_size(needed)}")
        with _progress("saving", needed, quiet) as report_bytes:
            archive.save(client, file, chosen, needed, report_bytes)
    say(
        f"written: {file} ({sizes.format_size(file.stat().st_size)}); on the other machine: "
        f"tfcompare images load {file.name}"
    )


@app.command("load")
@with_options
def load_images(
    file: ArchiveFile,
    installation: BaseFlags,
    verbosity: QuietFlags,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace images that have the same name but different content.")
    ] = False,
    lock_bases: Annotated[
        bool,
        typer.Option(
            "--lock-bases", help="Lock base images that have no digest on this machine to the digests in the archive."
        ),
    ] = False,
) -> None:
    """Load images that `images save` wrote, verify each, and report which versions are ready.

    [bold]Examples[/bold]

      tfcompare images load images.tar
    """
    from orchestrator import catalog
    from orchestrator.catalog import user_data
    from orchestrator.images import archive, load

    base, quiet, say = installation.base, verbosity.quiet, verbosity.say

    versions = catalog.all_versions()
    packed = archive.read_archive(file)
    ready: dict[str, list[str]] = {}
    digests = {}
    with open_engine(f"loading {file}", PATIENCE_S) as client:
        candidates, problems = load.examine_archive(
            client, packed, versions, base, replace=replace, lock_bases=lock_bases
        )
        archive.require_room(client, file, [each.packed for each in candidates if not each.is_here])
        for candidate in candidates:
            image = candidate.packed
            if candidate.is_here:
                say(f"{image.tag} is already here")
            else:
                say(f"loading and verifying {image.tag}")
                try:
                    with _progress("loading", image.size, quiet) as report_bytes:
                        load.load_image(client, file, candidate, versions, report_bytes)
                except EnvironmentFailed as error:
                    problems.append(error.headline)
                    continue
                if candidate.here:
                    say(f"{image.tag} replaced {candidate.here[:19]}; `tfcompare images prune` removes that image")
            ready.setdefault(candidate.other_base or "", []).append(candidate.status.image.version)
            if candidate.lacks_digest:
                name, digest = image.base
                digests[name] = digest
    if digests:
        path = user_data.write_digests(digests)
        for name, digest in digests.items():
            say(f"locked {name} to {digest} ({path})")
    for other, numbers in ready.items():
        with_base = f" with --base '{other}' or TFCOMPARE_BASE" if other else ""
        say(f"ready{with_base}: {', '.join(dict.fromkeys(numbers))}")
    if problems:
        raise EnvironmentFailed("\n".join(problems))


@contextmanager
def _progress(doing: str, total: int, quiet: bool) -> "Iterator[ReportProgress]":
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda count: progress.update(task, advance=count)
