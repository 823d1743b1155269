"""A version's image: its recipe, the hash that names it, and its build by the classic builder."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound

from orchestrator import catalog
from orchestrator.engines.setting import BuildLog
from orchestrator.engines.venv import install_hint
from orchestrator.errors import EnvironmentFailed
from orchestrator.model import Flavour, Version

SPEC_LABEL = "tfcompare.spec"
# The classic builder takes these without an ARG, and keeps them out of the image and of its cache's keys.
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


@dataclass(frozen=True)
class Recipe:
    version: str
    base: str
    files: dict[str, bytes]
    spec: str
    labels: dict[str, str]

    @property
    def tag(self) -> str:
        flavour = self.labels["tfcompare.flavour"]
        return f"tfcompare:{self.version}-{flavour}-{self.spec[:12]}"


def base_reference(flavour: Flavour, override: str | None) -> str:
    if override:
        return override.replace("{python}", flavour.python.number)
    # By digest where somebody has verified one: a tag may move, and a base that moved is another environment.
    return f"{flavour.image}@{flavour.digest}" if flavour.digest else flavour.image


def recipe(client: docker.DockerClient, version: Version, flavour: Flavour, override: str | None) -> Recipe:
    base = base_reference(flavour, override)
    files = {
        "Dockerfile": catalog.DOCKERFILE.read_bytes(),
        "pip.txt": flavour.pip_lock.read_bytes(),
        "lock.txt": flavour.lock.read_bytes(),
    }
    digest = hashlib.sha256(f"{base} {_local_id(client, base) if override else ''}".encode())
    for name, content in files.items():
        digest.update(f"\n{name} {len(content)}\n".encode() + content)
    spec = digest.hexdigest()
    labels = {
        SPEC_LABEL: spec,
        "tfcompare.version": version.number,
        "tfcompare.flavour": flavour.name,
        "tfcompare.lock": catalog.lock_hash(flavour),
        "tfcompare.python": flavour.python.number,
        "org.opencontainers.image.title": f"tfcompare TensorFlow {version.number}",
        "org.opencontainers.image.version": version.number,
        "org.opencontainers.image.base.name": base.partition("@")[0],
        "org.opencontainers.image.base.digest": flavour.digest if not override else "",
    }
    return Recipe(version.number, base, files, spec, labels)


def _local_id(client: docker.DockerClient, reference: str) -> str:
    """A local base has no digest: its id tells one from the next under the same name."""
    try:
        return str(client.images.get(reference).id)
    except ImageNotFound:
        return ""


def fetch(client: docker.DockerClient, version: str, reference: str, log: BuildLog) -> None:
    """Pulls a base unless it is here. A base of the user's choice is hashed by its id: pulled by the build itself, it
    would have another hash the next time."""
    if _local_id(client, reference):
        return
    log.line(f"pulling {reference}")
    try:
        _follow(client.api.pull(reference, stream=True, decode=True), version, reference, log)
    except APIError as error:
        raise EnvironmentFailed(_failure(version, reference, str(error.explanation or error), log)) from error


def existing(client: docker.DockerClient, recipe: Recipe) -> str | None:
    """The id of the image that was built from exactly this recipe."""
    try:
        image = client.images.get(recipe.tag)
    except ImageNotFound:
        return None
    return str(image.id) if image.labels.get(SPEC_LABEL) == recipe.spec else None


def build(client: docker.DockerClient, recipe: Recipe, ca_bundle: bytes, log: BuildLog) -> str:
    log.line(f"building {recipe.tag} from {recipe.base}")
    proxies = {name: value for name, value in os.environ.items() if name.upper() in PROXIES}
    try:
        steps = client.api.build(
            fileobj=_context({**recipe.files, "ca.pem": ca_bundle}),
            custom_context=True,
            tag=recipe.tag,
            labels=recipe.labels,
            buildargs={
                "BASE": recipe.base,
                "GPUS": "all" if recipe.labels["tfcompare.flavour"] == "gpu" else "void",
                **proxies,
            },
            # The builder then reaches the index the way this machine does: its DNS, its VPN, its own proxies.
            network_mode="host",
            rm=True,
            forcerm=True,
            decode=True,
        )
        _follow(steps, recipe.version, recipe.base, log)
        return str(client.images.get(recipe.tag).id)
    except APIError as error:
        raise EnvironmentFailed(_failure(recipe.version, recipe.base, str(error.explanation or error), log)) from error


def _follow(steps: Iterable[dict[str, Any]], version: str, base: str, log: BuildLog) -> None:
    """Logs a build or a pull as it goes, without the bars of its downloads."""
    error = ""
    # To its end, or its connection would be left open.
    for step in steps:
        error = step.get("error", error)
        text = step.get("stream") or ("" if step.get("progressDetail") else step.get("status")) or step.get("error", "")
        for line in text.splitlines():
            log.line(f"{step['id']}: {line}" if "id" in step else line)
    if error:
        raise EnvironmentFailed(_failure(version, base, error, log))


def _context(files: dict[str, bytes]) -> io.BytesIO:
    """Nothing in the tar but names and contents: times and owners would defeat the builder's cache."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    buffer.seek(0)
    return buffer


def _failure(version: str, base: str, error: str, log: BuildLog) -> str:
    head = f"{version}: its image could not be built"
    lowered = error.lower()
    if "manifest unknown" in lowered or "manifest for" in lowered or "repository does not exist" in lowered:
        return (
            f"{head}: the base image {base} is not in the registry ({error.strip()}). "
            "Name another with --base, or take --engine venv"
        )
    if any(word in lowered for word in ("dial tcp", "no such host", "tls handshake", "i/o timeout", "x509", "eof")):
        return (
            f"{head}: the registry of the base image {base} was not reached ({error.strip()}). "
            "Name a local base or a mirror's with --base, or take --engine venv"
        )
    return f"{head} ({error.strip()}).\n{log.tail()}\n{install_hint(log)} The whole log is {log.path}"
