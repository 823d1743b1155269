"""Turns groups of flags into the options of environments and runs."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from orchestrator.catalog.variables import find_of_tensorflow, note_ignored
from orchestrator.cli import parse
from orchestrator.cli.options.installation import BaseFlags, InstallationFlags
from orchestrator.cli.options.machine import GpuFlags, MachineFlags
from orchestrator.errors import UsageError
from orchestrator.model import GpuRequest
from orchestrator.options import EngineOptions
from orchestrator.terminal.view import View

if TYPE_CHECKING:
    from orchestrator.plan.request import RunOptions


def gpu_options(gpu: GpuFlags, installation: BaseFlags) -> EngineOptions:
    """Return the settings for a GPU; naming one, or how to hold it, implies --gpu."""
    gpus = parse.parse_names(gpu.gpus) if gpu.gpus is not None else ()
    if gpu.gpus is not None and not gpus:
        raise UsageError(f"--gpus {gpu.gpus!r}: indices or UUIDs, e.g. 0,1; `nvidia-smi -L` lists them")
    on_gpu = gpu.gpu or bool(gpus) or gpu.exclusive
    if gpu.lock_mhz and not on_gpu:
        raise UsageError("--lock-clocks holds the clocks of GPUs: it goes with --gpu")
    if gpu.allow_unsupported_gpu and not on_gpu:
        raise UsageError("--allow-unsupported-gpu is about versions that fail on a GPU: it goes with --gpu")
    return EngineOptions(
        gpu=on_gpu,
        gpu_request=cast(GpuRequest, gpu.gpu_request),
        gpus=gpus,
        exclusive=gpu.exclusive,
        lock_mhz=gpu.lock_mhz,
        force=gpu.allow_unsupported_gpu,
        base=installation.base,
    )


def engine_options(machine: MachineFlags, gpu: GpuFlags, installation: InstallationFlags) -> EngineOptions:
    """Return the settings for environments."""
    found = gpu_options(gpu, installation)
    if machine.runtime and found.gpu and found.gpu_request == "runtime":
        raise UsageError("--runtime and --gpu-request runtime both choose it: add --gpu-request device, or cdi")
    return replace(
        found,
        runtime=parse.runtime(machine.runtime) if machine.runtime else "",
        ca_bundle=installation.ca_bundle,
        index_url=installation.index_url,
        wheelhouse=installation.wheelhouse,
        python_downloads=not installation.no_python_downloads,
        cpus=parse.cpus(machine.cpuset) if machine.cpuset else None,
        memory_mb=parse.memory_mb(machine.memory) if machine.memory else None,
        keeps_xla_code=machine.keep_xla_code,
        variables=tuple(find_of_tensorflow().items()) if machine.inherit_env else (),
    )


def say_ignored(options: EngineOptions, view: View) -> None:
    """Say which variables of the shell reach no target."""
    if note := note_ignored(options.variables):
        view.say(note)


def run_options(
    machine: MachineFlags, gpu: GpuFlags, installation: InstallationFlags, budget: str | None = None, **more: Any
) -> "RunOptions":
    """Return the options of a run; `more` are those that only some commands have."""
    from orchestrator.plan.request import RunOptions

    return RunOptions(
        engine=machine.engine,
        environments=engine_options(machine, gpu, installation),
        threads=parse.threads(machine.threads) if machine.threads else None,
        untuned_datasets=machine.untuned_datasets,
        timeout_s=parse.seconds("--timeout", machine.timeout),
        budget_s=parse.budget(budget),
        **more,
    )
