"""Reads the table of a `models` run back from its folder, which may come from a stranger."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from orchestrator.errors import UsageError
from orchestrator.formats import MODELS
from orchestrator.model import STRICT
from orchestrator.results.stamped import read_stamped
from orchestrator.saved_models.answers import ModelReply
from orchestrator.saved_models.judge import LoadedModel, Verdict, find_saved_format
from orchestrator.saved_models.question import FORMATS, SERVED, ModelsQuestion, SavedFile
from orchestrator.saved_models.report import REPORT, ModelsAnswer
from orchestrator.saved_models.run import GIVEN, ModelRow, ModelsOutcome, SavedModel

MOST_BYTES = 2**25
MISSING = f"holds no table of saved models (it has no {REPORT}); `tfcompare models --output FOLDER` makes one"

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)] | None


@dataclass(frozen=True, kw_only=True)
class _StoredLoad:
    __pydantic_config__ = STRICT

    saved_in: str | None
    file: str | None
    format: str
    loaded_in: str
    model: str | None
    verdict: Verdict
    reason: str | None
    difference: Amount
    bytes: Annotated[int, Field(ge=0, lt=2**53)] | None
    save_s: Amount
    load_s: Amount
    ratio: Amount

    def judge(self) -> LoadedModel:
        return LoadedModel(
            row=ModelRow(self.saved_in or self.file or "", self.format),
            target=self.loaded_in,
            model=self.model or GIVEN,
            verdict=self.verdict,
            saved=self.bytes is not None,
            reason=self.reason or "",
            difference=self.difference,
            bytes=self.bytes,
            save_s=self.save_s,
            load_s=self.load_s,
            ratio=self.ratio,
        )


@dataclass(frozen=True, kw_only=True)
class _StoredLoss:
    __pydantic_config__ = STRICT

    target: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class _StoredTable:
    """The `tfcompare.models/1` object; what follows from its other fields is not read."""

    __pydantic_config__ = STRICT

    engine: str
    targets: Annotated[tuple[str, ...], Field(min_length=1)]
    formats: Any
    seconds: Annotated[float, Field(ge=0, lt=1e9)]
    models: tuple[_StoredLoad, ...]
    failures: Any
    lost: tuple[_StoredLoss, ...]
    notes: Any


@cache
def _adapter() -> TypeAdapter[_StoredTable]:
    return TypeAdapter(_StoredTable)


def read_models(folder: Path) -> ModelsAnswer:
    """Return the table of a folder; raise UsageError if there is none, or if it is no whole table."""
    stored = read_stamped(folder / REPORT, MODELS, _adapter(), MOST_BYTES, MISSING)
    models = tuple(each.judge() for each in stored.models)
    answer = ModelsAnswer(
        ModelsOutcome(
            question=ModelsQuestion(
                models=tuple(dict.fromkeys(each.model for each in models)),
                saved=tuple(SavedFile(Path(each.file), each.format) for each in stored.models if each.file),
            ),
            path=folder,
            engine=stored.engine,
            targets=stored.targets,
            texts=stored.targets,
            saves={
                (each.row.source, find_saved_format(each.row.format), each.model): SavedModel(
                    ModelReply(outcome="done"), each.bytes or 0
                )
                for each in models
            },
            loads={},
            lost={loss.target: loss.reason for loss in stored.lost},
            seconds=stored.seconds,
        ),
        models,
    )
    if wrong := next(_find_gaps(answer), ""):
        raise UsageError(f"{folder / REPORT} is damaged: {wrong}; make the table again")
    return answer


def _find_gaps(answer: ModelsAnswer) -> Iterator[str]:
    rows, targets = answer.outcome.rows, answer.outcome.targets
    loads = {(each.row, each.model, each.target) for each in answer.models}
    if not {row.format for row in rows} <= {*FORMATS, SERVED}:
        yield "it names a format that nothing has"
    if len(loads) < len(answer.models) or len(set(targets)) < len(targets):
        yield "it names something twice"
    wanted = {(row, model, target) for row, model, _ in loads for target in targets}
    if loads != wanted or {row for row, _, _ in loads} != set(rows):
        yield "it does not have each saved model in each target"
