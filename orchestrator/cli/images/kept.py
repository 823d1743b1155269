"""The commands on existing images: `tfcompare images list | verify | prune | lock | save | load`."""

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator import catalog
from orchestrator.catalog import user_data
from orchestrator.catalog.version import Version
from orchestrator.cli import help, parse
from orchestrator.cli.options import Base, Format, Quiet
from orchestrator.errors import EnvironmentFailed, NothingSelected, UsageError
from orchestrator.terminal.text import draw, plain

if TYPE_CHECKING:
    import docker

    from orchestrator.images.archive import Tell
    from orchestrator.images.inventory import Inventory, Judged
    from orchestrator.images.lock import Answer

app = typer.Typer()

Versions = Annotated[
    list[str] | None, typer.Argument(help="Versions, e.g. 1.14 or 2.8..2.13; all if none is named.", metavar="VERSION")
]
ArchiveFile = Annotated[Path, typer.Argument(help="The file.", metavar="FILE", show_default=False)]

# The engine unpacks gigabytes without a word.
PATIENCE_S = 3600


@app.command("list", help=help.IMAGES_LIST)
def list_images(
    all: Annotated[bool, typer.Option("--all", help="The versions that have no image, too.")] = False,
    base: Base = None,
    format: Format = "table",
) -> None:
    parse.known_format(format)
    from orchestrator.images import inventory, report

    with _engine("listing images") as client:
        found = inventory.take(client, catalog.all_versions(), base)
    if format == "json":
        print(json.dumps(report.objects(found, missing=all), indent=2))
        return
    draw(lambda width: report.of_images(found, missing=all))
    _tell_other_base(found, base)


@app.command("verify", help=help.IMAGES_VERIFY)
def verify_images(versions: Versions = None, base: Base = None, format: Format = "table", quiet: Quiet = False) -> None:
    parse.known_format(format)
    from orchestrator.images import inventory, report
    from orchestrator.images.verify import verify

    named = _named(versions)
    found = []
    with _engine("verifying images") as client:
        for one in _current(inventory.take(client, catalog.all_versions(), base), named, base):
            _say(f"verifying {one.tag}", quiet)
            version, flavour = inventory.place(one, catalog.all_versions())
            assert one.recipe is not None
            found.append(verify(client, one.image.id, one.tag, version, flavour, one.recipe))
    if format == "json":
        print(json.dumps([one.as_object() for one in found], indent=2))
    else:
        draw(lambda width: report.of_checks(found))
    if wrong := [one.image for one in found if not one.ok]:
        raise EnvironmentFailed(
            f"{', '.join(wrong)}: not what was built; something has changed it, or the build was not whole. "
            "Remove it (`docker image rm`, or `tfcompare images prune --all`) and run `tfcompare images build` again"
        )


@app.command("prune", help=help.IMAGES_PRUNE)
def prune_images(
    all: Annotated[bool, typer.Option("--all", help="Current images, too.")] = False,
    environments: Annotated[
        bool, typer.Option("--environments", help="Virtual environments, too, whose lock is in no table any more.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    base: Base = None,
) -> None:
    from orchestrator.images import inventory, prune, report, sizes

    with _engine("looking for what can be freed") as client:
        versions = catalog.all_versions()
        images = inventory.take(client, versions, base)
        garbage = prune.find(client, images, versions, base, all=all, cache=environments)
        if garbage or garbage.spared:
            draw(lambda width: report.of_garbage(garbage))
        if not garbage:
            print("nothing to free")
            return
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError("nothing was removed: nobody can be asked here; --yes removes without asking")
            if not typer.confirm("Remove all of this?", err=True):
                print("nothing was removed")
                return
        spared = prune.remove(client, garbage)
    for kept in spared:
        print(f"left alone: {kept.name}: {kept.why}")
    print("freed what could be" if spared else f"freed about {sizes.told(garbage.frees)}")


@app.command("lock", help=help.IMAGES_LOCK)
def lock_bases(
    versions: Versions = None,
    gpu: Annotated[bool, typer.Option("--gpu", help="The bases of GPU images.")] = False,
    base: Base = None,
    format: Format = "table",
) -> None:
    parse.known_format(format)
    from orchestrator.images import lock, report

    asked = lock.bases(_named(versions) or catalog.all_versions(), "gpu" if gpu else "cpu", base, user_data.digests())
    if not asked:
        raise NothingSelected(f"no version named has a {'gpu' if gpu else 'cpu'} flavour")
    with _engine("asking the registry") as client:
        answers = tuple(lock.resolve(client, asked))
    # A digest that the table has already is left to the table, which may have another one day.
    if found := {one.image: one.digest for one in answers if one.state in ("new", "CHANGED")}:
        path = user_data.write_digests(found)
        catalog.reread()
    if format == "json":
        print(json.dumps([one.as_object() for one in answers], indent=2))
    else:
        draw(lambda width: report.of_answers(answers))
    if found:
        _say(f"written: {path}")
    _tell_moved([one for one in answers if one.state == "CHANGED"])
    if failed := [one.wrong for one in answers if one.wrong]:
        raise EnvironmentFailed("\n".join(failed))


@app.command("save", help=help.IMAGES_SAVE)
def save_images(file: ArchiveFile, versions: Versions = None, base: Base = None, quiet: Quiet = False) -> None:
    from orchestrator.images import archive, inventory, sizes

    named = _named(versions)
    with _engine(f"saving {file}", PATIENCE_S) as client:
        chosen = _current(inventory.take(client, catalog.all_versions(), base), named, base)
        needed = archive.weight(client, chosen)
        _say(f"saving {', '.join(one.tag for one in chosen)}: about {sizes.told(needed)}", quiet)
        with _progress("saving", needed, quiet) as tell:
            archive.save(client, file, chosen, needed, tell)
    _say(f"written: {file} ({sizes.told(file.stat().st_size)}); there: tfcompare images load {file.name}", quiet)


@app.command("load", help=help.IMAGES_LOAD)
def load_images(file: ArchiveFile, base: Base = None, quiet: Quiet = False) -> None:
    from orchestrator.engines.docker.image import base_reference
    from orchestrator.images import archive, inventory, report

    packed = archive.read(file)
    with _engine(f"loading {file}", PATIENCE_S) as client:
        _say(f"loading {', '.join(one.tag for one in packed)}", quiet)
        with _progress("loading", file.stat().st_size, quiet) as tell:
            archive.load(client, file, tell)
        tags = {one.tag for one in packed}
        found = inventory.take(client, catalog.all_versions(), base).only(tags)
        other = None if base or found.current() else found.other_base
        flavours = [flavour for version in catalog.all_versions() for flavour in version.flavours]
        adopted = archive.adopt(packed, {base_reference(flavour, base or other) for flavour in flavours})
        catalog.reread()
        found = inventory.take(client, catalog.all_versions(), base or other).only(tags)
    for name, digest in adopted.items():
        _say(f"{name} is {digest} from now on, as where the images were made ({user_data.digests_file()})", quiet)
    draw(lambda width: report.of_images(found, missing=False))
    if absent := tags.difference(*(one.image.tags for one in found.images)):
        raise EnvironmentFailed(f"{file}: the engine took it, but does not have {', '.join(sorted(absent))}")
    ready = dict.fromkeys(one.image.version for one in found.current())
    if not ready:
        raise EnvironmentFailed(f"{file}: loaded, but no run would use it: the table above says what differs here")
    with_base = f" with --base '{other}' or TFCOMPARE_BASE" if other else ""
    _say(f"ready{with_base}: {', '.join(ready)}", quiet)


@contextmanager
def _engine(doing: str, timeout_s: float = 60) -> "Iterator[docker.DockerClient]":
    # Imported here: most commands need no engine, and its client is slow to import.
    from orchestrator.engines.docker.engine import asking, connect

    with closing(connect(timeout_s)) as client, asking(doing, EnvironmentFailed):
        yield client


def _named(versions: list[str] | None) -> tuple[Version, ...]:
    names = [name for text in versions or () for name in parse.names(text)]
    return catalog.resolve(names, fewest=1) if names else ()


def _current(images: "Inventory", named: tuple[Version, ...], base: str | None) -> "tuple[Judged, ...]":
    """Return the current images of the named versions, or of all versions if none is named."""
    chosen = images.current(named)
    here = {one.image.version for one in chosen}
    advice = (
        f"{_other_base(images, base)}`tfcompare images build` makes it, `tfcompare images list` shows what there is"
    )
    if absent := [version.number for version in named if version.number not in here]:
        raise EnvironmentFailed(f"{', '.join(absent)}: no image of it is current; {advice}")
    if not chosen:
        raise NothingSelected(f"no image is current; {advice}")
    return chosen


def _other_base(images: "Inventory", base: str | None) -> str:
    other = images.other_base if base is None else None
    return f"if you build on another base, name it with --base '{other}' or TFCOMPARE_BASE; " if other else ""


def _tell_other_base(images: "Inventory", base: str | None) -> None:
    if hint := _other_base(images, base):
        _say(hint.removesuffix("; "))


def _tell_moved(moved: "list[Answer]") -> None:
    for one in moved:
        _say(
            f"CHANGED: {one.image} was {one.known}, and its registry has another image under that name by now. "
            f"Images of {', '.join(one.versions)} will be built anew on it, and are not those measured before. "
            f"To stay with the old one, remove its line from {user_data.digests_file()}"
        )


def _say(text: str, quiet: bool = False) -> None:
    if not quiet:
        Console(stderr=True).print(plain(text), soft_wrap=True)


@contextmanager
def _progress(doing: str, total: int, quiet: bool) -> "Iterator[Tell]":
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda count: progress.update(task, advance=count)
