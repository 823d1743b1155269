"""Compare TensorFlow versions from a program or a notebook, and read finished runs.

`from tfcompare import compare_targets, load_run`
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfcompare.notebook import Run, compare_targets, load_run

__all__ = ["Run", "compare_targets", "load_run"]


def __getattr__(name: str) -> Any:
    # `python -m tfcompare` passes through here, and most commands read no run.
    if name in __all__:
        from tfcompare import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
