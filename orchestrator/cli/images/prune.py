"""`tfcompare images prune`."""

import sys
from typing import Annotated

import typer

from orchestrator import catalog
from orchestrator.cli import help
from orchestrator.cli.images.common import open_engine
from orchestrator.cli.options import Base
from orchestrator.errors import UsageError
from orchestrator.terminal.text import draw

app = typer.Typer()


@app.command("prune", help=help.IMAGES_PRUNE)
def prune_images(
    all: Annotated[bool, typer.Option("--all", help="Current images, too.")] = False,
    environments: Annotated[
        bool, typer.Option("--environments", help="Virtual environments, too, whose lock is in no table any more.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    base: Base = None,
) -> None:
    from orchestrator.images import inventory, prune, report, sizes

    with open_engine("looking for what can be freed") as client:
        versions = catalog.all_versions()
        images = inventory.take(client, versions, base)
        garbage = prune.find(client, images, versions, base, all=all, cache=environments)
        if garbage or garbage.spared:
            draw(lambda width: report.of_garbage(garbage))
        if not garbage:
            print("nothing to free")
            return
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError("nothing was removed: nobody can be asked here; --yes removes without asking")
            if not typer.confirm("Remove all of this?", err=True):
                print("nothing was removed")
                return
        spared = prune.remove(client, garbage)
    for kept in spared:
        print(f"left alone: {kept.name}: {kept.why}")
    print("freed what could be" if spared else f"freed about {sizes.told(garbage.frees)}")
