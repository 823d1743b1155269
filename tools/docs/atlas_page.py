"""docs/tensorflow-atlas.md and its picture: what this project measured from release to release, in docs/atlas/.

Each file there is the `figures.json` of one atlas; the names of the files give their order.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup

from orchestrator.atlas.figures import AtlasFigures, AtlasRatio, read_figures, shorten_release
from orchestrator.atlas.site import MOST_STEPS, describe_atlas_step
from orchestrator.atlas.summary import list_atlas_changes, name_cases
from orchestrator.metrics.followed import TIME
from orchestrator.reports.columns import MARKS, OTHER_MARKS
from orchestrator.reports.html.svg import element
from tools.docs import WRITTEN

DATA = Path(__file__).resolve().parents[2] / "docs" / "atlas"
PAGE, PICTURE = "tensorflow-atlas.md", "atlas.svg"
HEAD = f"""# An atlas of TensorFlow

{WRITTEN}

How speed, memory, start-up and results moved from release to release, measured by [`tfcompare atlas`](atlas.md). In
every release, the same code ran in the same rounds as in the release before it and in the newest one, so each change
below is a [verdict](verdicts.md). [The files](#the-files) have all figures. The atlas is not complete:
releases that are in no part have not been measured yet, and pairs with few rounds show large changes only.

![Times of cases in releases of TensorFlow](atlas.svg)

Each figure is the time of a case divided by its time in the release that the heading names, measured in the same
rounds: 1.30 takes 30 % longer. Orange is slower than that release, and blue is faster. ▲ and ▼ mark a change since the
release before that is certain among all comparisons of its part: slower and faster. An empty field could not be
measured, ✕ means that the case died, and – that the release refuses it.
"""
TAIL = """
## What it does not show

- Other machines. Each part was measured on one machine, and the figures of two machines are never mixed.
- GPUs, and programs with several processes.
- Other models and sizes. A case is a small program, and yours may behave differently: `tfcompare upgrade` measures it.
- Changes smaller than the margin, where a case is `same`, and changes of any size where it is inconclusive.
- Which part of a release did it, unless a cause is named: each release has its own Keras, Python and packages.

## The files

Each file is [`tfcompare.atlas/1`](json.md#tfcompareatlas1), with every figure, interval and verdict.
`tfcompare atlas --figures FILE --site FOLDER` makes pages of it, one per case.

| file | releases | what and where |
|---|---|---|
"""
# Sizes of the picture, in its own units.
NAMES, COLUMN, ROW, TOP, GAP = 190, 34, 20, 44, 14
SLOWER, FASTER, TEXT, DIM = "#d9480f", "#1864ab", "#24292f", "#57606a"
# A ratio of this size has the full colour.
FULL = 3.0


@cache
def read_parts() -> dict[Path, AtlasFigures]:
    return {path: read_figures(path) for path in sorted(DATA.glob("*.json"))}


def atlas_page() -> str:
    parts = [_describe_part(figures) for figures in read_parts().values()]
    files = "".join(
        f"| [{path.name}](atlas/{path.name}) | {_name_range(figures)} | {list_atlas_changes(figures)[1]} |\n"
        for path, figures in read_parts().items()
    )
    return "".join((HEAD, *parts, TAIL, files))


def _describe_part(figures: AtlasFigures) -> str:
    _title, facts, _, *lines = list_atlas_changes(figures)
    text = "\n".join(lines)
    return f"\n## {_name_range(figures)}\n\n{facts}.\n\n```text\n{text}\n```\n{_list_steps(figures)}"


def _list_steps(figures: AtlasFigures) -> str:
    """Return a table of the largest steps, with what `why` found and with the claims that report them."""
    names = name_cases(figures)
    rows = []
    for step in figures.largest[:MOST_STEPS]:
        told = describe_atlas_step(figures, step, names, {})
        why = "<br>".join((*told["cause"], *told["claims"]))
        cells = (told["newer"], told["name"], f"{told['what']}, {told['size']}", why)
        rows.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n")
    head = "\n| release | case | against the release before | why, and what helps |\n|---|---|---|---|\n"
    return head + "".join(rows) if rows else ""


def _name_range(figures: AtlasFigures) -> str:
    first, last = figures.releases[0], figures.releases[-1]
    target, _, package = first.name.rpartition(" ")
    name = package.partition("==")[0].capitalize()
    what = f"{name} on TensorFlow {shorten_release(target)}" if target else "TensorFlow"
    return f"{what}, {first.short} to {last.short}"


def atlas_picture() -> str:
    """Draw the levels of all cases in releases of TensorFlow, the parts next to one another."""
    parts = [figures for figures in read_parts().values() if " " not in figures.releases[0].name]
    labels = list(dict.fromkeys(case.label for figures in parts for case in figures.cases))
    names = {label: name for figures in parts for label, name in name_cases(figures).items()}
    drawn, left = [], NAMES
    for number, figures in enumerate(parts):
        # Neighbouring parts share a release; it is drawn where it has a step.
        releases = figures.releases[1 if number else 0 :]
        drawn += _draw_part(figures, [release.name for release in releases], labels, left)
        left += COLUMN * len(releases) + GAP
    for row, label in enumerate(labels):
        drawn.append(_place(names[label], 0, TOP + ROW * row + 14, anchor="start"))
    width, height = left - GAP, TOP + ROW * len(labels) + 4
    background = element("rect", width=width, height=height, fill="#ffffff")
    picture = element(
        "svg", background, *drawn, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width,
        height=height, font_family="sans-serif", font_size=11,
    )  # fmt: skip
    return f"{picture}\n"


def _draw_part(figures: AtlasFigures, releases: Sequence[str], labels: Sequence[str], left: int) -> Iterator[Markup]:
    middle = left + COLUMN * len(releases) // 2
    yield _place(f"{figures.machine['cpu']}, against {shorten_release(figures.reference)}", middle, 14, DIM)
    for column, release in enumerate(releases):
        x = left + COLUMN * column
        yield _place(".".join(release.split(".")[:2]), x + COLUMN // 2, TOP - 8, TEXT)
        for row, label in enumerate(labels):
            yield from _draw_cell(figures, label, release, x, TOP + ROW * row)


def _draw_cell(figures: AtlasFigures, label: str, release: str, x: int, y: int) -> Iterator[Markup]:
    key = (label, TIME, release)
    level, step, cell = figures.by_level.get(key), figures.by_step.get(key), figures.by_cell.get((label, release))
    ratio = level.ratio if level else 1.0 if release == figures.reference and cell else None
    if ratio:
        strength = min(abs(math.log(ratio)) / math.log(FULL), 1.0)
        colour = SLOWER if ratio > 1 else FASTER
        yield element(
            "rect", x=x, y=y, width=COLUMN - 1, height=ROW - 1, fill=colour, fill_opacity=f"{0.75 * strength:.2f}"
        )
    text = _show_ratio(ratio) if ratio else OTHER_MARKS.get(cell.outcome, "") if cell else ""
    yield _place(f"{_mark(step)}{text}", x + COLUMN // 2, y + 14, TEXT, size=10)


def _mark(step: AtlasRatio | None) -> str:
    return MARKS[step.verdict] if step and step.is_named else ""


def _show_ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 9.95 else f"{ratio:.0f}"


def _place(text: str, x: int, y: int, colour: str = TEXT, anchor: str = "middle", size: int = 11) -> Markup:
    return element("text", text, x=x, y=y, fill=colour, text_anchor=anchor, font_size=size)
