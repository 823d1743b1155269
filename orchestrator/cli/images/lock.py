"""`tfcompare images lock`."""

from typing import Annotated

import typer

from orchestrator.cli.images.common import Versions, find_versions, open_engine
from orchestrator.cli.options import BaseFlags, FormatFlags, with_options
from orchestrator.cli.talk import say
from orchestrator.errors import EnvironmentFailed, NothingSelected
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import print_table

app = typer.Typer()


@app.command("lock")
@with_options
def lock_bases(
    installation: BaseFlags,
    output: FormatFlags,
    versions: Versions = None,
    gpu: Annotated[bool, typer.Option("--gpu", help="Lock the bases of GPU images.")] = False,
) -> None:
    """Ask the registry for the current digest of each base image, and lock future builds to that digest.

    [bold]Examples[/bold]

      tfcompare images lock

      tfcompare images lock 1.14 2.0 --gpu

      tfcompare images lock --base 'registry.example:5000/python:{python}-slim'
    """
    from orchestrator import catalog
    from orchestrator.catalog import user_data
    from orchestrator.images import lock, report

    asked = lock.bases(
        find_versions(versions) or catalog.all_versions(),
        "gpu" if gpu else "cpu",
        installation.base,
        user_data.digests(),
    )
    if not asked:
        raise NothingSelected(f"none of the named versions has a {'gpu' if gpu else 'cpu'} flavour")
    with open_engine("asking the registry") as client:
        answers = tuple(lock.resolve_bases(client, asked))
    # A digest that the table already has is not stored, because the table may change it later.
    if new_digests := {answer.image: answer.digest for answer in answers if answer.state in ("new", "CHANGED")}:
        path = user_data.write_digests(new_digests)
        catalog.reread()
    if output.format == "json":
        print(strict_json.dump([answer.as_object() for answer in answers], indent=2))
    else:
        print_table(lambda width: report.of_answers(answers))
    if new_digests:
        say(f"written: {path}")
    for moved in (answer for answer in answers if answer.state == "CHANGED"):
        say(
            f"CHANGED: {moved.image} was {moved.known}, and its registry now has another image under that name. "
            f"Images of {', '.join(moved.versions)} will be rebuilt on it, so they differ from those measured before. "
            f"To keep the old image, write {moved.known} into its line in {user_data.digests_file()}"
        )
    if failed := [answer.wrong for answer in answers if answer.wrong]:
        raise EnvironmentFailed("\n".join(failed))
