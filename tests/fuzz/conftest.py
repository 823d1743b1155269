"""How many inputs each property gets: a few in every test run, FUZZ_EXAMPLES=100000 in `make fuzz`."""

import os
import resource
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Far below what one hostile file could make a reader take, and above what Python and Arrow keep for later.
MOST_MORE_MB = 300

examples = int(os.environ.get("FUZZ_EXAMPLES", "150"))
settings.register_profile(
    "fuzz",
    max_examples=examples,
    # The same inputs in every test run, so that a failure is always the change's; others in each `make fuzz`.
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("fuzz")


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """Fail a test whose inputs made this process take much more memory than before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown_mb <= MOST_MORE_MB, f"the inputs of this test took {grown_mb} MB"
