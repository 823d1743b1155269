"""Checks of what this machine can run: engine, GPUs, interpreters and disk for the requested versions."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from orchestrator import catalog
from orchestrator.catalog.gpu_support import Match, match_gpu
from orchestrator.catalog.version import Version
from orchestrator.doctor import DoctorFinding
from orchestrator.engines import CPU_GB, ENGINES, GPU_GB, Engine, Outlook
from orchestrator.errors import EngineUnavailable
from orchestrator.machine.gpu import SHARE, Gpu, find_gpus
from orchestrator.machine.host import free_gb
from orchestrator.options import EngineOptions
from orchestrator.parallel import run_parallel
from orchestrator.terminal.strict_json import pick


@dataclass(frozen=True)
class EngineOutlook:
    """The outlook of one version on one engine: what preparing it would do, or why that is impossible."""

    version: str
    engine: str
    outlook: Outlook

    @property
    def possible(self) -> bool:
        return self.outlook.state != "impossible"

    @property
    def ready(self) -> bool:
        return self.outlook.state == "ready"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The engines, GPUs and disks of this machine, for the requested versions.

    `engine` describes the preferred engine in one line, or is empty if it does not answer; `unavailable` then says why.
    """

    versions: tuple[str, ...]
    gpu: bool
    engine: str
    unavailable: EngineUnavailable | None
    ways: tuple[EngineOutlook, ...]
    gpus: tuple[Gpu, ...]
    matches: tuple[Match, ...]
    disks: tuple[tuple[str, float], ...]

    def possible(self, version: str) -> list[EngineOutlook]:
        return [way for way in self.ways if way.version == version and way.possible]

    @property
    def unable(self) -> tuple[str, ...]:
        """The requested versions that cannot run here."""
        refused = {match.version for match in self.matches if self.gpu and match.fit == "unsupported"}
        blind = self.gpu and not self.gpus
        return tuple(number for number in self.versions if blind or number in refused or not self.possible(number))


def examine_setup(versions: Sequence[Version], options: EngineOptions) -> Setup:
    usable: dict[str, Engine] = {}
    lines: dict[str, str] = {}
    unavailable = None
    for name, info in ENGINES.items():
        engine = info.make(options)
        try:
            lines[name] = engine.check()
            usable[name] = engine
        except EngineUnavailable as error:
            unavailable = unavailable or error
    asked = [(version, name, engine) for version in versions for name, engine in usable.items()]
    try:
        ways = run_parallel(lambda request: _way(*request), asked)
        stores = [store for engine in usable.values() if (store := engine.storage())]
    finally:
        for engine in usable.values():
            engine.close()
    seen_gpus = find_gpus()
    gpu_versions = [version for version in catalog.all_versions() if version.on("gpu") or version.build]
    return Setup(
        versions=tuple(version.number for version in versions),
        gpu=options.gpu,
        engine=lines.get(next(iter(ENGINES)), ""),
        unavailable=unavailable,
        ways=tuple(ways),
        gpus=seen_gpus,
        matches=tuple(match_gpu(version, gpu, gpu_versions) for version in versions for gpu in seen_gpus),
        disks=tuple((what, free_gb(folder)) for what, folder in sorted(stores)),
    )


def _way(version: Version, name: str, engine: Engine) -> EngineOutlook:
    try:
        return EngineOutlook(version.number, name, engine.outlook(version))
    except EngineUnavailable as error:
        return EngineOutlook(version.number, name, Outlook("impossible", str(error)))


def list_setup_findings(setup: Setup) -> Iterator[DoctorFinding]:
    if setup.engine:
        yield DoctorFinding("engine", "fine", setup.engine)
    else:
        assert setup.unavailable is not None
        # Docker may answer and lack only what --gpu needs.
        advice = setup.unavailable.advice if setup.gpu else "start Docker for isolated versions"
        taken = "" if setup.gpu and not setup.gpus else "; virtual environments are used instead"
        yield DoctorFinding("engine", "note", f"{setup.unavailable.what}{taken}", advice)
    yield from _versions(setup)
    yield from _gpus(setup)
    waiting = [number for number in setup.versions if not any(way.ready for way in setup.possible(number))]
    needed = len(waiting) * (GPU_GB if setup.gpu else CPU_GB)
    for what, free in setup.disks:
        text = f"{free:.0f} GB free for {what}; versions that are not ready need about {needed:.0f} GB"
        if free < needed:
            yield DoctorFinding("disk", "problem", text, "free some space, or set TFCOMPARE_CACHE to another disk")
        else:
            yield DoctorFinding("disk", "fine", text)


def _versions(setup: Setup) -> Iterator[DoctorFinding]:
    """Describe each engine's outlook; quote each message only once, and none for a version that is ready."""
    explained: set[str] = set()
    for number in setup.versions:
        ways = [way for way in setup.ways if way.version == number]
        is_ready = any(way.ready for way in ways)
        texts = []
        for way in ways:
            brief = is_ready or way.outlook.text in explained
            texts.append(f"{way.engine}: {replace(way.outlook, detail='') if brief else way.outlook}")
        if not is_ready:
            explained.update(way.outlook.text for way in ways)
        outlooks = "; ".join(texts) or "no engine is available"
        if ways and ways[0].outlook.state == "impossible" and (other := next((way for way in ways if way.ready), None)):
            outlooks += f"; {ENGINES[other.engine].title} are used instead"
        if is_ready:
            yield DoctorFinding(number, "fine", outlooks)
        elif setup.possible(number):
            yield DoctorFinding(
                number, "note", outlooks, "its first run makes it ready; so does `tfcompare images build`"
            )
        else:
            # If there is no engine, the finding about the engine says what to do.
            usual = "name a base with --base, or install a Python that it runs on" if ways else ""
            advice = next((way.outlook.advice for way in ways if way.outlook.advice), usual)
            yield DoctorFinding(number, "problem", outlooks, advice)


def _gpus(setup: Setup) -> Iterator[DoctorFinding]:
    if not setup.gpus:
        if setup.gpu:
            yield DoctorFinding(
                "GPU", "problem", "no GPU found by NVML or nvidia-smi",
                "see whether `nvidia-smi` works here, and run `pip install 'tfcompare[gpu]'`",
            )  # fmt: skip
        return
    for gpu in setup.gpus:
        capability = f", compute capability {gpu.capability}" if gpu.capability else ""
        yield DoctorFinding(f"GPU {gpu.index}", "fine", f"{gpu}{capability}")
        if gpu.linked is False:
            yield DoctorFinding(
                f"GPU {gpu.index}", "problem" if setup.gpu else "note", "its links to other GPUs are not ready",
                "`systemctl start nvidia-fabricmanager`; until then, CUDA does not start",
            )  # fmt: skip
        if gpu.mode == "exclusive":
            yield DoctorFinding(
                f"GPU {gpu.index}", "note", "takes one process at a time (its compute mode)",
                f"measure with --gpu-exclusive, or {SHARE}",
            )  # fmt: skip
        elif gpu.mode == "prohibited":
            yield DoctorFinding(f"GPU {gpu.index}", "problem", "takes no process (its compute mode)", SHARE)
        for part in gpu.slices:
            yield DoctorFinding(f"GPU {gpu.index}", "fine", f"slice {part.uuid} ({part.name}); select it with --gpus")
    for match in setup.matches:
        if match.fit == "unsupported":
            yield DoctorFinding(
                f"{match.version} on GPU", "problem" if setup.gpu else "note", f"{match.gpu}: {match.reason}",
                match.alternative,
            )  # fmt: skip
        elif match.fit == "jit":
            yield DoctorFinding(f"{match.version} on GPU", "note", f"{match.gpu}: {match.reason}")
        else:
            yield DoctorFinding(f"{match.version} on GPU", "fine", f"{match.gpu}: {match.reason}")


def setup_as_object(setup: Setup) -> dict[str, Any]:
    return {
        **pick(setup, "engine? engine_said=unavailable gpu_asked=gpu"),
        "versions": [
            {
                "version": number,
                "can_run": number not in setup.unable,
                "ways": [pick(way, "version engine outlook possible") for way in setup.ways if way.version == number],
                "gpus": [asdict(match) for match in setup.matches if match.version == number],
            }
            for number in setup.versions
        ],
        "gpus": [asdict(gpu) for gpu in setup.gpus],
        "disk": [{"for": what, "free_gb": round(free, 1)} for what, free in setup.disks],
    }
