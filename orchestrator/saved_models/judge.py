"""Judges loaded models: one returns the same as when it was saved, returns something else, or does not load."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from orchestrator.engines.worker.events import clean
from orchestrator.results.sketches import find_distance, read_sketch, show_share
from orchestrator.saved_models.answers import ModelReply
from orchestrator.saved_models.question import SAVEDMODEL, SERVED
from orchestrator.saved_models.run import ModelRow, ModelsOutcome

Verdict = Literal["ok", "slower", "differs", "dies", "refused", "not saved", "not compared", "not run"]
# A cell says this of a model that certainly takes longer to load than in the target that saved it.
WORDS: Mapping[str, str] = {"slower": "loads slower"}
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model of a row, loaded in a target; `difference` is the share by which its results differ.

    `ratio` is the time to load it, as a share of that in the target that saved it, if both were measured.
    """

    row: ModelRow
    target: str
    model: str
    verdict: Verdict
    # A model that was refused or failed when it was saved is loaded nowhere.
    saved: bool = True
    reason: str = ""
    difference: float | None = None
    bytes: int | None = None
    save_s: float | None = None
    load_s: float | None = None
    ratio: float | None = None


def judge_models(outcome: ModelsOutcome) -> tuple[LoadedModel, ...]:
    """Return a verdict for each model of each row in each target."""
    judged = []
    for row in outcome.rows:
        for (source, format, model), saved in outcome.saves.items():
            if (source, format) != (row.source, find_saved_format(row.format)):
                continue
            loads = {target: outcome.loads.get((row, target, model)) for target in outcome.targets}
            expected = saved.answer if saved.answer.output else _find_first(loads.values())
            for target, loaded in loads.items():
                verdict, reason, difference = _judge(outcome, saved.answer, expected, loaded, target)
                done = loaded is not None and loaded.outcome == "done"
                judged.append(
                    LoadedModel(
                        row=row,
                        target=target,
                        model=model,
                        verdict=verdict,
                        saved=saved.answer.outcome == "done",
                        reason=str(clean(reason)),
                        difference=difference,
                        bytes=saved.bytes or None,
                        save_s=saved.answer.seconds or None,
                        load_s=loaded.seconds if loaded and done else None,
                    )
                )
    return tuple(judged)


def find_saved_format(format: str) -> str:
    """Return the format in which a model that is loaded in this way was saved."""
    return SAVEDMODEL if format == SERVED else format


def _find_first(answers: Iterable[ModelReply | None]) -> ModelReply | None:
    """Return the first answer that has a result; model files that the user gave come without one."""
    return next((answer for answer in answers if answer and answer.output), None)


def _judge(
    outcome: ModelsOutcome, saved: ModelReply, expected: ModelReply | None, loaded: ModelReply | None, target: str
) -> tuple[Verdict, str, float | None]:
    if saved.outcome != "done":
        return ("refused" if saved.outcome == "refused" else "not saved"), saved.reason, None
    if loaded is None:
        return "not run", outcome.lost.get(target, ""), None
    if loaded.outcome != "done":
        lost = target in outcome.lost and loaded.outcome == "died"
        return ("refused" if loaded.outcome == "refused" else "not run" if lost else "dies"), loaded.reason, None
    if not (expected and loaded.output):
        return "not compared", loaded.reason, None
    return compare_answers(expected, loaded)


def compare_answers(expected: ModelReply, loaded: ModelReply) -> tuple[Verdict, str, float | None]:
    """Compare what two models return, and what they return after a further training step if both were trained."""
    difference = 0.0
    for when, one, other in (
        ("", expected.output, loaded.output),
        ("after a further training step: ", expected.after, loaded.after),
    ):
        if when and not (one and other):
            continue
        sketches = [read_sketch(one), read_sketch(other)]
        if not all(sketch and sketch.says_something for sketch in sketches):
            return "not compared", f"{when}it returns nothing that can be compared", None
        found = find_distance(*[sketch for sketch in sketches if sketch])
        if found.exceeds:
            share = None if found.share == float("inf") else found.share
            what = f"returns {found.where}" if share is None else f"returns different values, by {show_share(share)}"
            return "differs", when + what, share
        if found.unknown:
            return "not compared", when + found.unknown, None
        difference = max(difference, found.share)
    return "ok", "", difference


@dataclass(frozen=True)
class ModelFailure:
    """A verdict that some models share for one reason; `places` are where it was seen."""

    verdict: Verdict
    reason: str
    models: tuple[str, ...]
    places: tuple[tuple[ModelRow, str], ...]
    count: int


def sum_up(models: Sequence[LoadedModel]) -> str:
    """Return the text of a cell: `ok`, or how many of its models do what."""
    judged = [each for each in models if each.saved] or models
    counts = {verdict: sum(each.verdict == verdict for each in judged) for verdict in VERDICTS}
    kinds = [verdict for verdict in VERDICTS if counts[verdict]]
    if len(kinds) == 1 and (kinds[0] in ("ok", "refused", "not saved", "not run") or len(judged) == 1):
        return WORDS.get(kinds[0], kinds[0])
    if len(kinds) == 1:
        return f"all {name_count(kinds[0], len(judged)).partition(' ')[2]}"
    return ", ".join(name_count(verdict, counts[verdict]) for verdict in kinds if verdict != "ok")


def name_count(verdict: Verdict, count: int) -> str:
    """Return `2 die` or `1 dies`."""
    several = {"dies": "die", "differs": "differ", "slower": "load slower"}
    return f"{count} {several.get(verdict, verdict) if count > 1 else WORDS.get(verdict, verdict)}"
