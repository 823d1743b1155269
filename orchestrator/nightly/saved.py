"""The table of saved models among tonight's versions, and what was ok in the last one and no longer is.

`tfcompare models` makes it in a separate process. A table in which something broke is made a second time, and what is
ok in either counts as ok. The folder of an earlier table is found by the time at which its nightly run started.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC
from itertools import islice
from pathlib import Path

from orchestrator.catalog import lock_on_demand
from orchestrator.errors import TfCompareError
from orchestrator.history.model import Night
from orchestrator.model import Manifest
from orchestrator.nightly.options import NightContext, NightOptions
from orchestrator.nightly.stages import STAMP, describe_ending, make_child
from orchestrator.nightly.subprocess_run import Child
from orchestrator.nightly.versions import FOLLOWED, is_nightly
from orchestrator.redact import redact_words
from orchestrator.results.run import Run
from orchestrator.results.run_folder import RunFolder
from orchestrator.saved_models.judge import LoadedModel
from orchestrator.saved_models.report import REPORT, ModelsAnswer, count_verdicts, tell_failure
from orchestrator.saved_models.stored import read_models
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.view import View

FIRST, AGAIN = "models", "models-again"
# At most this many earlier tables are read, for targets that could not work when the newest was made.
MOST_EARLIER = 30
# The words after `models --output FOLDER` decide what is in a table.
OWN_WORDS = 3

# The target that saved, the format, the target that loads, and the model.
LoadName = tuple[str, str, str, str]


@dataclass(frozen=True)
class SavedModelsReport:
    """Tonight's table in a line, its folder, what changed since the last one, and what went wrong."""

    line: str = ""
    run: str = ""
    broken: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def compare_saved_models(
    options: NightOptions,
    night: NightContext,
    screened: Run,
    earlier: Sequence[Night],
    limit_s: float,
    view: View,
) -> SavedModelsReport:
    """Make the table of a nightly run that asks for one, and compare it with those of `earlier` ones.

    An error or an interrupt ends only the table, since the nightly run is judged already and has to be reported.
    """
    if not options.models:
        return SavedModelsReport()
    try:
        return _Tables(options, night, earlier, view).compare(screened, limit_s)
    except KeyboardInterrupt:
        return SavedModelsReport(warnings=("the table of saved models was not finished: interrupted",))
    except Exception as error:
        said = str(error) if isinstance(error, TfCompareError) else f"{type(error).__name__}: {error}"
        return SavedModelsReport(warnings=(f"the table of saved models was not finished: {said}",))


@dataclass(frozen=True)
class _Tables:
    options: NightOptions
    night: NightContext
    earlier: Sequence[Night]
    view: View
    warnings: list[str] = field(default_factory=list)

    def compare(self, screened: Run, limit_s: float) -> SavedModelsReport:
        before = list(islice(self._read_earlier(), 1))
        if before and not self.options.again and self._is_as_before(*before[0], screened.manifest):
            [(day, answer)] = before
            return self._report(answer, f", as on {day.night}: nothing changed since")
        child = make_child(self.options, self.night, limit_s, self.view, "the table of saved models")
        self._make(child, FIRST)
        if not self._has_table(self.night):
            return SavedModelsReport(warnings=tuple(self.warnings))
        answer, last = self._read(self.night), self._find_last()
        if self._find_changed(answer, last, was_ok=True):
            # Something else on this machine may have been the reason.
            self._make(child, AGAIN)
            answer = self._read(self.night)
        return replace(
            self._report(answer, "" if last else "; there is no earlier table to compare it with"),
            broken=tuple(_tell_broken(answer, self._find_changed(answer, last, was_ok=True))),
            mended=tuple(_tell_places(self._find_changed(answer, last, was_ok=False))),
        )

    def _report(self, answer: ModelsAnswer, more: str) -> SavedModelsReport:
        line = f"saved models: {format_count(len(answer.models), 'load')}: {count_verdicts(answer)}{more}"
        return SavedModelsReport(line, answer.outcome.path.name, warnings=tuple(self.warnings))

    def _make(self, child: Child, name: str) -> None:
        ended = child.run(self._list_words(name))
        said = describe_ending(ended, "the table of saved models")
        is_made = (self._find_folder(self.night, name) / REPORT).is_file()
        self.warnings.extend(said if is_made or said else [f"there is no table of saved models: {ended.last_line}"])

    def _list_words(self, name: str) -> list[str]:
        words = ["models", "--output", str(self._find_folder(self.night, name))]
        return [*words, "--versions", ",".join(self.night.resolved.versions), *self.options.models, "--format", "html"]

    def _find_folder(self, night: Night | NightContext, name: str = FIRST) -> Path:
        return self.night.store.runs / f"{night.started.astimezone(UTC):{STAMP}}-{name}"

    def _read(self, night: Night | NightContext) -> ModelsAnswer:
        """Return the table of a nightly run; if it was made twice, what was ok in either counts as ok."""
        first = read_models(self._find_folder(night))
        if not (self._find_folder(night, AGAIN) / REPORT).is_file():
            return first
        again = read_models(self._find_folder(night, AGAIN))
        fine = {(each.row, each.target, each.model): each for each in first.models if each.verdict == "ok"}
        return replace(
            again, models=tuple(fine.get((each.row, each.target, each.model), each) for each in again.models)
        )

    def _has_table(self, night: Night | NightContext) -> bool:
        return (self._find_folder(night) / REPORT).is_file()

    def _read_earlier(self) -> Iterator[tuple[Night, ModelsAnswer]]:
        """Yield the tables of earlier nightly runs, the newest first; warn of one that cannot be read."""
        having = filter(self._has_table, sorted(self.earlier, key=lambda each: each.started, reverse=True))
        for each in islice(having, MOST_EARLIER):
            try:
                yield each, self._read(each)
            except TfCompareError as error:
                if str(error) not in self.warnings:
                    self.warnings.append(str(error))

    def _find_last(self) -> dict[LoadName, bool]:
        """Return for each load whether it was ok when it was last tried."""
        last: dict[LoadName, bool] = {}
        for _, answer in self._read_earlier():
            for each in _list_tried(answer):
                last.setdefault(self._name(each), each.verdict == "ok")
            if _is_whole(answer):
                break
        return last

    def _find_changed(self, answer: ModelsAnswer, last: Mapping[LoadName, bool], *, was_ok: bool) -> list[LoadedModel]:
        changed = (each for each in _list_tried(answer) if (each.verdict == "ok") is not was_ok)
        return [each for each in changed if last.get(self._name(each)) is was_ok]

    def _name(self, each: LoadedModel) -> LoadName:
        """Return a name of a load that is the same every night: a wheel that changes every night is `nightly`."""

        def follow(target: str) -> str:
            is_named = any(lock_on_demand.date_of(target) in name for name in self.options.names)
            return FOLLOWED if is_nightly(target) and not is_named else target

        return follow(each.row.source), each.row.format, follow(each.target), each.model

    def _is_as_before(self, earlier: Night, answer: ModelsAnswer, now: Manifest) -> bool:
        """Return whether an earlier table is whole, and was made with the flags, tools and packages of tonight."""
        with suppress(TfCompareError):
            folder = RunFolder(self._find_folder(earlier))
            then, words = folder.read_manifest(), redact_words(self._list_words(FIRST))
            return (
                _is_whole(answer)
                and folder.read_begun().command[OWN_WORDS:] == words[OWN_WORDS:]
                and (then.tool, then.sources.get("worker"), then.variables)
                == (now.tool, now.sources.get("worker"), now.variables)
                and _list_contents(then).items() <= _list_contents(now).items()
            )
        return False


def _list_tried(answer: ModelsAnswer) -> list[LoadedModel]:
    """Return the loads without those that failed because a target could not work at all, which is reported anyway."""
    lost = answer.outcome.lost
    return [
        each
        for each in answer.models
        if each.verdict != "not run" and not (each.verdict == "not saved" and each.row.source in lost)
    ]


def _is_whole(answer: ModelsAnswer) -> bool:
    return len(_list_tried(answer)) == len(answer.models)


def _list_contents(manifest: Manifest) -> dict[str, str]:
    return {str(target): repr((facts.identity, facts.packages)) for target, facts in manifest.environments.items()}


def _tell_broken(answer: ModelsAnswer, broken: Sequence[LoadedModel]) -> Iterator[str]:
    """Yield a line for each reason: where, how it ends, why, and which models."""
    for failure in replace(answer, models=tuple(broken)).failures:
        what, where = tell_failure(failure, answer.outcome.question.models)
        yield f"{where.strip()}: {what}"


def _tell_places(models: Sequence[LoadedModel]) -> Iterator[str]:
    places: dict[str, list[str]] = {}
    for each in models:
        places.setdefault(f"{each.row.source} as {each.row.format} in {each.target}", []).append(each.model)
    yield from (f"{place}: {', '.join(names)}" for place, names in places.items())
