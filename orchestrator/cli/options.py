"""The flags that several commands share, in groups; a command names the groups that it takes.

Each flag is declared once. A command that takes a group offers all of its flags, and has to honour all of them: where a
command needs only some of them, the group is split, and the larger one inherits from the smaller.
"""

import dataclasses
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast, get_args, get_type_hints

import typer

from orchestrator.cli import parse
from orchestrator.cli.talk import say
from orchestrator.engines import AUTO, ENGINES
from orchestrator.errors import UsageError
from orchestrator.model import GpuRequest
from orchestrator.options import EngineOptions

if TYPE_CHECKING:
    from orchestrator.plan.request import RunOptions

INDEX_VARIABLE = "TFCOMPARE_INDEX_URL"
FORMATS = ("table", "json")
REPORT_FORMATS = (*FORMATS, "html")


def choice(flag: str, noun: str, known: Collection[str], help: str, *, first: Collection[str] = (), **more: Any) -> Any:
    """Declare a flag with a fixed set of values, which --help lists and a refusal names."""

    def parse_choice(text: str) -> str:
        # A registry may have got an entry since this flag was declared.
        return parse.one_of(flag, noun, text, (*first, *known))

    return typer.Option(flag, parser=parse_choice, metavar="|".join((*first, *known)), help=help, **more)


class Group:
    """A group of flags; --help shows the flags of each panel together."""

    panel: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class OwnWorkloadsFlags(Group):
    panel = "Selection"

    workloads: Annotated[
        Path | None,
        typer.Option(
            "--workloads",
            help="Folder with workload files of your own. All are measured unless cases or a suite are named.",
            metavar="DIR",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SelectionFlags(OwnWorkloadsFlags):
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite",
            help="Suite of cases: smoke, quick, seed or full. Default: quick, or all of --workloads.",
            show_default=False,
        ),
    ] = None
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="Cases instead of the whole suite: name\\[param=value,...]; repeatable."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class MarginFlags(Group):
    panel = "Measuring"

    margin: Annotated[float, typer.Option("--margin", help="What counts as a difference, in percent.")] = 5.0


@dataclass(frozen=True, kw_only=True)
class BudgetFlags(Group):
    panel = "Measuring"

    budget: Annotated[str | None, typer.Option("--budget", help="Time for the measuring, e.g. 90s or 10m.")] = None


@dataclass(frozen=True, kw_only=True)
class SeedFlags(Group):
    panel = "Measuring"

    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of orders and data; random if not given."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class MeasuringFlags(SeedFlags, BudgetFlags):
    rounds: Annotated[int | None, typer.Option("--rounds", min=2, max=1000, help="Run exactly this many rounds.")] = (
        None
    )
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and do nothing.")] = False


@dataclass(frozen=True, kw_only=True)
class MachineFlags(Group):
    panel = "Machine"

    engine: Annotated[
        str,
        choice(
            "--engine",
            "engine",
            ENGINES,
            "Where versions are installed and run; auto takes the first ready.",
            first=(AUTO,),
        ),
    ] = AUTO
    threads: Annotated[
        str | None, typer.Option("--threads", help="TensorFlow's threads for every version: inter,intra.")
    ] = None
    cpuset: Annotated[str | None, typer.Option("--cpuset", help="CPUs that every version runs on, e.g. 0,2-3.")] = None
    memory: Annotated[str | None, typer.Option("--memory", help="Memory that every version may use, e.g. 4g.")] = None
    timeout: Annotated[str, typer.Option("--timeout", help="Longest that one step of a case may take.")] = "10m"


@dataclass(frozen=True, kw_only=True)
class OnGpuFlags(Group):
    panel = "GPU"

    gpu: Annotated[bool, typer.Option("--gpu", help="Measure on the GPU, through Docker's NVIDIA runtime.")] = False


@dataclass(frozen=True, kw_only=True)
class GpuFlags(OnGpuFlags):
    gpus: Annotated[
        str | None, typer.Option("--gpus", help="GPUs to measure on, by index or UUID, e.g. 0,1; implies --gpu.")
    ] = None
    gpu_request: Annotated[
        str,
        choice(
            "--gpu-request",
            "request",
            get_args(GpuRequest),
            "How Docker is asked for the GPU: runtime is the one named nvidia.",
        ),
    ] = "runtime"
    force: Annotated[bool, typer.Option("--force", help="Also measure versions known to fail on this GPU.")] = False

    @property
    def exclusive(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class MeasuringGpuFlags(GpuFlags):
    """The flags of a command that measures; a profile takes one version at a time anyway."""

    gpu_exclusive: Annotated[
        bool,
        typer.Option(
            "--gpu-exclusive",
            help="One process at a time on the GPU: versions in turn, one container per replicate.",
        ),
    ] = False

    @property
    def exclusive(self) -> bool:
        return self.gpu_exclusive


@dataclass(frozen=True, kw_only=True)
class BaseFlags(Group):
    panel = "Installation"

    base: Annotated[
        str | None,
        typer.Option(
            "--base", envvar="TFCOMPARE_BASE", help="Base image in place of the pinned one; {python} becomes e.g. 3.7."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SourcesFlags(BaseFlags):
    ca_bundle: Annotated[
        Path | None,
        typer.Option("--ca-bundle", envvar="TFCOMPARE_CA_BUNDLE", help="Certificates to trust while installing."),
    ] = None
    index_url: Annotated[
        str | None,
        typer.Option(
            "--index-url",
            envvar=INDEX_VARIABLE,
            help="Package index to install from, in place of the usual one; a login in it stays out of images and "
            "logs.",
            metavar="URL",
        ),
    ] = dataclasses.field(default=None, repr=False)
    wheelhouse: Annotated[
        Path | None,
        typer.Option(
            "--wheelhouse",
            envvar="TFCOMPARE_WHEELHOUSE",
            help="Folder of wheels to install from; without --index-url from nothing else.",
            metavar="DIR",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class DownloadsFlags(Group):
    panel = "Installation"

    no_python_downloads: Annotated[
        bool,
        typer.Option(
            "--no-python-downloads",
            help="Never download a Python that this machine lacks; UV_PYTHON_DOWNLOADS=never does the same.",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class InstallationFlags(DownloadsFlags, SourcesFlags):
    pass


@dataclass(frozen=True, kw_only=True)
class RunDirectoryFlags(Group):
    panel = "Output"

    out: Annotated[Path | None, typer.Option("--out", help="Run directory; runs/<stamp> if not given.")] = None


@dataclass(frozen=True, kw_only=True)
class FormatFlags(Group):
    panel = "Output"

    format: Annotated[str, choice("--format", "format", FORMATS, "What is printed on stdout.")] = "table"


@dataclass(frozen=True, kw_only=True)
class ReportFormatFlags(Group):
    panel = "Output"

    format: Annotated[
        str, choice("--format", "format", REPORT_FORMATS, "What is printed on stdout; html goes to RUN/report.html.")
    ] = "table"


@dataclass(frozen=True, kw_only=True)
class ArrangementFlags(Group):
    """The flags that arrange the table of verdicts."""

    panel = "Output"

    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", help="Columns of the table, e.g. time,ratio,verdict; +build,first adds to the usual ones."
        ),
    ] = None
    only: Annotated[
        str | None, typer.Option("--only", help="Show only what is e.g. slower, or slower,faster,died.")
    ] = None
    sort: Annotated[
        str | None,
        typer.Option("--sort", help="Sort cases by case, name, ratio or time; prefix with - for descending order."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class FailOnFlags(Group):
    panel = "Output"

    fail_on: Annotated[
        str | None, choice("--fail-on", "outcome", ("slower",), "Exit with 1 if a comparison has this outcome.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class QuietFlags(Group):
    panel = "Output"

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing on stderr but errors.")] = False

    def say(self, text: str) -> None:
        if not self.quiet:
            say(text)


@dataclass(frozen=True, kw_only=True)
class VerbosityFlags(QuietFlags):
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show builds and installs as they go.")] = False


@dataclass(frozen=True, kw_only=True)
class HistoryFlags(Group):
    panel = "History"

    history: Annotated[
        Path | None,
        typer.Option(
            "--history",
            envvar="TFCOMPARE_HISTORY",
            help="History directory. Default: ~/.local/share/tfcompare/history.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class NotifyFlags(Group):
    panel = "Notification"

    notify: Annotated[
        list[str] | None,
        typer.Option(
            "--notify",
            help="Whom to notify, as an apprise URL; ${NAME} in it is taken from the environment; repeatable.",
            metavar="URL",
        ),
    ] = dataclasses.field(default=None, repr=False)
    notify_file: Annotated[
        Path | None,
        typer.Option("--notify-file", help="A file of such URLs, one per line.", metavar="FILE"),
    ] = None


def names_of(*groups: type[Group]) -> frozenset[str]:
    """Return the names of the groups' flags, as a command's parameters have them."""
    return frozenset(field.name for group in groups for field in dataclasses.fields(cast(Any, group)))


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Offer the flags of each group that annotates a parameter, and hand the command one object per group."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Group)}

    @wraps(command)
    def call(**values: Any) -> None:
        objects = {
            name: group(**{flag: values.pop(flag) for flag in names_of(group)}) for name, group in groups.items()
        }
        command(**objects, **values)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _flags(groups[parameter.name])
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=hints[parameter.name]))
    described = cast(Any, call)
    described.__signature__ = inspect.Signature(parameters)
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    described.groups = tuple(groups.values())
    return call


def _flags(group: type[Group]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    flags = []
    for field in dataclasses.fields(cast(Any, group)):
        # A group has one panel, and its flags belong to no other.
        hints[field.name].__metadata__[0].rich_help_panel = group.panel
        kind = inspect.Parameter.KEYWORD_ONLY
        flags.append(inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name]))
    return flags


def find_given_flags(context: typer.Context) -> dict[str, tuple[str, Any]]:
    """Return the flags on the command line, each by its parameter's name with its value; not those of variables."""
    return {
        str(param.name): (max(param.opts, key=len), context.params[str(param.name)])
        for param in context.command.params
        if param.name in context.params
        and getattr(context.get_parameter_source(str(param.name)), "name", "") == "COMMANDLINE"
    }


def refuse_others(context: typer.Context, allowed: Collection[str], what: str, instead: str) -> None:
    """Raise UsageError for the flags on the command line that cannot go with what the user continues."""
    if others := [flag for name, (flag, _) in find_given_flags(context).items() if name not in allowed]:
        raise UsageError(f"{what}: leave {', '.join(others)} out, or {instead}")


def engine_options(machine: MachineFlags, gpu: GpuFlags, installation: InstallationFlags) -> EngineOptions:
    """Return the settings for environments; naming a GPU, or how to hold it, implies --gpu."""
    gpus = parse.names(gpu.gpus) if gpu.gpus is not None else ()
    if gpu.gpus is not None and not gpus:
        raise UsageError(f"--gpus {gpu.gpus!r}: indices or UUIDs, e.g. 0,1; `nvidia-smi -L` lists them")
    on_gpu = gpu.gpu or bool(gpus) or gpu.exclusive
    if gpu.force and not on_gpu:
        raise UsageError("--force is about versions that fail on a GPU: it goes with --gpu")
    return EngineOptions(
        gpu=on_gpu,
        gpu_request=cast(GpuRequest, gpu.gpu_request),
        gpus=gpus,
        exclusive=gpu.exclusive,
        force=gpu.force,
        base=installation.base,
        ca_bundle=installation.ca_bundle,
        index_url=installation.index_url,
        wheelhouse=installation.wheelhouse,
        python_downloads=not installation.no_python_downloads,
        cpus=parse.cpus(machine.cpuset) if machine.cpuset else None,
        memory_mb=parse.memory_mb(machine.memory) if machine.memory else None,
    )


def run_options(
    machine: MachineFlags, gpu: GpuFlags, installation: InstallationFlags, budget: str | None = None, **more: Any
) -> "RunOptions":
    """Return the options of a run; `more` are those that only some commands have."""
    from orchestrator.plan.request import RunOptions

    return RunOptions(
        engine=machine.engine,
        environments=engine_options(machine, gpu, installation),
        threads=parse.threads(machine.threads) if machine.threads else None,
        timeout_s=parse.seconds("--timeout", machine.timeout),
        budget_s=parse.budget(budget),
        **more,
    )


def check_options(options: "RunOptions", say: Callable[[str], None]) -> "RunOptions":
    """Return the options with their versions locked, after a check against what exists.

    A run checks the same; here a user's mistake does not wait for the import of what measures.
    """
    from orchestrator.catalog.lock_on_demand import provide
    from orchestrator.plan.request import make_plan

    options = dataclasses.replace(options, versions=provide(options.versions, say))
    make_plan(options)
    return options
