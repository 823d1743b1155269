"""The host side: plans, engines, statistics and reports. Programs use `from tfcompare import load_run`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.results.run import Run, load_run

__all__ = ["Run", "load_run"]


def __getattr__(name: str) -> Any:
    # Earlier releases told programs to import from here. Every module of this package passes through this file, so
    # nothing is imported before it is asked for.
    if name in __all__:
        from orchestrator.results import run

        return getattr(run, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
