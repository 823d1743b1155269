"""A limit for what one input may take."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

# Far below what one hostile file could make a reader take, and above what Python and Arrow keep for later.
MOST_MORE_MB = 100


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Raise AssertionError if this process needed much more memory than ever before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown_mb <= MOST_MORE_MB, f"one input took {grown_mb} MB"
