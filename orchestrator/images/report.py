"""The output of the commands on images: tables for people, objects for programs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from orchestrator.images.inventory import WANTED, Inventory
from orchestrator.images.lock import Answer
from orchestrator.images.prune import Garbage
from orchestrator.images.sizes import format_size
from orchestrator.images.verify import Verification
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.strict_json import pick
from orchestrator.terminal.text import safe_text

STYLES = {
    "current": "green", "of a target": "green", "stale": "yellow", "unknown version": "yellow", "not built": "dim",
    "ok": "green", "wrong": "bold red",
    "new": "green", "unchanged": "green", "pinned": "green", "CHANGED": "bold red", "failed": "bold red",
}  # fmt: skip


def objects(inventory: Inventory, *, missing: bool) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = []
    for status in inventory.images:
        number, flavour, python = status.image.key
        image = {
            "version": number,
            "flavour": flavour,
            "python": python,
            **pick(status, "state why"),
            "tag": status.image.tags[0] if status.image.tags else None,
            **pick(status.image, "id size created base spec"),
        }
        listed.append(image)
    for version, option in inventory.missing if missing else ():
        named = {"version": version.number, "flavour": option.name, "python": option.python.number}
        listed.append({**named, "state": "not built"})
    return listed


def of_images(inventory: Inventory, *, missing: bool) -> RenderableType:
    columns = ("version", "Python", "size", "created", Column("image, and its state", overflow="fold"))
    # The padding is small, so that a whole tag fits into 80 columns.
    grid = Table(*columns, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for status in inventory.images:
        version, flavour, python = status.image.key
        created = f"{status.image.created.astimezone():%Y-%m-%d}"
        state = Text.assemble(
            safe_text(status.image.name), "\n", _mark(status.state), safe_text(f": {status.why}" if status.why else "")
        )
        grid.add_row(*map(safe_text, (f"{version} {flavour}", python, format_size(status.image.size), created)), state)
    for absent, option in inventory.missing if missing else ():
        grid.add_row(f"{absent.number} {option.name}", option.python.number, "", "", _mark("not built"))
    return grid if grid.row_count else Text("no tfcompare images found")


def of_checks(results: Sequence[Verification]) -> RenderableType:
    """Return a table with one line per check, which shows the expected value only if another was found."""
    grid = Table("check", "", Column("found", overflow="fold"), box=SIMPLE_HEAD)
    for result in results:
        grid.add_row(safe_text(result.image, "bold"))
        for check in result.checks:
            text = check.found if check.ok else f"{check.found or 'nothing'}; expected: {check.expected}"
            # The beginning of a hash is enough to recognize it.
            shortened = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", text)
            grid.add_row(f"  {check.subject}", _mark("ok" if check.ok else "wrong"), safe_text(shortened))
    return grid


def of_garbage(garbage: Garbage) -> RenderableType:
    grid = Table(Column("what", overflow="fold"), "size", "why", box=SIMPLE_HEAD)
    for status in garbage.images:
        why = "current: it would have to be built again" if status.state in WANTED else status.why
        grid.add_row(safe_text(status.image.name), format_size(status.image.size), safe_text(why))
    for path, size in garbage.driver_code:
        grid.add_row(
            safe_text(f"driver's code {path.name}"), format_size(size), "the image that it was made for is gone"
        )
    if count := len(garbage.containers):
        grid.add_row(
            format_count(count, "container"),
            "",
            "its run was killed" if count == 1 else "their runs were killed",
        )
    below = [safe_text(f"left alone: {image.name}: {image.why}") for image in garbage.spared]
    if garbage:
        below.append(
            Text(
                f"frees about {format_size(garbage.frees)}: what images share is counted once, what others need is not"
            )
        )
    return Group(*([grid] if grid.row_count else []), *below)


def of_environments(environments: Mapping[Path, int]) -> RenderableType:
    """Return a table of virtual environments with their sizes."""
    grid = Table(Column("environment", overflow="fold"), "size", box=SIMPLE_HEAD)
    for path, size in environments.items():
        grid.add_row(safe_text(path.name), format_size(size))
    return Group(grid, Text(f"frees {format_size(sum(environments.values()))}"))


def of_answers(answers: Iterable[Answer]) -> RenderableType:
    grid = Table(*(Column(name, overflow="fold") for name in ("base", "digest", "state", "versions")), box=SIMPLE_HEAD)
    for answer in answers:
        grid.add_row(safe_text(answer.image), answer.digest, _mark(answer.state), safe_text(", ".join(answer.versions)))
    return grid


def _mark(word: str) -> Text:
    return Text(word, style=STYLES[word])
