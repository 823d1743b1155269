"""How a simulated or replayed run ended."""

from dataclasses import dataclass

from orchestrator.model import Contrast


@dataclass(frozen=True)
class JudgedRun:
    """The contrast with which a run ended, and the slowdown that it should have shown."""

    slowdown: float
    contrast: Contrast

    @property
    def covered(self) -> bool:
        assert self.contrast.ci_low is not None
        assert self.contrast.ci_high is not None
        return self.contrast.ci_low <= 1 + self.slowdown <= self.contrast.ci_high
