"""Tables of saved models that no version made: two versions save and load two models, all of them ok unless told."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.saved_models.answers import ModelReply
from orchestrator.saved_models.judge import LoadedModel
from orchestrator.saved_models.question import ModelsQuestion
from orchestrator.saved_models.report import ModelsAnswer
from orchestrator.saved_models.run import ModelRow, ModelsOutcome, SavedModel

MODELS = ("functional", "nested")


def table(
    folder: Path,
    targets: tuple[str, ...] = ("2.8.4", "2.16.2"),
    wrong: Mapping[tuple[str, str, str], tuple[Any, str]] | None = None,
    format: str = "h5",
) -> ModelsAnswer:
    """The verdict and the reason of what is wrong go by the version that saved, the one that loads, and the model."""
    loads = []
    for source in targets:
        for name in MODELS:
            for target in targets:
                verdict, reason = (wrong or {}).get((source, target, name), ("ok", ""))
                loads.append(
                    LoadedModel(
                        row=ModelRow(source, format), target=target, model=name, verdict=verdict, reason=reason,
                        difference=0.0 if verdict == "ok" else None, bytes=2048, save_s=0.5,
                        load_s=0.25 if verdict == "ok" else None,
                    )
                )  # fmt: skip
    outcome = ModelsOutcome(
        question=ModelsQuestion(models=MODELS, formats=(format,)), path=folder, engine="venv", targets=targets,
        texts=targets, loads={}, lost={}, seconds=60.0,
        saves={
            (source, format, name): SavedModel(ModelReply(outcome="done"), 2048)
            for source in targets
            for name in MODELS
        },
    )  # fmt: skip
    return ModelsAnswer(outcome, tuple(loads))


DIES = {("2.8.4", "2.16.2", "nested"): ("dies", "ValueError: no such layer")}
