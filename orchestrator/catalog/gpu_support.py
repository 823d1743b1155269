"""Decides whether a version can run on a GPU, from the table of versions and before anything is built. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator.catalog.version import Cuda, Version
from orchestrator.machine.gpu import Gpu

# The fit is unknown if the table or the GPU does not say enough. Such a version is tried.
Fit = Literal["fine", "jit", "unsupported", "unknown"]


@dataclass(frozen=True)
class Match:
    """One version on one GPU: how well they fit, why, and which version would fit instead, in words and by name."""

    version: str
    gpu: str
    fit: Fit
    reason: str
    alternative: str = ""
    nearest: str | None = None

    def __str__(self) -> str:
        return f"{self.version} on {self.gpu}: {self.reason}" + (f"; {self.alternative}" if self.alternative else "")


@dataclass(frozen=True)
class GpuSupport:
    """The GPUs of a run, how its versions fit them, and the notes for every report; empty on a CPU."""

    gpus: tuple[Gpu, ...] = ()
    matches: tuple[Match, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def slow_starts(self) -> frozenset[str]:
        """The versions without code for a GPU: at their first start, the driver compiles it or tries to."""
        return frozenset(match.version for match in self.matches if match.fit in ("jit", "unsupported"))


NO_GPUS = GpuSupport()
KNOWN = "is known to run on it"


def match_gpu(version: Version, gpu: Gpu, others: Iterable[Version]) -> Match:
    """Judge how a version fits a GPU; an alternative is chosen from `others`."""
    fit, reason = _fit(version, gpu)
    if fit != "unsupported":
        return Match(version.name, gpu.title, fit, reason)
    fine = [other for other in others if _fit(other, gpu)[0] == "fine"]
    release = _find_nearest(version.number, [other for other in fine if not other.build])
    build = _find_nearest(version.number, [other for other in fine if other.build])
    nearest = _find_nearest(version.number, fine)
    if build and build.build:
        told = f"the nearest release that runs on it is {release.number}" if release else f"no release {KNOWN}"
        of = f"{build.build.maker}'s build of {Number(build.number).base_version}"
        told = f"{told}; {build.short_name}, {of}, runs on it"
    else:
        told = f"the nearest that runs on it is {release.number}" if release else f"no version in the table {KNOWN}"
    return Match(version.name, gpu.title, fit, reason, told, nearest.short_name if nearest else None)


def _find_nearest(number: str, others: Sequence[Version]) -> Version | None:
    """Return the version whose number is nearest; if two are equally near, return the release."""
    distance = {other.number: abs(_rank(other.number) - _rank(number)) for other in others}
    return min(others, key=lambda other: (distance[other.number], bool(other.build), other.number), default=None)


def _rank(number: str) -> int:
    major, minor, *_ = Number(number).release
    return major * 100 + minor


def _fit(version: Version, gpu: Gpu) -> tuple[Fit, str]:
    flavours = version.on("gpu")
    if not flavours and version.build is None:
        if version.image:
            return "unknown", "it is an image, which is judged once it was looked into"
        return "unsupported", "the table of versions has no GPU flavour of it"
    cuda = version.build.cuda if version.build else next((each.cuda for each in flavours if each.cuda), None)
    if cuda is None:
        return "unknown", "the table of versions does not say what its GPU flavour was built for"
    return fit_cuda(cuda, gpu)


def fit_cuda(cuda: Cuda, gpu: Gpu) -> tuple[Fit, str]:
    """Judge how a build for a CUDA fits a GPU; return the fit and why."""
    if _older(gpu.driver, cuda.driver):
        return "unsupported", f"its CUDA {cuda.number} needs driver {cuda.driver} or newer (installed: {gpu.driver})"
    capability = gpu.capability
    if capability is None:
        return "unknown", "the GPU does not say what compute capability it has"
    here = Number(capability)
    held = sorted(map(Number, cuda.compute))
    if cuda.broken_from and here >= Number(cuda.broken_from):
        return "unsupported", f"compute capability {capability} is known to fail with CUDA {cuda.number}: {cuda.broken}"
    # Code for a capability runs on all GPUs of the same major version that are not older.
    if any(number.major == here.major and number <= here for number in held):
        return "fine", f"it holds code for compute capability {capability}"
    if here < held[-1]:
        # The PTX of the last capability cannot be compiled for older GPUs.
        listed = ", ".join(map(str, held))
        return "unsupported", f"it holds code for compute capability {listed}, the GPU has {capability}"
    if _older(gpu.driver, cuda.jit_driver):
        return "unsupported", (
            f"it holds no code for compute capability {capability}, and driver {gpu.driver} cannot make it from the "
            f"PTX of CUDA {cuda.number}, which needs driver {cuda.jit_driver} or newer"
        )
    strange = cuda.knows is not None and here.major > Number(cuda.knows).major
    return "jit", (
        f"it holds no code for compute capability {capability}, only PTX for {held[-1]}: the driver makes code from it "
        "at the first start, which takes minutes and is kept for later runs"
    ) + (f"; its cuBLAS and cuDNN (CUDA {cuda.libraries}) are older than such GPUs, and may fail" if strange else "")


def _older(driver: str | None, least: str) -> bool:
    """Return whether a driver is older than the least one required.

    A driver that reports no number, or one in an unusual form, is assumed to be new enough: TensorFlow itself rejects
    one that is not.
    """
    try:
        return driver is not None and Number(driver) < Number(least)
    except InvalidVersion:
        return False
