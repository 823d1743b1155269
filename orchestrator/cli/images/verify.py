"""`tfcompare images list` and `verify`: which images exist, and whether each contains what it should."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.images.common import Versions, current_images, find_versions, open_engine, warn_about_other_base
from orchestrator.cli.options import BaseFlags, FormatFlags, GpuFlags, QuietFlags, gpu_options, with_options
from orchestrator.errors import EnvironmentFailed, TfCompareError, UsageError
from orchestrator.options import EngineOptions
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import print_table

if TYPE_CHECKING:
    from orchestrator.images.verify import Verification

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
    warn_about_other_base(images, installation.base)


@app.command("verify")
@with_options
def verify_images(
    installation: BaseFlags, gpu: GpuFlags, output: FormatFlags, verbosity: QuietFlags, versions: Versions = None
) -> None:
    """Start each image and check its contents against the table of versions and the locks.

    With --gpu, each GPU image also trains one step of a convolution on the GPU, plain and compiled by XLA.

    [bold]Examples[/bold]

      tfcompare images verify

      tfcompare images verify 1.14 2.13 --format json

      tfcompare images verify 2.16 2.18 --gpu
    """
    environments = gpu_options(gpu, installation)
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
    unseen = None
    if environments.gpu:
        try:
            results = _add_steps(results, environments, verbosity)
        except TfCompareError as error:
            # What was verified without the GPU is shown anyway.
            unseen = error
    if output.format == "json":
        print(strict_json.dump([result.as_object() for result in results], indent=2))
    else:
        print_table(lambda width: report.of_checks(results))
    if unseen:
        raise unseen
    if wrong := [result.image for result in results if not result.ok]:
        raise EnvironmentFailed(
            f"{', '.join(wrong)}: not what was built; something has changed it, or the build is incomplete. "
            "Remove it (`docker image rm`, or `tfcompare images prune --all`) and run `tfcompare images build` again"
        )


def _add_steps(
    results: "list[Verification]", environments: EngineOptions, verbosity: QuietFlags
) -> "list[Verification]":
    """Return the results with what GPU images did on the GPU."""
    from orchestrator.images.gpu_step import check_steps

    numbers = [result.version for result in results if result.flavour == "gpu"]
    if not numbers:
        raise UsageError("--gpu: none of these images is for a GPU; `tfcompare images build --gpu` builds some")
    with verbosity.watch() as watching:
        steps = check_steps(numbers, environments, watching)
    return [
        replace(result, checks=(*result.checks, *steps.get(result.version, ()))) if result.flavour == "gpu" else result
        for result in results
    ]
