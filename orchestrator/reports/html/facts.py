"""Tables that show where and with what a run was measured, and the command that would repeat it."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.model import Evaluation, Manifest, Target
from orchestrator.reports.table import WHOLE_REPORT, describe_errors, describe_hosts
from orchestrator.stats.slowdown import format_margin

# The keys of a manifest are shown in these words; other keys are shown unchanged.
HOST_WORDS: Mapping[str, str] = {
    "id": "machine", "boot": "started as", "system": "operating system", "cpu": "processor", "cores": "cores",
    "usable_cores": "usable cores", "numa_nodes": "memory nodes (NUMA)", "memory_mb": "memory", "swap_mb": "swap",
    "virtual": "virtual machine", "turbo": "turbo clock", "mhz_max": "highest clock", "gpus": "GPUs",
    "load": "load at the start", "psi_cpu": "waiting for a core at the start", "python": "Python of tfcompare",
    "smt": "two threads per core", "governor": "clock governor", "thp": "transparent huge pages",
    "aslr": "random address layout", "cgroup_quota": "CPU quota and period",
}  # fmt: skip
UNITS: Mapping[str, str] = {"memory_mb": "MiB", "swap_mb": "MiB", "mhz_max": "MHz", "psi_cpu": "% of the time"}
SWITCHES: Mapping[str, Mapping[str, str]] = {
    "smt": {"0": "no", "1": "yes"}, "aslr": {"0": "off", "1": "partly", "2": "on"},
}  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """A fact about every environment, in the order of the versions."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def host(manifest: Manifest) -> list[tuple[str, str]]:
    """Return what is known about the machine."""
    known = [(name, value) for name, value in manifest.host.items() if value not in (None, "")]
    facts = [(HOST_WORDS.get(name) or _words(name), _in_words(name, value)) for name, value in known]
    return facts + [("part", line) for line in describe_hosts(manifest)]


def _in_words(name: str, value: object) -> str:
    said = SWITCHES.get(name, {}).get(str(value), str(value))
    return f"{said} {UNITS[name]}" if name in UNITS else said


def setting(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return how the run was set up."""
    plan, tool = evaluation.plan, evaluation.manifest
    facts = {
        "tfcompare": tool.tool,
        "suite": plan.suite,
        "engine": plan.engine,
        "device": plan.device,
        "isolation": plan.isolation,
        "judged by": "CPU time" if plan.judge == "cpu" else "wall time",
        "margin": format_margin(plan.margin),
        "error": f"{describe_errors(plan)}, over all looks after {', '.join(map(str, plan.looks))} rounds; "
        f"{WHOLE_REPORT}",
        "seed": plan.seed,
        "threads": plan.threads and f"{plan.threads[0]} between, {plan.threads[1]} inside operations",
        "datasets": "not tuned, unless their options say so" if plan.untuned_datasets else None,
        "code of XLA": "kept until the run ended" if plan.keeps_xla_code else None,
        "CPUs": plan.cpus and ", ".join(map(str, plan.cpus)),
        "memory": plan.memory_mb and f"{plan.memory_mb} MiB",
        "budget": plan.budget_s and f"{plan.budget_s:g} s",
        "deadline of a replicate": f"{plan.timeout_s:g} s",
    }
    return [(name, str(value)) for name, value in facts.items() if value is not None]


def environments(evaluation: Evaluation) -> list[Fact]:
    """Return one line per fact, with a dash for a version that lacks it."""
    manifest, targets = evaluation.manifest, evaluation.plan.targets
    by_target = {target: _facts(manifest, target) for target in targets}
    packages = {target: _packages(manifest, target) for target in targets}
    return [
        *_rows(by_target, _words),
        # Packages that do not differ are too many to list.
        *(fact for fact in _rows(packages, lambda name: f"package {name}") if fact.differs),
    ]


def _rows(by_target: Mapping[Target, Mapping[str, object]], words: Callable[[str], str]) -> list[Fact]:
    names = dict.fromkeys(name for facts in by_target.values() for name in facts)
    return [Fact(words(name), tuple(str(facts.get(name, "–")) for facts in by_target.values())) for name in names]


def _packages(manifest: Manifest, target: Target) -> Mapping[str, str]:
    environment = manifest.environments.get(target)
    return environment.packages if environment else {}


def _facts(manifest: Manifest, target: Target) -> Mapping[str, object]:
    environment = manifest.environments.get(target)
    installed = (
        {
            "python": environment.python,
            "kind": environment.kind,
            "identity": environment.identity,
            "lock": environment.lock,
        }
        if environment
        else {}
    )
    details = environment.details if environment else {}
    variables = environment.variables if environment else {}
    facts = {**installed, **manifest.workers.get(target, {}), **details, **variables}
    return {name: value for name, value in facts.items() if value not in (None, "")}


def command(manifest: Manifest) -> str:
    """Return the command as it would be typed into a shell."""
    return shlex.join(("tfcompare", *manifest.command))


def _words(name: str) -> str:
    return name.replace("_", " ")
