"""`tfcompare images verify`."""

import json

import typer

from orchestrator.cli.images.common import Versions, current_images, find_versions, open_engine
from orchestrator.cli.options import BaseFlags, FormatFlags, QuietFlags, with_options
from orchestrator.errors import EnvironmentFailed
from orchestrator.terminal.text import print_table

app = typer.Typer()


@app.command("verify")
@with_options
def verify_images(
    installation: BaseFlags, output: FormatFlags, verbosity: QuietFlags, versions: Versions = None
) -> None:
    """Start each image and check what is in it against the table of versions and the locks.

    [bold]Examples[/bold]

      tfcompare images verify

      tfcompare images verify 1.14 2.13 --format json
    """
    from orchestrator import catalog
    from orchestrator.images import inventory, report
    from orchestrator.images.verify import verify

    named = find_versions(versions)
    results = []
    with open_engine("verifying images") as client:
        for status in current_images(
            inventory.take(client, catalog.all_versions(), installation.base), named, installation.base
        ):
            verbosity.say(f"verifying {status.tag}")
            version, flavour = inventory.find_entry(status, catalog.all_versions())
            assert status.recipe is not None
            results.append(verify(client, status.image.id, status.tag, version, flavour, status.recipe))
    if output.format == "json":
        print(json.dumps([result.as_object() for result in results], indent=2))
    else:
        print_table(lambda width: report.of_checks(results))
    if wrong := [result.image for result in results if not result.ok]:
        raise EnvironmentFailed(
            f"{', '.join(wrong)}: not what was built; something has changed it, or the build was not whole. "
            "Remove it (`docker image rm`, or `tfcompare images prune --all`) and run `tfcompare images build` again"
        )
