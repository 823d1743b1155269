"""The answer as a table with its failures, as an object, and as a page."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.formats import MODELS
from orchestrator.options import VENV
from orchestrator.reports.grid import Grid
from orchestrator.reports.html.answer import AnswerPage, PageLine, PageTable, render_answer
from orchestrator.reports.html.rows import TableColumn
from orchestrator.results import find_runs
from orchestrator.saved_models.judge import (
    VERDICTS,
    LoadedModel,
    ModelFailure,
    Verdict,
    name_count,
    sum_up,
)
from orchestrator.saved_models.question import SAVEDMODEL, SERVED
from orchestrator.saved_models.run import GIVEN, OWN, ModelRow, ModelsOutcome
from orchestrator.terminal import output_file
from orchestrator.terminal.counts import format_count, name_some
from orchestrator.terminal.strict_json import dump, pick
from orchestrator.terminal.text import safe_text

SCHEMA = MODELS.mark
REPORT, PAGE = find_runs.MODELS, "report.html"
STYLES = {"dies": "bold red", "differs": "bold red", "ok": "green"}
PAGE_STYLES = {
    "dies": "died",
    "differs": "slower",
    "ok": "same",
    "slower": "slower",
    "refused": "refused",
    "not saved": "refused",
}
# A table of all formats and versions has this many reasons at most; the page and JSON have all.
MOST_SHOWN, MOST_PLACES, NARROWEST = 12, 3, 24
# Reasons that differ in nothing else are one: numbers, and the names of layers.
NAMES = re.compile(r"(?<=[Ll]ayer )['\"][^'\"]*['\"]|(?<=_)\d+|\b\d+\b")
ORDER = ("differs", "dies", "slower", "not run", "not compared", "not saved", "refused")


@dataclass(frozen=True)
class ModelsAnswer:
    """An outcome with its verdicts."""

    outcome: ModelsOutcome
    models: tuple[LoadedModel, ...]

    @cached_property
    def cells(self) -> dict[tuple[ModelRow, str], list[LoadedModel]]:
        cells: dict[tuple[ModelRow, str], list[LoadedModel]] = {}
        for each in self.models:
            cells.setdefault((each.row, each.target), []).append(each)
        return cells

    @cached_property
    def failures(self) -> tuple[ModelFailure, ...]:
        """What went wrong, each once, the most frequent first."""
        alike: dict[tuple[Verdict, str], list[LoadedModel]] = {}
        for each in self.models:
            if each.verdict != "ok":
                alike.setdefault((each.verdict, NAMES.sub("0", each.reason)), []).append(each)
        found = [
            ModelFailure(
                verdict,
                models[0].reason,
                tuple(dict.fromkeys(self.name_model(each.model) for each in models)),
                tuple(dict.fromkeys((each.row, each.target) for each in models)),
                len(models),
            )
            for (verdict, _), models in alike.items()
        ]
        return tuple(sorted(found, key=lambda each: (ORDER.index(each.verdict), -each.count)))

    def count(self, verdict: Verdict) -> int:
        return sum(each.verdict == verdict for each in self.models)

    def name_model(self, name: str) -> str:
        code = self.outcome.question.code
        return code.stem if code and name == OWN else "" if name == GIVEN else name


def layout_models(answer: ModelsAnswer, width: int, *, details: bool = False) -> RenderableType:
    targets = answer.outcome.targets
    grid = _fill(answer, targets)
    legend: list[Text] = []
    if grid.least_width > width:
        letters = [f"[{number}]" for number in range(1, len(targets) + 1)]
        grid = _fill(answer, letters)
        legend = [safe_text(f"{letter} {name}") for letter, name in zip(letters, targets, strict=True)]
    parts: list[RenderableType] = [*legend, Text(), *(safe_text(line) for line in tell_failures(answer)), Text()]
    parts += [safe_text(note) for note in list_notes(answer)]
    if details:
        parts += [Text(), _detail(answer)]
    return Group(grid, *parts)


def _fill(answer: ModelsAnswer, headers: Sequence[str]) -> Grid:
    outcome = answer.outcome
    grid = Grid(
        title=safe_text("saved in a row, loaded in a column", style="bold"),
        headers=["", *headers],
        right=[False] * (1 + len(headers)),
        narrowest=NARROWEST,
    )
    source = ""
    for row in list_rows(answer):
        cells = [answer.cells[row, target] for target in outcome.targets]
        texts = [sum_up(models) for models in cells]
        if row.source != source and not outcome.question.saved:
            grid.end_section()
            grid.add(row.source, *[""] * len(headers))
            source = row.source
        styles = [_find_style(models) for models in cells]
        grid.add(
            name_row(row, cells[0]) if source else f"{row.source}{', served' if row.format == SERVED else ''}",
            *(safe_text(text, style=style) for text, style in zip(texts, styles, strict=True)),
        )
    return grid


def list_rows(answer: ModelsAnswer) -> list[ModelRow]:
    """Return the rows of a table; reasons below it tell of those in which nothing could be saved."""
    rows = answer.outcome.rows
    saved = {each.row for each in answer.models if each.saved}
    return [row for row in rows if row in saved or len(rows) == 1]


def name_row(row: ModelRow, models: Sequence[LoadedModel]) -> str:
    """Return how a row is loaded, and the number of its models."""
    name = f"  {f'{SAVEDMODEL}, {SERVED}' if row.format == SERVED else row.format}"
    if len(models) == 1:
        return name
    saved = sum(each.saved for each in models)
    return f"{name}, {saved} of {len(models)}" if saved < len(models) else f"{name}, {saved}"


def _find_style(models: Sequence[LoadedModel]) -> str:
    verdicts = {each.verdict for each in models}
    if worst := verdicts & {"dies", "differs", "not run"}:
        return STYLES.get(next(iter(worst)), "bold red")
    return STYLES["ok"] if "ok" in verdicts else "dim"


def tell_failures(answer: ModelsAnswer) -> Iterator[str]:
    wrong = [failure for failure in answer.failures if failure.verdict not in ("not saved", "refused")]
    for failure in answer.failures:
        if failure not in wrong[MOST_SHOWN:]:
            yield from tell_failure(failure, answer.outcome.question.models)
    if (left := len(wrong) - MOST_SHOWN) > 0:
        yield f"and {format_count(left, 'more reason')}; {REPORT} and the page have all"


def tell_failure(failure: ModelFailure, models: Sequence[str]) -> tuple[str, str]:
    """Return what went wrong, and where; `models` are all that could be concerned."""
    names = name_models(failure, models)
    places = list_places(failure)
    left = f"; and {format_count(len(places) - MOST_PLACES, 'more row')}" if len(places) > MOST_PLACES else ""
    return (
        f"{failure.verdict}: {failure.reason or 'no reason is known'}{f' ({names})' if names else ''}",
        f"    {'; '.join(places[:MOST_PLACES])}{left}",
    )


def name_models(failure: ModelFailure, models: Sequence[str]) -> str:
    return "all models" if set(failure.models) == set(models) else ", ".join(failure.models)


def list_places(failure: ModelFailure) -> list[str]:
    """Return one text per row: what was saved, how it was loaded, and in which targets."""
    places: dict[str, list[str]] = {}
    for row, target in failure.places:
        places.setdefault(f"{row.source} as {row.format}", []).append(target)
    if failure.verdict == "not saved":
        return [*places]
    return [f"{place} in {name_some(targets, MOST_PLACES)}" for place, targets in places.items()]


def list_notes(answer: ModelsAnswer) -> Iterator[str]:
    """Yield what else is to be known about the table."""
    outcome = answer.outcome
    yield f"{format_count(len(answer.models), 'load')} in {outcome.seconds / 60:.1f} min: {count_verdicts(answer)}"
    if outcome.engine == VENV and (outcome.question.saved or outcome.question.code):
        yield "note: in a virtual environment, a saved model or its code has your rights; --engine docker confines it"
    if outcome.question.saved:
        yield "note: a file is expected to return what it returns in the first target in which it loads"


def count_verdicts(answer: ModelsAnswer) -> str:
    """Return how many models do what."""
    counts = {verdict: answer.count(verdict) for verdict in VERDICTS}
    return ", ".join(name_count(verdict, count) for verdict, count in counts.items() if count)


def _detail(answer: ModelsAnswer) -> Grid:
    headers = ("model", "format", "saved in", "loaded in", "result", "size", "save", "load")
    grid = Grid(
        title=safe_text("each model", style="bold"),
        headers=headers,
        right=[name in ("size", "save", "load") for name in headers],
        narrowest=NARROWEST,
    )
    for each in answer.models:
        grid.add(*_list_cells(answer, each))
    return grid


def _list_cells(answer: ModelsAnswer, each: LoadedModel) -> tuple[str, ...]:
    return (
        answer.name_model(each.model) or each.row.source,
        each.row.format,
        each.row.source,
        each.target,
        each.verdict,
        "" if each.bytes is None else f"{each.bytes / 1024:.0f} KiB",
        "" if each.save_s is None else f"{each.save_s:.2f} s",
        "" if each.load_s is None else f"{each.load_s:.2f} s",
    )


def models_as_object(answer: ModelsAnswer) -> dict[str, Any]:
    """Return the `tfcompare.models/1` object, which is part of the interface."""
    outcome = answer.outcome
    return {
        "schema": SCHEMA,
        "engine": outcome.engine,
        "targets": list(outcome.targets),
        "formats": list(dict.fromkeys(row.format for row in outcome.rows)),
        "seconds": outcome.seconds,
        "models": [
            {
                "saved_in": None if outcome.question.saved else each.row.source,
                "file": each.row.source if outcome.question.saved else None,
                "format": each.row.format,
                "loaded_in": each.target,
                "model": answer.name_model(each.model) or None,
                **pick(each, "verdict reason? difference bytes save_s load_s ratio"),
            }
            for each in answer.models
        ],
        "failures": [
            {
                **pick(failure, "verdict reason?"),
                "models": [name for name in failure.models if name],
                "places": [
                    {"source": row.source, "format": row.format, "loaded_in": target} for row, target in failure.places
                ],
            }
            for failure in answer.failures
        ],
        "lost": [{"target": target, "reason": reason} for target, reason in outcome.lost.items()],
        "notes": list(list_notes(answer)),
    }


def write_models(answer: ModelsAnswer) -> Path:
    """Write the object and the page into the run folder, and return the path of the page."""
    folder = answer.outcome.path
    text = dump(models_as_object(answer), indent=1)
    output_file.write_output(folder / REPORT, f"{text}\n", "--output", within=True)
    output_file.write_output(folder / PAGE, render_models_page(answer), "--output", within=True)
    return folder / PAGE


def render_models_page(answer: ModelsAnswer) -> str:
    outcome = answer.outcome
    source = "File" if outcome.question.saved else "Saved in"
    columns = (TableColumn("source", source), TableColumn("format", "Loaded as"))
    table = PageTable(
        "Loads",
        (*columns, *(TableColumn(f"t{place}", target) for place, target in enumerate(outcome.targets))),
        tuple(
            PageLine(
                (
                    row.source,
                    name_row(row, answer.cells[row, outcome.targets[0]]).strip(),
                    *(sum_up(answer.cells[row, target]) for target in outcome.targets),
                )
            )
            for row in outcome.rows
        ),
    )
    reasons = PageTable(
        "Reasons",
        (
            TableColumn("verdict", "Result"),
            TableColumn("reason", "Reason"),
            TableColumn("models", "Models"),
            TableColumn("places", "Where"),
        ),
        tuple(
            PageLine(
                (
                    failure.verdict,
                    failure.reason,
                    name_models(failure, outcome.question.models),
                    "; ".join(list_places(failure)),
                ),
                PAGE_STYLES.get(failure.verdict, ""),
            )
            for failure in answer.failures
        ),
    )
    names = ("Model", "Format", source, "Loaded in", "Result", "Size", "Save", "Load")
    right = (*[False] * 5, *[True] * 3)
    keys = ("model", "format", "source", "target", "verdict", "size", "save", "load")
    details = PageTable(
        "Each model",
        tuple(TableColumn(*column) for column in zip(keys, names, right, strict=True)),
        tuple(PageLine(_list_cells(answer, each), PAGE_STYLES.get(each.verdict, "")) for each in answer.models),
    )
    return render_answer(
        AnswerPage(
            command="models",
            title="Which saved models load where",
            case=", ".join(outcome.targets),
            created=datetime.now(UTC).replace(microsecond=0),
            facts=f"{outcome.engine}, {format_count(len(outcome.targets), 'target')}",
            conclusions=list(list_notes(answer)),
            notes=(),
            figures=(),
            tables=(table, reasons, details),
        )
    )
