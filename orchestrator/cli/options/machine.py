"""Flags for the place where versions run: engine, CPUs, memory and GPUs."""

from dataclasses import dataclass
from typing import Annotated, get_args

import typer

from orchestrator.cli.options.declare import Group, choice
from orchestrator.engines import AUTO, ENGINES
from orchestrator.model import GpuRequest


@dataclass(frozen=True, kw_only=True)
class MachineFlags(Group):
    panel = "Machine"

    engine: Annotated[
        str,
        choice(
            "--engine",
            "engine",
            ENGINES,
            "Where versions are installed and run; auto: Docker if available, otherwise virtual environments.",
            first=(AUTO,),
        ),
    ] = AUTO
    threads: Annotated[
        str | None,
        typer.Option(
            "--threads",
            help="Number of TensorFlow threads in every version: one number for both pools, or inter-op,intra-op.",
            metavar="N,N",
        ),
    ] = None
    untuned_datasets: Annotated[
        bool,
        typer.Option(
            "--untuned-datasets",
            help="Switch off tf.data's automatic tuning in every version: its thread can delay the end of an epoch of "
            "fit. Reading may become slower. A dataset whose own options set autotune keeps that.",
        ),
    ] = False
    keep_xla_code: Annotated[
        bool,
        typer.Option(
            "--keep-xla-code",
            help="Keep the code that XLA compiles until the run ends: only the first replicate of a version compiles. "
            "First calls become shorter.",
        ),
    ] = False
    cpuset: Annotated[
        str | None, typer.Option("--cpuset", help="CPUs that every version runs on, e.g. 0,2-3.", metavar="CPUS")
    ] = None
    memory: Annotated[
        str | None, typer.Option("--memory", help="Memory limit for each version, e.g. 4g.", metavar="SIZE")
    ] = None
    runtime: Annotated[
        str,
        typer.Option(
            "--runtime",
            help="Docker runtime for the containers, e.g. runsc. Default: Docker's default runtime.",
            metavar="NAME",
            show_default=False,
        ),
    ] = ""
    inherit_env: Annotated[
        bool,
        typer.Option(
            "--inherit-env",
            help="Pass TensorFlow's environment variables, such as TF_XLA_FLAGS, from your shell to every version.",
        ),
    ] = False
    timeout: Annotated[
        str,
        typer.Option(
            "--timeout", help="Time limit for one step of a case, such as a build or a call.", metavar="DURATION"
        ),
    ] = "10m"


@dataclass(frozen=True, kw_only=True)
class OnGpuFlags(Group):
    panel = "GPU"

    gpu: Annotated[bool, typer.Option("--gpu", help="Use the GPU.")] = False


@dataclass(frozen=True, kw_only=True)
class GpuFlags(OnGpuFlags):
    gpus: Annotated[
        str | None,
        typer.Option("--gpus", help="GPUs to use, by index or UUID, e.g. 0,1; implies --gpu.", metavar="GPUS"),
    ] = None
    gpu_request: Annotated[
        str,
        choice(
            "--gpu-request",
            "request",
            get_args(GpuRequest),
            "Way to request the GPU from Docker: runtime (the one named nvidia), device (like `docker run --gpus`) "
            "or cdi.",
        ),
    ] = "runtime"
    allow_unsupported_gpu: Annotated[
        bool, typer.Option("--allow-unsupported-gpu", help="Also measure versions known to fail on this GPU.")
    ] = False

    @property
    def exclusive(self) -> bool:
        return False

    @property
    def lock_mhz(self) -> int | None:
        return None


@dataclass(frozen=True, kw_only=True)
class MeasuringGpuFlags(GpuFlags):
    """The GPU flags of a command that measures; a profile does not need them, because it runs one version at a time."""

    gpu_exclusive: Annotated[
        bool,
        typer.Option(
            "--gpu-exclusive",
            help="Let only one process use the GPU at a time (slower: a new worker per replicate).",
        ),
    ] = False

    lock_clocks: Annotated[
        int | None,
        typer.Option(
            "--lock-clocks",
            help="Lock the clocks of the GPUs at this frequency during the run; requires root.",
            metavar="MHZ",
            min=1,
            max=100_000,
        ),
    ] = None

    @property
    def exclusive(self) -> bool:
        return self.gpu_exclusive

    @property
    def lock_mhz(self) -> int | None:
        return self.lock_clocks
