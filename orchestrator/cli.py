"""The command line: flags in, exit code out. The sole place that exits and the sole catcher of TfCompareError."""

import json
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator import catalog, suites
from orchestrator.engines import EngineOptions
from orchestrator.errors import ContractBroken, FoundSlower, TfCompareError, UsageError
from orchestrator.judge import judge_run
from orchestrator.model import Comparison
from orchestrator.progress import view
from orchestrator.reports import REPORTS
from orchestrator.reports.table import layout
from orchestrator.run import Options, forecast
from orchestrator.run import run as run_comparison
from orchestrator.rundir import RunDir

DURATION = re.compile(r"(?P<count>\d+(\.\d+)?)(?P<unit>s|m|h)?")

app = typer.Typer(
    help="Is my TensorFlow code faster or slower in another TensorFlow, by how much, and can I believe it?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RUN_EXAMPLES = """Compare TensorFlow versions: build or find each, measure side by side, print verdicts.

[bold]Examples[/bold]

  tfcompare run --versions 1.14,2.0,2.13

  tfcompare run --versions 2.0,2.13 --workload 'train_loop\\[mode=eager,model=small]'

  tfcompare run --versions 1.14,2.0 --suite smoke --engine venv --out runs/first

  tfcompare run --versions 2.0,2.13 --format json --quiet > comparison.json
"""

REPORT_EXAMPLES = """Redraw a run's report from its directory.

[bold]Examples[/bold]

  tfcompare report runs/first

  tfcompare report runs/first --format json --output first.json
"""

LIST_EXAMPLES = """List what there is: versions, workloads or suites.

[bold]Examples[/bold]

  tfcompare list workloads

  tfcompare list versions --format json
"""


@app.command(help=RUN_EXAMPLES)
def run(
    versions: Annotated[str, typer.Option(help="Versions to compare, the baseline first, e.g. 1.14,2.0,2.13.")],
    suite: Annotated[str, typer.Option(help="Suite of cases: smoke, quick, seed or full.")] = "quick",
    workload: Annotated[
        list[str] | None,
        typer.Option(help="Cases to run instead of the whole suite: name\\[param=value,...]; repeatable."),
    ] = None,
    workloads: Annotated[Path | None, typer.Option(help="A folder with workload files of your own.")] = None,
    engine: Annotated[str, typer.Option(help="auto, docker or venv.")] = "auto",
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
    timeout: Annotated[str, typer.Option(help="Longest that one step of a case may take.")] = "10m",
    seed: Annotated[int | None, typer.Option(help="Seed of orders and data; random if not given.")] = None,
    format: Annotated[str, typer.Option(help="table or json, on stdout.")] = "table",
    fail_on: Annotated[str | None, typer.Option(help="slower: exit with 1 if something is.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show builds and installs as they go.")] = False,
) -> None:
    if gpu_request not in ("runtime", "device"):
        raise UsageError(f"--gpu-request {gpu_request!r}: it is runtime or device")
    if fail_on not in (None, "slower"):
        raise UsageError(f"--fail-on {fail_on!r}: only slower is known")
    if not 0 < margin < 100:
        raise UsageError(f"--margin {margin}: a percentage between 0 and 100")
    _known_format(format)
    options = Options(
        versions=_names(versions),
        suite=suite,
        selected=tuple(workload or ()),
        own_workloads=workloads,
        engine=engine,
        environments=EngineOptions(
            gpu=gpu,
            gpu_request="device" if gpu_request == "device" else "runtime",
            base=base,
            ca_bundle=ca_bundle,
        ),
        out=out,
        rounds=rounds,
        budget_s=_seconds("--budget", budget) if budget else None,
        margin=margin / 100,
        control=control,
        threads=_threads(threads) if threads else None,
        timeout_s=_seconds("--timeout", timeout),
        seed=seed,
        command=tuple(sys.argv[1:]),
    )
    errors = Console(stderr=True)
    if dry_run:
        say = (lambda text: None) if quiet else (lambda text: errors.print(Text(text), soft_wrap=True))
        print("\n".join(forecast(options, say)))
        return
    with view(errors, quiet=quiet, verbose=verbose) as watching:
        done = run_comparison(options, watching)
    _show(done.comparison, format, None)
    if not quiet:
        errors.print(Text(f"run directory: {done.path}"), soft_wrap=True)
    if done.error:
        raise done.error
    if fail_on == "slower" and done.comparison.slower:
        raise FoundSlower(f"{len(done.comparison.slower)} contrasts are slower (--fail-on slower)")


@app.command(help=REPORT_EXAMPLES)
def report(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    format: Annotated[str, typer.Option(help="table or json.")] = "table",
    output: Annotated[str, typer.Option(help="A file, or - for stdout.")] = "-",
) -> None:
    _known_format(format)
    comparison = judge_run(RunDir.open(run))
    _show(comparison, format, None if output == "-" else Path(output))
    if comparison.broken:
        raise ContractBroken("\n".join(comparison.broken))


@dataclass(frozen=True)
class Listing:
    """A list command's answer in both forms."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    objects: list[dict[str, object]]


def _versions() -> Listing:
    objects: list[dict[str, object]] = []
    rows = []
    for version in catalog.all_versions():
        flavours = list(dict.fromkeys(flavour.name for flavour in version.flavours))
        pythons = [flavour.python.number for flavour in version.on("cpu")]
        objects.append(
            {
                "version": version.number,
                "aliases": list(version.aliases),
                "python": pythons[0],
                "pythons": pythons,
                "keras": version.keras,
                "flavours": flavours,
            }
        )
        rows.append(
            (version.number, ", ".join(version.aliases), ", ".join(pythons), version.keras, ", ".join(flavours))
        )
    return Listing(("version", "aliases", "Python", "Keras", "flavours"), rows, objects)


def _workloads() -> Listing:
    found = suites.all_workloads().values()
    objects: list[dict[str, object]] = [
        {
            "workload": workload.name,
            "summary": workload.summary,
            "params": {name: list(values) for name, values in workload.params.items()},
            "contrasts": workload.contrasts,
        }
        for workload in found
    ]
    rows = [
        (
            workload.name,
            workload.summary + "".join(f"\n{name}={'|'.join(values)}" for name, values in workload.params.items()),
        )
        for workload in found
    ]
    return Listing(("workload", "what it does, and its parameters"), rows, objects)


def _suites() -> Listing:
    found = suites.all_suites()
    objects: list[dict[str, object]] = [
        {"suite": suite.name, "summary": suite.summary, "cases": list(suite.cases), "budget_s": suite.budget_s}
        for suite in found.values()
    ]
    rows = [(suite.name, "\n".join([suite.summary, *suite.cases])) for suite in found.values()]
    return Listing(("suite", "what it is for, and its cases"), rows, objects)


LISTINGS = {"versions": _versions, "workloads": _workloads, "suites": _suites}


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
    table = Table(*listing.columns, show_lines=any("\n" in cell for row in listing.rows for cell in row))
    for row in listing.rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _show(comparison: Comparison, format: str, output: Path | None) -> None:
    if output is not None:
        try:
            output.write_text(REPORTS[format](comparison) + "\n")
        except OSError as error:
            raise UsageError(f"--output {output}: {error.strerror}") from error
        return
    console = Console()
    if format == "table" and console.is_terminal:
        console.print(layout(comparison, console.width))
    else:
        print(REPORTS[format](comparison))


def _known_format(name: str) -> None:
    if name not in REPORTS:
        raise UsageError(f"unknown format {name!r}{catalog.did_you_mean(name, REPORTS)}; it is {', '.join(REPORTS)}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _threads(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+),(\d+)", text)
    if match is None:
        raise UsageError(f"--threads {text!r}: two numbers, inter-op and intra-op, e.g. 1,2")
    return int(match[1]), int(match[2])


def _seconds(flag: str, text: str) -> float:
    match = DURATION.fullmatch(text.strip())
    if match is None or float(match["count"]) == 0:
        raise UsageError(f"{flag} {text!r}: a duration, e.g. 90s, 10m or 1h")
    return float(match["count"]) * {"s": 1, "m": 60, "h": 3600, None: 1}[match["unit"]]


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    # A polite end from outside must free containers and keep results just as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        # What typer has caught itself, an interrupt among it, comes back as a code.
        sys.exit(app(standalone_mode=False) or 0)
    except TfCompareError as error:
        Console(stderr=True).print(Text(f"tfcompare: {error}"), soft_wrap=True)
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
