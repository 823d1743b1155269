"""`tfcompare images list`."""

from typing import Annotated

import typer

from orchestrator.cli.images.common import open_engine, tell_other_base
from orchestrator.cli.options import BaseFlags, FormatFlags, with_options
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import print_table

app = typer.Typer()


@app.command("list")
@with_options
def list_images(
    installation: BaseFlags,
    output: FormatFlags,
    all: Annotated[bool, typer.Option("--all", help="Also list the versions that have no image.")] = False,
) -> None:
    """List the images, and whether each is up to date with the table of versions.

    [bold]Examples[/bold]

      tfcompare images list

      tfcompare images list --all --format json
    """
    from orchestrator import catalog
    from orchestrator.images import inventory, report

    with open_engine("listing images") as client:
        images = inventory.take(client, catalog.all_versions(), installation.base)
    if output.format == "json":
        print(strict_json.dump(report.objects(images, missing=all), indent=2))
        return
    print_table(lambda width: report.of_images(images, missing=all))
    tell_other_base(images, installation.base)
