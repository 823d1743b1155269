"""Checks from inside, in a container like a worker's, whether an image holds what the table of versions says."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import docker
from packaging.version import Version as Number

from orchestrator.catalog import lock_hash, lockfile
from orchestrator.catalog.version import Flavour, Version
from orchestrator.engines.docker.client import asking
from orchestrator.engines.docker.image import SPEC_LABEL, Recipe
from orchestrator.engines.docker.inside import Files, Imported, Inside, look_inside
from orchestrator.errors import EnvironmentFailed
from orchestrator.terminal.strict_json import pick

# `tensorflow` includes CUDA from 2.1 on, and the packages without CUDA have another name.
WITHOUT_CUDA = re.compile(r"(tensorflow|tf-nightly)-cpu==.*|tensorflow==(1\.|2\.0\.).*")
MOST_NAMED = 5
KERASES = ("keras", "keras-nightly")


@dataclass(frozen=True)
class Check:
    """A statement of the table, whether it is right, and what was found."""

    subject: str
    ok: bool
    expected: str
    found: str


@dataclass(frozen=True, kw_only=True)
class Verification:
    version: str
    flavour: str
    image: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def as_object(self) -> dict[str, object]:
        return {**pick(self, "version flavour image ok"), "checks": [asdict(check) for check in self.checks]}


def verify(
    client: docker.DockerClient, image_id: str, name: str, version: Version, flavour: Flavour, recipe: Recipe
) -> Verification:
    """Verify an image; `name` is its name in the result."""
    with asking(f"{version.number}: its image could not be verified", EnvironmentFailed):
        labels = client.images.get(image_id).labels
        inside = look_inside(client, image_id, version.number)
    checks = tuple(check_contents(inside, labels, version, flavour, recipe))
    return Verification(version=version.number, flavour=flavour.name, image=name, checks=checks)


def check_contents(
    inside: Inside | str, labels: Mapping[str, str], version: Version, flavour: Flavour, recipe: Recipe
) -> Iterator[Check]:
    """Compare what was found inside and on the image with the table, one check per item.

    If `inside` is a text, it says why nothing was found.
    """
    yield _same("spec label", recipe.spec, labels.get(SPEC_LABEL, ""))
    yield _same("lock label", lock_hash(flavour), labels.get("tfcompare.lock", ""))
    if isinstance(inside, str):
        yield Check("start", False, "an answer from inside", inside)
        return
    imported, installed = inside.imported, inside.distributions
    pinned = lockfile.list_packages(flavour.pip_lock, flavour.lock)
    yield _tensorflow(version, imported)
    if version.keras:
        yield _same("Keras", version.keras, next((installed[name] for name in KERASES if name in installed), "none"))
    minor = ".".join(inside.python.split(".")[:2])
    yield Check("Python", minor == flavour.python.number, flavour.python.number, inside.python)
    yield _same("numpy", pinned.get("numpy", ""), imported.numpy or installed.get("numpy", "none"))
    yield _build(flavour, imported)
    yield _packages(pinned, inside)
    yield _files(inside.files)


def _same(subject: str, expected: str, actual: str) -> Check:
    return Check(subject, expected == actual, expected, actual)


def _tensorflow(version: Version, imported: Imported) -> Check:
    if imported.error:
        return Check("TensorFlow", False, version.number, f"cannot be imported: {imported.error}")
    number = imported.tensorflow
    # Versions are compared as numbers, since a nightly reports its version with a dash. A number of thousands of digits
    # also raises ValueError.
    with suppress(ValueError):
        return Check("TensorFlow", Number(number) == Number(version.number), version.number, number)
    return Check("TensorFlow", False, version.number, number)


def _build(flavour: Flavour, imported: Imported) -> Check:
    if imported.cuda_build is None:
        return Check("build", False, flavour.name, "unknown: TensorFlow cannot be imported")
    actual = f"CUDA {imported.cuda_version}".strip() if imported.cuda_build else "CPU"
    if flavour.name == "gpu":
        wanted = flavour.cuda.number if flavour.cuda else ""
        agrees = imported.cuda_build and _agree(wanted, imported.cuda_version)
        return Check("build", agrees, f"CUDA {wanted}", actual)
    bare = any(WITHOUT_CUDA.fullmatch(requirement.partition(";")[0].strip()) for requirement in flavour.requirements)
    return Check("build", not (bare and imported.cuda_build), "CPU" if bare else "CPU or CUDA", actual)


def _agree(wanted: str, actual: str) -> bool:
    """Return whether two version numbers agree in the parts that both have.

    Some builds report 10 for 10.0, some 12.5.1 for 12.5, and some nothing.
    """
    pairs = zip(wanted.split("."), actual.split("."), strict=False)
    return not actual or all(part == other for part, other in pairs)


def _packages(pinned: Mapping[str, str], inside: Inside) -> Check:
    installed = inside.distributions
    wrong = [
        *(f"{name} is missing" for name in sorted(pinned.keys() - installed.keys())),
        *(f"{name} {installed[name]} is extra" for name in sorted(installed.keys() - pinned.keys())),
        *(
            f"{name} is {installed[name]}, but {pinned[name]} is locked"
            for name in sorted(pinned.keys() & installed.keys())
            if installed[name] != pinned[name]
        ),
        *(f"{name} has no record of its files" for name in inside.unrecorded),
    ]
    return Check(
        "packages",
        not wrong,
        f"{len(pinned)} as locked",
        _join_first(wrong, len(wrong)) or f"{len(installed)} as locked",
    )


def _files(folders: Sequence[Files]) -> Check:
    checked = sum(folder.checked for folder in folders)
    groups = [
        *(("changed", folder.changed) for folder in folders),
        *(("missing", folder.missing) for folder in folders),
        *(("added", folder.added) for folder in folders),
    ]
    wrong = [f"{what} {path}" for what, files in groups for path in files.first]
    count = sum(files.count for _, files in groups)
    text = _join_first(wrong, count) or f"{checked} as recorded"
    return Check("files", not count and bool(checked), "each as its package recorded it", text)


def _join_first(wrong: list[str], count: int) -> str:
    more = f", and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
    return "; ".join(wrong[:MOST_NAMED]) + more
