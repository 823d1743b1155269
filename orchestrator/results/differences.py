"""Differences between the targets of a run besides TensorFlow, which are part of their ratios as well."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from orchestrator.catalog.targets import SHORT_COMMIT, Changed, name_pinned, parse_target
from orchestrator.catalog.variables import BACKEND as KERAS_BACKEND
from orchestrator.errors import UsageError
from orchestrator.model import Manifest, Plan, Target, TargetPair
from orchestrator.terminal.counts import format_count

# The keys are facts that a worker states about itself, and the values are their names for users.
TENSORFLOW = "TensorFlow"
STATED = {
    "python": "Python", "backend": "Keras' backend", "tensorflow": TENSORFLOW, "tf_keras": "Keras",
    "onednn": "oneDNN", "tf32": "TF32", "xla": "XLA by default",
}  # fmt: skip
# These details describe what the user built.
OWN = ("wheel", "image")
# These packages are left out, because other facts already state their versions.
NAMED = frozenset(
    {"tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tf-nightly-cpu", "keras", "tf-keras"}
)
MISSING = "none"
# The user's own code has no commit unless a target names a revision of it.
CODE = "your code"
AS_IT_IS = {CODE: "as it is"}
# Packages that moved are named if they are at most this many, and always if the user pinned them.
MOST_PACKAGES = 6


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
    # The user pinned these packages in one of the two.
    pinned: frozenset[str] = frozenset()

    @property
    def named_packages(self) -> list[str]:
        """The packages in words: each with its numbers, or those that were pinned and the count of the others."""
        return name_moved(self.packages, self.pinned)


def name_moved(packages: Sequence[DifferingFact], pinned: Collection[str] = ()) -> list[str]:
    """Return the packages that moved: each with its numbers, or those that were pinned and the count of the others."""
    if len(packages) <= MOST_PACKAGES:
        return list(map(str, packages))
    named = [str(each) for each in packages if each.name in pinned]
    left = len(packages) - len(named)
    return [*named, *([f"{format_count(left, 'more package' if named else 'package')}"] if left else [])]


def find_moved(before: Mapping[str, str], after: Mapping[str, str]) -> list[DifferingFact]:
    """Return the packages that are not alike in two environments, by name."""
    return _differing(dict(sorted(before.items())), dict(sorted(after.items())))


def find_differences(plan: Plan, manifest: Manifest) -> tuple[TargetDifference, ...]:
    """Return the differences between each two targets that are compared, without pairs that have none."""
    known, pinned, code = manifest.environments, _find_pinned(plan), find_code(plan)
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
        facts += _differing(code.get(baseline.name, AS_IT_IS), code.get(candidate.name, AS_IT_IS))
        # The names of two releases already say that their TensorFlow differs.
        facts = [fact for fact in facts if fact != DifferingFact(TENSORFLOW, baseline.name, candidate.name)]
        packages = _differing(_packages(manifest, baseline), _packages(manifest, candidate))
        if facts or packages:
            of_both = pinned.get(baseline.name, frozenset()) | pinned.get(candidate.name, frozenset())
            found.append(TargetDifference(baseline, candidate, tuple(facts), tuple(packages), of_both))
    return tuple(found)


def _find_pinned(plan: Plan) -> dict[str, frozenset[str]]:
    """Return the packages that the user pinned, by the name of the target."""
    return {name: frozenset(map(name_pinned, changed.pins)) for name, changed in _list_changed(plan)}


def find_code(plan: Plan) -> dict[str, dict[str, str]]:
    """Return which revision of the user's own code a target has, by the name of the target."""
    changed = ((name, each.commit[:SHORT_COMMIT]) for name, each in _list_changed(plan))
    return {name: {CODE: commit} for name, commit in changed if commit}


def _list_changed(plan: Plan) -> Iterator[tuple[str, Changed]]:
    """Yield the targets with changes by their names."""
    for text in plan.definitions:
        # The plan may be another person's.
        with suppress(UsageError):
            changed = parse_target(text)
            yield changed.build_name(changed.version), changed


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
    if stated:
        # A worker states its backend if it is another one.
        stated.setdefault("backend", "tensorflow")
    facts = {words: _say(stated[name]) for name, words in STATED.items() if stated.get(name) is not None}
    if environment:
        own = {name: environment.details[name] for name in OWN if name in environment.details}
        variables = {name: value for name, value in environment.variables.items() if name != KERAS_BACKEND}
        facts = {STATED["python"]: environment.python} | facts | own | variables
    return facts


def _say(value: str | bool | None) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _packages(manifest: Manifest, target: Target) -> dict[str, str]:
    environment = manifest.environments.get(target)
    return {name: number for name, number in (environment.packages if environment else {}).items() if name not in NAMED}
