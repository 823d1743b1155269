"""`tfcompare images prune`."""

from typing import Annotated

import typer

from orchestrator.cli.images.common import open_engine
from orchestrator.cli.options import BaseFlags, with_options
from orchestrator.cli.talk import confirm
from orchestrator.terminal.text import print_table

app = typer.Typer()


@app.command("prune")
@with_options
def prune_images(
    installation: BaseFlags,
    all: Annotated[bool, typer.Option("--all", help="Also remove what is current.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove images that no version or target uses any more, and containers of runs that were killed.

    [bold]Examples[/bold]

      tfcompare images prune

      tfcompare images prune --all --yes
    """
    from orchestrator import catalog
    from orchestrator.images import inventory, prune, report, sizes

    with open_engine("looking for what can be freed") as client:
        images = inventory.take(client, catalog.all_versions(), installation.base)
        garbage = prune.find_garbage(client, images, installation.base, all=all)
        if garbage or garbage.spared:
            print_table(lambda width: report.of_garbage(garbage))
        if not garbage:
            print("nothing to free")
            return
        confirm("Remove all of this?", yes, "removed")
        spared = prune.remove_garbage(client, garbage)
    for image in spared:
        print(f"left alone: {image.name}: {image.why}")
    print("freed everything that could be freed" if spared else f"freed about {sizes.format_size(garbage.frees)}")
