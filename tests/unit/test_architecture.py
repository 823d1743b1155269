"""docs/architecture.md names every package, in the order of the layers, and no file that has moved."""

import re
import tomllib

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
PATHS = sorted({*re.findall(r"(?<![\w/.])[a-z_]+(?:/\w+)*\.(?:py|toml)\b", PAGE)})


def test_every_package_has_its_row_in_the_order_of_the_layers():
    table = PAGE[PAGE.index("## Packages") : PAGE.index("## What holds it together")]
    rows = [re.findall(r"`(\w+)/?`", line.split("|")[1]) for line in table.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in row]
    layered = [sorted(layer.split(" | ")) for layer in LAYERS]
    grouped = []
    for layer in layered:
        grouped.append(sorted(named[: len(layer)]))
        named = named[len(layer) :]
    assert grouped == layered
    assert named == []


@pytest.mark.parametrize("path", PATHS)
def test_every_file_that_is_named_exists(path: str):
    folders = (ROOT, ROOT / "orchestrator", ROOT / "workloads")
    assert any((folder / path).is_file() for folder in folders)
