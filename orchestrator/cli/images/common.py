"""Functions that the commands on images share: for the engine, versions and current images."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import parse
from orchestrator.cli.talk import say
from orchestrator.errors import EnvironmentFailed, NothingSelected

if TYPE_CHECKING:
    import docker

    from orchestrator.catalog.version import Version
    from orchestrator.images.inventory import ImageStatus, Inventory


Versions = Annotated[
    list[str] | None, typer.Argument(help="Versions, e.g. 1.14 or 2.8..2.13. Default: all.", metavar="VERSION")
]


@contextmanager
def open_engine(doing: str, timeout_s: float = 60) -> "Iterator[docker.DockerClient]":
    # This is imported here because most commands need no engine, and its client is slow to import.
    from orchestrator.engines.docker.client import asking, connect_engine

    with closing(connect_engine(timeout_s)) as client, asking(doing, EnvironmentFailed):
        yield client


def find_versions(versions: list[str] | None) -> "tuple[Version, ...]":
    from orchestrator import catalog

    names = [name for text in versions or () for name in parse.parse_names(text)]
    return catalog.resolve_versions(names, fewest=1) if names else ()


def current_images(images: "Inventory", named: "tuple[Version, ...]", base: str | None) -> "tuple[ImageStatus, ...]":
    """Return the current images of the named versions, or of all versions if none is named."""
    chosen = images.current(named)
    here = {status.image.version for status in chosen}
    advice = f"{_other_base(images, base)}`tfcompare images build` builds one, `tfcompare images list` lists all images"
    if absent := [version.number for version in named if version.number not in here]:
        raise EnvironmentFailed(f"{', '.join(absent)}: no image is current; {advice}")
    if not chosen:
        raise NothingSelected(f"no image is current; {advice}")
    return chosen


def _other_base(images: "Inventory", base: str | None) -> str:
    other = images.other_base if base is None else None
    return f"if you build on another base, name it with --base '{other}' or TFCOMPARE_BASE; " if other else ""


def warn_about_other_base(images: "Inventory", base: str | None) -> None:
    if hint := _other_base(images, base):
        say(hint.removesuffix("; "))
