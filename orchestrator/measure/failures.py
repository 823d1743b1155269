"""Decides what an arm or a worker died of, and whether that came from outside of its code."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator import contract
from orchestrator.machine.evidence import (
    Evidence,
    MemoryMark,
    OutOfMemory,
    describe_full_folders,
    find_gone_gpus,
    find_out_of_memory,
)
from orchestrator.model import DeathCause

NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|Read-only file system|\[Errno (5|28|30|122)\]")
NO_MEMORY = re.compile(
    r"^(its worker died: )?out of memory|\bMemoryError\b|std::bad_alloc|Cannot allocate memory|\[Errno 12\]"
    r"|ResourceExhausted|OOM when allocating|CUDA_ERROR_OUT_OF_MEMORY"
)
# An environment reports this if a folder of the host is gone, or the host cannot start another process.
HOST_PROBLEM = re.compile(r"cannot write |no process could be started for it")
LOST_GPU = re.compile(r"GPU is lost|fallen off the bus|CUDA_ERROR_(NO_DEVICE|ECC_UNCORRECTABLE)", re.IGNORECASE)
KILLED = re.compile(r"killed by (SIG[A-Z0-9]+)")
# TensorFlow's own modules come with it or not at all.
MISSING_MODULE = re.compile(r"No module named '(?!tensorflow\b)[\w.]+'")
# A worker and a channel guess this about SIGKILL; the evidence says more.
SIGKILL_GUESS = re.compile(r"; often the kernel, out of memory| \(often the kernel, out of memory\)")
# Docker's channel reports this if a container was removed.
REMOVED = "container was removed"
# A reason begins like this if the TensorFlow that answered is not that of the version.
OTHER_TENSORFLOW = "another TensorFlow answered"
# Other processes send these signals; a process that crashes gets different ones.
SENT = frozenset({"SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"})
# A workload meets these errors inside its container even if the disks of this machine have room: its scratch folder,
# which is in memory, may be full, and everything else is read-only.
NO_SCRATCH = re.compile(r"No space left on device|\[Errno 28\]")
NO_WRITING = re.compile(r"Read-only file system|\[Errno 30\]")
SCRATCH_FULL_NOTE = "the disk of the run has room: it was the /tmp of its container, which is memory"
OF_WRITING = "only /tmp can be written in a container"
OF_MEMORY: Mapping[OutOfMemory, str] = {
    "machine": ", out of memory: this machine had no more",
    "group": ", out of memory: the limit of its container, or of the job around it, was reached",
    "none": ", sent by another process: this machine did not run out of memory",
    "": "; often the kernel, out of memory",
}


@dataclass(frozen=True, kw_only=True)
class Death:
    """The death of a replicate or a worker, in the words of the worker and of the engine.

    `innocent` says that it was a worker, which runs no code of the workload itself; `limited`, that it was in a
    container, with a limit of memory and a scratch folder in it; `filler`, which case had filled this folder before.
    """

    how: str
    reason: str
    log: str = ""
    innocent: bool = False
    limited: bool = False
    filler: str = ""


@dataclass(frozen=True)
class Scene:
    """The folders that the workers of a run write to, and their GPUs; all evidence is gathered here."""

    folders: tuple[Path, ...]
    gpus: tuple[str, ...] = ()

    def examine(self, since: MemoryMark) -> Evidence:
        """Look at the machine after something died; `since` is when it began."""
        memory, record = find_out_of_memory(since)
        return Evidence(
            full=describe_full_folders(self.folders), memory=memory, record=record, gone_gpus=find_gone_gpus(self.gpus)
        )


def classify(death: Death, evidence: Evidence) -> DeathCause:
    """Return what a replicate died of."""
    if death.how == "contract":
        return DeathCause("contract", death.reason)
    if lacks_scratch(death, evidence):
        return _of_scratch(death)
    if _is_in_container(death, evidence) and NO_WRITING.search(death.reason):
        return DeathCause("workload", f"{death.reason}; {OF_WRITING}")
    if NO_ROOM.search(death.reason):
        return _of_disk(death.reason, evidence.full)
    if death.how == contract.GPU_LOST or evidence.gone_gpus or LOST_GPU.search(death.reason):
        return _of_gpu(death.reason, evidence.gone_gpus)
    if death.how in ("raised", "asserted"):
        is_memory = death.how == "raised" and NO_MEMORY.search(death.reason)
        return DeathCause("memory" if is_memory else "workload", advise_package(death.reason))
    if evidence.full and death.how != "timeout":
        return _of_disk(SIGKILL_GUESS.sub("", death.reason), evidence.full)
    return _of_ending(death, evidence)


def advise_package(reason: str) -> str:
    """Add how a target gets a package, if a module is missing."""
    if not MISSING_MODULE.search(reason):
        return reason
    return f"{reason}; if it is of a package, name that in REQUIREMENTS of the workload, or in --requirements FILE"


def lacks_scratch(death: Death, evidence: Evidence) -> bool:
    """Return whether a workload found no room in its container's own memory, and not on a disk."""
    return _is_in_container(death, evidence) and bool(NO_SCRATCH.search(death.reason))


def _is_in_container(death: Death, evidence: Evidence) -> bool:
    """Return whether a workload failed to write inside its container.

    Only results are written from there to a disk of this machine, and the worker writes those.
    """
    return death.limited and death.how in ("raised", "asserted") and not evidence.full


def _of_scratch(death: Death) -> DeathCause:
    if death.filler:
        return DeathCause(
            "disk", f"{death.reason}; {death.filler} had filled the /tmp of their container", external=True
        )
    return DeathCause("workload", f"{death.reason}; {SCRATCH_FULL_NOTE}")


def _of_ending(death: Death, evidence: Evidence) -> DeathCause:
    """Return the cause of death of a process that did not state it."""
    if death.how == "fork":
        return DeathCause("memory" if NO_MEMORY.search(death.reason) else "start", death.reason, external=True)
    if killed := KILLED.search(death.reason):
        return _of_signal(killed[1], death, evidence)
    if NO_MEMORY.search(death.reason):
        return DeathCause("memory", death.reason)
    if death.how == "timeout" or "timeout: " in death.reason:
        return DeathCause("deadline", death.reason, external=death.innocent)
    if "broke the contract: " in death.reason or death.how == "results":
        return DeathCause("contract", death.reason)
    if death.how == "worker" and (death.innocent or REMOVED in death.reason):
        return DeathCause("worker", death.reason, external=True)
    return DeathCause("workload", death.reason)


def _of_signal(name: str, death: Death, evidence: Evidence) -> DeathCause:
    reason = SIGKILL_GUESS.sub("", death.reason)
    if name == "SIGKILL":
        by_kernel = evidence.memory in ("machine", "group")
        own = evidence.memory == "group" and death.limited
        return DeathCause("memory" if by_kernel else "signal", reason + OF_MEMORY[evidence.memory], external=not own)
    if name == "SIGABRT" and NO_MEMORY.search(death.log):
        return DeathCause("memory", f"{reason}: it could not get more memory")
    return DeathCause("signal", reason, external=death.innocent or name in SENT)


def classify_start(reason: str, evidence: Evidence, *, limited: bool = False, blind: bool = False) -> DeathCause:
    """Return why a worker did not start; `blind` says that its TensorFlow does not see the GPUs of the run."""
    if NO_ROOM.search(reason) or evidence.full:
        return _of_disk(reason, evidence.full)
    if blind or evidence.gone_gpus or LOST_GPU.search(reason):
        return _of_gpu(reason, evidence.gone_gpus)
    if killed := KILLED.search(reason):
        return _of_signal(killed[1], Death(how="start", reason=reason, innocent=True, limited=limited), evidence)
    if NO_MEMORY.search(reason):
        return DeathCause("memory", reason)
    if reason.startswith(OTHER_TENSORFLOW):
        return DeathCause("contract", reason)
    if reason.startswith("import failed: "):
        return DeathCause("import", reason)
    return DeathCause("start", reason, external=bool(HOST_PROBLEM.search(reason)))


def classify_environment(reason: str) -> DeathCause:
    """Return why a version has no environment."""
    return DeathCause("disk" if NO_ROOM.search(reason) else "start", reason, external=bool(NO_ROOM.search(reason)))


def _of_disk(reason: str, full: Iterable[str]) -> DeathCause:
    return DeathCause("disk", "; ".join(dict.fromkeys((reason, *full))), external=True)


def _of_gpu(reason: str, gone: Iterable[str]) -> DeathCause:
    named = [f"this machine no longer shows {', '.join(gone)}"] if gone else []
    return DeathCause("gpu", "; ".join((reason, *named)), external=True)
