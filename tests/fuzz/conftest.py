"""How many inputs each property gets: a few in every test run, FUZZ_EXAMPLES=100000 in `make fuzz`."""

import os

from hypothesis import HealthCheck, settings

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
