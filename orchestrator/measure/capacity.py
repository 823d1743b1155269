"""The number of arms that may be open at once, each a process with TensorFlow. Pure except for `read_capacity`."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from orchestrator.engines import ENGINES
from orchestrator.machine.gpu import find_gpus
from orchestrator.machine.room import Room, read_room
from orchestrator.model import ArmKey, Case, Plan
from orchestrator.plan.pairs import group_linked

# A worker that has imported TensorFlow was seen to take 0.22 to 0.36 GB, and a replicate to add 0.1 to 0.2 GB.
WORKER_MB, REPLICATE_MB = 350, 200
# On an H100, a replicate of a small net held 640 to 670 MB of the machine's memory.
GPU_REPLICATE_MB = 700
# CUDA and its libraries are reported to take 0.3 to 1.5 GB of a GPU for each process, before any tensor.
GPU_ARM_MB = 1500
# The rest is for the page cache and for other processes.
MEMORY_SHARE = 0.9
# These are the descriptors of a worker itself and of each replicate, and the most that a worker asks for.
OWN_DESCRIPTORS, REPLICATE_DESCRIPTORS, MOST_DESCRIPTORS = 48, 3, 65536
# TensorFlow starts these threads in addition to its pools between and inside operations.
OTHER_THREADS = 16
# A ratio needs two arms side by side.
FEWEST = 2


@dataclass(frozen=True)
class Capacity:
    """The most arms that are open at once, in all and in each version, and what sets that limit."""

    arms: int
    in_target: int
    limit: str

    def fits(self, arms: Iterable[ArmKey]) -> bool:
        targets = Counter(arm.target for arm in arms)
        return targets.total() <= self.arms and max(targets.values(), default=0) <= self.in_target


@dataclass(frozen=True)
class OpenAtOnce:
    """The most arms of a run that are compared with each other, directly or indirectly, and the capacity for them."""

    compared: int
    capacity: Capacity

    @property
    def arms(self) -> int:
        return min(self.compared, self.capacity.arms)

    def __str__(self) -> str:
        if self.compared <= self.capacity.arms:
            return f"up to {self.compared} arms open at once"
        return (
            f"at most {self.capacity.arms} of the {self.compared} arms that are compared are open at once "
            f"(limit: {self.capacity.limit})"
        )


def read_capacity(plan: Plan, *, started: bool = False) -> Capacity:
    """Return the current capacity of this machine; `started` says whether the workers of the run have started."""
    room = replace(read_room(), gpu_mb=_find_gpu_mb(plan.gpus) if plan.device == "gpu" else None)
    return find_capacity(plan, room, len(os.sched_getaffinity(0)), started=started)


def _find_gpu_mb(keys: Collection[str]) -> int | None:
    each_gpu = [part for gpu in find_gpus() for part in (gpu, *gpu.slices)]
    return min((each.free_mb for each in each_gpu if each.key in keys and each.free_mb is not None), default=None)


def find_capacity(plan: Plan, room: Room, cpus: int, *, started: bool = False) -> Capacity:
    engine, targets = ENGINES[plan.engine], len(plan.targets)
    resident = plan.isolation == "fork"
    replicate_mb = GPU_REPLICATE_MB if plan.device == "gpu" else REPLICATE_MB
    arm_mb = replicate_mb if resident else WORKER_MB + replicate_mb
    workers_mb = targets * WORKER_MB if resident and not started else 0
    threads = sum(plan.threads) if plan.threads and all(plan.threads) else 2 * len(plan.cpus or range(cpus))
    tasks = threads + OTHER_THREADS
    limits = [(len(plan.arms()), "")]
    if room.memory_mb is not None:
        limits.append((int(room.memory_mb * MEMORY_SHARE - workers_mb) // arm_mb, "memory"))
    if room.gpu_mb is not None:
        limits.append((room.gpu_mb // GPU_ARM_MB, "GPU memory"))
    if room.tasks is not None:
        limits.append((room.tasks // tasks, "processes"))
    in_target = [(len(plan.arms()), "")]
    if engine.tasks is not None:
        in_target.append((engine.tasks // tasks, "processes"))
    if engine.detached and plan.memory_mb is not None:
        in_target.append(((plan.memory_mb - WORKER_MB) // replicate_mb, "--memory"))
    elif engine.detached and resident and room.total_mb is not None:
        # Containers of all versions share the machine equally.
        in_target.append(((int(room.total_mb * MEMORY_SHARE) // targets - WORKER_MB) // replicate_mb, "memory"))
    if room.descriptors is not None and not engine.detached:
        descriptors = min(room.descriptors, MOST_DESCRIPTORS) - OWN_DESCRIPTORS
        in_target.append((descriptors // REPLICATE_DESCRIPTORS, "descriptors"))
    most, limit = min(in_target)
    most = max(most, FEWEST)
    arms, of_all = min([*limits, (most * targets, limit)])
    return Capacity(max(arms, FEWEST), most, of_all)


def open_at_once(plan: Plan, cases: Sequence[Case], capacity: Capacity) -> OpenAtOnce:
    groups = group_linked(cases, plan.pairs) if plan.isolation == "fork" else [(case,) for case in cases]
    arms = Counter(case.label for case, _ in plan.arms())
    compared = max((sum(arms[case.label] for case in group) for group in groups), default=0)
    return OpenAtOnce(min(compared, 1) if plan.exclusive else compared, capacity)
