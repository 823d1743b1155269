"""The contents of `tfcompare list`: each item as rows for people and as objects for programs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orchestrator.cli.options import FormatFlags, with_options
from orchestrator.errors import UsageError
from orchestrator.model import Claim
from orchestrator.terminal import strict_json
from orchestrator.terminal.strict_json import pick
from orchestrator.terminal.text import escape_lines

app = typer.Typer()

WIDEST_NAME = 40


@dataclass(frozen=True)
class Listing:
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    objects: list[dict[str, object]]
    footer: str = ""


def _versions() -> Listing:
    from orchestrator import catalog

    objects: list[dict[str, object]] = []
    rows = []
    for version in catalog.all_versions():
        flavours = list(dict.fromkeys(flavour.name for flavour in version.flavours))
        cuda = next((flavour.cuda for flavour in version.on("gpu") if flavour.cuda), None)
        pythons = [flavour.python.number for flavour in version.on("cpu") or version.on("gpu")]
        objects.append(
            {
                **pick(version, "version=number aliases"),
                "python": pythons[0] if pythons else None,
                "pythons": pythons,
                "keras": version.keras,
                "flavours": flavours,
                "cuda": cuda.number if cuda else version.build.cuda.number if version.build else None,
                **pick(version, "image? notes"),
            }
        )
        rows.append(
            (
                version.number,
                ", ".join(version.aliases),
                ", ".join(pythons),
                version.keras,
                f"{version.build.maker}'s image" if version.build else ", ".join(flavours),
            )
        )
    return Listing(("version", "aliases", "Python", "Keras", "flavours"), rows, objects)


def _workloads(own: Path | None = None) -> Listing:
    """List the built-in workloads, or those of a user's own folder."""
    from orchestrator.catalog import workloads

    builtin = workloads.all_workloads()
    found = workloads.all_workloads(own) if own else builtin
    all_workloads = [workload for name, workload in found.items() if own is None or name not in builtin]
    objects: list[dict[str, object]] = [
        pick(workload, "workload=name summary params comparisons") for workload in all_workloads
    ]
    rows = [
        (
            workload.name,
            workload.summary + "".join(f"\n{name}={'|'.join(values)}" for name, values in workload.params.items()),
        )
        for workload in all_workloads
    ]
    return Listing(("workload", "what it does, and its parameters"), rows, objects)


def _suites() -> Listing:
    from orchestrator.catalog import workloads
    from orchestrator.catalog.selectors import select_cases

    suites, known = workloads.all_suites(), workloads.all_workloads()
    objects: list[dict[str, object]] = [
        {
            **pick(suite, "suite=name summary cases arm_budget_s"),
            # Of three versions.
            "budget_s": suite.budget_s(len(select_cases((), suite.cases, known)), versions=3),
        }
        for suite in suites.values()
    ]
    rows = [(suite.name, "\n".join([suite.summary, *suite.cases])) for suite in suites.values()]
    return Listing(("suite", "what it is for, and its cases"), rows, objects)


def list_claims(chosen: Iterable[Claim]) -> Listing:
    from orchestrator.reports.claims import format_expected, format_said_of

    objects: list[dict[str, object]] = []
    rows = []
    for claim in chosen:
        expected = format_expected(claim.statements[0])
        versions = [str(version) for version in claim.targets]
        objects.append(
            {
                **pick(claim, "claim=name title source suite said_of withdrawn versions=targets devices"),
                "expected": expected,
            }
        )
        what = "\n".join((claim.name, claim.title, format_said_of(claim)))
        rows.append((what, expected, ", ".join(versions), ", ".join(claim.devices)))
    columns = ("claim, and what it says", "expected", "versions", "tested on")
    return Listing(columns, rows, objects, count_sources(objects))


def count_sources(objects: Iterable[dict[str, object]]) -> str:
    """Say how many claims there are, and which sources several of them come from."""
    counts = Counter(str(claim["source"]).partition(" (")[0] for claim in objects)
    several = [f"  {count:2} of {source}" for source, count in counts.most_common() if count > 1]
    head = f"{counts.total()} claims of {len(counts)} sources" + (", among them" if several else "")
    return "\n".join([head, *several])


def _claims() -> Listing:
    from orchestrator.catalog import claims, workloads

    return list_claims(claims.all_claims(workloads.all_workloads()).values())


LISTINGS = {"versions": _versions, "workloads": _workloads, "suites": _suites, "claims": _claims}


def find_listing(what: str, own: Path | None = None) -> Listing:
    if own is not None:
        if what != "workloads":
            raise UsageError(f"--workload-folder goes with `tfcompare list workloads`, and not with {what}")
        return _workloads(own)
    if what not in LISTINGS:
        from orchestrator import catalog

        near = catalog.did_you_mean(what, LISTINGS, cutoff=0.7)
        raise UsageError(f"cannot list {what!r}{near}; it is {', '.join(LISTINGS)}")
    return LISTINGS[what]()


def print_listing(listing: Listing, format: str) -> None:
    if format == "json":
        print(strict_json.dump(listing.objects, indent=2))
        return
    from rich.table import Table

    grid = Table(*listing.columns, show_lines=any("\n" in cell for row in listing.rows for cell in row))
    # A name is copied into a command, so it must not break.
    words = [word for row in listing.rows for word in row[0].split()]
    grid.columns[0].min_width = min(max(map(len, words), default=0), WIDEST_NAME)
    for row in listing.rows:
        grid.add_row(*(escape_lines(cell) for cell in row))
    console = Console()
    console.print(grid)
    if listing.footer:
        console.print(escape_lines(listing.footer))


@app.command("list")
@with_options
def list_things(
    output: FormatFlags,
    what: Annotated[
        str | None, typer.Argument(help="versions, workloads, suites or claims.", metavar="WHAT", show_default=False)
    ] = None,
    workload_folder: Annotated[
        Path | None,
        typer.Option("--workload-folder", help="With `workloads`: list those in your folder.", metavar="FOLDER"),
    ] = None,
) -> None:
    """List versions, workloads, suites or claims.

    [bold]Examples[/bold]

      tfcompare list workloads

      tfcompare list versions --format json

      tfcompare list workloads --workload-folder mine
    """
    if what is None:
        raise UsageError(f"list what? {', '.join(LISTINGS)}, for example: tfcompare list versions")
    print_listing(find_listing(what, workload_folder), output.format)
