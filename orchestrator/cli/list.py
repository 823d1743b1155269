"""The contents of `tfcompare list`: each item as a line for people and as an object for programs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from orchestrator.cli.options import FormatFlags, with_options
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.model import Claim
from orchestrator.terminal import strict_json
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.strict_json import pick
from orchestrator.terminal.text import safe_text

app = typer.Typer()

# The last column is cut where the line ends, but never to less than this.
NARROWEST = 20
GAP = "  "


@dataclass(frozen=True)
class Listing:
    """Items by name, each with a line and an object; the first cell of a line is the name."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    objects: Sequence[dict[str, object]]
    footer: str = ""

    def select(self, words: Sequence[str]) -> "Listing":
        """Return the items that hold all of these words, whether in capitals or not; a whole name selects one item."""
        items = list(zip(self.rows, self.objects, strict=True))
        wanted = [word.casefold() for word in words]
        if len(words) == 1 and (named := [item for item in items if item[0][0] == words[0]]):
            items = named
        elif words:
            texts = [f"{' '.join(row)} {strict_json.dump(entry)}".casefold() for row, entry in items]
            items = [item for item, text in zip(items, texts, strict=True) if all(word in text for word in wanted)]
        return replace(self, rows=[row for row, _ in items], objects=[entry for _, entry in items])


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
    rows = [(workload.name, workload.summary) for workload in all_workloads]
    return Listing(("workload", "what it does"), rows, objects)


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
    return Listing(("suite", "what it is for"), [(suite.name, suite.summary) for suite in suites.values()], objects)


def list_claims(chosen: Iterable[Claim]) -> Listing:
    from orchestrator.reports.claims import format_expected

    objects: list[dict[str, object]] = []
    rows = []
    for claim in chosen:
        expected = format_expected(claim.statements[0])
        objects.append(
            {
                **pick(claim, "claim=name title source suite said_of withdrawn versions=targets devices"),
                "expected": expected,
            }
        )
        rows.append((claim.name, claim.title))
    sources = {str(entry["source"]).partition(" (")[0] for entry in objects}
    return Listing(("claim", "what it says"), rows, objects, f"from {format_count(len(sources), 'source')}")


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
        raise UsageError(f"cannot list {what!r}{near}; choose from {', '.join(LISTINGS)}")
    return LISTINGS[what]()


def print_listing(listing: Listing, format: str, *, whole: bool = False) -> None:
    """Print a line per item, or all that is known of the only one. What is longer than the terminal is paged."""
    if format == "json":
        print(strict_json.dump(listing.objects, indent=2))
        return
    console = Console()
    lines = list(_details(listing) if whole else _lines(listing, console.width if console.is_terminal else None))
    if console.is_terminal and len(lines) >= console.height:
        # A pager may show what sets colours as characters.
        with console.pager():
            console.print(*lines, sep="\n", soft_wrap=True)
        return
    console.print(*lines, sep="\n", soft_wrap=True)


def _lines(listing: Listing, width: int | None) -> Iterable[Text]:
    """Yield the header, a line per item, and how many there are; a terminal gets what fits into its width."""
    rows = [tuple(safe_text(cell).plain for cell in row) for row in (listing.columns, *listing.rows)]
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(listing.columns) - 1)]
    rest = max((width or 0) - sum(widths) - len(GAP) * len(widths), NARROWEST)
    for number, row in enumerate(rows):
        line = Text(GAP).join(
            Text(cell + " " * (widest - cell_len(cell))) for cell, widest in zip(row, widths, strict=False)
        )
        last = Text(row[-1])
        if width is not None:
            last.truncate(rest, overflow="ellipsis")
        line = line.append(GAP).append_text(last) if widths else last
        line.rstrip()
        line.stylize("" if number else "bold")
        yield line
    count = format_count(len(listing.rows), listing.columns[0])
    yield Text(f"{count}{f' {listing.footer}' if listing.footer else ''}; name one for all that is known", style="dim")


def _details(listing: Listing) -> Iterable[Text]:
    """Yield a line for each fact that is known of the only item."""
    for key, value in listing.objects[0].items():
        name = key.replace("_", " ")
        if isinstance(value, dict):
            yield from (safe_text(f"{name} {part}: {_join(each)}") for part, each in value.items())
        elif value not in (None, "", (), []):
            yield safe_text(f"{name}: {_join(value)}")


def _join(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


@app.command("list")
@with_options
def list_things(
    output: FormatFlags,
    what: Annotated[
        str | None, typer.Argument(help="versions, workloads, suites or claims.", metavar="WHAT", show_default=False)
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="List only items that contain all of these words. The full name of an item shows all its details.",
            metavar="WORDS",
            show_default=False,
        ),
    ] = None,
    workload_folder: Annotated[
        Path | None,
        typer.Option("--workload-folder", help="With `workloads`: list those in your folder.", metavar="FOLDER"),
    ] = None,
) -> None:
    """List versions, workloads, suites or claims.

    [bold]Examples[/bold]

      tfcompare list workloads

      tfcompare list claims predict 2.16

      tfcompare list versions --format json

      tfcompare list workloads --workload-folder mine
    """
    if what is None:
        raise UsageError(f"list what? {', '.join(LISTINGS)}, for example: tfcompare list versions")
    listing = find_listing(what, workload_folder).select(words or ())
    if not listing.rows:
        raise NothingSelected(f"no {what} contain {' and '.join(map(repr, words or ()))}: tfcompare list {what}")
    print_listing(listing, output.format, whole=bool(words) and len(listing.rows) == 1)
