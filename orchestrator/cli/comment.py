"""`tfcompare comment`: a run as the one comment of its pull request."""

import os
from typing import Annotated

import typer

from orchestrator.cli.report import RunFolder, keep_garbage
from orchestrator.cli.talk import say
from orchestrator.errors import UsageError

app = typer.Typer()

# As the export leaves it; a name or a link of the page follows.
HEADING = "### tfcompare"


@app.command()
def comment(
    run: RunFolder,
    name: Annotated[
        str,
        typer.Option(help="Name of the comment; jobs with different names have separate comments.", metavar="NAME"),
    ] = "tfcompare",
    link: Annotated[
        str | None,
        typer.Option(help="Address of the run's page, e.g. of a job's artefacts.", metavar="URL", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the comment and send nothing.")] = False,
) -> None:
    """Write a run as a comment on the pull request of this CI job, in the place of the one before.

    In GitHub Actions it takes GITHUB_TOKEN, in GitLab CI a project access token in GITLAB_TOKEN.

    [bold]Examples[/bold]

      tfcompare comment runs/first --dry-run

      tfcompare comment runs/first --name gpu --link https://ci.example.org/42/report.html
    """
    from orchestrator.exports import forges, markdown
    from orchestrator.results.run import load_run

    if link is not None and not (link.startswith("https://") and link.isascii() and link.isprintable()):
        raise UsageError(f"--link {link!r}: an address that begins with https://")
    forge = None if dry_run else forges.find_forge(os.environ)
    keep_garbage()
    body = markdown.render(load_run(run))
    if name != "tfcompare":
        body = body.replace(HEADING, f"{HEADING}: {name}", 1)
    if link:
        body = body.replace("\n\n", f"\n\n[The whole report](<{link.replace('>', '%3E').replace('<', '%3C')}>)\n\n", 1)
    marked = forges.mark(name, body, forge.room if forge else 2**20)
    if forge is None:
        print(marked)
        return
    existed, address = forges.replace_comment(forge, name, marked)
    say(f"the comment was {'replaced' if existed else 'written'}{f': {address}' if address else ''}")
