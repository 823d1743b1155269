"""Differences between the targets of a run besides TensorFlow, which are part of their ratios as well."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.model import Manifest, Plan, Target, TargetPair

# The keys are facts that a worker states about itself, and the values are their names for users.
TENSORFLOW = "TensorFlow"
STATED = {
    "python": "Python", "tensorflow": TENSORFLOW, "tf_keras": "Keras", "onednn": "oneDNN", "tf32": "TF32",
    "xla": "XLA by default",
}  # fmt: skip
# These details describe what the user built.
OWN = ("wheel", "image")
# These packages are left out, because other facts already state their versions.
NAMED = frozenset(
    {"tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tf-nightly-cpu", "keras", "tf-keras"}
)
MISSING = "none"


@dataclass(frozen=True)
class DifferingFact:
    """A fact that differs between two targets."""

    name: str
    baseline: str
    candidate: str

    def __str__(self) -> str:
        return f"{self.name} {self.baseline} -> {self.candidate}"


@dataclass(frozen=True)
class TargetDifference:
    """The facts and the packages in which a target differs from its baseline."""

    baseline: Target
    candidate: Target
    facts: tuple[DifferingFact, ...]
    packages: tuple[DifferingFact, ...]


def find_differences(plan: Plan, manifest: Manifest) -> tuple[TargetDifference, ...]:
    """Return the differences between each two targets that are compared, without pairs that have none."""
    known = manifest.environments
    compared = [
        (pair.baseline, pair.candidate)
        for pair in plan.pairs
        if isinstance(pair, TargetPair) and pair.baseline in known and pair.candidate in known
    ]
    found = []
    for baseline, candidate in dict.fromkeys(compared):
        if candidate.control:
            continue
        facts = _differing(_facts(manifest, baseline), _facts(manifest, candidate))
        # The names of two releases already say that their TensorFlow differs.
        facts = [fact for fact in facts if fact != DifferingFact(TENSORFLOW, baseline.name, candidate.name)]
        packages = _differing(_packages(manifest, baseline), _packages(manifest, candidate))
        if facts or packages:
            found.append(TargetDifference(baseline, candidate, tuple(facts), tuple(packages)))
    return tuple(found)


def _differing(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> list[DifferingFact]:
    return [
        DifferingFact(name, baseline.get(name, MISSING), candidate.get(name, MISSING))
        for name in dict.fromkeys((*baseline, *candidate))
        if baseline.get(name, MISSING) != candidate.get(name, MISSING)
    ]


def _facts(manifest: Manifest, target: Target) -> dict[str, str]:
    environment, stated = manifest.environments.get(target), dict(manifest.workers.get(target, {}))
    if not stated.get("is_cuda_build"):
        # A build without CUDA states this setting as well, but cannot use it.
        stated.pop("tf32", None)
    facts = {words: _say(stated[name]) for name, words in STATED.items() if stated.get(name) is not None}
    if environment:
        own = {name: environment.details[name] for name in OWN if name in environment.details}
        facts = {STATED["python"]: environment.python} | facts | own | environment.variables
    return facts


def _say(value: str | bool | None) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _packages(manifest: Manifest, target: Target) -> dict[str, str]:
    environment = manifest.environments.get(target)
    return {name: number for name, number in (environment.packages if environment else {}).items() if name not in NAMED}
