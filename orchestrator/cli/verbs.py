"""The ten verbs of `tfcompare mcp`: what a program may ask for, and the command line that each request becomes.

A program acts on behalf of a user who has not seen the request, and it may repeat what a stranger wrote. So there are
no free flags, no value can become a flag, and no place outside of the served folder and of those that the user allowed
is read. Code in the served folder runs only in containers, unless the user allowed that folder as well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from orchestrator.catalog import targets as written
from orchestrator.catalog import trust
from orchestrator.cli import parse
from orchestrator.cli.runs import LAST
from orchestrator.cli.settings import find_needs
from orchestrator.errors import UsageError
from orchestrator.metrics import NAMES
from orchestrator.options import DOCKER, VENV, EngineName
from orchestrator.results.find_runs import RUNS, newest_run


def _check_text(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has characters that cannot be printed")
    return text


Text = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_check_text)]
Texts = Annotated[list[Text], Field(max_length=100)]
RunName = Annotated[Text, Field(description="A run folder, or `last` for the newest run.")]
Targets = Annotated[
    Texts,
    Field(description="Targets, the baseline first, e.g. ['2.13', '2.16'] or ['2.20', '2.20 keras==3.8.0']."),
]
Case = Annotated[Text, Field(description="A case: `name` or `name[param=value,...]`; `list` shows the workloads.")]
Budget = Annotated[Text | None, Field(description="How long to measure, e.g. '5m'; installation time is not counted.")]
MetricName = Annotated[Text | None, Field(description=f"One of {', '.join(NAMES)}; default: time.")]


@dataclass(frozen=True)
class ServedFolder:
    """The folder in which all commands run, and the folders whose code may run as the user."""

    folder: Path
    allowed: tuple[Path, ...] = ()

    def allows(self, path: Path) -> bool:
        return trust.is_everything_trusted() or any(path.is_relative_to(each) for each in self.allowed)

    def find(self, text: str) -> str:
        """Return a path as a command takes it; raise UsageError if it is outside of the folders of this server."""
        path = (self.folder / text).resolve()
        if not (path.is_relative_to(self.folder) or self.allows(path)):
            raise UsageError(
                f"{text} is outside of {self.folder}, which this server serves; the user can restart "
                f"it with `tfcompare mcp --allow {path}`"
            )
        return str(path)

    def find_run(self, text: str) -> str:
        """Return the folder of a run; `last` is the newest one below the served folder, and no link leads out of it."""
        return self.find(str(newest_run(self.folder / RUNS)) if text == LAST else text)

    def choose_engine(self, engine: str, code: Iterable[str], targets: Iterable[str]) -> list[str]:
        """Return the flag of the engine; code and packages that the user has not allowed get no virtual environment."""
        unallowed = [text for text in code if not self.allows((self.folder / text).resolve())]
        if not self.allows(self.folder):
            unallowed += [text for text in targets if find_needs("target", [text])]
        if unallowed and engine == VENV:
            raise UsageError(
                f"{', '.join(unallowed)}: in a virtual environment it would run as the user, who has not allowed that: "
                f"leave out the engine `{VENV}`, or let the user start `tfcompare mcp --allow {self.folder}`"
            )
        return [f"--engine={DOCKER if unallowed else engine}"]


class Verb(BaseModel):
    """A request of a program, as it is validated and described to the program."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    name: ClassVar[str]

    def make_words(self, place: ServedFolder) -> list[str]:
        """Return the command line of the request; raise UsageError for what the user has not allowed."""
        raise NotImplementedError


class ListVerb(Verb):
    """List what can be compared: versions, workloads, suites or published claims."""

    name = "list"
    what: Literal["versions", "workloads", "suites", "claims"]
    containing: Texts = Field([], description="Only items that contain all of these words.")

    def make_words(self, place: ServedFolder) -> list[str]:
        return ["list", self.what, *_positional(self.containing), "--format=json"]


class _CodeVerb(Verb):
    """A request that measures, and may run code of the user."""

    engine: EngineName = Field(
        "auto", description="Where versions run. Code in a folder that the user has not allowed runs only in Docker."
    )
    gpu: bool = Field(False, description="Measure on the GPU.")

    def _list_places(self, place: ServedFolder, targets: Sequence[str], code: Sequence[str]) -> list[str]:
        """Return the flags that say where it runs, once the targets and every file that they name were checked."""
        named = written.split_targets(targets)
        # In its place, a command would also take the file of a program, or a run.
        parse.check_targets(named)
        for changed in (written.parse_target(text) for text in named if not written.is_plain(text)):
            for path in (changed.wheel, changed.package, changed.freeze):
                if path:
                    place.find(str(path))
        return [*place.choose_engine(self.engine, code, targets), *(["--gpu"] if self.gpu else [])]


class CheckVerb(_CodeVerb):
    """Try the file of a workload: build each of its cases and call it twice, in one or more targets."""

    name = "check"
    file: Text = Field(description="The file of the workload, e.g. 'mine/training.py'.")
    targets: Texts = Field([], description="Targets to try it in; default: the newest version.")

    def make_words(self, place: ServedFolder) -> list[str]:
        path = place.find(self.file)
        return [
            "check", path, *_positional(self.targets), *self._list_places(place, self.targets, [path]), "--format=json"
        ]  # fmt: skip


class _MeasuringVerb(_CodeVerb):
    workload_folder: Text | None = Field(None, description="Folder with workload files, instead of the built-in ones.")
    program: Texts = Field([], description="A program instead of workloads, e.g. ['python', 'train.py'].")
    budget: Budget = None

    def _list_measuring(self, place: ServedFolder, targets: Sequence[str]) -> list[str]:
        """Return the flags that say what is measured, how long and where, with the program at the end."""
        folder = place.find(self.workload_folder) if self.workload_folder is not None else None
        # The words of a program may be any command, so it takes the right to all of the served folder.
        code = [*([folder] if folder else []), *([str(place.folder)] if self.program else [])]
        return [
            *self._list_places(place, targets, code),
            *([f"--workload-folder={folder}"] if folder else []),
            *([f"--budget={self.budget}"] if self.budget else []),
            "--format=json",
            *(["--", *self.program] if self.program else []),
        ]


class RunVerb(_MeasuringVerb):
    """Measure cases or a program in several targets, and return the verdicts. It takes minutes.

    `resume` continues a run instead; combine it only with `budget` or `dry_run`.
    """

    name = "run"
    targets: Targets = []
    cases: Texts = Field([], description="Only these cases, e.g. ['train_loop[loop=fit,model=small]'].")
    suite: Text | None = Field(None, description="A suite of cases; `list` shows all of them.")
    margin: Text | None = Field(None, description="The smallest change that matters, e.g. '5%'.")
    metrics: Texts = Field([], description=f"What to compare: any of {', '.join(NAMES)}, output.")
    resume: RunName | None = None
    dry_run: bool = Field(False, description="Return the plan, with its time and disk, and measure nothing.")

    def make_words(self, place: ServedFolder) -> list[str]:
        dry = ["--dry-run"] if self.dry_run else []
        if self.resume:
            if given := sorted(self.model_fields_set - {"resume", "budget", "dry_run"}):
                raise UsageError(f"resume continues a run as it was planned: leave out {', '.join(given)}")
            budget = [f"--budget={self.budget}"] if self.budget else []
            return ["run", f"--resume={place.find_run(self.resume)}", *budget, *dry, "--format=json"]
        flags = [
            *(f"--case={case}" for case in self.cases),
            *([f"--suite={self.suite}"] if self.suite else []),
            *([f"--margin={self.margin}"] if self.margin else []),
            *([f"--metric={','.join(self.metrics)}"] if self.metrics else []),
        ]
        return [
            "run", *_positional(self.targets), *flags, *dry, *self._list_measuring(place, self.targets)
        ]  # fmt: skip


class WhyVerb(_MeasuringVerb):
    """Find out why a case differs and what helps, for a finished run or for two targets. It takes minutes."""

    name = "why"
    run: RunName | None = None
    targets: Texts = Field([], description="Instead of a run: two targets, the old one first.")
    case: Case | None = None
    metric: MetricName = None

    def make_words(self, place: ServedFolder) -> list[str]:
        if (self.run is None) == (not self.targets):
            raise UsageError("name either the run that shows the difference, or two targets")
        metric = [f"--metric={self.metric}"] if self.metric else []
        measuring = self._list_measuring(place, self.targets)
        if self.run is None:
            case = [f"--case={self.case}"] if self.case else []
            return ["why", *_positional(self.targets), *case, *metric, *measuring]
        # The plan of the run says where it ran and what it measured.
        if given := sorted(self.model_fields_set - {"run", "case", "metric", "budget"}):
            raise UsageError(f"a run was planned with its own settings: leave out {', '.join(given)}")
        budget = [f"--budget={self.budget}"] if self.budget else []
        run, case = place.find_run(self.run), _positional([self.case] if self.case else [])
        return ["why", run, *case, *metric, *budget, "--format=json"]


class UpgradeVerb(_MeasuringVerb):
    """Find out whether the user may move to another target: go, go with a flag, or not yet. It takes minutes."""

    name = "upgrade"
    new: Text = Field(description="The target that the user wants, e.g. '2.20'.")
    old: Text | None = Field(None, description="The target that the user has; default: the active environment.")
    cases: Texts = Field([], description="Only these cases.")
    gates: Text | None = Field(None, description="Outcomes that stop the upgrade, e.g. 'slower>10%,died'.")

    def make_words(self, place: ServedFolder) -> list[str]:
        targets = [*([self.old] if self.old else []), self.new]
        flags = [
            *(f"--case={case}" for case in self.cases),
            *([f"--fail-on={self.gates}"] if self.gates else []),
        ]
        return ["upgrade", *_positional(targets), *flags, *self._list_measuring(place, targets)]


class CompareVerb(Verb):
    """Compare two runs of the same cases: which ratios changed between them."""

    name = "compare"
    earlier: RunName
    later: RunName

    def make_words(self, place: ServedFolder) -> list[str]:
        return ["compare", place.find_run(self.earlier), place.find_run(self.later), "--format=json"]


class ReportVerb(Verb):
    """Return a run with its verdicts, and the warnings about it."""

    name = "report"
    run: RunName = LAST
    metrics: Texts = Field([], description="Compare these metrics instead of those of the run's plan.")

    def make_words(self, place: ServedFolder) -> list[str]:
        metrics = [f"--metric={','.join(self.metrics)}"] if self.metrics else []
        return ["report", place.find_run(self.run), *metrics, "--format=json"]


class ExplainVerb(Verb):
    """Explain the verdicts of a case in sentences: what was measured, which rule applied, what would decide it."""

    name = "explain"
    run: RunName = LAST
    case: Case

    def make_words(self, place: ServedFolder) -> list[str]:
        return ["report", place.find_run(self.run), f"--explain={self.case}", "--format=json"]


class BisectVerb(_CodeVerb):
    """Find the release that made a case slower or faster, or changed its memory or results. It may take an hour."""

    name = "bisect"
    good: Text = Field(description="The older end, e.g. '2.8'.")
    bad: Text = Field(description="The newer end, e.g. '2.16'.")
    case: Case
    metric: MetricName = None
    over: Text | None = Field(None, description="Search the releases of this package, e.g. keras; both ends pin it.")
    workload_folder: Text | None = Field(None, description="Folder with workload files.")
    budget: Annotated[Text | None, Field(description="How long each step may measure, e.g. '5m'.")] = None

    def make_words(self, place: ServedFolder) -> list[str]:
        folder = place.find(self.workload_folder) if self.workload_folder is not None else None
        given = {
            "good": self.good, "bad": self.bad, "case": self.case, "metric": self.metric, "over": self.over,
            "workload-folder": folder, "budget": self.budget,
        }  # fmt: skip
        flags = [f"--{flag}={value}" for flag, value in given.items() if value]
        places = self._list_places(place, (self.good, self.bad), [folder] if folder else [])
        if self.over and self.over.endswith("@git"):
            raise UsageError("building a commit runs its code, so only the user can search commits")
        return ["bisect", *flags, *places, "--format=json"]


class DoctorVerb(Verb):
    """Report what this machine can run and what to do about each finding; with `probe`, how noisy it is (30 s)."""

    name = "doctor"
    versions: Text | None = Field(None, description="Versions that should run here, e.g. '2.13,2.16'.")
    gpu: bool = Field(False, description="Check that they can run on the GPU.")
    probe: bool = False

    def make_words(self, place: ServedFolder) -> list[str]:
        versions = [f"--versions={self.versions}"] if self.versions else []
        gpu = ["--gpu"] if self.gpu else []
        return ["doctor", *versions, *gpu, "--probe" if self.probe else "--no-probe", "--format=json"]


VERBS: dict[str, type[Verb]] = {
    verb.name: verb
    for verb in (
        ListVerb, CheckVerb, RunVerb, WhyVerb, UpgradeVerb, CompareVerb, ReportVerb, ExplainVerb, BisectVerb, DoctorVerb
    )
}  # fmt: skip


def _positional(values: Sequence[str]) -> list[str]:
    """Return values that stand for themselves in a command line, and cannot be flags."""
    if flags := [value for value in values if value.startswith("-")]:
        raise UsageError(f"{', '.join(flags)}: a request has no flags; its fields are described with the verb")
    return list(values)
