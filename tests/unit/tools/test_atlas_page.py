"""The page and the picture of the atlas in docs/: every part is named, and no figure stands in the wrong release."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from orchestrator.atlas.figures import AtlasFigures
from tests.support.atlases import figures, ratio
from tools.docs import atlas_page as docs

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[AtlasFigures]:
    """An older part, whose levels are against a release that it does not follow, and a newer one of another machine."""
    older = figures(3)
    case = older.cases[0].label
    levels = tuple(ratio(case, release.name, "2.4.0", 2.0 + place) for place, release in enumerate(older.releases))
    older = replace(older, reference="2.4.0", levels=levels)
    newer = figures(5)
    newer = replace(
        newer, machine={**newer.machine, "cpu": "Another CPU"}, releases=newer.releases[2:],
        cells=tuple(cell for cell in newer.cells if cell.release >= "2.2"),
        steps=tuple(step for step in newer.steps if step.older >= "2.2"),
        levels=tuple(level for level in newer.levels if level.newer >= "2.2"), results=(), causes=(), claims=(),
    )  # fmt: skip
    both = {Path("01.json"): older, Path("02.json"): newer}
    monkeypatch.setattr(docs, "read_parts", lambda: both)
    return list(both.values())


def test_the_page_names_each_part_its_machine_and_its_causes(parts: list[AtlasFigures]):
    text = docs.atlas_page()
    assert re.findall(r"^## (.*\d)$", text, re.MULTILINE) == ["TensorFlow, 2.0 to 2.2", "TensorFlow, 2.2 to 2.4"]
    assert "| 2.1.0 | power | slower, 1.50x (1.46-1.54) | Why: Keras<br>It is slow (tf#1) |" in text
    assert "| [02.json](atlas/02.json) | TensorFlow, 2.2 to 2.4 | 3 releases, 2 cases; Another CPU, venv, cpu; " in text


def test_each_release_has_one_column_with_its_own_figures(parts: list[AtlasFigures]):
    drawn = ElementTree.fromstring(docs.atlas_picture())
    texts = [(int(each.get("y", "0")), int(each.get("x", "0")), each.text or "") for each in drawn.iter(f"{SVG}text")]
    lines: dict[int, list[str]] = {}
    for y, _, text in sorted(texts):
        lines.setdefault(y, []).append(text)
    top, numbers, power, predict = (lines[y] for y in sorted(lines))
    assert top == ["A CPU, against 2.4", "Another CPU, against 2.4"]
    assert numbers == ["2.0", "2.1", "2.2", "2.3", "2.4"]
    # The release that both parts have is drawn where it has a step; only a certain step has a mark.
    assert power == ["power", "2.00", "▲3.00", "4.00", "1.00", "1.00"]
    assert predict[0] == "predict"


def test_releases_of_a_package_are_named_and_stay_out_of_the_picture(monkeypatch: pytest.MonkeyPatch):
    made = figures(3)
    named = {release.name: f"2.20.0 keras==3.{place}.0" for place, release in enumerate(made.releases)}
    keras = replace(
        made, releases=tuple(replace(release, name=named[release.name]) for release in made.releases), cells=(),
        steps=(), levels=(), results=(), causes=(), claims=(),
    )  # fmt: skip
    monkeypatch.setattr(docs, "read_parts", lambda: {Path("01.json"): made, Path("keras.json"): keras})
    assert "\n## Keras on TensorFlow 2.20, 3.0 to 3.2\n" in docs.atlas_page()
    assert "3.1" not in docs.atlas_picture()
