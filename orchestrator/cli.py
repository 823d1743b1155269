"""The command line: flags in, exit code out. The sole place that exits and the sole catcher of TfCompareError."""

import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console, RenderableType
from rich.table import Table

from orchestrator import catalog, doctor, flags
from orchestrator.engines import EngineOptions
from orchestrator.errors import ContractBroken, FoundSlower, TfCompareError, UsageError
from orchestrator.judge import judge_run
from orchestrator.listing import LISTINGS
from orchestrator.model import Comparison
from orchestrator.more import MoreOptions, more_rounds
from orchestrator.progress import view
from orchestrator.reports import REPORTS, table
from orchestrator.reports.columns import known_columns
from orchestrator.reports.plain import drawn, lines, plain
from orchestrator.run import Done, Options, forecast
from orchestrator.run import run as run_comparison
from orchestrator.rundir import RunDir

# What else stands in the plan of the run that --more continues.
WITH_MORE = {
    "more", "rounds", "budget", "workloads", "base", "ca_bundle", "gpu_request", "format", "columns", "fail_on",
    "quiet", "verbose",
}  # fmt: skip

app = typer.Typer(
    help="Is my TensorFlow code faster or slower in another TensorFlow, by how much, and can I believe it?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COLUMNS_HELP = "Columns of the table, e.g. time,ratio,verdict; +build,first adds to the usual ones."

RUN_EXAMPLES = """Compare TensorFlow versions: build or find each, measure side by side, print verdicts.

[bold]Examples[/bold]

  tfcompare run --versions 1.14,2.0,2.13

  tfcompare run --versions 2.0,2.13 --workload 'train_loop\\[mode=eager,model=small]'

  tfcompare run --versions 1.14,2.0 --suite smoke --engine venv --out runs/first

  tfcompare run --versions 2.0,2.13 --format json --quiet > comparison.json

  tfcompare run --more runs/first --budget 10m
"""

REPORT_EXAMPLES = """Redraw a run's report from its directory.

[bold]Examples[/bold]

  tfcompare report runs/first

  tfcompare report runs/first --format json --output first.json
"""

DOCTOR_EXAMPLES = """Say how noisy this machine is right now, what could be seen on it, and what would help.

[bold]Examples[/bold]

  tfcompare doctor

  tfcompare doctor --cpuset 2-3 --format json
"""

LIST_EXAMPLES = """List what there is: versions, workloads or suites.

[bold]Examples[/bold]

  tfcompare list workloads

  tfcompare list versions --format json
"""


@dataclass(frozen=True)
class Shown:
    """How a comparison is to be shown."""

    format: str
    columns: tuple[str, ...] | None

    def text(self, comparison: Comparison) -> str:
        return table.render(comparison, self.columns) if self.format == "table" else REPORTS[self.format](comparison)


@app.command(help=RUN_EXAMPLES)
def run(
    context: typer.Context,
    versions: Annotated[
        str | None,
        typer.Option(help="Versions to compare, the baseline first, e.g. 1.14,2.0,2.13.", show_default=False),
    ] = None,
    more: Annotated[
        Path | None, typer.Option(help="Go on with this run, for the cases that have no verdict yet.", metavar="RUN")
    ] = None,
    suite: Annotated[str, typer.Option(help="Suite of cases: smoke, quick, seed or full.")] = "quick",
    workload: Annotated[
        list[str] | None,
        typer.Option(help="Cases to run instead of the whole suite: name\\[param=value,...]; repeatable."),
    ] = None,
    workloads: Annotated[Path | None, typer.Option(help="A folder with workload files of your own.")] = None,
    engine: Annotated[str, typer.Option(help="auto, docker or venv.")] = "auto",
    isolation: Annotated[
        str,
        typer.Option(help="What a replicate is: a fork of a resident worker, or a process or container of its own."),
    ] = "fork",
    gpu: Annotated[bool, typer.Option("--gpu", help="Measure on the GPU, through Docker's NVIDIA runtime.")] = False,
    gpu_request: Annotated[
        str, typer.Option(help="How the GPU is asked for: runtime (the runtime named nvidia) or device.")
    ] = "runtime",
    base: Annotated[
        str | None,
        typer.Option(envvar="TFCOMPARE_BASE", help="Base image in place of the pinned one; {python} becomes e.g. 3.7."),
    ] = None,
    ca_bundle: Annotated[
        Path | None, typer.Option(envvar="TFCOMPARE_CA_BUNDLE", help="Certificates to trust while installing.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run directory; runs/<stamp> if not given.")] = None,
    rounds: Annotated[int | None, typer.Option(min=2, max=1000, help="Exactly so many rounds.")] = None,
    budget: Annotated[str | None, typer.Option(help="Time for the measuring, e.g. 90s or 10m.")] = None,
    margin: Annotated[float, typer.Option(help="What counts as a difference, in percent.")] = 5.0,
    control: Annotated[
        bool, typer.Option("--control", help="Measure the baseline twice: its two arms must come out the same.")
    ] = False,
    threads: Annotated[str | None, typer.Option(help="TensorFlow's threads for every version: inter,intra.")] = None,
    cpuset: Annotated[str | None, typer.Option(help="CPUs that every version runs on, e.g. 0,2-3.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory that every version may use, e.g. 4g.")] = None,
    timeout: Annotated[str, typer.Option(help="Longest that one step of a case may take.")] = "10m",
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**31 - 1, help="Seed of orders and data; random if not given.")
    ] = None,
    format: Annotated[str, typer.Option(help="table or json, on stdout.")] = "table",
    columns: Annotated[str | None, typer.Option(help=COLUMNS_HELP)] = None,
    fail_on: Annotated[str | None, typer.Option(help="slower: exit with 1 if something is.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show builds and installs as they go.")] = False,
) -> None:
    if gpu_request not in ("runtime", "device"):
        raise UsageError(f"--gpu-request {gpu_request!r}: it is runtime or device")
    if fail_on not in (None, "slower"):
        raise UsageError(f"--fail-on {fail_on!r}: only slower is known")
    shown = _shown(format, columns)
    environments = EngineOptions(
        gpu=gpu,
        gpu_request="device" if gpu_request == "device" else "runtime",
        base=base,
        ca_bundle=ca_bundle,
        cpus=flags.cpus(cpuset) if cpuset else None,
        memory_mb=flags.memory_mb(memory) if memory else None,
    )
    budget_s = flags.seconds("--budget", budget) if budget else None
    command = tuple(sys.argv[1:])
    errors = Console(stderr=True)
    if more:
        _only_with_more(context)
        asked = MoreOptions(
            run=more,
            rounds=rounds,
            budget_s=budget_s,
            own_workloads=workloads,
            environments=environments,
            command=command,
        )
        with view(errors, quiet=quiet, verbose=verbose) as watching:
            done = more_rounds(asked, watching)
        _finish(done, shown, fail_on, None if quiet else errors)
        return
    if versions is None:
        raise UsageError("--versions is missing: name them, the baseline first, e.g. --versions 1.14,2.0,2.13")
    options = Options(
        versions=flags.names(versions),
        suite=suite,
        selected=tuple(workload or ()),
        own_workloads=workloads,
        engine=engine,
        environments=environments,
        out=out,
        rounds=rounds,
        budget_s=budget_s,
        margin=flags.margin(margin),
        control=control,
        threads=flags.threads(threads) if threads else None,
        timeout_s=flags.seconds("--timeout", timeout),
        seed=seed,
        isolation=flags.isolation(isolation),
        command=command,
    )
    if dry_run:
        say = (lambda text: None) if quiet else (lambda text: errors.print(lines(text), soft_wrap=True))
        print("\n".join(forecast(options, say)))
        return
    with view(errors, quiet=quiet, verbose=verbose) as watching:
        done = run_comparison(options, watching)
    _finish(done, shown, fail_on, None if quiet else errors)


def _only_with_more(context: typer.Context) -> None:
    """Everything but how long to go on was fixed when the run began."""
    given = [
        name
        for name in context.params
        if name not in WITH_MORE and getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        told = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UsageError(f"--more goes on with a run as it was planned: leave {told} out, or run anew")


def _finish(done: Done, shown: Shown, fail_on: str | None, errors: Console | None) -> None:
    """Prints a run's comparison and raises what its exit code comes from."""
    _show(done.comparison, shown, None)
    if errors:
        errors.print(plain(f"run directory: {done.path}"), soft_wrap=True)
    if done.error:
        raise done.error
    if fail_on == "slower" and done.comparison.slower:
        raise FoundSlower(f"{len(done.comparison.slower)} contrasts are slower (--fail-on slower)")


@app.command(help=REPORT_EXAMPLES)
def report(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    format: Annotated[str, typer.Option(help="table or json.")] = "table",
    columns: Annotated[str | None, typer.Option(help=COLUMNS_HELP)] = None,
    output: Annotated[str, typer.Option(help="A file, or - for stdout.")] = "-",
) -> None:
    shown = _shown(format, columns)
    comparison = judge_run(RunDir.open(run))
    _show(comparison, shown, None if output == "-" else Path(output))
    if comparison.broken:
        raise ContractBroken("\n".join(comparison.broken))


@app.command("doctor", help=DOCTOR_EXAMPLES)
def examine_machine(
    duration: Annotated[str, typer.Option(help="How long to probe.")] = "30s",
    cpuset: Annotated[str | None, typer.Option(help="CPUs that the probe runs on, e.g. 0,2-3.")] = None,
    format: Annotated[str, typer.Option(help="table or json.")] = "table",
) -> None:
    _known_format(format)
    seconds = flags.seconds("--duration", duration)
    Console(stderr=True).print(plain(f"probing this machine for {seconds:.0f} s"), soft_wrap=True)
    examination = doctor.examine(seconds, flags.cpus(cpuset) if cpuset else None)
    if format == "json":
        print(json.dumps(doctor.as_object(examination), indent=2))
        return
    _draw(lambda width: doctor.layout(examination, width))


@app.command("list", help=LIST_EXAMPLES)
def list_things(
    what: Annotated[str, typer.Argument(help="versions, workloads or suites.")],
    format: Annotated[str, typer.Option(help="table or json.")] = "table",
) -> None:
    _known_format(format)
    if what not in LISTINGS:
        raise UsageError(f"cannot list {what!r}{catalog.did_you_mean(what, LISTINGS)}; it is {', '.join(LISTINGS)}")
    listing = LISTINGS[what]()
    if format == "json":
        print(json.dumps(listing.objects, indent=2))
        return
    grid = Table(*listing.columns, show_lines=any("\n" in cell for row in listing.rows for cell in row))
    for row in listing.rows:
        grid.add_row(*(lines(cell) for cell in row))
    Console().print(grid)


def _shown(format: str, columns: str | None) -> Shown:
    _known_format(format)
    if columns is not None and format != "table":
        raise UsageError(f"--columns goes with --format table, not with {format}")
    return Shown(format, known_columns(columns) if columns else None)


def _show(comparison: Comparison, shown: Shown, output: Path | None) -> None:
    if output is not None:
        try:
            output.write_text(shown.text(comparison) + "\n")
        except OSError as error:
            raise UsageError(f"--output {output}: {error.strerror}") from error
        return
    if shown.format == "table":
        _draw(lambda width: table.layout(comparison, width, shown.columns))
    else:
        print(shown.text(comparison))


def _draw(layout: Callable[[int], RenderableType]) -> None:
    console = Console()
    if console.is_terminal:
        console.print(layout(console.width))
    else:
        print(drawn(layout))


def _known_format(name: str) -> None:
    if name not in REPORTS:
        raise UsageError(f"unknown format {name!r}{catalog.did_you_mean(name, REPORTS)}; it is {', '.join(REPORTS)}")


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    # A polite end from outside must free containers and keep results just as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        # What typer has caught itself, an interrupt among it, comes back as a code.
        sys.exit(app(standalone_mode=False) or 0)
    except TfCompareError as error:
        Console(stderr=True).print(lines(f"tfcompare: {error}"), soft_wrap=True)
        sys.exit(error.exit_code)
    except typer.Exit as error:
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        # typer carries its own copy of click; its usage errors know how to show themselves.
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            error.show()
            sys.exit(error.exit_code)
        raise
