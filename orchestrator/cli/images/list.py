"""`tfcompare images list`."""

import json
from typing import Annotated

import typer

from orchestrator import catalog
from orchestrator.cli import help, parse
from orchestrator.cli.images.common import open_engine, tell_other_base
from orchestrator.cli.options import Base, Format
from orchestrator.terminal.text import draw

app = typer.Typer()


@app.command("list", help=help.IMAGES_LIST)
def list_images(
    all: Annotated[bool, typer.Option("--all", help="The versions that have no image, too.")] = False,
    base: Base = None,
    format: Format = "table",
) -> None:
    parse.known_format(format)
    from orchestrator.images import inventory, report

    with open_engine("listing images") as client:
        found = inventory.take(client, catalog.all_versions(), base)
    if format == "json":
        print(json.dumps(report.objects(found, missing=all), indent=2))
        return
    draw(lambda width: report.of_images(found, missing=all))
    tell_other_base(found, base)
