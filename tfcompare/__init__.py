"""Read finished runs from a program or a notebook: `from tfcompare import load_run`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.results.run import Run, load_run

__all__ = ["Run", "load_run"]


def __getattr__(name: str) -> Any:
    # `python -m tfcompare` passes through here, and most commands read no run.
    if name in __all__:
        from orchestrator.results import run

        return getattr(run, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
