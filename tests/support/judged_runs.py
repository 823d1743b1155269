"""How a simulated or replayed run ended."""

from dataclasses import dataclass

from orchestrator.model import Comparison


@dataclass(frozen=True)
class JudgedRun:
    """The comparison with which a run ended, and the slowdown that it should have shown."""

    slowdown: float
    comparison: Comparison

    @property
    def covered(self) -> bool:
        assert self.comparison.ci_low is not None
        assert self.comparison.ci_high is not None
        return self.comparison.ci_low <= 1 + self.slowdown <= self.comparison.ci_high
