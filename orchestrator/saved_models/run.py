"""The course of the question: every target saves, the host takes the files, and every target loads them.

The targets of a phase work side by side, because nothing is timed. Nothing of one target reaches another but the files
that `take` has copied into a fresh folder, which the workers of the second phase may only read.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from orchestrator import files
from orchestrator.bundled import WORKLOADS
from orchestrator.catalog.imports import imports_of
from orchestrator.engines.worker.client import Opened, Refused, WorkerDied
from orchestrator.errors import ArmsDied, EnvironmentFailed, TfCompareError, UsageError
from orchestrator.measure.session import (
    Session,
    make_manifest,
    open_session,
    pin_workloads,
    prepare_environments,
)
from orchestrator.measure.workers import Workers, employ
from orchestrator.model import Case, Target
from orchestrator.parallel import run_parallel
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import RunOptions
from orchestrator.results.evaluation import FIRST_ROUND
from orchestrator.results.find_runs import RUNS
from orchestrator.saved_models.answers import ModelReply, read_answer
from orchestrator.saved_models.question import SAVEDMODEL, SERVED, SUFFIXES, ModelsQuestion, SavedFile
from orchestrator.saved_models.take import NotTaken, take_model
from orchestrator.terminal.view import View

# The container's file, the folder of the user's code in it, and the folder that the second phase reads.
WORKLOAD, CODE, SHELF = "saved_models", "model", "saved"
# A user's own model, and one that was saved before, have these names in a worker.
OWN, GIVEN = "model", "given"
MOST_AT_ONCE = 4

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, order=True)
class ModelRow:
    """What is loaded: the target that saved it, or the file that was given, and how it is loaded."""

    source: str
    format: str


@dataclass(frozen=True)
class SavedModel:
    """How saving a model ended, and how large it is."""

    answer: ModelReply
    bytes: int = 0


# The keys are the target or file, the format and the model; and the row, the target that loads it and the model.
Saves = dict[tuple[str, str, str], SavedModel]
Loads = dict[tuple[ModelRow, str, str], ModelReply]


@dataclass(frozen=True, kw_only=True)
class ModelsOutcome:
    """Everything that was answered; `lost` says which targets could not work, and why."""

    question: ModelsQuestion
    path: Path
    engine: str
    targets: tuple[str, ...]
    # The targets as the user wrote them.
    texts: tuple[str, ...]
    saves: Saves
    loads: Loads
    lost: Mapping[str, str]
    seconds: float
    failures: tuple[EnvironmentFailed, ...] = ()

    @property
    def rows(self) -> tuple[ModelRow, ...]:
        """The rows in the order of what was saved."""
        sources = dict.fromkeys((source, format) for source, format, _ in self.saves)
        return tuple(ModelRow(source, as_loaded) for source, format in sources for as_loaded in _list_loads(format))


def compare_models(question: ModelsQuestion, options: RunOptions, view: View) -> ModelsOutcome:
    """Save and load in every target, and return what came back; the files stay in the run folder."""
    begun = time.monotonic()
    fewest = 1 if question.saved else 2
    with TemporaryDirectory(prefix="tfcompare-") as scratch:
        own, placed = Path(scratch) / "own", Path(scratch) / SHELF
        compose_folder(question, own)
        compose_folder(question, placed)
        given = _place_given(question.saved, placed)
        options = replace(options, own_workloads=own, selected=(WORKLOAD,))
        planned = plan_run(options, view, fewest=fewest)
        with open_session(planned, RUNS / planned.run, view) as opened:
            shelf = opened.folder.path / SHELF
            shutil.move(placed, shelf)
            opened = pin_workloads(opened)
            session = prepare_environments(opened)
            session.folder.write_manifest(make_manifest(opened.planned, session.environments))
            names = (GIVEN,) if question.saved else (OWN,) if question.code else question.models
            phases = _Phases(session, question, shelf, names, view)
            saves = given or phases.save()
            loads = phases.load(saves)
            failures = session.failures
            targets = tuple(str(target) for target in session.plan.targets)
            assert len(targets) == len(planned.options.versions)
            return ModelsOutcome(
                question=question,
                path=session.folder.path,
                engine=session.plan.engine,
                targets=targets,
                texts=planned.options.versions,
                saves=saves,
                loads=loads,
                lost=phases.lost | {failure.target: failure.headline for failure in failures},
                seconds=time.monotonic() - begun,
                failures=failures,
            )


def compose_folder(question: ModelsQuestion, folder: Path, workload: str = WORKLOAD) -> None:
    """Write the folder that workers load: the task, and the user's file with what it imports from its folder."""
    folder.mkdir(parents=True)
    shutil.copyfile(WORKLOADS / "saving" / f"{workload}.py", folder / f"{workload}.py")
    if question.code:
        for name, path in {question.code.name: question.code, **imports_of(question.code)}.items():
            target = folder / CODE / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(files.read_text(path))
    _let_read(folder)


def _let_read(folder: Path) -> None:
    """Let workers read a folder, since they may run as another user; the folder around it keeps other users out."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _place_given(saved: Sequence[SavedFile], shelf: Path) -> Saves:
    """Copy the models that were saved before to the shelf; raise UsageError for one that is no plain file or folder."""
    placed = {}
    for each in saved:
        folder = shelf / f"{each.path.name}-{each.format}"
        folder.mkdir(mode=0o755)
        place = Path(os.path.abspath(each.path))
        try:
            size = take_model(place.parent, place, folder / name_file(GIVEN, each.format), names=None)
        except NotTaken as wrong:
            raise UsageError(f"--saved: {each.path}: {wrong}") from wrong
        except OSError as error:
            raise UsageError(f"--saved: {each.path}: {error.strerror}") from error
        placed[each.path.name, each.format, GIVEN] = SavedModel(ModelReply(outcome="done"), size)
    return placed


def name_file(model: str, format: str) -> str:
    return model + SUFFIXES.get(format, "")


def _list_loads(format: str) -> tuple[str, ...]:
    """Return the ways to load a format: what is served is a SavedModel without Keras."""
    return (SAVEDMODEL, SERVED) if format == SAVEDMODEL else (format,)


@dataclass(frozen=True)
class _Order:
    """What a replicate does with models; the folder on the shelf is where their files go, or come from."""

    do: str
    format: str
    shelf: Path


@dataclass
class _Phases:
    """The two phases; `lost` says which targets have no worker any more, and why."""

    session: Session
    question: ModelsQuestion
    shelf: Path
    names: tuple[str, ...]
    view: View
    lost: dict[str, str] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    over: bool = False

    def save(self) -> Saves:
        """Let every target save, and return the answers in the order of targets, formats and models."""

        def work(workers: Workers, target: Target) -> Saves:
            done: Saves = {}
            for format in self.question.formats:
                self.view.preparing(str(target), f"saving as {format}")
                order = _Order("save", format, self.shelf / f"{target}-{format}")
                order.shelf.mkdir(mode=0o755)
                saved = self._handle(workers, target, order, self.names)
                done |= {(str(target), format, name): saved[name] for name in self.names}
            return done

        return self._run_phase(self.session, work)

    def load(self, saves: Saves) -> Loads:
        """Let every target load what was saved."""
        rows: dict[tuple[str, str], list[str]] = {}
        for (source, format, name), saved in saves.items():
            if saved.answer.outcome == "done":
                rows.setdefault((source, format), []).append(name)

        def work(workers: Workers, target: Target) -> Loads:
            done: Loads = {}
            for (source, format), names in rows.items():
                for as_loaded in _list_loads(format):
                    self.view.preparing(str(target), f"loading {as_loaded} of {source}")
                    order = _Order("load", as_loaded, self.shelf / f"{source}-{format}")
                    loaded = self._handle(workers, target, order, names)
                    row = ModelRow(source, as_loaded)
                    done |= {(row, str(target), name): loaded[name].answer for name in names}
            return done

        return self._run_phase(replace(self.session, own_workloads=self.shelf), work) if rows else {}

    def _run_phase(self, session: Session, work: Callable[[Workers, Target], dict[Key, Value]]) -> dict[Key, Value]:
        """Let the targets work side by side, and return what they did, in their order."""
        targets = list(session.environments)
        at_once = max(1, min(len(session.plan.cpus or os.sched_getaffinity(0)), MOST_AT_ONCE))
        done: list[dict[Key, Value]] = []
        with employ(session) as employed:
            employed.start()
            try:
                done = run_parallel(lambda target: work(employed.workers, target), targets, at_once)
            except BaseException:
                # Threads that wait for a worker see its end, and must not start another one.
                self.over = True
                raise
        if employed.error:
            raise employed.error
        return {key: value for of_target in done for key, value in of_target.items()}

    def _handle(self, workers: Workers, target: Target, order: _Order, names: Sequence[str]) -> dict[str, SavedModel]:
        """Return the answer about each model; after a death, the first that has none is tried again alone."""
        done: dict[str, SavedModel] = {}
        waiting = [list(names)]
        while waiting:
            models = waiting.pop(0)
            answered, reason = self._attempt(workers, target, order, models)
            done |= answered
            left = [name for name in models if name not in answered]
            if left and (len(models) == 1 or str(target) in self.lost):
                died = ModelReply(outcome="died", message=reason or "it gave no answer")
                done |= dict.fromkeys(left, SavedModel(died))
            elif left:
                waiting[:0] = filter(None, (left[:1], left[1:]))
        return done

    def _attempt(
        self, workers: Workers, target: Target, order: _Order, models: Sequence[str]
    ) -> tuple[dict[str, SavedModel], str]:
        """Give an order to a replicate; return the answers that it gave, and what it died of, or ''."""
        worker = workers.acquire(target)
        if worker is None:
            self.lost[str(target)] = workers.describe_loss(target)
            return {}, self.lost[str(target)]
        number, plan, question = next(self.numbers), self.session.plan, self.question
        stream = workers.slot(target).stream
        assert stream
        into = stream.path.parent / f"{order.do}-{number}"
        params = {
            "do": order.do,
            "format": order.format,
            "models": "+".join(models),
            "into": into.name,
            "from": order.shelf.name,
            "code": f"{CODE}/{question.code.name}" if question.code else "" if question.saved else "builtin",
        }
        reason, died, answer = "", False, None
        try:
            answer = worker.open(
                Case(WORKLOAD, tuple(params.items())), replicate=number, round=FIRST_ROUND, position=0, seed=plan.seed,
                warmup=0, timeout_s=plan.timeout_s, once=True,
            )  # fmt: skip
            if isinstance(answer, Opened):
                worker.close_replicate(number, plan.timeout_s)
            else:
                reason = answer.reason
        except WorkerDied as death:
            if self.over:
                raise
            reason, died = f"its worker died: {death}", True
        answered = {name: found for name in models if (found := _read(into, name, order))}
        if isinstance(answer, Refused):
            answered |= dict.fromkeys(models, SavedModel(ModelReply(outcome="refused", message=answer.reason)))
        if died:
            workers.restart(target)
        else:
            files.remove_tree(into)
            workers.release(target)
        return answered, reason


def _read(into: Path, name: str, order: _Order) -> SavedModel | None:
    """Return what a worker answered about a model, and move what it saved to the shelf."""
    answer = read_answer(into.parent, into / f"{name}.json")
    if answer is None or order.do != "save" or answer.outcome != "done":
        return SavedModel(answer) if answer else None
    file = name_file(name, order.format)
    try:
        return SavedModel(answer, take_model(into.parent, into / file, order.shelf / file))
    except NotTaken as wrong:
        return SavedModel(ModelReply(outcome="died", message=f"what it saved is not used: {wrong}"))
    except OSError as error:
        return SavedModel(ModelReply(outcome="died", message=f"what it saved cannot be read: {error.strerror}"))


def find_failure(outcome: ModelsOutcome) -> TfCompareError | None:
    """Return the error of targets that could not work at all."""
    if outcome.failures:
        return EnvironmentFailed(outcome.failures[0].headline, target=outcome.failures[0].target)
    if outcome.lost:
        target, reason = next(iter(outcome.lost.items()))
        return ArmsDied(f"{len(outcome.lost)} of {len(outcome.targets)} targets could not work; {target}: {reason}")
    return None
