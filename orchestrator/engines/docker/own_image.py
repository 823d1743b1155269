"""A user's own image that contains TensorFlow: it is used unchanged; only a package that it may lack is mounted.

An image is inspected only once, because that takes a while and an image never changes.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import docker
from packaging.version import Version as Number
from pydantic import ValidationError

from orchestrator import catalog, files
from orchestrator.catalog.gpu_support import Fit, fit_cuda
from orchestrator.catalog.user_data import cache
from orchestrator.engines import Outlook
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import image
from orchestrator.engines.docker.inside import Inside, look_inside
from orchestrator.engines.layers import Uv, make_layer
from orchestrator.errors import EnvironmentFailed
from orchestrator.machine.supported import find_architecture
from orchestrator.model import EnvironmentFacts
from orchestrator.options import EngineOptions

# The worker reads and writes results with this package.
NEEDED = "pyarrow"
MOST_BYTES = 2**24
# Of several GPUs, the one that fits worst decides.
WORST_FIRST: tuple[Fit, ...] = ("unsupported", "jit", "unknown", "fine")


@dataclass(frozen=True)
class OwnImage:
    """An image by its id, its digest in a registry if it has one, and what is inside."""

    identity: str
    digest: str
    inside: Inside


def outlook(client: docker.DockerClient, reference: str) -> Outlook:
    if missing := image.find_missing(client, reference, "image"):
        return missing
    here = bool(image.local_id(client, reference))
    return Outlook("ready", f"ready ({reference})") if here else Outlook("to build", f"to be pulled: {reference}")


def find_own_image(client: docker.DockerClient, version: str, reference: str, log: BuildLog, runtime: str) -> OwnImage:
    """Return the image with this name, pulled unless it is here; raise EnvironmentFailed if it cannot be used."""
    if not image.local_id(client, reference) and (message := image.pull(client, reference, log)):
        raise EnvironmentFailed(
            f"{reference} is not on this machine and could not be pulled: {message.strip()}", target=version
        )
    found = client.images.get(reference)
    built_for, here = found.attrs.get("Architecture", ""), find_architecture().image
    if built_for != here:
        raise EnvironmentFailed(f"{reference} is an image for {built_for}, not for {here}", target=version)
    identity = str(found.id)
    inside = _look_once(client, identity, version, reference, log, runtime)
    if inside.imported.error or not inside.imported.tensorflow:
        why = inside.imported.error or "its Python has no package of that name"
        raise EnvironmentFailed(f"{reference} holds no TensorFlow that can be imported: {why}", target=version)
    digests = found.attrs.get("RepoDigests") or [""]
    return OwnImage(identity, str(digests[0]).partition("@")[2], inside)


def _look_once(
    client: docker.DockerClient, identity: str, version: str, reference: str, log: BuildLog, runtime: str
) -> Inside:
    path = cache() / "images" / f"{identity.partition(':')[2]}.build.json"
    with suppress(OSError, ValidationError):
        return Inside.model_validate_json(files.read_named(path, MOST_BYTES))
    log.line(f"looking into {reference}")
    inside = look_inside(client, identity, version, own=True, runtime=runtime)
    if isinstance(inside, str):
        raise EnvironmentFailed(f"{reference} could not be inspected: {inside}", target=version)
    # If this cannot be written, the image is inspected again the next time.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, inside.model_dump_json().encode())
    return inside


def judge_build(inside: Inside, options: EngineOptions, version: str) -> dict[str, str]:
    """Return how the build of an image fits the GPUs of a run, for its facts; raise EnvironmentFailed if it cannot run.

    What it was built for is known from its TensorFlow, and an image of another build says no more than before.
    """
    imported = inside.imported
    if not options.gpu or not options.chosen_gpus:
        return {}
    gpu = options.chosen_gpus[0]
    worst: Fit = "unsupported"
    reason = "its TensorFlow was built without CUDA"
    if imported.cuda_build is not False:
        cuda = catalog.find_cuda(imported.cuda_version, tuple(sorted(set(imported.compute), key=Number)))
        if cuda is None:
            return {}
        fits = [(each, *fit_cuda(cuda, each)) for each in options.chosen_gpus]
        gpu, worst, reason = min(fits, key=lambda found: WORST_FIRST.index(found[1]))
    if worst == "unsupported" and not options.force:
        raise EnvironmentFailed(
            f"its image does not run on {gpu.title}: {reason}",
            "--allow-unsupported-gpu measures it nevertheless",
            target=version,
        )
    return {"fit": worst, "fit_reason": reason}


def find_base(facts: EnvironmentFacts, options: EngineOptions) -> str:
    """Return the base image with the Python of a user's own image, or with the newest known Python."""
    known = catalog.builtin_catalogue().python
    python = catalog.minor(facts.python)
    number = python if python in known else max(known, key=Number)
    return image.name_base(options.base, number) or image.add_digest(known[number].image, known[number].digest)


def find_library(facts: EnvironmentFacts, options: EngineOptions, uv: Uv) -> Path | None:
    """Return a folder with the package that the worker needs, or None if the image has it; make it if necessary."""
    if NEEDED in facts.packages:
        return None
    reference, known = facts.details["image"], catalog.builtin_catalogue().python
    python = catalog.minor(facts.python)
    if python not in known:
        raise EnvironmentFailed(
            f"{reference} has Python {facts.python} and no {NEEDED}; tfcompare has it only for {', '.join(known)}",
            target=facts.target,
        )
    layer = make_layer((f"{NEEDED}=={known[python].pyarrow}",), facts, options, uv)
    if layer.refusal:
        raise EnvironmentFailed(
            f"{reference} has no {NEEDED}, which the worker needs: {layer.refusal}", target=facts.target
        )
    return layer.folder
