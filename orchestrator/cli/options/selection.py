"""Flags that select what is measured."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options.declare import Group


@dataclass(frozen=True, kw_only=True)
class DataFlags(Group):
    panel = "Selection"

    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            help="Let workloads read PATH, which is outside their folder. NAME is a key of a workload's DATA, or a "
            "link in the folder; with `tfcompare run` and a program after --, PATH alone is enough. Repeatable.",
            metavar="NAME=PATH",
        ),
    ] = None

    def find_allowed(self, folder: Path | None) -> dict[str, Path]:
        """Return what a workload folder may use outside of itself."""
        from orchestrator.catalog.outside import find_allowed

        return find_allowed(folder, self.data or ())


@dataclass(frozen=True, kw_only=True)
class OwnWorkloadsFlags(DataFlags):
    workload_folder: Annotated[
        Path | None,
        typer.Option(
            "--workload-folder",
            help="Folder with your own workload files.",
            metavar="FOLDER",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TargetFlags(Group):
    panel = "Selection"

    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            help="Also compare this target, e.g. '2.15 TF_ENABLE_ONEDNN_OPTS=0 as onednn-off'; repeatable.",
            metavar="TARGET",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SelectionFlags(OwnWorkloadsFlags):
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            help="Suite of cases: smoke, quick, studies, models or full. Default: quick, or all of --workload-folder.",
            show_default=False,
            metavar="SUITE",
        ),
    ] = None
    hash_data: Annotated[
        bool,
        typer.Option("--hash-data", help="Record hashes of the files in DATA, not only their sizes and times."),
    ] = False
    case: Annotated[
        list[str] | None,
        typer.Option(
            "--case",
            "-c",
            help="Only these cases: name or name\\[param=value,...]; repeatable.",
            metavar="CASE",
        ),
    ] = None
