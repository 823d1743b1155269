"""The part of docs/gpu.md that follows from the table of versions: what releases need, and which GPUs they fit."""

import re

from orchestrator import catalog
from orchestrator.catalog.gpu_support import Fit, match_gpu
from orchestrator.catalog.version import Cuda, Version
from orchestrator.machine.gpu import Gpu

PART = re.compile(r"(?P<begin><!-- judged:.*?-->\n).*(?P<end><!-- /judged -->)", re.DOTALL)
NEW_DRIVER = "580.65.06"
GPUS = {
    "P100": "6.0", "V100": "7.0", "T4": "7.5", "A100": "8.0", "RTX 3090": "8.6", "L4, RTX 4090": "8.9",
    "H100, H200": "9.0", "B200": "10.0", "RTX 5090": "12.0",
}  # fmt: skip
WORDS: dict[Fit, str] = {"fine": "fine", "jit": "JIT", "unsupported": "**no**", "unknown": "?"}


def gpu_page(now: str) -> str:
    """Return the page with this part rewritten."""
    return PART.sub(lambda match: f"{match['begin']}\n{_tables()}\n{match['end']}", now)


def _tables() -> str:
    listed = (*catalog.releases(), *catalog.list_builds())
    releases = [(version, cuda) for version in listed if (cuda := _cuda(version))]
    heads = [f"{name}<br>{capability}" for name, capability in GPUS.items()]
    lines = [
        f"With a driver of today ({NEW_DRIVER}):", "",
        _row("release", "CUDA", "driver", "for PTX", "code for", *heads), "|---" * (5 + len(heads)) + "|",
    ]  # fmt: skip
    for version, cuda in releases:
        fits = (WORDS[match_gpu(version, _gpu(*gpu), ()).fit] for gpu in GPUS.items())
        needs = (version.aliases[0], cuda.number, cuda.driver, cuda.jit_driver, " ".join(cuda.compute))
        lines.append(_row(*needs, *fits))
    return "\n".join(lines) + "\n"


def _cuda(version: Version) -> Cuda | None:
    if version.build:
        return version.build.cuda
    return next((flavour.cuda for flavour in version.on("gpu") if flavour.cuda), None)


def _gpu(name: str, capability: str) -> Gpu:
    return Gpu(0, None, name, capability, NEW_DRIVER, None, None, None, None)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
