"""A version's image: its recipe, the hash that names it, and its build by the classic builder."""

import hashlib
import io
import json
import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import docker
import requests
from docker.errors import APIError, ImageNotFound

from orchestrator import catalog
from orchestrator.catalog import lockfile, user_data
from orchestrator.catalog.backends import fetch_linked
from orchestrator.catalog.targets import TENSORFLOWS
from orchestrator.catalog.user_data import cache
from orchestrator.catalog.variables import BACKEND as KERAS_BACKEND
from orchestrator.catalog.version import Flavour, Version
from orchestrator.engines import Outlook, build_errors
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.folder_lock import exclusive
from orchestrator.errors import EnvironmentFailed

SPEC_LABEL = "tfcompare.spec"
BASE_ID = "tfcompare.base"
# This label is not part of the recipe, because all users share an image that one of them built.
BUILDER = "tfcompare.builder"
# These name the lock of a target with other packages, and the recipe of the image that its layer is above. They are not
# part of the recipe either.
TARGET = "tfcompare.target"
ABOVE = "tfcompare.above"
BASE_NAME = "org.opencontainers.image.base.name"
BASE_DIGEST = "org.opencontainers.image.base.digest"
# The Dockerfile puts the environment here.
PREFIX = "/opt/tfcompare"
# The Dockerfile puts the lock here, and COPY_BOTH also puts wheels here: the user's own, or those of another backend.
BUILD = Path("/tmp/build")  # noqa: S108 it is inside an image
COPY_LOCK, COPY_BOTH = (f"COPY lock.txt {what}{BUILD}/".encode() for what in ("", "*.whl "))
INSTALL, INSTALL_LINKED = (f"{what}-r {BUILD}/lock.txt".encode() for what in ("", f"--find-links {BUILD} "))
SHOWN_EVERY_S = 0.5
# The recipe of a layer above another image: pip installs what differs, and removes what is too much.
LAYER = """\
ARG BASE
FROM ${{BASE}}
ARG PIP_INDEX_URL
ARG PIP_TRUSTED_HOST
ARG PIP_CONFIG_FILE
USER 0
COPY lock.txt {what}ca.pem /tmp/build/
RUN if [ -s /tmp/build/ca.pem ]; then export PIP_CERT=/tmp/build/ca.pem; fi \\
 && {remove}/opt/tfcompare/bin/python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes \\
    --no-deps --no-build-isolation -r /tmp/build/lock.txt \\
 && rm -r /tmp/build
USER 65534
"""
REMOVE = "/opt/tfcompare/bin/python -m pip uninstall --yes {names} \\\n && "
# The classic builder takes these without an ARG, and keeps them out of the image and of its cache's keys.
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


@dataclass(frozen=True)
class Source:
    """The source of a build's packages: variables that make its pip ask our index server, if any, and certificates."""

    asking: dict[str, str] = field(default_factory=dict)
    ca_bundle: bytes = b""
    wheelhouse: Path | None = None


@dataclass(frozen=True)
class Recipe:
    version: str
    base: str
    files: dict[str, bytes]
    spec: str
    labels: dict[str, str]
    # This is the user's own wheel, which the lock names by its digest.
    wheel: Path | None = None
    # This is the name of the target, which need not be a version of the table.
    target: str = ""
    # The image of this recipe is the base, and has to be there first.
    below: "Recipe | None" = None
    # Wheels of this lock may come from folders and pages that only pip on this machine knows.
    linked: Path | None = None

    @property
    def tag(self) -> str:
        flavour = self.labels["tfcompare.flavour"]
        # The version of a wheel may contain a plus, which a tag cannot.
        return f"tfcompare:{self.version.replace('+', '_')}-{flavour}-{self.spec[:12]}"


def builder() -> str:
    """Return a name for this user and their data folder; it is a hash, since a pushed image carries its labels."""
    folder = os.path.realpath(user_data.folder())
    return f"{os.getuid()}-{hashlib.sha256(folder.encode()).hexdigest()[:12]}"


def name_base(override: str | None, python: str) -> str:
    """Return the base that the user named for a Python, or '' if none was named."""
    name = (override or "").replace("{python}", python)
    return add_digest(name, user_data.digests().get(name, "")) if name else ""


def add_digest(name: str, digest: str) -> str:
    return f"{name}@{digest}" if digest else name


def recipe(
    client: docker.DockerClient, version: Version, flavour: Flavour, override: str | None, base_id: str = ""
) -> Recipe:
    """Return the recipe of an image; `base_id` is the id of a local base that this engine does not know.

    A target that shares most packages with its version gets a layer above the image of that version.
    """
    if flavour.like and (difference := _find_difference(flavour.like, flavour)):
        below = recipe(client, version, flavour.like, override, base_id)
        return _recipe_above(below, version, flavour, difference)
    # The base is named by its digest if one was verified: a tag may move, and a moved base is another environment.
    base = name_base(override, flavour.python.number) or add_digest(flavour.image, flavour.digest)
    files = {
        "Dockerfile": catalog.DOCKERFILE.read_bytes(),
        **{
            name: f"{catalog.forbid_builds(path)}\n".encode() + lockfile.content(path)
            for name, path in (("pip.txt", flavour.pip_lock), ("lock.txt", flavour.lock))
        },
    }
    linked = None if version.number else flavour.lock
    if flavour.wheel or linked:
        assert COPY_LOCK in files["Dockerfile"]
        files["Dockerfile"] = files["Dockerfile"].replace(COPY_LOCK, COPY_BOTH)
    if linked:
        assert INSTALL in files["Dockerfile"]
        files["Dockerfile"] = files["Dockerfile"].replace(INSTALL, INSTALL_LINKED)
    if flavour.wheel:
        files["lock.txt"] = lockfile.locate_wheel(files["lock.txt"], BUILD / flavour.wheel.name)
    # The id distinguishes a base without a digest from a later one of the same name.
    local = _base_id(client, base) or base_id if override and "@" not in base else ""
    digest = hashlib.sha256(f"{base} {local}".encode())
    for name, content in files.items():
        digest.update(f"\n{name} {len(content)}\n".encode() + content)
    spec = digest.hexdigest()
    # An image of another backend of Keras has no TensorFlow, and is named after that backend.
    number = version.number or version.variables[KERAS_BACKEND]
    labels = {
        SPEC_LABEL: spec,
        "tfcompare.version": number,
        "tfcompare.flavour": flavour.name,
        "tfcompare.lock": catalog.lock_hash(flavour),
        "tfcompare.python": flavour.python.number,
        "org.opencontainers.image.title": f"tfcompare {'TensorFlow' if version.number else 'Keras on'} {number}",
        "org.opencontainers.image.version": number,
        "org.opencontainers.image.revision": spec,
        BASE_NAME: base.partition("@")[0],
        BASE_DIGEST: base.partition("@")[2],
        BASE_ID: local,
        **_name_target(version, flavour),
    }
    return Recipe(number, base, files, spec, labels, flavour.wheel, version.name, linked=linked)


def _name_target(version: Version, flavour: Flavour) -> dict[str, str]:
    """Return a label for an image that no version of the tables has; its value tells nothing else of the target."""
    if version.changes is None:
        return {}
    plain = catalog.find_version(version.number)
    usual = (*(plain.flavours if plain else ()), *(each.like for each in version.flavours))
    return {} if flavour in usual else {TARGET: flavour.lock.stem}


def _find_difference(like: Flavour, flavour: Flavour) -> lockfile.LockDifference | None:
    """Return how the packages of a target differ from those of its version, or None if too many do."""
    difference = lockfile.compare_locks(like.lock, flavour.lock)
    changed = {lockfile.normalize(pin.name) for pin in difference.changed}
    total = difference.alike + len(changed)
    is_near = changed and not TENSORFLOWS & changed and difference.alike >= lockfile.LEAST_SHARED * total
    return difference if is_near else None


def _recipe_above(
    below: Recipe, version: Version, flavour: Flavour, difference: lockfile.LockDifference
) -> Recipe:  # fmt: skip
    # pip leaves an installed package alone if a wheel of the same number is in a file.
    replaced = [difference.changed[-1].name] if flavour.wheel else []
    gone = [*difference.gone, *replaced]
    remove = REMOVE.format(names=" ".join(gone)) if gone else ""
    pins = "".join(f"{lockfile.write_pin(pin)}\n" for pin in difference.changed)
    lock = f"{catalog.forbid_builds(flavour.lock)}\n{pins}".encode()
    files = {
        "Dockerfile": LAYER.format(remove=remove, what="*.whl " if flavour.wheel else "").encode(),
        "lock.txt": lockfile.locate_wheel(lock, BUILD / flavour.wheel.name) if flavour.wheel else lock,
    }
    digest = hashlib.sha256(below.spec.encode())
    for name, content in files.items():
        digest.update(f"\n{name} {len(content)}\n".encode() + content)
    spec = digest.hexdigest()
    about = {SPEC_LABEL: spec, "tfcompare.lock": catalog.lock_hash(flavour), ABOVE: below.spec}
    about |= _name_target(version, flavour)
    labels = {**below.labels, **about, "org.opencontainers.image.revision": spec}
    return Recipe(version.number, below.tag, files, spec, labels, flavour.wheel, version.name, below)


def _base_id(client: docker.DockerClient, reference: str) -> str:
    """Return the id of a base.

    If the base is no longer here or never was, the id comes from the newest image built on it: what was built or loaded
    can be run without its base.
    """
    if here := local_id(client, reference):
        return here
    built = client.api.images(filters={"label": [SPEC_LABEL, f"{BASE_NAME}={reference}"]})
    base_ids = [(entry["Created"], entry["Labels"][BASE_ID]) for entry in built if entry["Labels"].get(BASE_ID)]
    return str(max(base_ids)[1]) if base_ids else ""


def local_id(client: docker.DockerClient, reference: str) -> str:
    try:
        return str(client.images.get(reference).id)
    except ImageNotFound:
        return ""


def find_missing(client: docker.DockerClient, reference: str, what: str = "base") -> Outlook | None:
    """Return an `impossible` outlook if this image is neither here nor in a registry that answers, or else None."""
    try:
        if not local_id(client, reference):
            client.images.get_registry_data(reference)
    except (APIError, requests.RequestException) as error:
        text = f"its {what} {reference.partition('@')[0]} is neither here nor available from its registry"
        return Outlook("impossible", text, detail=str(getattr(error, "explanation", "") or error).strip())
    return None


def fetch(client: docker.DockerClient, version: str, reference: str, python: str, log: BuildLog) -> None:
    """Pull a base unless it is here.

    The recipe of a base that the user chose contains the id of the base. If the build itself pulled it, the next recipe
    would have another hash.
    """
    if local_id(client, reference):
        return
    if message := pull(client, reference, log):
        raise _failure(version, message, build_errors.of_image(message, "", base=reference, python=python), log)


def pull(client: docker.DockerClient, reference: str, log: BuildLog) -> str:
    """Pull an image; return the message if that failed, or ''."""
    log.line(f"pulling {reference}")
    try:
        return _follow(client.api.pull(reference, stream=True, decode=True), log)
    except APIError as error:
        return str(error.explanation or error)


def existing(client: docker.DockerClient, recipe: Recipe) -> str | None:
    """Return the id of the image that was built from exactly this recipe, or None."""
    try:
        image = client.images.get(recipe.tag)
    except ImageNotFound:
        return None
    return str(image.id) if image.labels.get(SPEC_LABEL) == recipe.spec else None


def size(client: docker.DockerClient, identity: str) -> int:
    """Return the size of an image with all that it is built on, which other images may share."""
    return int(client.images.get(identity).attrs["Size"])


def build_once(client: docker.DockerClient, recipe: Recipe, find_source: Callable[[], Source], log: BuildLog) -> str:
    """Build an image unless another process has; two that build it at once would make two images of one name."""
    if recipe.below:
        build_once(client, recipe.below, find_source, log)
    with exclusive(
        cache() / "images" / recipe.spec, lambda: log.line(f"another process builds {recipe.tag}; waiting for it")
    ):
        return existing(client, recipe) or _build(client, recipe, find_source(), log)


def _build(client: docker.DockerClient, recipe: Recipe, source: Source, log: BuildLog) -> str:
    log.line(f"building {recipe.tag} from {recipe.base}")
    proxies = {name: value for name, value in os.environ.items() if name.upper() in PROXIES}
    all_labels = {**recipe.labels, BUILDER: builder()}
    # All labels are in one line, because the builder makes a container and a layer for each that is passed separately.
    labels = " ".join(f"{name}={json.dumps(value)}" for name, value in sorted(all_labels.items()))
    dockerfile = recipe.files["Dockerfile"] + f"\nLABEL {labels}\n".encode()
    files = {**recipe.files, "Dockerfile": dockerfile, "ca.pem": source.ca_bundle}
    # The archive is a file, because a wheel may be larger than the free memory.
    with tempfile.TemporaryFile() as archive:
        with tempfile.TemporaryDirectory(prefix="tfcompare-wheels-") as made:
            wheels = [recipe.wheel] if recipe.wheel else []
            if recipe.linked:
                # What is missing here may be on the index of the build, which says so itself if it is not.
                if missing := fetch_linked(recipe.linked, recipe.labels["tfcompare.python"], Path(made)):
                    log.line(missing)
                wheels += sorted(Path(made).glob("*.whl"))
            _write_context(archive, files, wheels)
        try:
            steps = client.api.build(
                fileobj=archive,
                custom_context=True,
                tag=recipe.tag,
                buildargs={
                    "BASE": recipe.base,
                    "GPUS": "all" if recipe.labels["tfcompare.flavour"] == "gpu" else "void",
                    **(source.asking or proxies),
                },
                # The builder then reaches the index like this machine: with the same DNS, VPN and proxies.
                network_mode="host",
                rm=True,
                forcerm=True,
                decode=True,
            )
            message = _follow(steps, log)
        except APIError as error:
            message = str(error.explanation or error)
    if message:
        python = recipe.labels["tfcompare.python"]
        failure = build_errors.of_image(message, log.end, base=recipe.base, python=python, wheelhouse=source.wheelhouse)
        raise _failure(recipe.target or recipe.version, message, failure, log)
    return str(client.images.get(recipe.tag).id)


def _follow(steps: Iterable[dict[str, Any]], log: BuildLog) -> str:
    """Log a build or a pull while it runs; return the error that it ended with, or ''.

    The progress of a download is shown, and is not logged.
    """
    error, download = "", Download()
    # The stream is read to its end, because its connection would be left open otherwise.
    for step in steps:
        error = step.get("error", error)
        if progress := download.update(step):
            log.show(progress)
        text = step.get("stream") or ("" if step.get("progressDetail") else step.get("status")) or step.get("error", "")
        for line in text.splitlines():
            log.line(f"{step['id']}: {line}" if "id" in step else line)
    return error


class Download:
    """The layers that a pull downloads, and the progress of each."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._layers: dict[str, tuple[int, int]] = {}
        self._begun = self._shown = clock()

    def update(self, step: dict[str, Any]) -> str:
        """Return size and speed, at most every half second, and '' otherwise."""
        detail = step.get("progressDetail")
        if not detail or step.get("status") != "Downloading":
            return ""
        self._layers[str(step.get("id"))] = int(detail.get("current") or 0), int(detail.get("total") or 0)
        now = self._clock()
        if now - self._shown < SHOWN_EVERY_S:
            return ""
        self._shown = now
        done, total = (sum(figures) / 1e6 for figures in zip(*self._layers.values(), strict=True))
        return f"downloading: {done:.0f} of {max(done, total):.0f} MB, {done / (now - self._begun):.1f} MB/s"


def _write_context(archive: IO[bytes], files: dict[str, bytes], wheels: Iterable[Path]) -> None:
    """Write a tar archive with nothing but names and contents: times and owners would defeat the builder's cache."""
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in sorted(files.items()):
            tar.addfile(_entry(name, len(content)), io.BytesIO(content))
        for wheel in wheels:
            with wheel.open("rb") as file:
                tar.addfile(_entry(wheel.name, os.fstat(file.fileno()).st_size), file)
    archive.seek(0)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry


def _failure(version: str, message: str, failure: build_errors.Failure | None, log: BuildLog) -> EnvironmentFailed:
    head = "its image could not be built"
    log_end = f"{log.tail()}\nThe whole log is {log.path}"
    if failure is None:
        return EnvironmentFailed(f"{head} ({message.strip()}). {build_errors.UNKNOWN}", target=version, detail=log_end)
    if build_errors.STEP.search(message):
        return EnvironmentFailed(f"{head}: {failure}", target=version, detail=log_end)
    return EnvironmentFailed(f"{head}: {failure.what} ({message.strip()}). {failure.advice}", target=version)
