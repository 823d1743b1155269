"""The user's options, as the command line passes them on."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from orchestrator.errors import UsageError
from orchestrator.machine.gpu import Gpu
from orchestrator.model import GpuRequest

LONGEST_S = 30 * 86_400
# The command line uses these names for the engines.
DOCKER, VENV = "docker", "venv"
# A program may ask for these; `auto` takes Docker if it answers.
EngineName = Literal["auto", "docker", "venv"]
# A nightly run measures this many rounds of everything.
NIGHT_ROUNDS = 12
# A profile takes this many calls, and its report shows this many functions.
PROFILED_CALLS, SHOWN_FUNCTIONS = 20, 15


def check_cpus(requested: Collection[int] | None, usable: Collection[int]) -> None:
    if absent := sorted(set(requested or ()) - set(usable)):
        raise UsageError(
            f"--cpuset: CPU {', '.join(map(str, absent))} cannot be used here; "
            f"those that can are {', '.join(map(str, sorted(usable)))}"
        )


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """The user's settings for environments, and what each worker may use of the machine."""

    gpu: bool = False
    gpu_request: GpuRequest = "runtime"
    # `gpus` are the GPUs as the user named them, and `chosen_gpus` those that were found. If there are none, all that
    # the engine gives are used.
    gpus: tuple[str, ...] = ()
    chosen_gpus: tuple[Gpu, ...] = ()
    exclusive: bool = False
    lock_mhz: int | None = None
    force: bool = False
    base: str | None = None
    ca_bundle: Path | None = None
    # The address may contain a password.
    index_url: str | None = field(default=None, repr=False)
    wheelhouse: Path | None = None
    # If set, a Python that this machine lacks may be downloaded.
    python_downloads: bool = True
    cpus: tuple[int, ...] | None = None
    memory_mb: int | None = None
    # This is the engine's name for the runtime of containers. If it is empty, the engine's default runtime is used.
    runtime: str = ""
    # The code that XLA compiles is kept until the run ends.
    keeps_xla_code: bool = False
    # These variables of the caller reach every target.
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def device(self) -> Literal["cpu", "gpu"]:
        return "gpu" if self.gpu else "cpu"

    def check_limits(self, cpus: Collection[int], memory_mb: int) -> None:
        """Raise UsageError unless the requested CPUs and memory exist."""
        check_cpus(self.cpus, cpus)
        if self.memory_mb and self.memory_mb > memory_mb:
            raise UsageError(f"--memory: {self.memory_mb} MB is more than the {memory_mb} MB that there are")
