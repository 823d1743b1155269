"""Flags for the sources that versions are installed from."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options.declare import Group

INDEX_VARIABLE = "TFCOMPARE_INDEX_URL"


@dataclass(frozen=True, kw_only=True)
class BaseFlags(Group):
    panel = "Installation"

    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            envvar="TFCOMPARE_BASE",
            help="Base image to use instead of the pinned one; {python} is replaced by the Python version, e.g. 3.7.",
            metavar="IMAGE",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class IndexFlags(Group):
    panel = "Installation"

    ca_bundle: Annotated[
        Path | None,
        typer.Option(
            "--ca-bundle",
            envvar="TFCOMPARE_CA_BUNDLE",
            help="Certificates to trust while installing.",
            metavar="FILE",
        ),
    ] = None
    index_url: Annotated[
        str | None,
        typer.Option(
            "--index-url",
            envvar=INDEX_VARIABLE,
            help="Package index to install from instead of the default one. A login in the URL is kept out of images "
            "and logs.",
            metavar="URL",
        ),
    ] = dataclasses.field(default=None, repr=False)
    wheelhouse: Annotated[
        Path | None,
        typer.Option(
            "--wheelhouse",
            envvar="TFCOMPARE_WHEELHOUSE",
            help="Folder of wheels to install from. Without --index-url, nothing else is used.",
            metavar="FOLDER",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SourcesFlags(IndexFlags, BaseFlags):
    pass


@dataclass(frozen=True, kw_only=True)
class DownloadsFlags(Group):
    panel = "Installation"

    no_python_downloads: Annotated[
        bool,
        typer.Option(
            "--no-python-downloads",
            help="Do not download missing Pythons; UV_PYTHON_DOWNLOADS=never does the same.",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class InstallationFlags(DownloadsFlags, SourcesFlags):
    pass
